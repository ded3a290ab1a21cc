"""Outcomes of a solver: an answer, a proof that there is none, or an exhausted budget. Never None."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from calibrant.dsl.errors import in_one_line

MAX_REASON_CHARS = 140  # of a reason in a repr; `str` has all of it

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Found(Generic[T_co]):
    """An answer that was certified by the reference."""

    value: T_co


def _shortened(text: str) -> str:
    """Return a reason for a repr of one line."""
    line = in_one_line(text)
    return line if len(line) <= MAX_REASON_CHARS else line[: MAX_REASON_CHARS - 3] + "..."


@dataclass(frozen=True, slots=True, repr=False)
class Impossible:
    """There is no answer; `exhausted` names the class of candidates that was searched completely."""

    exhausted: str

    def __repr__(self) -> str:
        return f"<Impossible: {_shortened(self.exhausted)}>"

    def __str__(self) -> str:
        return f"impossible: {self.exhausted}"


@dataclass(frozen=True, slots=True, repr=False)
class OutOfBudget:
    """The budget ran out before the question was decided; nothing may be concluded but what is stated here.

    reached: how far the search got, in words
    lower_bound: proven lower bound of the objective, if there is one
    """

    reached: str
    lower_bound: int | None = None

    def __repr__(self) -> str:
        bound = "" if self.lower_bound is None else f", at least {self.lower_bound}"
        return f"<{type(self).__name__}: {_shortened(self.reached)}{bound}>"

    def __str__(self) -> str:
        return f"not decided: {self.reached}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BestSoFar(OutOfBudget, Generic[T_co]):
    """The budget ran out with an incumbent that is not proven to be optimal.

    value: an answer that was certified by the reference
    upper_bound: its cost; nothing costs less than `lower_bound`
    """

    # a kind of OutOfBudget, not of Found: code that matches `Found` never takes an unproven answer for a proven one
    value: T_co
    upper_bound: int


Outcome: TypeAlias = Found[T] | Impossible | OutOfBudget
