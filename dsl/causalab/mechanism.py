"""Mechanisms of CausaLab with their hidden noise, and the reactor that they drive.

The base of the resonance frequency is a number of the mechanism; the base of a property belongs to the crystal.

The released suites draw one value for all affected nodes from an unseeded stream. Items of ours hold a seed, and two
further kinds that no release has.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from graphlib import CycleError as GraphCycleError
from graphlib import TopologicalSorter
from typing import NamedTuple, TypeAlias

from calibrant.dsl.errors import CycleError

# --- Mechanisms of CausaLab: every node is a base plus weighted powers of its parents (arXiv 2605.26029, section 2)
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


# --- Hidden noise: at every accepted setting something is drawn and added to some nodes -------------------------------


class Draw(StrEnum):
    """The noise of one setting."""

    SHARED = "shared"  # one value, the same for all affected nodes (released)
    INDEPENDENT = "independent"  # one value for each affected node
    OBSERVED = "observed"  # one for each affected node, added to what is shown and not passed on


@dataclass(frozen=True, slots=True)
class Noise:
    """The distribution of hidden noise.

    values: what is drawn, each with equal probability
    weight: factor of a draw; a node is shifted by weight * drawn value
    affected: the nodes that are shifted
    seed: of the stream of draws; the n-th accepted setting takes the n-th draw
    """

    values: tuple[float, ...]
    weight: float
    affected: tuple[str, ...]
    seed: int
    draw: Draw = Draw.SHARED

    def stream(self) -> NoiseStream:
        return NoiseStream(self)


class NoiseStream:
    """The draws of one episode, in order."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self._random = random.Random(noise.seed)

    def shifts(self) -> Values:
        """Return the shifts of the next accepted setting, by affected node."""
        noise = self._noise
        if noise.draw is Draw.SHARED:
            return dict.fromkeys(noise.affected, noise.weight * self._random.choice(noise.values))
        return {node: noise.weight * self._random.choice(noise.values) for node in noise.affected}


# --- The reactor's dial, as the released code has it: clamped, cut to an integer, never open at the last try ----------
LOWEST, HIGHEST = 0.0, 10_000.0
TOLERANCE = 5.0
TRIES = 3


@dataclass(frozen=True, slots=True)
class Reactor:
    """State of the reactor.

    target: the crystal's frequency
    limit: tries that are answered; the last of them never activates
    dial: what the last answered try left on the dial; None before the first
    count: answered tries
    activated: whether the last try activated the reactor
    refused: whether the last try came after the limit
    """

    target: float
    limit: int = TRIES
    dial: float | None = None
    count: int = 0
    activated: bool = False
    refused: bool = False

    def dial_frequency(self, frequency: float) -> Reactor:
        """Return the reactor after a finite frequency was dialled."""
        if self.count >= self.limit:
            return Reactor(self.target, self.limit, self.dial, self.count, activated=False, refused=True)
        dialled = min(max(frequency, LOWEST), HIGHEST)
        count = self.count + 1
        hit = abs(dialled - self.target) < TOLERANCE and count < self.limit
        dial = self.target if int(dialled) == int(self.target) else float(int(dialled))
        return Reactor(self.target, self.limit, dial, count, hit and abs(dial - self.target) < TOLERANCE)


def accurate(frequency: float, target: float) -> bool:
    """Return whether a prediction counts as right, before the dial rounds or clips it."""
    return abs(frequency - target) < TOLERANCE


def winnable(target: float, limit: int = TRIES) -> bool:
    """Return whether any frequency activates the reactor: the dial ends at 10,000, and a lone try is the last."""
    return limit >= 2 and LOWEST - TOLERANCE < target < HIGHEST + TOLERANCE
