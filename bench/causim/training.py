"""CauSim for trainers: labels and rewards, and worked solutions of questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.audits.causim.training import ORDERS, TrainingHeader, TrainingRecord, write_training
from calibrant.bench.causim.solve import CausimScore
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.dsl.causim.values import plain
from calibrant.solvers.causim.solution import work_solution
from calibrant.solvers.outcome import Found


class CausimTraining:
    """Nodes are what a share counts."""

    @property
    def stages(self) -> Sequence[str]:
        return tuple(TOPOLOGIES)

    def difficulty(self, item: CausimItem) -> Mapping[str, int]:
        return {"nodes": len(item.task.model), "answers": item.labels.size}

    def gold(self, item: CausimItem) -> dict[str, Any] | None:
        """One of the right answers; which of them is the solver's choice."""
        outcome = work_solution(item.task.model, item.task.question)
        return plain(outcome.value.answer) if isinstance(outcome, Found) else None

    def share(self, item: CausimItem, verdict: CausimScore) -> float:
        """Nodes whose value follows from what the answer gives their parents; 0 or 1 where nodes cannot be judged."""
        if verdict.correct:
            return 1.0
        nodes = verdict.details.nodes or {}
        return sum(reason == "ok" for reason in nodes.values()) / len(nodes) if nodes else 0.0

    def fits(self, verdict: CausimScore) -> bool:
        return verdict.correct

    def agrees(self, verdict: CausimScore) -> bool:
        return verdict.correct


TRAINING = CausimTraining()


class CausimSolutions:
    """Implements WorkedSolutions (bench.core.capabilities)."""

    @property
    def orders(self) -> Sequence[str]:
        return ORDERS

    def write(self, path: Path, items: Sequence[CausimItem], order: str) -> tuple[int, int]:
        return write_training(path, items, ORDERS[ORDERS.index(order)])


WORKED_SOLUTIONS = CausimSolutions()
LINE_RECORDS = {"training": (TrainingHeader, TrainingRecord)}
