"""Mutants of a module: one change of an operator or a constant each.

The operators are the usual first-order ones (Offutt et al. 1996, "An experimental determination of sufficient mutant
operators"): relations, arithmetic, bits, connectives, constants and loop control. Annotations, decorators, docstrings,
default texts and messages are never changed: no test should depend on them.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

RELATIONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
SKIPPED_FIELDS = frozenset({"annotation", "returns", "decorator_list"})


@dataclass(frozen=True)
class Mutant:
    """One changed module.

    line: of the change; before, after: the changed expression
    """

    line: int
    before: str
    after: str
    tree: ast.Module


def list_mutants(source: str) -> list[Mutant]:
    """Return every mutant of a module, in the order of its source."""
    tree = ast.parse(source)
    mutants = []
    for path in _mutable_paths(tree):
        changed = copy.deepcopy(tree)
        node = _node_at(changed, path)
        original = ast.unparse(_node_at(tree, path))
        _mutate(node)
        after = ast.unparse(node)
        mutants.append(Mutant(getattr(node, "lineno", 0), original, after, ast.fix_missing_locations(changed)))
    return sorted(mutants, key=lambda mutant: mutant.line)


Path = tuple[tuple[str, int], ...]  # from the module: field, and index in it or -1


def _mutable_paths(tree: ast.Module) -> Iterator[Path]:
    stack: list[tuple[ast.AST, Path]] = [(tree, ())]
    while stack:
        node, path = stack.pop()
        if _is_mutable(node):
            yield path
        if isinstance(node, ast.JoinedStr):  # a message
            continue
        for field, value in ast.iter_fields(node):
            if field in SKIPPED_FIELDS:
                continue
            children = value if isinstance(value, list) else [value]
            for index, child in enumerate(children):
                if isinstance(child, ast.AST):
                    stack.append((child, (*path, (field, index if isinstance(value, list) else -1))))


def _node_at(tree: ast.AST, path: Path) -> ast.AST:
    node = tree
    for field, index in path:
        value = getattr(node, field)
        node = value if index < 0 else value[index]
    return node


def _is_mutable(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and type(node.ops[0]) in RELATIONS
    if isinstance(node, ast.BinOp | ast.AugAssign):
        return type(node.op) in ARITHMETIC
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool | int)
    return isinstance(node, ast.BoolOp | ast.Continue | ast.Break) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    )


def _mutate(node: ast.AST) -> None:
    """Change a node in place."""
    if isinstance(node, ast.Compare):
        node.ops[0] = RELATIONS[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.AugAssign):
        node.op = ARITHMETIC[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else int(str(node.value)) + 1
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()  # `+x` is true where `not x` is false, for the numbers and booleans that are negated
    elif isinstance(node, ast.Continue):
        node.__class__ = ast.Break  # type: ignore[assignment]
    elif isinstance(node, ast.Break):
        node.__class__ = ast.Continue  # type: ignore[assignment]
