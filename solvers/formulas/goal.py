"""Questions and answers of exact synthesis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from calibrant.dsl.formulas.formula import OPERATORS


class Goal(NamedTuple):
    """Question: of the functions that are `value` wherever `care` is set, the one with the least (bits & keep) ^ flip.

    care, value: rows that are determined, and their values there (0 elsewhere)
    keep, flip: the score of an argument is that of the larger function which it completes
    """

    care: int
    value: int
    keep: int
    flip: int

    def score(self, bits: int) -> int:
        return (bits & self.keep) ^ self.flip

    @property
    def floor(self) -> int:
        """Lower bound of the score of functions that agree."""
        return (self.score(self.value) & self.care) | (self.flip & ~self.keep & ~self.care)

    def shift(self, bits: int) -> Goal:
        """Return the goal for a function whose parity with `bits` meets this one."""
        return self._replace(value=(self.value ^ bits) & self.care, flip=self.flip ^ (bits & self.keep))


def exact_goal(bits: int, full: int) -> Goal:
    """Return the goal that one function meets; `full` are all rows."""
    return Goal(full, bits, 0, 0)


class Listed(NamedTuple):
    """Function of a catalogue, at that position."""

    bits: int
    size: int
    position: int


class Decomposed(NamedTuple):
    """Operator applied to parts; under `and`, `or`, `xor` a part may stand for several arguments."""

    bits: int
    size: int
    operator: str
    parts: tuple[Part, ...]


Part: TypeAlias = "Listed | Decomposed"


def make_decomposed(operator: str, parts: Iterable[Part], size: int, full: int) -> Decomposed:
    chosen = tuple(parts)
    return Decomposed(OPERATORS[operator].bits([part.bits for part in chosen], full), size, operator, chosen)
