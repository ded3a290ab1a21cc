"""Checks of a copy and its map: nothing that a file of variants states about itself is believed.

A right map turns the original's record into the copy's, what its kind of change may change apart. Beside that: as many
hypotheses fit, and mapped answers (the gold, and the one that stands in for none) have the verdicts of the originals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.audits.why import Why
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.runs.reasons import explain_item
from calibrant.bench.variants.contract import VARIANTS, CopyMap, rename_json
from calibrant.dsl.errors import CalibrantError


class VariantChecker:
    """Checks copies of the items of one benchmark; what belongs to an original is computed once."""

    def __init__(self, of: Benchmark[Any]) -> None:
        self._of = of
        self._variable = of.require(VARIANTS)
        self._counts: dict[str, tuple[str, str]] = {}

    def problem(self, original: Any, copy: Any, stated: CopyMap) -> str:
        """Return why a copy is not the image of its original under a map; empty if it is."""
        if stated.kind not in self._variable.kinds:
            return "its kind of change is unknown"
        if not all(map(_is_permutation, (stated.names, *stated.values.values()))):
            return "the map is not a permutation of names"
        try:
            mapped = self._variable.map_record(self._of.items.record(original), stated)
            form = self._variable.normal_form(mapped, stated.kind)
        except CalibrantError as error:
            return f"the map cannot be applied: {error}"
        if form != self._variable.normal_form(self._of.items.record(copy), stated.kind):
            return "the map does not turn the original into the copy"
        if original.id not in self._counts:
            self._counts[original.id] = self._count(original)
        if self._count(copy) != self._counts[original.id]:
            return "another number of hypotheses fits the copy"
        return self._verdict_problem(original, copy, stated)

    def _verdict_problem(self, original: Any, copy: Any, stated: CopyMap) -> str:
        gold = self._of.training.gold(original)
        wrong = None if gold is None or not stated.names else rename_json(gold, stated.names)
        for answer in (gold, wrong, self._of.scoring.no_answer(original)):
            if answer is None:
                continue
            if self._is_right(original, answer) != self._is_right(copy, self._variable.map_answer(answer, stated)):
                return "a mapped answer has another verdict"
        return ""

    def _count(self, item: Any) -> tuple[str, str]:
        """Return bounds of the number of hypotheses that fit, equal where the count is exact."""
        why = explain_item(self._of, item)
        return (why.count.lower, why.count.upper or "") if isinstance(why, Why) else ("", "")

    def _is_right(self, item: Any, answer: Mapping[str, Any]) -> bool:
        return self._of.metrics.success.is_right(self._of.scoring.score(item, answer, ()), item.setting)


def _is_permutation(names: Mapping[str, str]) -> bool:
    return set(names) == set(names.values())
