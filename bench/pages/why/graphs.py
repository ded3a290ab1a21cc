"""Causal graphs side by side on one layout, causes above effects; edges that only one of them has stand out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from calibrant.bench.pages.layered import (
    LayeredNode,
    LayeredPicture,
    Slot,
    centred_layers,
    curve_path,
    edge_slots,
    layered_slots,
)

LETTER, SMALL = 8.0, 6.6  # widths of a letter
BOX, GAP, FALL, MARGIN, PASS, NOTE = (
    42,
    24,
    46,
    14,
    18,
    24,
)  # height of a box, distances, width of a passing edge, of a note at the side
LEAST_SCALE = 0.8  # smaller, a label of 12 px would be below 9: the drawing scrolls
MAX_NODES = 24  # more are not drawn


@dataclass(frozen=True)
class GraphNode:
    """Node of a drawn graph.

    name; label: below it; tone: empty, open or good
    """

    name: str
    label: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Graph:
    """Graph to draw beside others.

    parents: of each node, in this graph; nodes: as they look in it; label: the finding, for readers of the page
    only_note: beside edges that only this graph has
    """

    parents: Mapping[str, Sequence[str]]
    nodes: Mapping[str, GraphNode]
    label: str
    only_note: str = ""


def draw_together(graphs: Sequence[Graph], name: str) -> list[str]:
    """Return an SVG of each graph on the layout of all edges together; name: a prefix of ids, unique in the page.

    Edges that not all graphs have are thick. Graphs whose edges close a cycle together are laid out apart.
    """
    names = list(graphs[0].nodes)
    if len(names) > MAX_NODES:
        return [_too_large(len(names)) for _ in graphs]
    union = {node: list(dict.fromkeys(p for g in graphs for p in g.parents.get(node, ()))) for node in names}
    shared = {(p, v) for v in names for p in union[v] if all(p in g.parents.get(v, ()) for g in graphs)}
    order = _order(union)
    if order is None:
        layouts = [_Layout(g.parents, g) for g in graphs]
    else:
        widest = {v: max((g.nodes[v].label for g in graphs), key=len) for v in names}
        layouts = [_Layout({v: union[v] for v in order}, graphs[0], widest)] * len(graphs)
    room = max((_room(g, layout, shared) for g, layout in zip(graphs, layouts, strict=True)), default=0.0)
    pairs = enumerate(zip(graphs, layouts, strict=True))
    return [_svg(g, layout, shared, f"{name}-{k}", room) for k, (g, layout) in pairs]


def _order(parents: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Return the nodes, causes first, by name where there is a choice; None if there is a cycle."""
    placed: list[str] = []
    waiting = list(parents)
    while waiting:
        ready = next((v for v in waiting if all(p in placed for p in parents[v])), None)
        if ready is None:
            return None
        placed.append(ready)
        waiting.remove(ready)
    return placed


class _Layout:
    """Places of nodes and paths of edges."""

    def __init__(
        self, parents: Mapping[str, Sequence[str]], graph: Graph, labels: Mapping[str, str] | None = None
    ) -> None:
        order = _order({v: parents.get(v, ()) for v in graph.nodes}) or list(graph.nodes)
        nodes = tuple(LayeredNode(v, tuple(parents.get(v, ())), "") for v in order)
        picture = LayeredPicture("", "", nodes)
        self.depths = picture.depths
        layers = layered_slots(picture)
        labels = labels or {v: node.label for v, node in graph.nodes.items()}
        self.widths = {v: max(64.0, LETTER * len(v) + 20, SMALL * len(labels[v]) + 16) for v in graph.nodes}
        centres, widest = centred_layers(layers, self._width, GAP)
        self.width = widest + 2 * (MARGIN + NOTE)
        self.height = len(layers) * (BOX + FALL) - FALL + 2 * MARGIN
        self.places = {slot: (MARGIN + NOTE + x, MARGIN + depth * (BOX + FALL)) for slot, (x, depth) in centres.items()}

    def _width(self, slot: Slot) -> float:
        return PASS if slot[0] else self.widths[slot[1]]

    def path(self, parent: str, child: str, share: float) -> str:
        """Return the curve of an edge; share: where it enters along the child's upper side, 0 to 1."""
        start, *passed, end = (self.places[slot] for slot in edge_slots(parent, child, self.depths))
        points = [(start[0], start[1] + BOX)]
        for x, y in passed:
            points += [(x, y), (x, y + BOX)]
        points.append((end[0] + (share - 0.5) * self.widths[child] * 0.7, end[1] - 2))
        return curve_path(points)

    def note(self, parent: str, child: str, text: str) -> str:
        """Return a note beside the end of an edge, on the side that it comes from."""
        x, y, right = self._note_place(parent, child)
        anchor = "start" if right else "end"
        return f'<text class="warn" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'

    def note_overhang(self, parent: str, child: str, text: str) -> float:
        """Return how far such a note reaches beyond the drawing."""
        x, _, right = self._note_place(parent, child)
        return max(0.0, x + SMALL * len(text) - self.width if right else SMALL * len(text) - x)

    def _note_place(self, parent: str, child: str) -> tuple[float, float, bool]:
        (x1, _), (x2, y2) = (self.places["", v, self.depths[v]] for v in (parent, child))
        right = x1 >= x2
        return x2 + (self.widths[child] / 2 + 4) * (1 if right else -1), y2 - 8, right


def _room(graph: Graph, layout: _Layout, shared: set[tuple[str, str]]) -> float:
    """Return the room that the notes of a graph need at the sides of its drawing."""
    edges = ((parent, child) for child, parents in graph.parents.items() for parent in parents)
    noted = [edge for edge in edges if graph.only_note and edge not in shared]
    return max((layout.note_overhang(*edge, graph.only_note) for edge in noted), default=0.0)


def _svg(graph: Graph, layout: _Layout, shared: set[tuple[str, str]], name: str, room: float) -> str:
    edges, notes = [], []
    for child, parents in graph.parents.items():
        ordered = sorted(parents, key=lambda p: layout.places["", p, layout.depths[p]][0])
        for k, parent in enumerate(ordered):
            kind = "" if (parent, child) in shared else " only"
            title = escape(f"{parent} to {child}" + (", only here" if kind else ""))
            path = layout.path(parent, child, (k + 0.5) / len(ordered))
            if kind and graph.only_note:
                notes.append(layout.note(parent, child, graph.only_note))
            end = f'marker-end="url(#{name}{kind.strip()})"'
            edges.append(f'<path class="arrow{kind}" d="{path}" {end}><title>{title}</title></path>')
    heads = "".join(_head(f"{name}{kind}", kind) for kind in ("", "only"))
    boxes = "".join(_box(layout, node) for node in graph.nodes.values())
    width = layout.width + 2 * room
    size = f'viewBox="{-room:.0f} 0 {width:.0f} {layout.height:.0f}" width="{width:.0f}" height="{layout.height:.0f}"'
    size += f' style="min-width:{LEAST_SCALE * width:.0f}px"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(graph.label)}" {size}>'
        f"<defs>{heads}</defs>{''.join(edges)}{boxes}{''.join(notes)}</svg>"
    )


def _head(name: str, kind: str) -> str:
    size = 4 if kind else 7
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="{size}" markerHeight="{size}"'
        f' orient="auto"><path class="tip {kind}" d="M0 0L10 5L0 10z"/></marker>'
    )


def _box(layout: _Layout, node: GraphNode) -> str:
    x, y = layout.places["", node.name, layout.depths[node.name]]
    width = layout.widths[node.name]
    label = f'<text class="soft" x="{x:.1f}" y="{y + 34:.1f}" text-anchor="middle">{escape(node.label)}</text>'
    name_y = y + (18 if node.label else 26)
    return (
        f'<rect class="box {node.tone}" x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BOX}" rx="6"/>'
        f'<text class="name" x="{x:.1f}" y="{name_y:.1f}" text-anchor="middle">{escape(node.name)}</text>'
        f"{label if node.label else ''}"
    )


def _too_large(number: int) -> str:
    return f'<p class="note">{number} variables: graphs are drawn up to {MAX_NODES}.</p>'
