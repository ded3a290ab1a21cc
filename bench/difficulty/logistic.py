"""Success explained by exact features: a logistic model, and how well it predicts systems that it has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.dsl.errors import CalibrantError, MissingExtraError

if TYPE_CHECKING:
    from calibrant.bench.difficulty.outcomes import OutcomeTable

    FloatArray = np.ndarray[Any, np.dtype[np.float64]]

RIDGE = 0.01  # penalty per answer on standardised coefficients: finite where a feature separates right from wrong
MIN_SYSTEMS = 2
EPSILON = 1e-6  # of probabilities in the log loss


@dataclass(frozen=True)
class Coefficient:
    """Change of the log odds of a right answer with one standard deviation of a feature, over all systems."""

    feature: str
    mean: float
    deviation: float
    log_odds: float


@dataclass(frozen=True)
class HeldOut:
    """Prediction of systems that were left out, one at a time.

    auc: probability that a right answer was predicted higher than a wrong one, mean over systems that have both
    log_loss: mean over answers, natural logarithm
    """

    auc: float | None
    log_loss: float


@dataclass(frozen=True)
class DifficultyFit:
    """A logistic model of success.

    coefficients: by falling size; features, strata: held-out prediction by features, and by the stratum's rate alone
    num_items, num_answers: used; left_out: items without all features, by name of the first that lacks
    """

    coefficients: tuple[Coefficient, ...]
    by_features: HeldOut
    by_stratum: HeldOut
    num_items: int
    num_answers: int
    systems: tuple[str, ...]
    left_out: Mapping[str, int]


def fit_difficulty(table: OutcomeTable, features: Sequence[Mapping[str, float]]) -> DifficultyFit:
    """Fit success on features that vary.

    `CalibrantError` for fewer than two systems, and for outcomes that are all alike
    """
    if len(table.systems) < MIN_SYSTEMS:
        raise CalibrantError(
            f"{len(table.systems)} system; systems are left out one at a time, so two or more are needed"
        )
    names = sorted({name for of in features for name in of})
    rows = [k for k, of in enumerate(features) if len(of) == len(names)]
    left_out: dict[str, int] = {}
    for of in features:
        missing = next((name for name in names if name not in of), None)
        if missing is not None:
            left_out[missing] = left_out.get(missing, 0) + 1
    if not rows:
        raise CalibrantError("no item has all features")
    matrix = np.array([[features[k][name] for name in names] for k in rows], dtype=np.float64)
    varying = [column for column in range(len(names)) if np.ptp(matrix[:, column]) > 0]
    means, deviations = matrix[:, varying].mean(axis=0), matrix[:, varying].std(axis=0)
    standard = (matrix[:, varying] - means) / deviations
    item, system = np.nonzero(~np.isnan(table.rates[rows]))
    rates = table.rates[rows][item, system]
    if rates.min() == rates.max():
        raise CalibrantError("all answers are right, or all are wrong: nothing to explain")
    one_hot = (system[:, None] == np.arange(len(table.systems))).astype(np.float64)
    whole = _fit(np.hstack([standard[item], one_hot]), rates)
    order = sorted(range(len(varying)), key=lambda k: -abs(whole[k]))
    coefficients = tuple(
        Coefficient(names[varying[k]], float(means[k]), float(deviations[k]), float(whole[k])) for k in order
    )
    strata = np.array([table.strata[k] for k in rows])
    by_features, by_stratum = np.empty(len(rates)), np.empty(len(rates))
    for number in range(len(table.systems)):
        test, train = system == number, system != number
        inner = np.hstack([standard[item[train]], np.ones((int(train.sum()), 1))])
        weights = _fit(inner, rates[train])
        by_features[test] = _probability(np.hstack([standard[item[test]], np.ones((int(test.sum()), 1))]) @ weights)
        by_stratum[test] = _stratum_rates(strata[item[train]], rates[train], strata[item[test]])
    return DifficultyFit(
        coefficients,
        _held_out(by_features, rates, system, len(table.systems)),
        _held_out(by_stratum, rates, system, len(table.systems)),
        len(rows),
        len(rates),
        table.systems,
        left_out,
    )


def _fit(design: FloatArray, rates: FloatArray) -> FloatArray:
    """Return the coefficients of a ridge logistic regression."""
    models, families = _library("generalized_linear_model"), _library("families")
    fitted = models.GLM(rates, design, family=families.Binomial()).fit_regularized(alpha=RIDGE, L1_wt=0.0)
    return np.asarray(fitted.params, dtype=np.float64)


def _library(module: str) -> Any:
    # not statsmodels.api, which imports time series too: those of 0.14.5 do not load beside pandas 3
    try:
        return import_module(f"statsmodels.genmod.{module}")
    except ImportError:
        raise MissingExtraError("statsmodels is missing; run: pip install 'calibrant[statistics]'") from None


def _probability(log_odds: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-log_odds)), dtype=np.float64)


def _stratum_rates(strata: Any, rates: FloatArray, new_strata: Any) -> FloatArray:
    """Return the rate of each new stratum, half a right and half a wrong answer added; of others that of all."""
    overall = float(rates.mean())
    by_stratum = {name: (rates[strata == name].sum() + 0.5) / ((strata == name).sum() + 1) for name in set(strata)}
    return np.array([by_stratum.get(name, overall) for name in new_strata], dtype=np.float64)


def _held_out(predicted: FloatArray, rates: FloatArray, system: Any, num_systems: int) -> HeldOut:
    areas = [
        area for k in range(num_systems) if (area := _area(predicted[system == k], rates[system == k])) is not None
    ]
    clipped = np.clip(predicted, EPSILON, 1 - EPSILON)
    loss = -(rates * np.log(clipped) + (1 - rates) * np.log(1 - clipped))
    return HeldOut(float(np.mean(areas)) if areas else None, float(loss.mean()))


def _area(predicted: FloatArray, rates: FloatArray) -> float | None:
    """Return the area under the ROC curve, ties counted half; None without both outcomes."""
    right, wrong = predicted[rates >= 0.5], predicted[rates < 0.5]
    if not len(right) or not len(wrong):
        return None
    higher = (right[:, None] > wrong[None, :]).sum() + 0.5 * (right[:, None] == wrong[None, :]).sum()
    return float(higher / (len(right) * len(wrong)))
