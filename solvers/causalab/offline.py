"""Laboratories without settings: solved from records and static traces."""

from __future__ import annotations

import numpy as np

from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.answer import Answer
from calibrant.solvers.causalab.evidence import Evidence
from calibrant.solvers.causalab.linear import certify_answer, solve_from_totals, total_effects
from calibrant.solvers.causalab.local import PER_UNIT, Integers
from calibrant.solvers.causalab.space import WeightedDags, frequency_equation, weighted_dags
from calibrant.solvers.outcome import Impossible, Outcome, OutOfBudget

IN_WORDS = "linear mechanisms with weights 1, 2, 3, any bases; edges between properties only where nothing else is left"


def solve_offline(evidence: Evidence) -> Outcome[Answer]:
    """Return the mechanism if every property was moved; otherwise the frequency's equation and the proven parts.

    Bases of properties are unrestricted, so a property whose parents are not decided gets none. If the frequency's
    weights are not decided otherwise, its base is assumed to be from 15 to 25.
    """
    if evidence.task.noise:
        return OutOfBudget("a noisy task without settings")
    if total_effects(evidence) is not None and not evidence.task.freq_parent:
        return solve_from_totals(evidence)
    try:
        space = weighted_dags(evidence, bounded=False)
        # the limits 15 to 25 are assumed for the frequency alone, and only where its prediction is open without them
        if len(space.verdicts()) > 1:
            space = WeightedDags(
                evidence, False, (*space.locals[:-1], weighted_dags(evidence, bounded=True).locals[-1])
            )
        return _proven_answer(space)
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))


def _proven_answer(space: WeightedDags) -> Outcome[Answer]:
    if not space.count:
        return Impossible(space.in_words)
    # bases are free: a property without parents replays every reading, so that undecided parents need no guess
    weights = [_weights(local.vectors[0]) if len(local.vectors) == 1 else {} for local in space.locals[:-1]]
    row = frequency_equation(space)
    baseline = space.evidence.table[0]
    base = float(np.rint((baseline[-1] - baseline @ row) * PER_UNIT) / PER_UNIT)
    return certify_answer(space.evidence, [*weights, _weights(row)], base, unique=space.count == 1, in_words=IN_WORDS)


def _weights(row: Integers) -> dict[int, float]:
    return {int(p): float(row[p]) for p in np.flatnonzero(row)}
