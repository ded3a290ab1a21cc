"""Built-in models: asia, cancer, survey, and the NIH Stroke Scale.

`cells`: the cumulative probabilities of all rows cut the unit interval into pieces; these are the noise values, their
lengths the probabilities, so the tables are represented exactly. `grid`: the noise is i / (points - 1), and the state
is the first whose cumulative float sum exceeds it, else the last, so noise 1 may give a state of probability zero. Both
couple the states of a node monotonically over its rows, which counterfactuals depend on.

Source of items and ranges: National Institute of Neurological Disorders and Stroke, NIH Stroke Scale. "UN" is an item
that cannot be tested; it counts 0. Items are uniform here, since the scale states no frequencies of patients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import accumulate, product
from typing import Final, Literal, TypeAlias

import msgspec

from calibrant.dsl.causim.model import Model, ModelError, Node, Symbol, symbol, table_node, value_of

# --- asia, cancer and survey as structural models: uniform noise for each node, states by inverse transform
Mode: TypeAlias = Literal["cells", "grid"]
NETWORKS: Final = ("asia", "cancer", "survey")
GRID_POINTS: Final = 20


class _NodeTable(msgspec.Struct, frozen=True):
    name: str
    states: list[str]
    parents: list[str]
    rows: list[list[str]]


class _File(msgspec.Struct, frozen=True):
    source: str
    networks: dict[str, list[_NodeTable]]


@cache
def _file() -> _File:
    return msgspec.json.decode((files("calibrant.dsl.causim") / "data" / "networks.json").read_bytes(), type=_File)


@cache
def network(name: str, mode: Mode = "cells", points: int = GRID_POINTS) -> Model:
    """Return one of NETWORKS as a model; `ModelError` for another name. points: number of noise values of `grid`."""
    tables = _file().networks.get(name)
    if tables is None:
        raise ModelError(f"{name!a} is no built-in network; {', '.join(NETWORKS)} are")
    states = {table.name: table.states for table in tables}
    build = _cells if mode == "cells" else lambda table: _grid(table, points)
    return Model([_node(table, states, build(table)) for table in tables])


_Noise: TypeAlias = tuple[dict[Symbol, Fraction], Callable[[int, Symbol], int]]


def _node(table: _NodeTable, states: Mapping[str, Sequence[str]], noise: _Noise) -> Node:
    support, state_of = noise
    rows = {}
    for index, parents in enumerate(product(*(map(symbol, states[parent]) for parent in table.parents))):
        for value in support:
            rows[parents, value] = symbol(table.states[state_of(index, value)])
    return table_node(table.name, f"U_{table.name}", table.parents, support, rows)


def _cells(table: _NodeTable) -> _Noise:
    """Return noise of mode `cells`, whose values are the lower ends of the cells, and the state by row and value."""
    sums = [list(accumulate(map(Fraction, row))) for row in table.rows]
    cuts = sorted({Fraction(0), Fraction(1), *(cut for row in sums for cut in row)})
    lower = {symbol(float(low)): low for low in cuts[:-1]}
    support = {name: high - low for (name, low), high in zip(lower.items(), cuts[1:], strict=True)}

    def state_of(row: int, value: Symbol) -> int:
        return next(k for k, cut in enumerate(sums[row]) if lower[value] < cut)

    return support, state_of


def _grid(table: _NodeTable, points: int) -> _Noise:
    grid = {symbol(i / (points - 1)): i / (points - 1) for i in range(points)}
    sums = []
    for row in table.rows:
        total, running = 0.0, []
        for text in row:
            total += float(text)  # in the order of the states, since the last digit of the sum decides at thresholds
            running.append(total)
        sums.append(running)

    def state_of(row: int, value: Symbol) -> int:
        return next((k for k, total in enumerate(sums[row]) if grid[value] < total), len(table.states) - 1)

    return dict.fromkeys(grid, Fraction(1, points)), state_of


# --- The NIH Stroke Scale as a model: fifteen items and their total ---------------------------------------------------
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
    """Return the model of n - 1 items and their total, an inverted star; the total's noise has one value, null."""

    def total(parents: tuple[Symbol, ...], noise: Symbol) -> Symbol:
        return symbol(sum(map(points, parents)))

    nodes = [_item(name, values) for name, values in items(n).items()]
    names = tuple(node.name for node in nodes)
    return Model([*nodes, Node(TOTAL, f"U_{TOTAL}", names, (_NO_NOISE,), (Fraction(1),), total)])


def program(n: int) -> str:
    """Return the program of `nihss(n)`, which adds the total item by item."""
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
        # the points of an item that may be untested are added under a condition, indented by a level
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
