"""Hypotheses about a laboratory as systems state them, and the text of equations.

The text is data: it is read by a grammar and never evaluated. Parameter names abbreviate (`freq`, `temp`), so they are
taken from the text and never built from the names of nodes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from calibrant.dsl.causalab.mechanism import FREQUENCY, Edge, Equation, Mechanism, Term
from calibrant.dsl.errors import PoolError, short_repr

# --- A system's hypothesis about a laboratory: edges, the frequency equation, its weights, none of them validated -----
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


# --- The text of a released equation, parsed: `base_X + coeff_P_X * P + coeff2_Q_X * (Q ^ 2) + ...` -------------------
_NAME = r"([A-Za-z_][A-Za-z0-9_]{0,79})"
_BASE = re.compile(_NAME, re.ASCII)
_LINEAR = re.compile(rf"{_NAME} *\* *{_NAME}", re.ASCII)
_SQUARE = re.compile(rf"{_NAME} *\* *\( *{_NAME} *\^ *2 *\)", re.ASCII)
MAX_CHARACTERS = 10_000


class WrittenTerm(NamedTuple):
    """parameter * parent ** power, as written."""

    parameter: str
    parent: str
    power: int


class WrittenEquation(NamedTuple):
    """The base's parameter and the terms in their order."""

    base: str
    terms: tuple[WrittenTerm, ...]


def written_equation(text: str) -> WrittenEquation:
    """Return the parts of an equation's text; `PoolError` shows what is not a term."""
    if len(text) > MAX_CHARACTERS:
        raise PoolError(f"an equation of {len(text)} characters; at most {MAX_CHARACTERS} are read")
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
    """Return the equation with its numbers; `PoolError` if a parameter is missing.

    with_base: whether the base is a number of the mechanism (the frequency's) and not of the crystal
    """
    template = written_equation(text)
    terms = tuple(Term(parent, power, _number(params, parameter)) for parameter, parent, power in template.terms)
    return Equation(terms, _number(params, template.base) if with_base else None)


def _number(params: Mapping[str, float], parameter: str) -> float:
    if parameter not in params:
        raise PoolError(f"no parameter {short_repr(parameter)}")
    return float(params[parameter])
