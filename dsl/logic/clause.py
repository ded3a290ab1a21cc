"""Clauses and models: a model is a set of clauses, those of one target are the disjuncts of its formula."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from graphlib import TopologicalSorter
from typing import NamedTuple, TypeAlias

from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.logic.prior import Edge

MAX_NAME_CHARS = 200
MAX_MERGED_CLAUSES = 1_000  # of a formula; a counted class has fewer a node
_Literals: TypeAlias = frozenset[tuple[str, int]]
# no character that separates fields or literals in one of the formats; # begins a comment in SIF and bnet
_NAME = re.compile(rf"[^\s,:;!+&|()<>\"'=#][^\s,:;!+&|()<>\"'=]{{0,{MAX_NAME_CHARS - 1}}}")


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
    return isinstance(name, str) and name.isprintable() and _NAME.fullmatch(name) is not None


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


def merge_nodes(model: Model, names: Container[str]) -> Model | None:
    """Return an acyclic model with the formulas of some nodes put into those that name them; None for a formula of 1.

    names: nodes that go, as compression merges them; one without a formula is 0
    `ClauseError` for a formula of more than MAX_MERGED_CLAUSES clauses
    """
    if not any(member.target in names or any(source in names for source in member.sources) for member in model):
        return model
    formulas: dict[str, set[_Literals]] = {}
    for member in model:
        formulas.setdefault(member.target, set()).add(frozenset(member.literals))
    sources = {target: {s for literals in formula for s, _ in literals} for target, formula in formulas.items()}
    clauses: set[Clause] = set()
    for target in TopologicalSorter(sources).static_order():
        formula = formulas.get(target, set())
        if any(source in names for source in sources.get(target, ())):
            formula = _drop_implied(
                merged for literals in formula for merged in _substitute(literals, names, formulas, target)
            )
            formulas[target] = formula
        if target not in names:
            if frozenset() in formula:
                return None
            clauses.update(clause(target, literals) for literals in formula)
    return frozenset(clauses)


def _substitute(
    literals: _Literals, names: Container[str], formulas: Mapping[str, set[_Literals]], target: str
) -> set[_Literals]:
    """Return the disjuncts of a conjunction in which some nodes are replaced by their formulas."""
    disjuncts: set[_Literals] = {frozenset()}
    for source, sign in literals:
        options: Iterable[_Literals] = [frozenset({(source, sign)})]
        if source in names:
            options = formulas.get(source, set())
            options = options if sign == 1 else _negate(options, target)
        disjuncts = _conjoin(disjuncts, options, target)
    return disjuncts


def _negate(formula: Iterable[_Literals], target: str) -> set[_Literals]:
    disjuncts: set[_Literals] = {frozenset()}
    for literals in formula:
        disjuncts = _conjoin(disjuncts, [frozenset({(source, -sign)}) for source, sign in literals], target)
    return disjuncts


def _conjoin(first: Iterable[_Literals], second: Iterable[_Literals], target: str) -> set[_Literals]:
    """Return the disjuncts of a conjunction of two formulas."""
    second = list(second)
    pairs = (a | b for a in first for b in second)
    disjuncts = _drop_implied(union for union in pairs if not any((s, -sign) in union for s, sign in union))
    if len(disjuncts) > MAX_MERGED_CLAUSES:
        raise ClauseError(f"over {MAX_MERGED_CLAUSES} clauses of {short_repr(target)} once merged nodes are put in")
    return disjuncts


def _drop_implied(formula: Iterable[_Literals]) -> set[_Literals]:
    """Return the conjunctions that contain none of the others."""
    minimal: set[_Literals] = set()
    for literals in sorted(set(formula), key=len):
        if not any(smaller <= literals for smaller in minimal):
            minimal.add(literals)
    return minimal


def model_size(model: Iterable[Clause]) -> int:
    """Return the number of literals over all clauses."""
    return sum(len(member.literals) for member in model)


def model_texts(model: Iterable[Clause]) -> list[str]:
    """Return the clause texts of a model, sorted."""
    return sorted(map(str, model))
