"""The NIH Stroke Scale as a model: fifteen items and their total.

Source of items and ranges: National Institute of Neurological Disorders and Stroke, NIH Stroke Scale. "UN" is an item
that cannot be tested; it counts 0. Items are drawn evenly here: the scale says nothing about patients.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from calibrant.dsl.causim.model import Model, Node, table_node
from calibrant.dsl.causim.values import ModelError, Symbol, symbol, value_of

_HIGHEST: Final = {
    "1a": 3, "1b": 2, "1c": 2, "2": 2, "3": 3, "4": 3, "5a": 4, "5b": 4, "6a": 4, "6b": 4,
    "7": 2, "8": 2, "9": 3, "10": 2, "11": 2,
}  # fmt: skip
_UNTESTABLE: Final = frozenset({"5a", "5b", "6a", "6b", "7", "10"})
TOTAL: Final = "total"
MAX_NODES: Final = len(_HIGHEST) + 1


def items(n: int) -> dict[str, tuple[int | str, ...]]:
    """Return the first n - 1 items and their values; `ModelError` unless 2 <= n <= 16."""
    if not 2 <= n <= MAX_NODES:
        raise ModelError(f"nihss has 2 to {MAX_NODES} nodes, not {n}")
    return {
        name: (*range(highest + 1), *(("UN",) if name in _UNTESTABLE else ()))
        for name, highest in list(_HIGHEST.items())[: n - 1]
    }


def points(value: Symbol) -> int:
    """Return the points of an item's value; 0 for "UN"."""
    decoded = value_of(value)
    return decoded if type(decoded) is int else 0


def _item(name: str, values: tuple[int | str, ...]) -> Node:
    support = {symbol(value): Fraction(1, len(values)) for value in values}
    return table_node(name, f"U_{name}", (), support, {((), value): value for value in support})


_NO_NOISE: Final = symbol(None)


def nihss(n: int) -> Model:
    """Return the inverted star: n - 1 items and their total, whose noise has the one value null."""

    def total(parents: tuple[Symbol, ...], noise: Symbol) -> Symbol:
        return symbol(sum(map(points, parents)))

    nodes = [_item(name, values) for name, values in items(n).items()]
    names = tuple(node.name for node in nodes)
    return Model([*nodes, Node(TOTAL, f"U_{TOTAL}", names, (_NO_NOISE,), (Fraction(1),), total)])


def running_sums(n: int) -> Model:
    """Return a variant with a partial sum after each item, so that no table is large; the last sum is the total."""
    return Model(list(_with_sums(n)))


def program(n: int) -> str:
    """Return the source of `nihss(n)`, with the total added up item by item."""
    lines = ["import random", ""]
    for name, values in items(n).items():
        lines += [f"def U_{name}():", f"    return random.choice({list(values)!r})", ""]
        lines += [f"def f_{name}(u):", "    return u", ""]
    names = [f"item_{name}" for name in items(n)]
    lines += [
        f"def U_{TOTAL}():",
        "    return None",
        "",
        f"def f_{TOTAL}({', '.join([*names, 'u'])}):",
        "    points = 0",
    ]
    for name, values in items(n).items():
        # an item that may be untested is added under a condition, one level deeper
        lines += [f'    if item_{name} != "UN":'] if "UN" in values else []
        lines += [f"{'    ' * (1 + ('UN' in values))}points += item_{name}"]
    lines += [
        "    return points",
        "",
        "def run_once(seed=None):",
        "    if seed is not None:",
        "        random.seed(seed)",
    ]
    for name in (*items(n), TOTAL):
        arguments = f"{', '.join(names)}, u_{name}" if name == TOTAL else f"u_{name}"
        lines += [f"    u_{name} = U_{name}()", f"    item_{name} = f_{name}({arguments})"]
    outputs = ", ".join(f"{name!r}: item_{name}" for name in (*items(n), TOTAL))
    return "\n".join([*lines, f"    return {{{outputs}}}"]) + "\n"


def _with_sums(n: int) -> Iterator[Node]:
    def add(parents: tuple[Symbol, ...], noise: Symbol) -> Symbol:
        return symbol(sum(map(points, parents)))

    score_items = items(n)
    before: tuple[str, ...] = ()
    for number, (name, values) in enumerate(score_items.items(), start=1):
        yield _item(name, values)
        sum_name = TOTAL if number == len(score_items) else f"sum_{name}"
        yield Node(sum_name, f"U_{sum_name}", (*before, name), (_NO_NOISE,), (Fraction(1),), add)
        before = (sum_name,)
