"""The published generator's syntactic normal form of formulas. It never decides a score.

Double negation removed, and/or/xor flattened one level, and/or/iff deduplicated, equal xor pairs cancelled, constants
folded (a single constant inside iff stays), arguments sorted: variables by number, constants, operator nodes by
operator and text. No De Morgan, no exchange of iff and xor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from typing import TypeAlias

from calibrant.dsl.formulas.formula import Apply, Formula, Node, fold
from calibrant.dsl.formulas.text import render
from calibrant.dsl.names import natural_key

Nodes: TypeAlias = tuple[Node, ...]
"""A formula's postfix program; the generator takes the normal form of a hundred formulas for one that it accepts."""

TRUE: Nodes = (True,)
FALSE: Nodes = (False,)
NOT = Apply("not", 1)


def canonical_formula(formula: Formula) -> Formula:
    """Return the normal form; it means the same as the formula."""
    return Formula(fold(formula, lambda atom: (atom,), lambda node, arguments: _normal(node.operator, arguments)))


def _normal(operator: str, arguments: Sequence[Nodes]) -> Nodes:
    if operator == "not":
        (inner,) = arguments
        if inner[-1] == NOT:
            return inner[:-1]
        return (not inner[0],) if isinstance(inner[-1], bool) else (*inner, NOT)
    if operator == "if":
        return _normal_if(*arguments)
    if operator == "iff":
        return _normal_iff(arguments)
    flat: list[Nodes] = []
    for argument in arguments:
        head = argument[-1]
        if isinstance(head, Apply) and head.operator == operator:
            flat += split_arguments(argument)
        else:
            flat.append(argument)
    return _normal_xor(flat) if operator == "xor" else _normal_lattice(operator, flat)


def split_arguments(nodes: Nodes) -> list[Nodes]:
    """Return the arguments of the operator that comes last, first to last; none for an atom."""
    head = nodes[-1]
    if not isinstance(head, Apply):
        return []
    parts: list[Nodes] = []
    end = len(nodes) - 1
    for _ in range(head.arity):
        start, missing = end, 1
        while missing:  # walk back until one complete value has been collected
            start -= 1
            node = nodes[start]
            missing += node.arity - 1 if isinstance(node, Apply) else -1
        parts.append(nodes[start:end])
        end = start
    return parts[::-1]


def _normal_if(condition: Nodes, then: Nodes, otherwise: Nodes) -> Nodes:
    if isinstance(condition[-1], bool):
        return then if condition[0] else otherwise
    if (then, otherwise) == (TRUE, FALSE):
        return condition
    if (then, otherwise) == (FALSE, TRUE):
        return _normal("not", [condition])
    return then if then == otherwise else _apply("if", (condition, then, otherwise))


def _normal_lattice(operator: str, arguments: Iterable[Nodes]) -> Nodes:
    absorbing = operator == "or"  # or(1, ...) = 1, and(0, ...) = 0
    unique = dict.fromkeys(arguments)
    if (absorbing,) in unique:
        return (absorbing,)
    unique.pop((not absorbing,), None)
    return _join_arguments(operator, list(unique), neutral=not absorbing)


def _normal_xor(arguments: Sequence[Nodes]) -> Nodes:
    odd_arguments = [a for a in dict.fromkeys(arguments) if a != FALSE and arguments.count(a) % 2]
    return _join_arguments("xor", odd_arguments, neutral=False)


def _normal_iff(arguments: Iterable[Nodes]) -> Nodes:
    unique = list(dict.fromkeys(arguments))
    if TRUE in unique and FALSE in unique:
        return FALSE
    return TRUE if len(unique) == 1 else _apply("iff", _in_order(unique))


def _join_arguments(operator: str, arguments: list[Nodes], *, neutral: bool) -> Nodes:
    if not arguments:
        return (neutral,)
    return arguments[0] if len(arguments) == 1 else _apply(operator, _in_order(arguments))


def _apply(operator: str, arguments: Sequence[Nodes]) -> Nodes:
    return (*chain.from_iterable(arguments), Apply(operator, len(arguments)))


def _in_order(arguments: list[Nodes]) -> list[Nodes]:
    """Variables by number, constants, operator nodes by operator and text; texts are written where they decide."""
    ordered: list[Nodes] = []
    for (_, _, operator), group in groupby(sorted(arguments, key=_kind), _kind):
        alike = list(group)
        ordered += sorted(alike, key=lambda nodes: render(Formula(nodes))) if operator and len(alike) > 1 else alike
    return ordered


def _kind(nodes: Nodes) -> tuple[int, tuple[int, int, str], str]:
    head = nodes[-1]
    if isinstance(head, str):
        return (0, natural_key(head), "")
    return (1, (0, head, ""), "") if isinstance(head, bool) else (2, (0, 0, ""), head.operator)
