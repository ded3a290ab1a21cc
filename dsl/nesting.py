"""How deeply parsed values nest, and how large they are written out.

Whatever walks a value that nests deeply runs out of stack, and a value that holds itself many times over (YAML aliases)
explodes when it is printed. Both are refused right after parsing.
"""

from __future__ import annotations

from typing import Any

from dsl.errors import PoolError

MAX_DEPTH = 200  # pool files are ten levels deep


def check_nesting(value: Any, max_items: int) -> None:
    """`PoolError` if containers nest more than MAX_DEPTH deep, or hold more than `max_items` items when written out.

    A container counts wherever it occurs, so one that contains itself is too deep.
    """
    stack = [(value, 1)] if isinstance(value, _CONTAINERS) else []
    items = 0
    while stack:
        container, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise PoolError(f"nested more than {MAX_DEPTH} deep")
        items += len(container)
        if items > max_items:
            raise PoolError("its aliases, written out, are longer than the file")
        children = container.values() if isinstance(container, dict) else container
        stack.extend([(child, depth + 1) for child in children if isinstance(child, _CONTAINERS)])


_CONTAINERS = (dict, list, tuple, set)
