"""The names that a function may use, those that a target binds, and what a statement costs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from calibrant.dsl.causim.language.execution_limits import NODES_PER_STEP
from calibrant.dsl.causim.language.randomness import Unsupported


class Scope:
    """The names that a function may use, and whether it may draw random numbers."""

    def __init__(self, variables: frozenset[str], *, random: bool) -> None:
        self.variables = variables
        self.random = random
        self.depth = 0
        self.loops = 0

    def within(self, names: set[str]) -> Scope:
        inner = Scope(self.variables | names, random=self.random)
        inner.depth = self.depth
        return inner


def cost(*nodes: ast.AST | None) -> int:
    """Return the steps that a statement with these expressions costs each time."""
    return 1 + sum(1 for node in nodes if node is not None for _ in ast.walk(node)) // NODES_PER_STEP


def check_name(name: str) -> str:
    if name.startswith("_"):
        raise Unsupported(f"the name {name!a} begins with an underscore")
    return name


def target_names(target: ast.expr) -> Iterator[str]:
    """Yield the names that an assignment or a loop binds."""
    if isinstance(target, ast.Name):
        yield check_name(target.id)
    elif isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from target_names(part)
