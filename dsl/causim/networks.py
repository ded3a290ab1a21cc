"""asia, cancer and survey as structural models: one uniform noise per node, states by inverse cumulative distribution.

`cells`: the noise values are the pieces that the cumulative cuts of all rows leave of the unit interval, with their
exact lengths, so nothing of the tables is lost. `grid`: the noise is i / (points - 1), and the state is the first whose
running float sum exceeds it, else the last; at noise 1 even a state of probability zero gets its share. Both couple the
states of a node monotonically over its rows, and counterfactuals depend on that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import accumulate, product
from typing import Final, Literal, TypeAlias

import msgspec

from calibrant.dsl.causim.model import Model, Node, table_node
from calibrant.dsl.causim.values import ModelError, Symbol, symbol

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
    return msgspec.json.decode(files("calibrant.dsl.causim").joinpath("data", "networks.json").read_bytes(), type=_File)


def source_of_tables() -> str:
    """Return the origin of the conditional probability tables."""
    return _file().source


@cache
def network(name: str, mode: Mode = "cells", points: int = GRID_POINTS) -> Model:
    """One of NETWORKS; `ModelError` for another name. `points` is the number of noise values of `grid`."""
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
    for number, parents in enumerate(product(*(map(symbol, states[parent]) for parent in table.parents))):
        for value in support:
            rows[parents, value] = symbol(table.states[state_of(number, value)])
    return table_node(table.name, f"U_{table.name}", table.parents, support, rows)


def _cells(table: _NodeTable) -> _Noise:
    """Noise values are the lower ends of the cells."""
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
            total += float(text)  # in the order of the states: the last digit decides at thresholds
            running.append(total)
        sums.append(running)

    def state_of(row: int, value: Symbol) -> int:
        return next((k for k, total in enumerate(sums[row]) if grid[value] < total), len(table.states) - 1)

    return dict.fromkeys(grid, Fraction(1, points)), state_of
