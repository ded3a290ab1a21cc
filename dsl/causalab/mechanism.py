"""Mechanisms of CausaLab: every node is a base plus weighted powers of its parents (arXiv 2605.26029, section 2).

The base of the resonance frequency is a number of the mechanism; the base of a property belongs to the crystal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError as GraphCycleError
from graphlib import TopologicalSorter
from typing import NamedTuple, TypeAlias

from calibrant.dsl.errors import CycleError

FREQUENCY = "resonanceFreq"

Edge: TypeAlias = tuple[str, str]  # (parent, child)
Values: TypeAlias = Mapping[str, float]  # one number per node, or per property


class Term(NamedTuple):
    """weight * parent ** power; the power is 1 or 2."""

    parent: str
    power: int
    weight: float


@dataclass(frozen=True, slots=True)
class Equation:
    """A node's terms in the order in which they are added; `base` is None where it belongs to the crystal."""

    terms: tuple[Term, ...] = ()
    base: float | None = None

    @property
    def parents(self) -> frozenset[str]:
        return frozenset(term.parent for term in self.terms)


@dataclass(frozen=True)
class Mechanism:
    """One equation for each node, the frequency among them.

    equations: in the order of the file, which is the order in which crystals draw their bases
    """

    equations: Mapping[str, Equation]

    def __post_init__(self) -> None:
        if FREQUENCY not in self.equations:
            raise ValueError(f"no equation for {FREQUENCY}")
        for node, equation in self.equations.items():
            if (equation.base is None) != (node != FREQUENCY):
                raise ValueError(f"{node}: only {FREQUENCY} has a base of its own")
            for term in equation.terms:
                if term.parent not in self.equations:
                    raise ValueError(f"{node}: unknown parent {term.parent}")
                if term.power not in (1, 2):
                    raise ValueError(f"{node}: power {term.power}; 1 and 2 are meant")
            if len({term[:2] for term in equation.terms}) != len(equation.terms):
                raise ValueError(f"{node}: two terms of one parent and power")
        _ = self.order  # a cycle is found here

    def __repr__(self) -> str:
        return f"<Mechanism: {len(self.equations)} nodes, {len(self.edges)} edges>"

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The nodes, parents first; `CycleError` if there is no such order."""
        try:
            return tuple(TopologicalSorter({node: e.parents for node, e in self.equations.items()}).static_order())
        except GraphCycleError as error:
            raise CycleError(tuple(dict.fromkeys(error.args[1]))) from None

    @cached_property
    def drawn(self) -> tuple[str, ...]:
        """The properties in the order in which a crystal draws their bases."""
        return tuple(node for node in self.equations if node != FREQUENCY)

    @cached_property
    def properties(self) -> tuple[str, ...]:
        """The properties, sorted."""
        return tuple(sorted(self.drawn))

    @cached_property
    def edges(self) -> frozenset[Edge]:
        return frozenset((p, node) for node, equation in self.equations.items() for p in equation.parents)

    @property
    def frequency(self) -> Equation:
        return self.equations[FREQUENCY]

    @cached_property
    def frequency_base(self) -> float:
        return self.frequency.base or 0.0

    @cached_property
    def all_weights(self) -> Mapping[tuple[str, str, int], float]:
        """The weight of every term, by parent, node and power."""
        return {(term.parent, node, term.power): term.weight for node, e in self.equations.items() for term in e.terms}

    def weights(self, node: str, power: int = 1) -> dict[str, float]:
        """Return the weights of a node's terms of one power, by parent."""
        return {term.parent: term.weight for term in self.equations[node].terms if term.power == power}
