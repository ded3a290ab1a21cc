"""A system's hypothesis about a laboratory: edges, the frequency equation, its weights, none of them validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from calibrant.dsl.causalab.mechanism import FREQUENCY, Edge, Mechanism
from calibrant.dsl.errors import short_repr

_ALIASES = frozenset({"freq", "frequency", "resonancefreq", "resonancefrequency"})
FILLERS = str.maketrans("", "", " _-")

WeightKey: TypeAlias = tuple[str, str, int]  # (parent, child, power)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A hypothesis as it is scored.

    edges: as named, with the frequency under its own name; self-loops and unknown names are (wrong) edges
    coefficients: name -> anything
    weights: ours: the weights of every equation, as far as they were given as finite numbers
    """

    edges: frozenset[Edge] = frozenset()
    coefficients: Mapping[str, Any] = field(default_factory=dict)
    freq_equation: str = ""
    weights: Mapping[WeightKey, float] = field(default_factory=dict)


EMPTY = Hypothesis()


def hypothesis(raw: object) -> Hypothesis:
    """Return the hypothesis in a decoded reply; whatever is of the wrong type counts as empty."""
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
    """Return a node as an edge names it.

    What is written like the frequency is the frequency, otherwise case matters.
    """
    return _canonical_node(name if isinstance(name, str) else _text(name))


@lru_cache(maxsize=4096)
def _canonical_node(text: str) -> str:
    text = text.strip()
    return FREQUENCY if text.translate(FILLERS).lower() in _ALIASES else text


def stated_edges(raw: Mapping[str, Any]) -> frozenset[Edge]:
    """Return the edges of a decoded hypothesis."""
    listed = raw.get("edges")
    if not isinstance(listed, list):
        return frozenset()
    pairs = [ends for ends in map(ends_of, listed) if ends is not None]
    return frozenset([(node_name(parent), node_name(child)) for parent, child in pairs])


def ends_of(entry: object) -> tuple[Any, Any] | None:
    """Return the two names of an edge entry, untouched; None where one is missing or falsy."""
    if isinstance(entry, dict):
        ends = entry.get("from"), entry.get("to")
    elif isinstance(entry, list | tuple) and len(entry) == 2:
        ends = entry[0], entry[1]
    else:
        return None
    return ends if ends[0] and ends[1] else None


def _weights(raw: object) -> dict[WeightKey, float]:
    """Ours: a list of {"from", "to", "power", "value"}."""
    weights: dict[WeightKey, float] = {}
    for entry in raw if isinstance(raw, list) else []:
        if not isinstance(entry, dict) or (value := number(entry.get("value"))) is None:
            continue
        if (ends := ends_of(entry)) is not None:
            power = entry.get("power", 1)
            weights[node_name(ends[0]), node_name(ends[1]), 2 if power == 2 else 1] = value
    return weights


def number(value: object) -> float | None:
    """Return a number or numeric text as a float, NaN and infinities among them.

    None for anything else, truth values too.
    """
    if value.__class__ is float:
        return value  # the common case first
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
    """Return the complete hypothesis of a mechanism as JSON; exact solvers submit it."""
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
