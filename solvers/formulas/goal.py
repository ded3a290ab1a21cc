"""What exact synthesis asks for, and what it answers with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from calibrant.dsl.formulas.operators import OPERATORS


class Goal(NamedTuple):
    """The functions that are `value` wherever `care` is set; wanted is the one with the least (bits & keep) ^ flip.

    care, value: rows that are determined, and their values there (0 elsewhere)
    keep, flip: the score of a function may be that of a larger one of which it becomes an argument
    """

    care: int
    value: int
    keep: int
    flip: int

    def score(self, bits: int) -> int:
        return (bits & self.keep) ^ self.flip

    @property
    def floor(self) -> int:
        """No function that agrees has a smaller score."""
        return (self.score(self.value) & self.care) | (self.flip & ~self.keep & ~self.care)

    def shifted(self, bits: int) -> Goal:
        """The goal for a function whose parity with `bits` meets this one."""
        return self._replace(value=(self.value ^ bits) & self.care, flip=self.flip ^ (bits & self.keep))


def exactly(bits: int, full: int) -> Goal:
    """The goal that one function meets; `full` are all rows."""
    return Goal(full, bits, 0, 0)


class Listed(NamedTuple):
    """A function of a catalogue, at that position."""

    bits: int
    size: int
    position: int


class Decomposed(NamedTuple):
    """An operator applied to parts; under `and`, `or`, `xor` a part may stand for several arguments."""

    bits: int
    size: int
    operator: str
    parts: tuple[Part, ...]


Part: TypeAlias = "Listed | Decomposed"


def split(operator: str, parts: Iterable[Part], size: int, full: int) -> Decomposed:
    chosen = tuple(parts)
    return Decomposed(OPERATORS[operator].bits([part.bits for part in chosen], full), size, operator, chosen)
