"""The text of a released equation, parsed: `base_X + coeff_P_X * P + coeff2_Q_X * (Q ^ 2) + ...`.

The text is data: it is read by a grammar and never evaluated. Parameter names abbreviate (`freq`, `temp`), so they are
taken from the text and never built from the names of nodes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from calibrant.dsl.causalab.mechanism import Equation, Term
from calibrant.dsl.errors import PoolError, short_repr

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
