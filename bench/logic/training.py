"""Logic models for trainers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.audits.logic.suites import SUITES
from calibrant.bench.logic.solve import LogicScore
from calibrant.dsl.logic.clause import model_texts
from calibrant.dsl.logic.item import LogicItem


class LogicTraining:
    """Held-out answers are what a share counts."""

    @property
    def stages(self) -> Sequence[str]:
        return tuple(SUITES)

    def difficulty(self, item: LogicItem) -> Mapping[str, int]:
        return {"edges": len(item.task.edges), "experiments": len(item.task.experiments)}

    def gold(self, item: LogicItem) -> dict[str, Any] | None:
        """Return the model behind the values, where there is one."""
        return None if item.sealed is None else {"model": model_texts(item.sealed.gold)}

    def share(self, item: LogicItem, verdict: LogicScore) -> float:
        """Return the share of held-out answers that are right."""
        return verdict.details.heldout_accuracy or 0.0

    def fits(self, verdict: LogicScore) -> bool:
        return verdict.details.fits is True

    def agrees(self, verdict: LogicScore) -> bool:
        return verdict.correct is True


TRAINING = LogicTraining()
