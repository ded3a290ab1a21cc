"""Items with a sealed truth: a task, and the model that its values were generated from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calibrant.dsl.errors import in_one_line
from calibrant.dsl.logic.clause import Model
from calibrant.dsl.logic.prior import is_cyclic
from calibrant.dsl.logic.task import Task


@dataclass(frozen=True, slots=True)
class Sealed:
    """The part of an item that is hidden from the solver.

    gold: the model that the values come from; answers: its noise-free answers to the task's questions
    optimum: least misfit of the class and least size at it
    """

    gold: Model
    answers: tuple[str, ...]
    optimum: tuple[int, int]

    def __repr__(self) -> str:
        return "<Sealed: the model behind the values>"


@dataclass(frozen=True)
class LogicItem:
    """One item.

    sealed: None of data without a known truth; labels: stratum, seed and difficulty
    """

    id: str
    task: Task
    sealed: Sealed | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<LogicItem {in_one_line(self.id)[:60]}: {self.task!r}>"

    @property
    def benchmark(self) -> str:
        return "logic"

    @property
    def setting(self) -> str:
        return "cyclic" if is_cyclic(self.task.edges) else "acyclic"

    @property
    def stratum(self) -> str:
        return self.labels.get("stratum", "")
