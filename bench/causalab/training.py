"""CausaLab for trainers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.bench.causalab.solve import LabScore
from calibrant.dsl.causalab.hypothesis import state_mechanism
from calibrant.dsl.causalab.item import LabItem


class LabTraining:
    """The frequency, and the edges of the graph, are what a share counts."""

    @property
    def stages(self) -> Sequence[str]:
        return ("3nodes", "4nodes", "5nodes", "6nodes", "7nodes", "4nodes_quad_hard")

    def difficulty(self, item: LabItem) -> Mapping[str, int]:
        edges = item.sealed.mechanism.edges
        return {"nodes": len(item.task.nodes), "settings": item.task.allowance, "edges": len(edges)}

    def gold(self, item: LabItem) -> dict[str, Any] | None:
        return {"frequency": item.sealed.target, "hypothesis": state_mechanism(item.sealed.mechanism)}

    def share(self, item: LabItem, verdict: LabScore) -> float:
        """Half for a frequency within 5, half for the F1 of the edges."""
        return (verdict.details.accurate + verdict.details.hypothesis.all_edge.f1) / 2

    def fits(self, verdict: LabScore) -> bool:
        return verdict.correct is True

    def agrees(self, verdict: LabScore) -> bool:
        return verdict.correct is True


TRAINING = LabTraining()
