"""Exact features of items: how many hypotheses fit, what they decide, how large the least one is, and labels."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2
from typing import Any

from calibrant.audits.why import Why
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import FUNCTIONS, TRAINING
from calibrant.bench.runs.reasons import explain_item
from calibrant.bench.training import LABELS
from calibrant.dsl.errors import CalibrantError
from calibrant.solvers.outcome import Found

MEMBERS, DECIDED, SIZE = "log2_members", "decided_share", "least_size"
MEANINGS: Mapping[str, str] = {
    MEMBERS: "binary logarithm of the hypotheses that fit, or of their certified lower bound",
    DECIDED: "share of what is asked on which all of them agree",
    SIZE: "size of the exact solver's answer",
    **LABELS,
}


def item_features(of: Benchmark[Any], item: Any) -> Mapping[str, float]:
    """Return the features that an item has, by name; those that cannot be had within the usual budgets are left out."""
    features: dict[str, float] = {}
    why = explain_item(of, item)
    if isinstance(why, Why):
        if int(why.count.lower) > 0:
            features[MEMBERS] = log2(int(why.count.lower))
        number = len(why.open) + len(why.decided)
        if number:
            features[DECIDED] = len(why.decided) / number
    size = _least_size(of, item)
    if size is not None:
        features[SIZE] = size
    return features | {name: float(value) for name, value in of.require(TRAINING).difficulty(item).items()}


def _least_size(of: Benchmark[Any], item: Any) -> int | None:
    try:
        outcome = of.require(FUNCTIONS).solve(item)
    except CalibrantError:
        return None
    return outcome.value.size if isinstance(outcome, Found) else None
