"""Checks of a copy and its map: nothing that a file of variants states about itself is believed.

A right map turns the original's record into the copy's, orders without a meaning apart. Beside that: as many hypotheses
fit, and the mapped gold and the mapped answer that stands in for none have the verdicts of the originals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.audits.why import Why
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.report.overview.contract import GUIDE
from calibrant.bench.runs.reasons import explain_item
from calibrant.bench.variants.contract import VARIANTS, rename_json


class VariantChecker:
    """Checks copies of the items of one benchmark; what belongs to an original is computed once."""

    def __init__(self, of: Benchmark[Any]) -> None:
        self._of = of
        self._variable = of.require(VARIANTS)
        self._counts: dict[str, tuple[str, str]] = {}

    def problem(self, original: Any, copy: Any, names: Mapping[str, str]) -> str:
        """Return why a copy is not the image of its original under a map; empty if it is."""
        if len(set(names.values())) < len(names) or set(names) != set(names.values()):
            return "the map is not a permutation of names"
        record, image = self._of.items.record(original), self._of.items.record(copy)
        mapped = rename_json(record, names, self._variable.fixed)
        if self._variable.normal_form(mapped) != self._variable.normal_form(image):
            return "the map does not turn the original into the copy"
        if original.id not in self._counts:
            self._counts[original.id] = self._count(original)
        if self._count(copy) != self._counts[original.id]:
            return "another number of hypotheses fits the copy"
        gold = self._of.training.gold(original)
        for answer in (gold, self._of.scoring.no_answer(original)):
            if answer is None:
                continue
            if self._is_right(original, answer) != self._is_right(copy, rename_json(answer, names)):
                return "a mapped answer has another verdict"
        return ""

    def _count(self, item: Any) -> tuple[str, str]:
        """Return bounds of the number of hypotheses that fit, equal where the count is exact."""
        why = explain_item(self._of, item)
        return (why.count.lower, why.count.upper or "") if isinstance(why, Why) else ("", "")

    def _is_right(self, item: Any, answer: Mapping[str, Any]) -> bool:
        return is_right(self._of, self._of.scoring.score(item, answer, ()), item.setting)


def is_right(of: Benchmark[Any], score: Mapping[str, Any], setting: str) -> bool:
    """Return whether an answer is right, as the benchmark's table counts it first."""
    guide = of.capability(GUIDE)
    if guide is not None:
        return guide.is_right(score, setting)
    return of.metrics.sample(of.metrics.verdict(score, setting, InvalidHandling.PUBLISHED)).correct
