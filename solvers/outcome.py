"""What a solver says: it found an answer, there is none, or its budget ran out first. Never None."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Found(Generic[T_co]):
    """An answer that was certified by the reference."""

    value: T_co


@dataclass(frozen=True, slots=True)
class Impossible:
    """There is no answer; `exhausted` says which class of candidates was searched completely."""

    exhausted: str


@dataclass(frozen=True, slots=True)
class OutOfBudget:
    """The budget ran out before the question was decided; nothing may be concluded but what is stated here.

    reached: how far the search got, in words
    lower_bound: proven lower bound on whatever was minimised, if anything was
    """

    reached: str
    lower_bound: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BestSoFar(OutOfBudget, Generic[T_co]):
    """The budget ran out before the best answer found was proven to be the best, or a better one was found.

    value: an answer that was certified by the reference
    upper_bound: what it costs; nothing costs less than `lower_bound`
    """

    value: T_co
    upper_bound: int


Outcome: TypeAlias = Found[T] | Impossible | OutOfBudget
