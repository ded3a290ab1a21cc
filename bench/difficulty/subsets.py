"""A part of a pool that says most about systems, and by how much its estimate of the whole pool's mean is off.

Items are taken by information, p (1 - p) averaged over fitted abilities. Its error is measured on families of systems
that were left out of choice and fit (as in tinyBenchmarks, Polo et al. 2024): the mean of the pool is estimated from
the answers to the chosen items, and for the others from the ability that these give.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.bench.difficulty.response_theory import (
    IntArray,
    ResponseModel,
    estimate_ability,
    fit_responses,
)
from calibrant.dsl.errors import CalibrantError

if TYPE_CHECKING:
    from calibrant.bench.difficulty.outcomes import OutcomeTable

RANDOM_SUBSETS = 20


@dataclass(frozen=True)
class SubsetError:
    """Absolute error of the estimated mean of a pool over systems that were left out: its mean, and the worst."""

    mean: float
    worst: float


@dataclass(frozen=True)
class Subset:
    """Chosen items, in the pool's order.

    rows: of the table of outcomes; error: of this way of choosing; random_error: of random subsets of equal size
    families: that were left out one at a time
    """

    rows: tuple[int, ...]
    error: SubsetError
    random_error: SubsetError
    families: int


def choose_subset(table: OutcomeTable, number: int, families: Mapping[str, str], seed: int = 0) -> Subset:
    """Return the most informative items; `CalibrantError` where nothing can be fitted.

    families: of systems; one that is not named is a family of its own
    """
    rows, answers = table.binary()
    if not 1 <= number < len(rows):
        raise CalibrantError(
            f"{number} items of the {len(rows)} that all systems answered; 1 to {len(rows) - 1} can be taken"
        )
    model = fit_responses(answers, "rasch", rows)
    family_of = [families.get(system, system) for system in table.systems]
    names = sorted(set(family_of))
    if len(names) < 2:
        raise CalibrantError(
            "one family of systems: the error is measured on families that are left out, two are needed"
        )
    errors: list[float] = []
    random_errors: list[float] = []
    rng = random.Random(seed)
    for name in names:
        tested = [k for k, family in enumerate(family_of) if family == name]
        fitted_systems = [k for k in range(len(family_of)) if k not in tested]
        inner = fit_responses(answers[:, fitted_systems], "rasch", range(len(rows)))
        chosen = _most_informative(inner, number)
        random_subsets = [sorted(rng.sample(range(len(rows)), number)) for _ in range(RANDOM_SUBSETS)]
        for system in tested:
            truth = float(answers[:, system].mean())
            errors.append(abs(_estimate(inner, chosen, answers[:, system], answers[:, fitted_systems]) - truth))
            random_errors += [abs(float(answers[subset, system].mean()) - truth) for subset in random_subsets]
    return Subset(
        tuple(sorted(_most_informative(model, number))), _summary(errors), _summary(random_errors), len(names)
    )


def _most_informative(model: ResponseModel, number: int) -> list[int]:
    """Return the most informative fitted items, the first of equals."""
    information = model.information
    order = sorted(range(len(model.items)), key=lambda k: (-information[k], k))
    return [model.items[k] for k in order[:number]]


def _estimate(model: ResponseModel, chosen: Sequence[int], answers: IntArray, fitted_answers: IntArray) -> float:
    """Return the estimated mean over all items of a system that answered the chosen ones.

    fitted_answers: [item, system] of the fitted systems, for items that all of these answered alike
    """
    place = {row: k for k, row in enumerate(model.items)}
    ability = estimate_ability(model, [place[row] for row in chosen], answers[list(chosen)])
    predicted = model.probabilities(np.array([ability]))[:, 0]
    answered, total = set(chosen), 0.0
    for row in range(len(answers)):
        if row in answered:
            total += float(answers[row])
        else:
            total += float(predicted[place[row]]) if row in place else float(fitted_answers[row].mean())
    return total / len(answers)


def _summary(errors: Sequence[float]) -> SubsetError:
    return SubsetError(float(np.mean(errors)), float(np.max(errors)))
