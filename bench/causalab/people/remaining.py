"""Mechanisms that the readings of a run left open, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any

import numpy as np

from calibrant.audits.causalab.attribution import RunSpace, frequency_posterior, run_space
from calibrant.bench.report.people.remaining import Hypothesis, Remaining, first_entries
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY
from calibrant.dsl.episode import Step
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.evidence import predict_frequency
from calibrant.solvers.causalab.space import MAX_LISTED, WeightedDags

BY_FREQUENCY = "by the frequency that they predict"


def list_remaining(item: LabItem, steps: Sequence[Step[Any]], limit: int) -> Remaining | None:
    """List mechanisms, those with fewest edges first; too many, noisy or quadratic ones by predicted frequency."""
    try:
        space = run_space(item, steps)
        is_single = isinstance(space, WeightedDags) and space.count <= MAX_LISTED
        entries = _mechanisms(space) if isinstance(space, WeightedDags) and is_single else _frequencies(space)
        listed = first_entries(entries, limit)
    except BudgetSpent:
        return None
    return Remaining(("mechanism", "mechanisms"), space.count, listed, "" if is_single else BY_FREQUENCY)


def _frequencies(space: RunSpace) -> Iterator[Hypothesis]:
    """Yield the predicted frequencies; of noisy readings the most probable first, else the lowest."""
    verdicts, is_noisy = dict(space.verdicts()), frequency_posterior(space) is not None
    for value in sorted(verdicts, key=lambda v: (isnan(v), -verdicts[v] if is_noisy else 0, v)):
        share = verdicts[value] / space.count if is_noisy else None
        yield Hypothesis(_prediction(value), verdicts[value], share)


def _mechanisms(space: WeightedDags) -> Iterator[Hypothesis]:
    matrices = space.matrices
    flat = matrices.reshape(len(matrices), -1)
    for place in np.lexsort((*flat.T[::-1], (flat > 0).sum(axis=1))).tolist():
        member = space.member(matrices[place])
        edges = [
            f"{cause} -> {node} {weight:g}"
            for node in space.evidence.nodes
            for cause, weight in sorted(member.weights(node).items())
        ]
        text = ", ".join(edges) or "no edges"
        prediction = _prediction(predict_frequency(member, space.evidence))
        yield Hypothesis(f"{text}, base of {FREQUENCY} {member.frequency_base:g}: {prediction}")


def _prediction(frequency: float) -> str:
    return "frequency not determined" if isnan(frequency) else f"frequency {frequency:g}"
