"""Success of systems on items: outcomes, exact features, and the models that relate them.

In simulations with 30 items, a Rasch difficulty correlates with the truth by about .7 for 8 systems and by .84 for 16;
a discrimination needs hundreds. Linacre (1994, rasch.org/rmt74m) requires 27 to 61 persons for stable Rasch items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from calibrant.audits.why import Why
from calibrant.bench.answers.rates import SystemKey, exact_mean, system_names
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import FUNCTIONS, TRAINING
from calibrant.bench.core.registry import one_benchmark
from calibrant.bench.report.sources import items_of_pools, scored_answers
from calibrant.bench.runs.audits import explain_item
from calibrant.bench.training import LABELS
from calibrant.dsl.errors import CalibrantError, MissingExtraError
from calibrant.dsl.text import plural
from calibrant.solvers.outcome import Found

# --- Outcomes of systems on the items of a pool, as a table of right and wrong ----------------------------------------
if TYPE_CHECKING:
    from calibrant.bench.core.metrics import Item

    FloatArray = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class OutcomeTable:
    """Outcomes by item and system.

    rates: [item, system], share of right answers, NaN for items without an answer of the system
    num_answers: [item, system], number of answers of which `rates` has the mean
    strata: stratum of each item; keys: identity of each item over pools
    """

    benchmark: Benchmark[Any]
    keys: tuple[Item, ...]
    items: tuple[Any, ...]
    strata: tuple[str, ...]
    systems: tuple[str, ...]
    rates: FloatArray
    num_answers: IntArray

    def binary(self) -> tuple[tuple[int, ...], np.ndarray[Any, np.dtype[np.int64]]]:
        """Return the rows that all systems answered, and [row, system]: 1 if at least half of answers are right."""
        complete = tuple(int(k) for k in np.flatnonzero(~np.isnan(self.rates).any(axis=1)))
        return complete, (self.rates[list(complete)] >= 0.5).astype(np.int64)


def read_outcomes(runs: Sequence[Path], pools: Sequence[Path]) -> OutcomeTable:
    """Return the outcomes of runs and scored files on the items of pools; `CalibrantError` if there is none.

    A system with several options counts as one system for each. Items without a right answer are left out.
    """
    bench = one_benchmark(pools)
    items = items_of_pools(bench.name, pools)
    judge = bench.metrics.success.rate
    sums: dict[tuple[Item, SystemKey], list[float]] = {}
    configs: dict[SystemKey, Mapping[str, Any]] = {}
    strata: dict[Item, str] = {}
    for context, score in scored_answers(runs):
        key = (context.pool_digest, context.instance)
        if key in items and (right := judge(score, context.setting)) is not None:
            strata[key] = context.stratum or context.setting
            configs[SystemKey.of(context)] = context.config
            sums.setdefault((key, SystemKey.of(context)), []).append(right)
    if not sums:
        names = ", ".join(path.name for path in pools)
        raise CalibrantError(f"no scored answer to an item of {names}; give runs, or files of calibrant score, of it")
    keys = tuple(key for key in items if key in strata)
    systems = tuple(sorted(configs))
    texts = system_names(configs)
    rates = np.full((len(keys), len(systems)), np.nan)
    num_answers = np.zeros(rates.shape, np.int64)
    for row, key in enumerate(keys):
        for column, system in enumerate(systems):
            answers = sums.get((key, system))
            if answers:
                rates[row, column] = exact_mean(answers)
                num_answers[row, column] = len(answers)
    return OutcomeTable(
        bench,
        keys,
        tuple(items[key] for key in keys),
        tuple(strata[key] for key in keys),
        tuple(texts[key] for key in systems),
        rates,
        num_answers,
    )


# --- Exact features of items: number of fitting hypotheses, share of decided queries, least size, and labels ----------
MEMBERS, DECIDED, SIZE = "log2_members", "decided_share", "least_size"
MEANINGS: Mapping[str, str] = {
    MEMBERS: "binary logarithm of the hypotheses that fit, or of their certified lower bound",
    DECIDED: "share of what is asked on which all of them agree",
    SIZE: "size of the exact solver's answer",
    **LABELS,
}


def item_features(bench: Benchmark[Any], item: Any) -> Mapping[str, float]:
    """Return feature -> value of an item, without features that the usual budgets do not suffice for."""
    features: dict[str, float] = {}
    why = explain_item(bench, item)
    if isinstance(why, Why):
        if int(why.count.lower) > 0:
            features[MEMBERS] = log2(int(why.count.lower))
        number = len(why.open) + len(why.decided)
        if number:
            features[DECIDED] = len(why.decided) / number
    size = _least_size(bench, item)
    if size is not None:
        features[SIZE] = size
    return features | {name: float(value) for name, value in bench.require(TRAINING).difficulty(item).items()}


def _least_size(bench: Benchmark[Any], item: Any) -> int | None:
    try:
        outcome = bench.require(FUNCTIONS).solve(item)
    except CalibrantError:
        return None
    return outcome.value.size if isinstance(outcome, Found) else None


# --- Success explained by exact features: a logistic model, and its prediction of systems that were left out ----------
RIDGE = 0.01  # penalty per answer, by which coefficients stay finite if a feature separates right from wrong answers
MIN_SYSTEMS = 2
EPSILON = 1e-6  # least distance of probabilities from 0 and 1 in the log loss


@dataclass(frozen=True)
class Coefficient:
    """Change of the log odds of a right answer per standard deviation of a feature, over all systems.

    mean, deviation: of the feature over items
    """

    feature: str
    mean: float
    deviation: float
    log_odds: float


@dataclass(frozen=True)
class HeldOut:
    """Quality of the prediction of systems that are left out, one at a time.

    auc: probability that a right answer has a higher prediction than a wrong one; mean over systems with both, None
        without any
    log_loss: mean over outcomes, natural logarithm
    """

    auc: float | None
    log_loss: float


@dataclass(frozen=True)
class DifficultyFit:
    """A logistic model of success.

    coefficients: by decreasing size; by_features, by_stratum: quality of held-out prediction by features and by the
        stratum's rate alone
    num_items, num_answers: numbers of fitted items and answers
    num_outcomes: number of fitted outcomes, one for each item and system: the mean of its answers
    left_out: first missing feature -> number of items without it
    """

    coefficients: tuple[Coefficient, ...]
    by_features: HeldOut
    by_stratum: HeldOut
    num_items: int
    num_answers: int
    num_outcomes: int
    systems: tuple[str, ...]
    left_out: Mapping[str, int]

    @property
    def has_samples(self) -> bool:
        """Whether an outcome is the mean of several answers."""
        return self.num_answers > self.num_outcomes


def fit_difficulty(table: OutcomeTable, features: Sequence[Mapping[str, float]]) -> DifficultyFit:
    """Fit success by the features that vary over items.

    `CalibrantError` for fewer than two systems, and for outcomes that are all equal.
    """
    if len(table.systems) < MIN_SYSTEMS:
        raise CalibrantError(
            f"{len(table.systems)} system; systems are left out one at a time, so two or more are needed"
        )
    names = sorted({name for row in features for name in row})
    rows = [k for k, row in enumerate(features) if len(row) == len(names)]
    left_out: dict[str, int] = {}
    for row in features:
        missing = next((name for name in names if name not in row), None)
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
    for left_out_system in range(len(table.systems)):
        test, train = system == left_out_system, system != left_out_system
        inner = np.hstack([standard[item[train]], np.ones((int(train.sum()), 1))])
        weights = _fit(inner, rates[train])
        by_features[test] = _probability(np.hstack([standard[item[test]], np.ones((int(test.sum()), 1))]) @ weights)
        by_stratum[test] = _stratum_rates(strata[item[train]], rates[train], strata[item[test]])
    return DifficultyFit(
        coefficients,
        _held_out(by_features, rates, system, len(table.systems)),
        _held_out(by_stratum, rates, system, len(table.systems)),
        len(rows),
        int(table.num_answers[rows].sum()),
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
    """Return each new stratum's rate after adding half a right and half a wrong answer; unseen ones get the mean."""
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
    """Return the area under the ROC curve, with ties counted half; None if only one outcome occurs."""
    right, wrong = predicted[rates >= 0.5], predicted[rates < 0.5]
    if not len(right) or not len(wrong):
        return None
    higher = (right[:, None] > wrong[None, :]).sum() + 0.5 * (right[:, None] == wrong[None, :]).sum()
    return float(higher / (len(right) * len(wrong)))


# --- Item response models by girth: Rasch for at least 8 systems and 30 items, two parameters for at least 100 systems
IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
ModelName: TypeAlias = Literal["rasch", "2pl"]

MIN_SYSTEMS_1PL, MIN_ITEMS = 8, 30
MIN_SYSTEMS_2PL = 100


@dataclass(frozen=True)
class ResponseModel:
    """A fitted item response model on the scale of standard normal abilities.

    items: fitted rows of the table; constant: rows that were not fitted because all systems answered alike
    difficulty, standard_error, discrimination: of each fitted item; ability: posterior mean of each system
    """

    name: ModelName
    items: tuple[int, ...]
    constant: tuple[int, ...]
    difficulty: FloatArray
    standard_error: FloatArray
    discrimination: FloatArray
    ability: FloatArray

    def probabilities(self, ability: FloatArray) -> FloatArray:
        """Return [item, system], the probabilities of right answers at these abilities."""
        log_odds = self.discrimination[:, None] * (ability[None, :] - self.difficulty[:, None])
        return np.asarray(1 / (1 + np.exp(-log_odds)), dtype=np.float64)

    @property
    def information(self) -> FloatArray:
        """Return the information a^2 p (1 - p) of each fitted item, averaged over the fitted abilities."""
        p = self.probabilities(self.ability)
        return np.asarray((self.discrimination[:, None] ** 2 * p * (1 - p)).mean(axis=1), dtype=np.float64)


def fit_responses(answers: IntArray, name: ModelName = "rasch", rows: Sequence[int] | None = None) -> ResponseModel:
    """Fit a model to [item, system] of 0 and 1; `CalibrantError` for fewer items or systems than the model needs.

    rows: row of each item in the result, by default its index
    """
    num_items, num_systems = answers.shape
    least = MIN_SYSTEMS_2PL if name == "2pl" else MIN_SYSTEMS_1PL
    if num_systems < least or num_items < MIN_ITEMS:
        kind = "a model of two parameters" if name == "2pl" else "a Rasch model"
        raise CalibrantError(
            f"{plural(num_items, 'items')} that all of {plural(num_systems, 'systems')} answered;"
            f" {kind} needs {MIN_ITEMS} items and {least} systems"
        )
    labels = list(range(num_items)) if rows is None else list(rows)
    varying = [k for k in range(num_items) if 0 < answers[k].sum() < num_systems]
    if len(varying) < MIN_ITEMS:
        raise CalibrantError(f"{len(varying)} of {num_items} items tell systems apart, and {MIN_ITEMS} are needed")
    girth = _girth()
    used = answers[varying]
    fitted = girth.twopl_mml(used) if name == "2pl" else girth.rasch_mml(used)
    difficulty = np.asarray(fitted["Difficulty"], dtype=np.float64)
    discrimination = np.broadcast_to(np.asarray(fitted["Discrimination"], dtype=np.float64), difficulty.shape).copy()
    ability = np.asarray(girth.ability_eap(used, difficulty, discrimination), dtype=np.float64)
    constant = tuple(labels[k] for k in range(num_items) if k not in set(varying))
    model = ResponseModel(
        name,
        tuple(labels[k] for k in varying),
        constant,
        difficulty,
        np.zeros_like(difficulty),
        discrimination,
        ability,
    )
    p = model.probabilities(ability)
    # from the information about b at the fitted abilities as if they were known, so a lower bound of the error
    error = 1 / np.sqrt((discrimination[:, None] ** 2 * p * (1 - p)).sum(axis=1))
    return replace(model, standard_error=error)


def estimate_ability(model: ResponseModel, columns: Sequence[int], answers: IntArray) -> float:
    """Return the posterior mean of a system's ability from its answers to some of the fitted items.

    columns: indices into the model's items
    """
    girth = _girth()
    chosen = list(columns)
    estimated = girth.ability_eap(answers.reshape(-1, 1), model.difficulty[chosen], model.discrimination[chosen])
    return float(np.asarray(estimated)[0])


def _girth() -> Any:
    try:
        return import_module("girth")
    except ImportError:
        raise MissingExtraError("girth is missing; run: pip install 'calibrant[statistics]'") from None
