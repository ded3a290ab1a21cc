"""Pictures of values for notebooks as plain data, and conversion of graphs for networkx.

A value derives its `Picture` from its fields, without counting, solving or compiling. bench.pages.notebook draws
pictures as HTML; it is registered by `set_painter` when a public name is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeAlias

from calibrant.dsl.errors import require_extra

MAX_PICTURE_ROWS = 24  # shown rows of a table; `Picture.num_rows` counts all
MAX_PICTURE_LINES = 60  # lines of code

EdgeTone: TypeAlias = Literal["", "good", "open", "bad"]


class PictureEdge(NamedTuple):
    """Edge of a graph; tone: good for certain, open for uncertain, bad for inhibiting or refuted; label: beside it."""

    cause: str
    effect: str
    tone: EdgeTone = ""
    label: str = ""


@dataclass(frozen=True)
class Picture:
    """Contents of a picture.

    facts: short texts below the title; nodes: name -> label; edges: edges of the graph, which may have cycles
    caption, columns, rows: table; num_rows: number of its rows, shown or not
    striped: cells (row, column) set by intervention, which are drawn striped
    text: sentences below; code: at most MAX_PICTURE_LINES lines in a monospaced font
    """

    title: str
    facts: tuple[str, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict)
    edges: tuple[PictureEdge, ...] = ()
    caption: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    num_rows: int = 0
    striped: frozenset[tuple[int, int]] = frozenset()
    text: str = ""
    code: str = ""


_painters: list[Callable[[Picture], str]] = []


def set_painter(painter: Callable[[Picture], str]) -> None:
    """Set the function that draws pictures as HTML."""
    _painters[:] = [painter]


class Pictured:
    """A value that notebooks show as a picture."""

    __slots__ = ()

    def picture(self) -> Picture:
        """Return the contents of the picture."""
        raise NotImplementedError

    def _repr_html_(self) -> str | None:
        """Return the picture as HTML for notebooks; None without a painter, so that they show the repr."""
        return _painters[0](self.picture()) if _painters else None


def table_picture(title: str, columns: Mapping[str, Sequence[Any]], **parts: Any) -> Picture:
    """Return a picture with a table of columns; parts: other fields. None is an empty cell, floats have six digits."""
    num_rows = max(map(len, columns.values()), default=0)
    rows = zip(*(values[:MAX_PICTURE_ROWS] for values in columns.values()), strict=True)
    cells = tuple(tuple(map(_cell_text, row)) for row in rows)
    return Picture(title, columns=tuple(columns), rows=cells, num_rows=num_rows, **parts)


def solution_picture(model: object, answer: object, size: int | None, provenance: Mapping[str, Any]) -> Picture:
    """Return the picture of a model, or of the answer if the model has none, with the searched class as a fact."""
    facts: tuple[str, ...] = () if size is None else (f"size {size}",)
    facts += tuple(f"{key}: {provenance[key]}" for key in ("class", "minimal") if key in provenance)
    if isinstance(model, Pictured):
        return replace(model.picture(), facts=facts)
    return Picture("Solution", facts, code=str(answer))


def verdict_picture(instance: str, valid: bool, correct: bool | None, failure: str | None) -> Picture:
    """Return the picture of a verdict: its text, and the reason of a failure."""
    words = "correct" if correct else "not valid" if not valid else "no verdict" if correct is None else "wrong"
    return Picture(f"{instance}: {words}", text=failure or "")


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def networkx_graph(
    nodes: Iterable[tuple[str, Mapping[str, Any]]], edges: Iterable[tuple[str, str, Mapping[str, Any]]]
) -> Any:
    """Return a networkx `DiGraph` of nodes and edges with attributes; `MissingExtraError` without networkx."""
    require_extra("graphs", "networkx")
    graph = import_module("networkx").DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return graph
