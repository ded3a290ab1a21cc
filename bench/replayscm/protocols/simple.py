"""Protocols that search little or nothing: first-found, random-legal, copy-parent, majority."""

from __future__ import annotations

from calibrant.bench.protocols.base import ProtocolResult
from calibrant.bench.replayscm.extended.rows import answer_extended, is_extended
from calibrant.bench.replayscm.protocols.answers import scm_answer
from calibrant.bench.replayscm.protocols.exact import warming_task
from calibrant.bench.replayscm.protocols.plain_row import PlainRow
from calibrant.dsl.replayscm.item import Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm


class SimpleRow(PlainRow, frozen=True):
    """Base of the rows: a model or none; no answer to an Alternative-SCM task."""

    def warm_up(self) -> None:
        self.answer(warming_task())

    def model(self, task: Task) -> Scm | None:
        """Return the answer; None if the operators that are allowed cannot say it."""
        raise NotImplementedError

    def answer(self, task: Task) -> ProtocolResult:
        if task.kind is TaskKind.ALTERNATIVE:
            return ProtocolResult("impossible", provenance={"reason": "no Alternative-SCM row"})
        model = self.model(task)
        if model is None:
            return ProtocolResult("impossible", provenance={"reason": "nothing it can say fits"})
        return ProtocolResult("found", scm_answer(task.kind, model), model.size)


class FirstFound(SimpleRow, frozen=True):
    """The first parent sets in a fixed order that fit and close no cycle; what the rows do not show is 0."""

    name = "first-found"

    def model(self, task: Task) -> Scm | None:
        from calibrant.baselines.replayscm.rows import first_found

        return first_found(task)


class RandomLegal(SimpleRow, frozen=True):
    """A random legal SCM that ignores the evidence.

    seed: together with the content of the task it decides the draw
    """

    name = "random-legal"
    seed: int = 0

    def model(self, task: Task) -> Scm | None:
        from calibrant.baselines.replayscm.rows import random_legal

        return random_legal(task, self.seed)


class CopyParent(SimpleRow, frozen=True):
    """Every variable copies or negates one other, with as few wrong training cells as possible."""

    name = "copy-parent"

    def model(self, task: Task) -> Scm | None:
        from calibrant.baselines.replayscm.rows import copy_parent

        return copy_parent(task)


class Majority(SimpleRow, frozen=True):
    """Every variable has the value that it has in most of its rows."""

    name = "majority"

    def refusal(self, handout: object) -> str:
        return ""

    def answer(self, task: Task) -> ProtocolResult:
        return answer_extended(self.name, task) if is_extended(task) else super().answer(task)

    def model(self, task: Task) -> Scm | None:
        from calibrant.baselines.replayscm.rows import majority

        return majority(task)


SIMPLE = (FirstFound, RandomLegal, CopyParent, Majority)
