"""The contract of engines: is there a member, is there a second one, how many up to N; `registry` lists them.

Every model that an engine returns was replayed by the reference (solvers.replayscm.certified). Budgets are in states,
never in seconds; what a state is, each engine says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from calibrant.dsl.replayscm.problem import Task
from calibrant.dsl.replayscm.scm import LocalFunction, Scm
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.replayscm.certified import certified_model
from calibrant.solvers.replayscm.version_space import ModelClass

Functions: TypeAlias = Mapping[str, LocalFunction]
"""A member: the local function of every endogenous variable; all other variables are roots."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Exactly `number` members, or at least that many and others besides when `more` is set."""

    number: int
    more: bool


class Engine(Protocol):
    """Answers about the members of a class that fit a task's training worlds.

    Two models are the same member iff they have the same roots and the same local functions.
    """

    @property
    def name(self) -> str:
        """Return how reports call it."""

    def first(self, task: Task, model_class: ModelClass, *, budget: Budget | None = None) -> Outcome[Scm]:
        """Some member."""

    def second(self, task: Task, model_class: ModelClass, other: Scm, *, budget: Budget | None = None) -> Outcome[Scm]:
        """A member that is not `other`, which is usually what `first` found and need not be a member."""

    def count_up_to(
        self, task: Task, model_class: ModelClass, limit: int, *, budget: Budget | None = None
    ) -> Counted | OutOfBudget:
        """Return how many members there are, counting no further than `limit`."""


# --- engines that find one member after another ----------------------------------------------------------------------


class MemberSearch(Protocol):
    """The members of a class, in any order, as a solver finds them."""

    def another(self) -> Functions | None:
        """A member that is not blocked, None if there is none; `BudgetSpent` if that was not decided."""

    def block(self, functions: Functions) -> None:
        """From now on leave this member out."""

    def close(self) -> None:
        """Give back what the solver holds."""


@dataclass(frozen=True)
class Enumeration:
    """An engine that asks for a member, blocks it, and asks again.

    members: opens the search; it closes at the end of each question
    """

    name: str
    members: Callable[[Task, ModelClass, Budget], MemberSearch]

    def first(self, task: Task, model_class: ModelClass, *, budget: Budget | None = None) -> Outcome[Scm]:
        try:
            with closing(self.members(task, model_class, budget or Budget())) as members:
                return outcome_of(task, model_class, members.another(), "no member")
        except BudgetSpent:
            return OutOfBudget("no member found so far")

    def second(self, task: Task, model_class: ModelClass, other: Scm, *, budget: Budget | None = None) -> Outcome[Scm]:
        try:
            with closing(self.members(task, model_class, budget or Budget())) as members:
                members.block(other.local_functions)
                return outcome_of(task, model_class, members.another(), "no other member")
        except BudgetSpent:
            return OutOfBudget("no other member found so far")

    def count_up_to(
        self, task: Task, model_class: ModelClass, limit: int, *, budget: Budget | None = None
    ) -> Counted | OutOfBudget:
        number = 0
        try:
            with closing(self.members(task, model_class, budget or Budget())) as members:
                while (functions := members.another()) is not None:
                    if number == limit:
                        return Counted(number, more=True)
                    number += 1
                    members.block(functions)
                return Counted(number, more=False)
        except BudgetSpent:
            return OutOfBudget(f"{number} members found so far", number)


def outcome_of(task: Task, model_class: ModelClass, functions: Functions | None, none: str) -> Outcome[Scm]:
    """Return what an engine says of a question: the certified model, or that there is none."""
    if functions is None:
        return Impossible(f"{none}: {model_class.describe(task)}")
    return Found(certified_model(task, model_class.max_parents, functions))
