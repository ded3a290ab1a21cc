"""CauSim for trainers: labels and rewards, and worked solutions of questions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.audits.causim.generation import (
    CURRICULA,
    ORDERS,
    TrainingHeader,
    TrainingRecord,
    select_first_correct,
    write_curriculum,
    write_training,
)
from calibrant.bench.causim.solve import CausimScore
from calibrant.bench.scoring.input.json_lines import json_object, numbered_lines
from calibrant.dsl.atomic_write import write_pieces
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import plain
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.dsl.errors import CalibrantError, PoolError, short_repr
from calibrant.dsl.text import plural
from calibrant.solvers.causim.exact import Judge
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
        return verdict.correct is True

    def agrees(self, verdict: CausimScore) -> bool:
        return verdict.correct is True


TRAINING = CausimTraining()


class CausimSolutions:
    """Implements WorkedSolutions (bench.core.capabilities)."""

    @property
    def orders(self) -> Sequence[str]:
        return ORDERS

    @property
    def curricula(self) -> Sequence[str]:
        return CURRICULA

    def write(self, path: Path, items: Sequence[CausimItem], order: str) -> tuple[int, int]:
        return write_training(path, items, ORDERS[ORDERS.index(order)])

    def write_curriculum(self, folder: Path, items: Sequence[CausimItem], curriculum: str) -> Sequence[str]:
        return write_curriculum(folder, items, CURRICULA[CURRICULA.index(curriculum)])

    def select(self, path: Path, items: Sequence[CausimItem], responses: Path) -> Sequence[str]:
        by_id = {item.id: item for item in items}
        completions: dict[str, list[str]] = {}
        for instance, text in _responses(responses):
            if instance not in by_id:
                raise CalibrantError(f"{responses.name}: no instance {short_repr(instance)} in the pool")
            completions.setdefault(instance, []).append(text)
        chats, totals = select_first_correct(items, completions, _is_right)
        write_pieces(path, (f"{json.dumps(chat)}\n" for chat in chats))
        return [*totals.lines(), f"{plural(len(chats), 'chats')} written to {path}"]


def _is_right(item: CausimItem, text: str) -> bool:
    return Judge(item.task).judge_reply(text).reward == 1


def _responses(path: Path) -> list[tuple[str, str]]:
    """Return instance and text of each line, as `calibrant score` takes responses."""
    lines = []
    for number, raw in numbered_lines(path):
        try:
            record = json_object(raw) or {}
        except CalibrantError as error:
            raise PoolError(str(error), file=path.name, field=f"line {number}") from None
        instance, text = record.get("instanceId", record.get("id")), record.get("response")
        if not isinstance(instance, str) or not isinstance(text, str):
            raise PoolError("instanceId and response, two texts, are expected", file=path.name, field=f"line {number}")
        lines.append((instance, text))
    return lines


WORKED_SOLUTIONS = CausimSolutions()
LINE_RECORDS = {"training": (TrainingHeader, TrainingRecord)}
