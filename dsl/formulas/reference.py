"""Reference semantics of a formula: its value on one assignment, by the operators' truth rules on single bits.

Truth tables, columns and kernels are tested against it, and it certifies every formula that a search finds.
"""

from __future__ import annotations

from collections.abc import Mapping

from calibrant.dsl.formulas.formula import OPERATORS, Apply, Formula


def evaluate(mechanism: Formula, row: Mapping[str, int]) -> int:
    """Return the mechanism's value on one assignment."""
    stack: list[bool] = []
    for node in mechanism.nodes:
        if isinstance(node, Apply):
            arguments = stack[-node.arity :]
            del stack[-node.arity :]
            stack.append(OPERATORS[node.operator].truth(arguments))
        else:
            stack.append(node if isinstance(node, bool) else row[node] == 1)
    return int(stack.pop())
