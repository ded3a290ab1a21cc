"""The published generator's syntactic normal form of formulas. It never decides a score.

Double negation removed, and/or/xor flattened one level, and/or/iff deduplicated, equal xor pairs cancelled, constants
folded (a single constant inside iff stays), arguments sorted: variables by number, constants, operator nodes by
operator and text. No De Morgan, no exchange of iff and xor.
"""

from __future__ import annotations

from dsl.formulas.formula import Apply, Formula, apply, constant, fold, var
from dsl.formulas.text import render
from dsl.names import natural_key


def canonical_formula(formula: Formula) -> Formula:
    """The normal form; it means the same as the formula."""
    return fold(formula, _canonical_atom, lambda node, arguments: _canonical_node(node.operator, list(arguments)))


def _canonical_atom(atom: str | bool) -> Formula:
    return constant(atom) if isinstance(atom, bool) else var(atom)


def _canonical_node(operator: str, arguments: list[Formula]) -> Formula:
    if operator == "not":
        (inner,) = arguments
        if inner.nodes[-1] == Apply("not", 1):
            return Formula(inner.nodes[:-1])
        return constant(not inner.nodes[0]) if _is_constant(inner) else apply("not", [inner])
    if operator == "if":
        condition, then, otherwise = arguments
        if _is_constant(condition):
            return then if condition.nodes[0] else otherwise
        if (then, otherwise) == (constant(True), constant(False)):
            return condition
        if (then, otherwise) == (constant(False), constant(True)):
            return _canonical_node("not", [condition])
        return then if then == otherwise else apply("if", arguments)
    if operator == "iff":
        return _canonical_iff(arguments)
    flat = [part for argument in arguments for part in _flattened(operator, argument)]
    return _canonical_xor(flat) if operator == "xor" else _canonical_lattice(operator, flat)


def _flattened(operator: str, argument: Formula) -> list[Formula]:
    head = argument.nodes[-1]
    return split_arguments(argument) if isinstance(head, Apply) and head.operator == operator else [argument]


def split_arguments(formula: Formula) -> list[Formula]:
    """The argument formulas of an operator node, first to last; none for an atom."""
    head = formula.nodes[-1]
    if not isinstance(head, Apply):
        return []
    parts: list[Formula] = []
    end = len(formula.nodes) - 1
    for _ in range(head.arity):
        start, missing = end, 1
        while missing:  # walk back until one complete value has been collected
            start -= 1
            node = formula.nodes[start]
            missing += node.arity - 1 if isinstance(node, Apply) else -1
        parts.append(Formula(formula.nodes[start:end]))
        end = start
    return parts[::-1]


def _canonical_lattice(operator: str, arguments: list[Formula]) -> Formula:
    absorbing = operator == "or"  # or(1, ...) = 1, and(0, ...) = 0
    if constant(absorbing) in arguments:
        return constant(absorbing)
    kept = list(dict.fromkeys(argument for argument in arguments if not _is_constant(argument)))
    return _joined(operator, kept, neutral=not absorbing)


def _canonical_xor(arguments: list[Formula]) -> Formula:
    ones = sum(argument == constant(True) for argument in arguments) % 2
    odd = [a for a in dict.fromkeys(arguments) if not _is_constant(a) and arguments.count(a) % 2]
    if not ones:
        return _joined("xor", odd, neutral=False)
    return _joined("xor", [*odd, constant(True)], neutral=False) if odd else constant(True)


def _canonical_iff(arguments: list[Formula]) -> Formula:
    kept = list(dict.fromkeys(arguments))
    if constant(True) in kept and constant(False) in kept:
        return constant(False)
    return constant(True) if len(kept) == 1 else apply("iff", sorted(kept, key=_sort_key))


def _joined(operator: str, arguments: list[Formula], *, neutral: bool) -> Formula:
    if not arguments:
        return constant(neutral)
    return arguments[0] if len(arguments) == 1 else apply(operator, sorted(arguments, key=_sort_key))


def _is_constant(formula: Formula) -> bool:
    return isinstance(formula.nodes[-1], bool)


def _sort_key(formula: Formula) -> tuple[int, tuple[int, int, str], str, str]:
    head = formula.nodes[-1]
    if isinstance(head, Apply):
        return (2, (0, 0, ""), head.operator, render(formula))
    return (1, (0, 0, ""), "", str(int(head))) if isinstance(head, bool) else (0, natural_key(head), "", "")
