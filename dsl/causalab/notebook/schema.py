"""Schema of a hypothesis as the paper checks it (arXiv 2605.26029, A.5): a reply that breaks it is returned."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.dsl.causalab.hypothesis import node_name, number, stated_edges
from calibrant.dsl.causalab.mechanism import FREQUENCY
from calibrant.dsl.errors import short_repr

MAX_RETURNS = 2  # of one reply; the third that breaks it is a parse failure
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AFFIX = re.compile(r"^(c2_|c_|coeff2_|coeff1_|coeff_)")
MAX_CHARACTERS = 5_000  # of an equation


def schema_fault(raw: object, properties: Sequence[str]) -> str:
    """Return what of a hypothesis breaks the schema; empty if nothing does.

    Every name is one of the item; every coefficient a number or null; the edges into the frequency are those of the
    properties in its equation.
    """
    if not isinstance(raw, Mapping):
        return f"hypothesis is {short_repr(raw)}, not an object"
    nodes = {*properties, FREQUENCY}
    for edge in sorted(stated_edges(raw)):
        for name in edge:
            if name not in nodes:
                return f"edges name {short_repr(name)}, which is not declared"
    coefficients = raw.get("coefficients")
    if coefficients is not None and not isinstance(coefficients, Mapping):
        return f"coefficients is {short_repr(coefficients)}, not an object"
    for name, value in (coefficients or {}).items():
        if value is not None and (isinstance(value, str) or number(value) is None):
            return f"coefficient {short_repr(name)} is {short_repr(value)}, neither a number nor null"
        if name != "base" and node_of_coefficient(str(name)) not in nodes:
            return f"coefficient {short_repr(name)} is of no declared name"
    return _equation_fault(raw, nodes)


def _equation_fault(raw: Mapping[str, Any], nodes: set[str]) -> str:
    equation = raw.get("freq_equation")
    if equation is None or equation == "":
        terms: set[str] = set()
    elif not isinstance(equation, str) or len(equation) > MAX_CHARACTERS:
        return f"freq_equation is {short_repr(equation)}, not a text of at most {MAX_CHARACTERS} characters"
    else:
        names = {node_of_coefficient(name) for name in _NAME.findall(equation.partition("=")[2] or equation)}
        unknown = sorted(names - nodes - {"base"})
        if unknown:
            return f"freq_equation names {short_repr(unknown[0])}, which is not declared"
        terms = names & nodes - {FREQUENCY}
    parents = {parent for parent, child in stated_edges(raw) if child == FREQUENCY}
    if parents != terms:
        stated = ", ".join(sorted(parents)) or "none"
        return f"edges into {FREQUENCY} are from {stated}; its equation has {', '.join(sorted(terms)) or 'none'}"
    return ""


def node_of_coefficient(name: str) -> str:
    """Return the node that a coefficient or a name in an equation is about: c_p, c2_p, coeff_p_freq, p."""
    plain = _AFFIX.sub("", name)
    if plain != name:
        plain = re.sub(r"_(freq|frequency)$", "", plain)
    return node_name(plain)
