"""Contract of engines: find a member, find a second one, count up to N; `registry` lists the engines.

Every model that an engine returns was replayed by the reference (solvers.replayscm.certified). Budgets are in states,
never in seconds; each engine states what a state is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import LocalFunction, Scm
from calibrant.solvers.outcome import Budget, BudgetSpent, Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.replayscm.certified import certify_model
from calibrant.solvers.replayscm.space import ModelClass

Functions: TypeAlias = Mapping[str, LocalFunction]
"""A member: the local function of every endogenous variable; all other variables are roots."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Exactly `number` members; more than that if `more` is set."""

    number: int
    more: bool


class Engine(Protocol):
    """Answers about the members of a class that fit a task's training worlds.

    Two models are the same member iff they have the same roots and the same local functions.
    """

    @property
    def name(self) -> str:
        """Name in reports."""

    def first(self, task: Task, model_class: ModelClass, *, budget: Budget | None = None) -> Outcome[Scm]:
        """Find some member."""

    def second(
        self, task: Task, model_class: ModelClass, excluded: Scm, *, budget: Budget | None = None
    ) -> Outcome[Scm]:
        """Find a member that is not `excluded`, usually the result of `first`; it need not be a member."""

    def count_up_to(
        self, task: Task, model_class: ModelClass, limit: int, *, budget: Budget | None = None
    ) -> Counted | OutOfBudget:
        """Count the members, no further than `limit`."""


# --- engines that find one member after another ----------------------------------------------------------------------


class MemberSearch(Protocol):
    """Members of a class, in the order in which a solver finds them."""

    def next_member(self) -> Functions | None:
        """Find a member that is not blocked; None if there is none; `BudgetSpent` if that was not decided."""

    def block(self, functions: Functions) -> None:
        """Exclude this member from now on."""

    def close(self) -> None:
        """Release the solver's memory."""


@dataclass(frozen=True)
class Enumeration:
    """Engine that finds a member, blocks it, and continues.

    members: opens the search, which is closed at the end of each question
    """

    name: str
    members: Callable[[Task, ModelClass, Budget], MemberSearch]

    def first(self, task: Task, model_class: ModelClass, *, budget: Budget | None = None) -> Outcome[Scm]:
        try:
            with closing(self.members(task, model_class, budget or Budget())) as members:
                return outcome_of(task, model_class, members.next_member(), "no member")
        except BudgetSpent:
            return OutOfBudget("no member found so far")

    def second(
        self, task: Task, model_class: ModelClass, excluded: Scm, *, budget: Budget | None = None
    ) -> Outcome[Scm]:
        try:
            with closing(self.members(task, model_class, budget or Budget())) as members:
                members.block(excluded.local_functions)
                return outcome_of(task, model_class, members.next_member(), "no other member")
        except BudgetSpent:
            return OutOfBudget("no other member found so far")

    def count_up_to(
        self, task: Task, model_class: ModelClass, limit: int, *, budget: Budget | None = None
    ) -> Counted | OutOfBudget:
        number = 0
        try:
            with closing(self.members(task, model_class, budget or Budget())) as members:
                while (functions := members.next_member()) is not None:
                    # one member beyond the limit is what proves `more`
                    if number == limit:
                        return Counted(number, more=True)
                    number += 1
                    members.block(functions)
                return Counted(number, more=False)
        except BudgetSpent:
            return OutOfBudget(f"{number} members found so far", number)


def outcome_of(task: Task, model_class: ModelClass, functions: Functions | None, negative: str) -> Outcome[Scm]:
    """Return the outcome of a search: the certified model, or that there is none."""
    if functions is None:
        return Impossible(f"{negative}: {model_class.describe(task)}")
    return Found(certify_model(task, model_class.max_parents, functions))
