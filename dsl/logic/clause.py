"""Clauses and models: a model is a set of clauses, those of one target are the disjuncts of its formula."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.logic.prior import Edge

MAX_NAME_CHARS = 200
_NAME = re.compile(r"[^\s,:;!+&|()<>\"']+")  # characters that separate fields or literals in one of the formats


class ClauseError(CalibrantError):
    """A text is not a clause such as `v<-a+!b`."""


class Clause(NamedTuple):
    """A conjunction that activates a node.

    literals: (source, sign), sorted by source, no source twice
    """

    target: str
    literals: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return f"{self.target}<-" + "+".join(("" if sign == 1 else "!") + source for source, sign in self.literals)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges that the clause uses."""
        return tuple(Edge(source, sign, self.target) for source, sign in self.literals)

    @property
    def sources(self) -> tuple[str, ...]:
        """The names that occur in the clause."""
        return tuple(source for source, _ in self.literals)


Model: TypeAlias = frozenset[Clause]


def is_node_name(name: object) -> bool:
    """Return whether a value can name a node in every format that is read or written."""
    return (
        isinstance(name, str)
        and 0 < len(name) <= MAX_NAME_CHARS
        and name.isprintable()
        and _NAME.fullmatch(name) is not None
        and "=" not in name
        and not name.startswith("#")  # begins a comment in SIF and bnet
    )


def clause(target: str, literals: Iterable[tuple[str, int]]) -> Clause:
    """Return the clause with its literals in code point order of sources; `ClauseError` if a source occurs twice."""
    ordered = tuple(sorted(literals))
    sources = [source for source, _ in ordered]
    if len(set(sources)) != len(sources) or not sources:
        raise ClauseError(f"clause of {short_repr(target)}: one literal or more, and no source twice")
    return Clause(target, ordered)


def parse_clause(text: str) -> Clause:
    """Return the clause of a text such as `v<-a+!b`, literals in any order; `ClauseError` states what is wrong."""
    target, arrow, body = text.partition("<-")
    target = target.strip()
    literals = [_parse_literal(part.strip()) for part in body.split("+")] if body else []
    if not arrow or not is_node_name(target) or not all(is_node_name(source) for source, _ in literals):
        raise ClauseError(f"{short_repr(text)} is no clause; write it as v<-a+!b")
    return clause(target, literals)


def _parse_literal(text: str) -> tuple[str, int]:
    return (text[1:].strip(), -1) if text.startswith("!") else (text, 1)


def model_size(model: Iterable[Clause]) -> int:
    """Return the number of literals over all clauses."""
    return sum(len(member.literals) for member in model)


def model_texts(model: Iterable[Clause]) -> list[str]:
    """Return the clause texts of a model, sorted."""
    return sorted(map(str, model))
