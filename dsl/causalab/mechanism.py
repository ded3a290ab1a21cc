"""Mechanisms of laboratories, the reactor, and hypotheses about mechanisms as answers state them."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from graphlib import CycleError as GraphCycleError
from graphlib import TopologicalSorter
from typing import Any, NamedTuple, TypeAlias

from calibrant.dsl.errors import CycleError, PoolError, short_repr
from calibrant.dsl.pictures import Picture, Pictured, PictureEdge
from calibrant.dsl.text import plural

# --- Mechanisms of CausaLab: every node is a base plus weighted powers of its parents (arXiv 2605.26029, section 2)
# The base of the resonance frequency belongs to the mechanism, the base of a property to the crystal (one unit).
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
    """A node's terms in the order of their addition; `base` is None for a property, whose base is the crystal's."""

    terms: tuple[Term, ...] = ()
    base: float | None = None

    @property
    def parents(self) -> frozenset[str]:
        return frozenset(term.parent for term in self.terms)

    @property
    def text(self) -> str:
        """The equation as text: 2 a + 0.5 b^2 + 7, or + base if the base belongs to the crystal."""
        terms = [f"{term.weight:g} {term.parent}{'^2' if term.power == 2 else ''}" for term in self.terms]
        return " + ".join([*terms, "base" if self.base is None else f"{self.base:g}"])


@dataclass(frozen=True)
class Mechanism(Pictured):
    """One equation for each node, the frequency included.

    equations: in the order of the file, which is the order in which crystals draw their bases
    """

    equations: Mapping[str, Equation]

    def __post_init__(self) -> None:
        if FREQUENCY not in self.equations:
            raise ValueError(f"no equation for {FREQUENCY}")
        for node, equation in self.equations.items():
            if node == FREQUENCY and equation.base is None:
                raise ValueError(f"{node}: its equation needs a base, a number")
            if node != FREQUENCY and equation.base is not None:
                raise ValueError(
                    f"{node}: an equation of a property has no base; only {FREQUENCY}, a fixed name, has one"
                )
            for term in equation.terms:
                if term.parent not in self.equations:
                    raise ValueError(f"{node}: unknown parent {term.parent}")
                if term.power not in (1, 2):
                    raise ValueError(f"{node}: power {term.power}; 1 and 2 are meant")
            if len({term[:2] for term in equation.terms}) != len(equation.terms):
                raise ValueError(f"{node}: two terms of one parent and power")
        _ = self.order  # raises CycleError

    def picture(self) -> Picture:
        """Return the graph and the equations."""
        edges = tuple(PictureEdge(parent, child) for parent, child in sorted(self.edges))
        rows = tuple((node, equation.text) for node, equation in self.equations.items())
        title = f"Mechanism: {len(rows)} nodes, {plural(len(edges), 'edges')}"
        nodes = dict.fromkeys(self.equations, "")
        return Picture(title, nodes=nodes, edges=edges, columns=("node", "equation"), rows=rows, num_rows=len(rows))

    def __repr__(self) -> str:
        return f"<Mechanism: {len(self.equations)} nodes, {len(self.edges)} edges>"

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The nodes in topological order; `CycleError` if the graph has a cycle."""
        try:
            return tuple(TopologicalSorter({node: e.parents for node, e in self.equations.items()}).static_order())
        except GraphCycleError as error:
            raise CycleError(tuple(dict.fromkeys(error.args[1]))) from None

    @cached_property
    def nodes_with_drawn_base(self) -> tuple[str, ...]:
        """The properties, in the order in which a crystal draws their bases."""
        return tuple(node for node in self.equations if node != FREQUENCY)

    @cached_property
    def properties(self) -> tuple[str, ...]:
        """The properties, sorted."""
        return tuple(sorted(self.nodes_with_drawn_base))

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


# --- Hidden noise: at every accepted setting, draws are added to the affected nodes -----------------------------------
# In the released suites an unseeded stream draws one value for all affected nodes. Items here state a seed, and may
# have two further kinds of draws.


class Draw(StrEnum):
    """The noise of one setting."""

    SHARED = "shared"  # one value, the same for all affected nodes (released)
    INDEPENDENT = "independent"  # one value for each affected node
    OBSERVED = "observed"  # one for each affected node, added to its reading but not passed on to its children


@dataclass(frozen=True, slots=True)
class Noise:
    """The distribution of hidden noise.

    values: possible draws, equally probable
    weight: factor of a draw; a node is shifted by weight * drawn value
    affected: the nodes that are shifted
    seed: seed of the stream of draws; the n-th accepted setting takes the n-th draw
    """

    values: tuple[float, ...]
    weight: float
    affected: tuple[str, ...]
    seed: int
    draw: Draw = Draw.SHARED

    def stream(self) -> NoiseStream:
        return NoiseStream(self)


class NoiseStream:
    """Draws of one episode."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self._random = random.Random(noise.seed)

    def shifts(self) -> Values:
        """Return the shifts of the next accepted setting, by affected node."""
        noise = self._noise
        if noise.draw is Draw.SHARED:
            return dict.fromkeys(noise.affected, noise.weight * self._random.choice(noise.values))
        return {node: noise.weight * self._random.choice(noise.values) for node in noise.affected}


# --- The reactor's dial, as in the released code: clipped, truncated to an integer, never activated by the last try ---
LOWEST, HIGHEST = 0.0, 10_000.0  # ends of the dial
TOLERANCE = 5.0  # a frequency is accurate if it differs from the target by less
TRIES = 3


@dataclass(frozen=True, slots=True)
class Reactor:
    """State of the reactor.

    target: the reactor crystal's frequency
    limit: number of answered tries; the last of them never activates
    dial: value of the dial after the last answered try; None before the first
    count: number of answered tries
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
        """Return the reactor after dialling a finite frequency."""
        if self.count >= self.limit:
            return Reactor(self.target, self.limit, self.dial, self.count, activated=False, refused=True)
        dialled = min(max(frequency, LOWEST), HIGHEST)
        count = self.count + 1
        hit = abs(dialled - self.target) < TOLERANCE and count < self.limit
        dial = self.target if int(dialled) == int(self.target) else float(int(dialled))
        return Reactor(self.target, self.limit, dial, count, hit and abs(dial - self.target) < TOLERANCE)


def accurate(frequency: float, target: float) -> bool:
    """Return whether a frequency, not rounded or clipped by the dial, is right."""
    return abs(frequency - target) < TOLERANCE


def winnable(target: float, limit: int = TRIES) -> bool:
    """Return whether some frequency can activate the reactor: within the dial, by a try other than the last."""
    return limit >= 2 and LOWEST - TOLERANCE < target < HIGHEST + TOLERANCE


# --- A system's hypothesis about a laboratory: edges, the frequency equation, its weights, none of them validated -----
_ALIASES = frozenset({"freq", "frequency", "resonancefreq", "resonancefrequency"})
FILLERS = str.maketrans("", "", " _-")

WeightKey: TypeAlias = tuple[str, str, int]  # (parent, child, power)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A hypothesis of a system, as it is scored.

    edges: as stated, aliases of the frequency replaced; self-loops and unknown names count as (wrong) edges
    coefficients: JSON values by name, as stated
    weights: weights of every equation, as far as they are finite numbers; a field of ours, not in the released code
    """

    edges: frozenset[Edge] = frozenset()
    coefficients: Mapping[str, Any] = field(default_factory=dict)
    freq_equation: str = ""
    weights: Mapping[WeightKey, float] = field(default_factory=dict)


EMPTY = Hypothesis()  # that of a reply without one


def hypothesis(raw: object) -> Hypothesis:
    """Return the hypothesis of a decoded reply; a part of the wrong type counts as empty."""
    if not isinstance(raw, Mapping):
        return EMPTY
    coefficients, equation = raw.get("coefficients"), raw.get("freq_equation")
    return Hypothesis(
        stated_edges(raw),
        coefficients if isinstance(coefficients, Mapping) else {},
        equation if isinstance(equation, str) else "",
        _weights(raw.get("weights")),
    )


def node_name(name: object) -> str:
    """Return the node that a name in an edge stands for: the frequency for its aliases (in any case), else the name."""
    return _canonical_node(name if isinstance(name, str) else _text(name))


@lru_cache(maxsize=4096)
def _canonical_node(text: str) -> str:
    text = text.strip()
    return FREQUENCY if text.translate(FILLERS).lower() in _ALIASES else text


def stated_edges(raw: Mapping[str, Any]) -> frozenset[Edge]:
    """Return the edges of a decoded hypothesis."""
    entries = raw.get("edges")
    if not isinstance(entries, list):
        return frozenset()
    pairs = [ends for ends in map(ends_of, entries) if ends is not None]
    return frozenset([(node_name(parent), node_name(child)) for parent, child in pairs])


def ends_of(entry: object) -> tuple[Any, Any] | None:
    """Return the two ends of an edge entry, not parsed; None if one is missing or falsy."""
    if isinstance(entry, dict):
        ends = entry.get("from"), entry.get("to")
    elif isinstance(entry, list | tuple) and len(entry) == 2:
        ends = entry[0], entry[1]
    else:
        return None
    return ends if ends[0] and ends[1] else None


def _weights(raw: object) -> dict[WeightKey, float]:
    """Return the weights of a list of {"from", "to", "power", "value"}, a format of ours."""
    weights: dict[WeightKey, float] = {}
    for entry in raw if isinstance(raw, list) else []:
        if not isinstance(entry, dict) or (value := as_number(entry.get("value"))) is None:
            continue
        if (ends := ends_of(entry)) is not None:
            power = entry.get("power", 1)
            weights[node_name(ends[0]), node_name(ends[1]), 2 if power == 2 else 1] = value
    return weights


def as_number(value: object) -> float | None:
    """Convert a number or numeric text to a float, NaN and infinities included; None for other values and booleans."""
    if value.__class__ is float:
        return value  # the most frequent case, first for speed
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _text(value: object) -> str:
    try:
        return str(value)
    except (ValueError, RecursionError):  # an integer beyond the interpreter's digit limit; a value nested too deeply
        return short_repr(value)


def state_mechanism(mechanism: Mechanism) -> dict[str, Any]:
    """Return a mechanism as a complete hypothesis in JSON, in the form that exact solvers submit."""
    frequency = mechanism.frequency
    linear = {term.parent: term.weight for term in frequency.terms if term.power == 1}
    square = {term.parent: term.weight for term in frequency.terms if term.power == 2}
    summands = [f"c_{p}*{p}" for p in sorted(linear)] + [f"c2_{p}*{p}**2" for p in sorted(square)]
    return {
        "edges": [{"from": parent, "to": child} for parent, child in sorted(mechanism.edges)],
        "freq_equation": " + ".join([f"{FREQUENCY} = base", *summands]),
        "coefficients": {"base": frequency.base}
        | {f"c_{p}": linear[p] for p in sorted(linear)}
        | {f"c2_{p}": square[p] for p in sorted(square)},
        "weights": [
            {"from": term.parent, "to": node, "power": term.power, "value": term.weight}
            for node in sorted(mechanism.equations)
            for term in sorted(mechanism.equations[node].terms)
        ],
    }


# --- The text of a released equation, parsed: `base_X + coeff_P_X * P + coeff2_Q_X * (Q ^ 2) + ...` -------------------
# The text is parsed by a grammar and never evaluated. Parameter names abbreviate names of nodes (`freq`, `temp`), so
# they are taken from the text and never composed from these.
_NAME = r"([A-Za-z_][A-Za-z0-9_]{0,79})"
_BASE = re.compile(_NAME, re.ASCII)
_LINEAR = re.compile(rf"{_NAME} *\* *{_NAME}", re.ASCII)
_SQUARE = re.compile(rf"{_NAME} *\* *\( *{_NAME} *\^ *2 *\)", re.ASCII)
MAX_EQUATION_CHARS = 10_000


class WrittenTerm(NamedTuple):
    """parameter * parent ** power, as written."""

    parameter: str
    parent: str
    power: int


class WrittenEquation(NamedTuple):
    """Name of the base's parameter, and the terms in the order of the text."""

    base: str
    terms: tuple[WrittenTerm, ...]


def parse_equation(text: str) -> WrittenEquation:
    """Parse the text of an equation; `PoolError` shows a part that is no term."""
    if len(text) > MAX_EQUATION_CHARS:
        raise PoolError(f"an equation of {len(text)} characters; at most {MAX_EQUATION_CHARS} are read")
    base, *summands = [part.strip(" ") for part in text.split("+")]
    if _BASE.fullmatch(base) is None:
        raise PoolError(f"an equation begins with the name of its base, found {short_repr(base)}")
    return WrittenEquation(base, tuple(_term(summand) for summand in summands))


def _term(text: str) -> WrittenTerm:
    for power, pattern in ((1, _LINEAR), (2, _SQUARE)):
        match = pattern.fullmatch(text)
        if match is not None:
            return WrittenTerm(match[1], match[2], power)
    raise PoolError(f"{short_repr(text)} is no term; 'weight * parent' and 'weight * (parent ^ 2)' are")


def equation(text: str, params: Mapping[str, float], *, with_base: bool) -> Equation:
    """Return the equation of a text, with values of its parameters; `PoolError` if one is missing.

    with_base: whether the base is a parameter of the mechanism, which is so for the frequency alone
    """
    template = parse_equation(text)
    terms = tuple(Term(parent, power, _number(params, parameter)) for parameter, parent, power in template.terms)
    return Equation(terms, _number(params, template.base) if with_base else None)


def _number(params: Mapping[str, float], parameter: str) -> float:
    if parameter not in params:
        raise PoolError(f"no parameter {short_repr(parameter)}")
    return float(params[parameter])
