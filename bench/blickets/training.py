"""The extended blickets for trainers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.bench.blickets.solve import BlicketScore
from calibrant.dsl.blickets.item import BlicketItem


class BlicketTraining:
    """Sets of objects on the detector are what a share counts."""

    @property
    def stages(self) -> Sequence[str]:
        return ("disjunctive", "conjunctive", "stochastic", "order", "easy-3", "hard-3", "several-switches")

    def difficulty(self, item: BlicketItem) -> Mapping[str, int]:
        first, sealed = item.sealed.mechanisms[0], item.sealed
        return {
            "objects": item.task.n,
            "moves": item.task.budget,
            "blickets": first.rule.blickets.bit_count(),
            "rules": len(sealed.mechanisms),
        }

    def gold(self, item: BlicketItem) -> dict[str, Any] | None:
        """Return the rule in force at the start; None if no answer is accepted then."""
        exposure = item.sealed.exposure
        if exposure.moves or exposure.after_switch:
            return None
        return item.sealed.mechanisms[item.sealed.phase(0, 0)].rule.as_json(item.task.objects)

    def share(self, item: BlicketItem, verdict: BlicketScore) -> float:
        """Return the share of sets of objects on which the answered rule and the rule in force agree."""
        grade = verdict.details
        if grade.correct:
            return 1.0
        if grade.answer is None:
            return 0.0
        truth, answer, sets = grade.rule_in_force, grade.answer, range(1 << item.task.n)
        alike = sum(truth.active(present) == answer.active(present) for present in sets)
        return min(alike, len(sets) - 1) / len(sets)

    def fits(self, verdict: BlicketScore) -> bool:
        return verdict.correct is True

    def agrees(self, verdict: BlicketScore) -> bool:
        return verdict.correct is True


TRAINING = BlicketTraining()
