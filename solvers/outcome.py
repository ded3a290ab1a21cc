"""Outcomes of solvers: found, impossible or out of budget; and the budget.

Budgets are in states, not in seconds: the same budget gives the same answer on every machine. Only integer programs
(solvers.acyclic.integer_program) have a limit in seconds, after which they return their bound and incumbent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Generic, Never, TypeAlias, TypeVar

from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.pictures import Picture, Pictured

# --- Budgets in states, not in seconds: the same budget gives the same answer on every machine ------------------------
LEAST_SCM_STATES = 2_000_000_000  # functions that a formula search may compare, in under two seconds; pools need none


class BudgetSpent(Exception):  # noqa: N818  # a signal between parts of a solver, not an error; callers see OutOfBudget
    """More states were requested than remain."""


class Undecided(BudgetSpent):
    """A search for a minimum ended without deciding it, as the budget ran out or for another reason.

    at_least: proven lower bound of the minimum
    reached: the other reason in words; None if the budget ran out
    incumbent: the best assignment so far, as variable -> value; None without one
    """

    def __init__(self, at_least: int, reached: str | None = None, incumbent: Mapping[int, int] | None = None) -> None:
        super().__init__(reached or f"at least {at_least}")
        self.at_least = at_least
        self.reached = reached
        self.incumbent = incumbent


class Budget:
    """Countdown of the states that a search may visit.

    Each solver says what a state is, such as a function compared or a node of a search tree. States are charged before
    the work on them is done.
    """

    __slots__ = ("_exhausted", "states", "used")

    def __init__(self, states: int | None = None) -> None:
        """Allow at most that many states; None sets no limit.

        states: number that remain, None without a limit
        used: number charged so far
        """
        if states is not None and states < 0:
            raise ValueError(f"a budget of {states} states; it is 0 or more, or None for no limit")
        self.states = states
        self.used = 0
        self._exhausted = False

    @property
    def exhausted(self) -> bool:
        """Whether more states were requested than there were."""
        return self._exhausted

    def spend(self, states: int) -> None:
        """Charge states; raise `BudgetSpent` if fewer remain, and at every later call."""
        if self.states is not None:
            # all later requests are refused too: a cheaper one would otherwise pass, and part of a search be skipped
            if self._exhausted or states > self.states:
                self._exhausted = True
                raise BudgetSpent
            self.states -= states
        self.used += states

    def __repr__(self) -> str:
        return f"Budget(states={self.states}, used={self.used})"


# --- Outcomes of a solver: an answer, a proof that there is none, or an exhausted budget ------------------------------
MAX_REASON_CHARS = 140  # characters of a reason in a repr; `str` has all of it

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Found(Pictured, Generic[T_co]):
    """An answer that was certified by the reference."""

    value: T_co

    def picture(self) -> Picture:
        """Return the picture of the value; its repr if it has none."""
        if isinstance(self.value, Pictured):
            drawing = self.value.picture()
            return replace(drawing, title=f"Found: {drawing.title}")
        return Picture("Found", text=repr(self.value))


def _shortened(text: str) -> str:
    """Return a reason for a repr of one line."""
    line = in_one_line(text)
    return line if len(line) <= MAX_REASON_CHARS else line[: MAX_REASON_CHARS - 3] + "..."


@dataclass(frozen=True, slots=True, repr=False)
class Impossible(Pictured):
    """There is no answer; `exhausted` names the class of candidates that was searched completely."""

    exhausted: str

    @property
    def value(self) -> Never:
        """Raise `CalibrantError` that names the exhausted class, as there is no answer."""
        raise CalibrantError(f"no value: {self}")

    def picture(self) -> Picture:
        """Return what was exhausted."""
        return Picture("Impossible: there is no answer", text=self.exhausted)

    def __repr__(self) -> str:
        return f"<Impossible: {_shortened(self.exhausted)}>"

    def __str__(self) -> str:
        return f"impossible: {self.exhausted}"


@dataclass(frozen=True, slots=True, repr=False)
class OutOfBudget(Pictured):
    """The budget ran out before the question was decided; only what the bound and the text state is proven.

    reached: how far the search got, in words
    lower_bound: proven lower bound of the objective, if there is one
    """

    reached: str
    lower_bound: int | None = None

    @property
    def value(self) -> Never:
        """Raise `CalibrantError` that says how far the search got; `BestSoFar.incumbent` is no answer."""
        raise CalibrantError(f"no value: {self}")

    def picture(self) -> Picture:
        """Return how far the search got."""
        bound = () if self.lower_bound is None else (f"at least {self.lower_bound}",)
        return Picture("Not decided: the budget ran out", bound, text=self.reached)

    def __repr__(self) -> str:
        bound = "" if self.lower_bound is None else f", at least {self.lower_bound}"
        return f"<{type(self).__name__}: {_shortened(self.reached)}{bound}>"

    def __str__(self) -> str:
        return f"not decided: {self.reached}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BestSoFar(OutOfBudget, Generic[T_co]):
    """The budget ran out with an incumbent that is not proven to be optimal.

    incumbent: an answer that was certified by the reference
    upper_bound: its cost; nothing costs less than `lower_bound`
    """

    # it has no `value`, so that no code takes an unproven answer for a proven one
    incumbent: T_co
    upper_bound: int


Outcome: TypeAlias = Found[T] | Impossible | OutOfBudget
