"""Causal graphs as SVG, styled by `templates/design/drawing.css`: in layers, causes above effects, or on a ring.

`Layers` places nodes of acyclic graphs and the edges between them; `draw_together` draws graphs side by side on one
such layout. `draw_ring` also draws cyclic graphs. Kinds of edges differ in colour and in dashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from html import escape
from itertools import combinations, pairwise
from math import cos, hypot, pi, sin
from typing import Literal, NamedTuple, TypeAlias

from calibrant.bench.pages.charts import figure, text_at, text_width, widest
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.dsl.errors import in_one_line

Point: TypeAlias = tuple[float, float]
Tone: TypeAlias = Literal["", "good", "open", "bad", "missed", "only", "cut"]
BOX = 42.0  # height of a node, pixels


@dataclass(frozen=True)
class GraphNode:
    """Node of a drawn graph.

    label: text below the name; tone: empty, open or good
    """

    name: str
    label: str = ""
    tone: Tone = ""


def node_width(name: str, label: str = "", least: float = 64.0) -> float:
    """Return the width of a node's box, at least `least` pixels."""
    return max(least, text_width(name, 13, "bold") + 20, text_width(label) + 16)


def node_box(node: GraphNode, x: float, y: float, width: float, title: str = "") -> str:
    """Return the box of a node with its name and label. x, y: the middle of its upper side; title: tooltip."""
    texts = text_at(node.name, x, y + (18 if node.label else 26), "name", "middle")
    if node.label:
        texts += text_at(node.label, x, y + 34, "soft", "middle")
    kind = f"box {node.tone}".rstrip()
    box = f'<rect class="{kind}" x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BOX:g}" rx="6"/>'
    return f'<g class="node"><title>{escape(title)}</title>{box}{texts}</g>' if title else box + texts


def arrow(path: str, tone: Tone, heads: str, title: str) -> str:
    """Return an edge with its head. heads: the prefix of ids that `arrow_heads` was given; title: tooltip."""
    kind = f"arrow {tone}".rstrip()
    end = f'marker-end="url(#{heads}{tone or "plain"})"'
    return f'<path class="{kind}" d="{path}" {end}><title>{escape(title)}</title></path>'


def arrow_heads(tones: Iterable[Tone], heads: str) -> str:
    """Return the definitions of arrow heads of these tones. heads: prefix of ids, unique in the page."""
    markers = "".join(
        f'<marker id="{heads}{tone or "plain"}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="11"'
        f' markerHeight="11" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path class="{f"tip {tone}".rstrip()}" d="M0 0L10 5L0 10z"/></marker>'
        for tone in tones
    )
    return f"<defs>{markers}</defs>"


def graph_figure(width: float, height: float, label: str, marks: Iterable[str], *, x: float = 0, scale: float) -> str:
    """Return an SVG that narrow pages shrink down to `scale`, then scroll. x: left end of its view box."""
    size = f'viewBox="{x:.0f} 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    size += f' style="max-width:100%;min-width:{scale * width:.0f}px"'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" {size}>'
    return f"{svg}{''.join(marks)}</svg>"


# --- layers -----------------------------------------------------------------------------------------------------------

Slot: TypeAlias = tuple[str, str, int]
"""A place in a layer: ("", name, depth) of a node, or (parent, child, depth) of an edge that passes the layer."""


class Spacing(NamedTuple):
    """Measures of a layered drawing, in pixels.

    box: height of a node; above: height reserved above it; passing: width reserved for an edge that passes a layer
    gap: distance between nodes of a layer; fall: distance between layers; margin: around the drawing
    """

    box: float
    gap: float
    fall: float
    margin: float
    above: float = 0.0
    passing: float = 0.0


class Layers:
    """Layout of an acyclic graph in layers with few crossings: positions of nodes and routes of edges.

    parents: node -> parents, parents before children; widths: of the nodes, pixels
    """

    def __init__(self, parents: Mapping[str, Sequence[str]], widths: Mapping[str, float], spacing: Spacing) -> None:
        self.widths, self.spacing = widths, spacing
        self._depths: dict[str, int] = {}
        for name, node_parents in parents.items():
            self._depths[name] = 1 + max((self._depths[parent] for parent in node_parents), default=-1)
        layers = self._ordered_layers(parents)
        totals = [sum(map(self._slot_width, layer)) + spacing.gap * (len(layer) - 1) for layer in layers]
        broadest = max(totals, default=0.0)
        self.width = broadest + 2 * spacing.margin
        step = spacing.box + spacing.fall
        self.height = len(layers) * step - spacing.fall + 2 * spacing.margin + spacing.above
        self._positions: dict[Slot, Point] = {}
        for depth, (layer, total) in enumerate(zip(layers, totals, strict=True)):
            x = spacing.margin + (broadest - total) / 2
            for slot in layer:
                width = self._slot_width(slot)
                self._positions[slot] = x + width / 2, spacing.margin + spacing.above + depth * step
                x += width + spacing.gap

    def _slot_width(self, slot: Slot) -> float:
        return self.spacing.passing if slot[0] else self.widths[slot[1]]

    def _ordered_layers(self, parents: Mapping[str, Sequence[str]]) -> list[list[Slot]]:
        """Return the slots of each layer, sorted to have few crossings: `_reorder` down and up all layers six times."""
        depths = self._depths
        layers: list[list[Slot]] = [[] for _ in range(max(depths.values(), default=-1) + 1)]
        near: dict[Slot, list[Slot]] = {}
        for name in parents:
            layers[depths[name]].append(("", name, depths[name]))
        for name, node_parents in parents.items():
            for parent in node_parents:
                chain = self._edge_slots(parent, name)
                for slot in chain[1:-1]:
                    layers[slot[2]].append(slot)
                for upper, lower in pairwise(chain):
                    near.setdefault(upper, []).append(lower)
                    near.setdefault(lower, []).append(upper)
        for _ in range(6):
            for depth in [*range(1, len(layers)), *reversed(range(len(layers) - 1))]:
                _reorder(layers, depth, near)
        return layers

    def _edge_slots(self, parent: str, child: str) -> list[Slot]:
        """Return the slots of an edge from parent to child, with those of its ends."""
        depths = self._depths
        inner: list[Slot] = [(parent, child, depth) for depth in range(depths[parent] + 1, depths[child])]
        return [("", parent, depths[parent]), *inner, ("", child, depths[child])]

    def is_above(self, name: str, lower_name: str) -> bool:
        """Return whether a node is in a layer above that of another."""
        return self._depths[name] < self._depths[lower_name]

    def place(self, name: str) -> Point:
        """Return the middle of the upper side of a node."""
        return self._positions["", name, self._depths[name]]

    def points(self, parent: str, child: str) -> list[Point]:
        """Return the points of an edge in the layers that it passes: two in each, at the top and the bottom."""
        passed = (self._positions[slot] for slot in self._edge_slots(parent, child)[1:-1])
        return [point for x, y in passed for point in ((x, y - self.spacing.above), (x, y + self.spacing.box))]

    def route(self, parent: str, child: str, share: float) -> list[Point]:
        """Return the points of an edge. share: position of its end along the child's upper side, 0 to 1."""
        (x1, y1), (x2, y2) = self.place(parent), self.place(child)
        end = x2 + (share - 0.5) * self.widths[child], y2 - 2
        return [(x1, y1 + self.spacing.box), *self.points(parent, child), end]


def _reorder(layers: list[list[Slot]], depth: int, near: Mapping[Slot, Sequence[Slot]]) -> None:
    """Sort a layer by the mean relative position of each slot's neighbours in their layers."""
    share = {slot: (k + 0.5) / len(layer) for layer in layers for k, slot in enumerate(layer)}

    def key(slot: Slot) -> float:
        neighbours = near.get(slot, ())
        return sum(share[neighbour] for neighbour in neighbours) / len(neighbours) if neighbours else share[slot]

    layers[depth].sort(key=key)


def curve_path(points: Sequence[Point]) -> str:
    """Return the path of Bezier curves through these points, vertical at each of them."""
    path = "M{:.1f} {:.1f}".format(*points[0])
    for (x1, y1), (x2, y2) in pairwise(points):
        middle = (y1 + y2) / 2
        path += f"C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
    return path


def curve_points(points: Sequence[Point]) -> Iterator[Point]:
    """Yield 25 points on each curve of `curve_path`."""
    for (x1, y1), (x2, y2) in pairwise(points):
        for share in (k / 24 for k in range(25)):
            eased = share * share * (3 - 2 * share)
            height = 1.5 * share * (1 - share) + share**3  # since the control points are half-way down
            yield x1 + eased * (x2 - x1), y1 + height * (y2 - y1)


# --- graphs side by side ----------------------------------------------------------------------------------------------

NOTE = 24.0  # width reserved for a note at the side, pixels
SPACING = Spacing(BOX, gap=24, fall=46, margin=14 + NOTE, passing=18)
LEAST_SCALE = 0.8  # smallest scale of a drawing in a narrow page: labels of 12 px stay above 9 px, and it scrolls
MAX_NODES = 24  # largest number of nodes of a graph that is drawn


@dataclass(frozen=True)
class Graph:
    """Graph to draw beside others.

    parents: node -> parents; nodes: name -> node to draw; label: the finding, for screen readers
    only_note: text beside edges that some other graph lacks; tones: (parent, child) -> tone of an edge if not plain
    """

    parents: Mapping[str, Sequence[str]]
    nodes: Mapping[str, GraphNode]
    label: str
    only_note: str = ""
    tones: Mapping[tuple[str, str], Tone] = field(default_factory=dict)


def draw_together(graphs: Sequence[Graph], name: str) -> list[str]:
    """Return an SVG of each graph, all with the layout of the union of edges. name: prefix of ids, unique in the page.

    Edges that some graph lacks are thick. If the union has a cycle, every graph has its own layout.
    """
    names = list(graphs[0].nodes)
    if len(names) > MAX_NODES:
        return [f'<p class="note">{len(names)} variables: graphs are drawn up to {MAX_NODES}.</p>' for _ in graphs]
    union = {node: list(dict.fromkeys(p for g in graphs for p in g.parents.get(node, ()))) for node in names}
    shared = {(p, v) for v in names for p in union[v] if all(p in g.parents.get(v, ()) for g in graphs)}
    if _order(union) is None:
        layouts = [_layers(g.parents, [g]) for g in graphs]
    else:
        layouts = [_layers(union, graphs)] * len(graphs)
    routes = [_routes(g, layout) for g, layout in zip(graphs, layouts, strict=True)]
    parts = [*zip(graphs, layouts, routes, strict=True)]
    notes = [_note_places(*part, shared) for part in parts]
    sides = (max(n.end - part[1].width, -n.start) for part, spots in zip(parts, notes, strict=True) for n in spots)
    room = max(0.0, max(sides, default=0.0))
    return [_draw_layered(*part, notes[k], shared, f"{name}-{k}-", room) for k, part in enumerate(parts)]


def _layers(parents: Mapping[str, Sequence[str]], graphs: Sequence[Graph]) -> Layers:
    """Return the layout of these edges; boxes fit the widest label that a node has in the graphs."""
    nodes = graphs[0].nodes
    order = _order({v: parents.get(v, ()) for v in nodes}) or list(nodes)
    labels = {v: max((g.nodes[v].label for g in graphs), key=text_width) for v in nodes}
    widths = {v: node_width(v, labels[v]) for v in nodes}
    return Layers({v: tuple(parents.get(v, ())) for v in order}, widths, SPACING)


def _order(parents: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Return a topological order of the nodes, ties in the given order; None if there is a cycle."""
    placed: list[str] = []
    waiting = list(parents)
    while waiting:
        ready = next((v for v in waiting if all(p in placed for p in parents[v])), None)
        if ready is None:
            return None
        placed.append(ready)
        waiting.remove(ready)
    return placed


Edges: TypeAlias = Mapping[tuple[str, str], list[Point]]  # (parent, child) -> points of the edge


def _routes(graph: Graph, layout: Layers) -> dict[tuple[str, str], list[Point]]:
    """Return (parent, child) -> points of the edge; the edges of a node end side by side."""
    routes = {}
    for child, parents in graph.parents.items():
        ordered = sorted(parents, key=lambda p: layout.place(p)[0])
        for k, parent in enumerate(ordered):
            routes[parent, child] = layout.route(parent, child, 0.5 + ((k + 0.5) / len(ordered) - 0.5) * 0.7)
    return routes


def _note_places(graph: Graph, layout: Layers, edges: Edges, shared: set[tuple[str, str]]) -> list[_Rectangle]:
    """Return the rectangles of notes on edges that some other graph lacks, placed to overlap other marks least."""
    middles = {name: (x, y + BOX / 2) for name, (x, y) in ((name, layout.place(name)) for name in graph.nodes)}
    taken = [_rectangle(middle, layout.widths[name], BOX) for name, middle in middles.items()]
    points = [point for route in edges.values() for point in curve_points(route)]
    width, notes = text_width(graph.only_note), list[_Rectangle]()
    for parent, child in (edge for edge in edges if edge not in shared and graph.only_note):
        (x1, _), (x2, y2) = layout.place(parent), layout.place(child)
        aside = (layout.widths[child] / 2 + 4 + width / 2) * (1 if x1 >= x2 else -1)  # first on the side of the parent
        places = [(x2 + x, y2 + y) for y in (-12, BOX / 2, BOX + 12) for x in (aside, -aside)]
        candidates = [_rectangle(candidate, width, LABEL_HEIGHT) for candidate in places]
        notes.append(min(candidates, key=lambda candidate: _covered(candidate, [*taken, *notes], points)))
    return notes


def _draw_layered(
    graph: Graph,
    layout: Layers,
    routes: Edges,
    places: Sequence[_Rectangle],
    shared: set[tuple[str, str]],
    heads: str,
    room: float,
) -> str:
    edges = []
    for (parent, child), route in routes.items():
        tone: Tone = graph.tones.get((parent, child), "") if (parent, child) in shared else "only"
        title = f"{parent} to {child}" + (", only here" if tone == "only" else "")
        edges.append(arrow(curve_path(route), tone, heads, title))
    notes = [text_at(graph.only_note, (p.start + p.end) / 2, p.bottom - 3, "warn", "middle") for p in places]
    boxes = [node_box(node, *layout.place(name), layout.widths[name]) for name, node in graph.nodes.items()]
    marks = [arrow_heads(dict.fromkeys(("", "only", *graph.tones.values())), heads), *edges, *boxes, *notes]
    return graph_figure(layout.width + 2 * room, layout.height, graph.label, marks, x=-room, scale=LEAST_SCALE)


# --- a ring -----------------------------------------------------------------------------------------------------------

MARGIN = 12.0  # border of the drawing
STRAIGHT, BENT = 0.06, 0.22  # bend of an edge as a share of its length; BENT if there is an edge back
LABEL_PLACES = (0.45, 0.55, 0.35, 0.65, 0.27, 0.73, 0.2, 0.8)  # positions of a label along an edge, in order of trial
ASIDE = (9, -9, 13, -13, 18, -18, 24, -24)  # its distances from the edge, pixels; positive: the side of the bend
LABEL_HEIGHT = 14
LABEL_ROOM = 6  # pixels added to the half axes of the ellipse for each label
RING_SCALE = 0.77  # smallest scale in narrow pages: labels of 12 px stay above 9 px
MAX_LABELS = 8  # largest number of edges that get labels; with more edges, tooltips and the matrix show the labels
TONE_WORDS: Mapping[str, str] = {"good": "proven", "open": "open", "bad": "contradicted", "missed": "not stated"}


@dataclass(frozen=True)
class GraphEdge:
    """Edge of a drawn graph: proven is good and solid, open is dashed, contradicted is bad and dotted.

    label: text beside it, if there are few; title: tooltip, empty for the label or status
    """

    cause: str
    effect: str
    tone: Tone
    label: str = ""
    title: str = ""


class Ring(NamedTuple):
    """Marks of a graph with its nodes on an ellipse, the last one at the bottom; width and height in pixels."""

    width: float
    height: float
    marks: list[str]


def draw_ring(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], label: str, prefix: str) -> str:
    """Return an SVG of a graph on a ring. label: the finding, for screen readers; prefix: of ids, unique in a page."""
    heads = f"{prefix}-"
    width, height, marks = _ring(nodes, edges, heads)
    defined = arrow_heads(dict.fromkeys(edge.tone for edge in edges), heads)
    return graph_figure(width, height, label, [defined, *marks], scale=RING_SCALE)


def _ring(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], heads: str) -> Ring:
    widths = {node.name: node_width(node.name, node.label, 72.0) for node in nodes}
    side = max(widths.values(), default=72.0) / 2 + MARGIN
    angles = [2 * pi * (k + 1) / max(1, len(nodes)) for k in range(len(nodes))]
    num_labels = sum(bool(edge.label) for edge in edges)
    room = LABEL_ROOM * num_labels if num_labels <= MAX_LABELS else 0
    along = max(96.0, 24.0 * len(nodes)) + room
    across = max(120.0, 30.0 * len(nodes), _apart([*widths.values()], angles, along)) + room
    width, height = 2 * (across + side), 2 * (along + BOX / 2 + MARGIN)
    places = {
        node.name: (width / 2 - across * sin(angle), height / 2 + along * cos(angle))
        for node, angle in zip(nodes, angles, strict=True)
    }
    pairs = {(edge.cause, edge.effect) for edge in edges}
    lines, labelled = [], list[tuple[GraphEdge, _Curve]]()
    for edge in edges:
        title = f"{edge.cause} to {edge.effect}: {edge.title or edge.label or TONE_WORDS[edge.tone]}"
        x, y = places[edge.cause]
        if edge.cause == edge.effect:
            lines.append(arrow(f"M{x - 10:.1f} {y - BOX / 2:.1f}c-14 -28 34 -28 20 -2", edge.tone, heads, title))
            continue
        bend = BENT if (edge.effect, edge.cause) in pairs else STRAIGHT
        curve = _curve((x, y), places[edge.effect], widths[edge.cause], widths[edge.effect], bend)
        lines.append(arrow(curve.path(), edge.tone, heads, title))
        if edge.label and len(edges) <= MAX_LABELS:
            labelled.append((edge, curve))
    texts = _labels(labelled, [_rectangle(places[node.name], widths[node.name], BOX) for node in nodes])
    boxes = []
    for node in nodes:
        x, y = places[node.name]
        title = f"{node.name} {node.label}".rstrip()
        boxes.append(node_box(node, x, y - BOX / 2, widths[node.name], title))
    return Ring(width, height, [*lines, *boxes, *texts])


def _apart(widths: Sequence[float], angles: Sequence[float], along: float) -> float:
    """Return the least horizontal half axis with which no two boxes overlap. along: vertical half axis."""
    least = 0.0
    for (width, angle), (next_width, next_angle) in combinations(zip(widths, angles, strict=True), 2):
        aside = abs(sin(angle) - sin(next_angle))
        if along * abs(cos(angle) - cos(next_angle)) < BOX + MARGIN and aside > 0:
            least = max(least, ((width + next_width) / 2 + MARGIN) / aside)
    return least


@dataclass(frozen=True)
class _Curve:
    """Quadratic curve between the borders of two boxes."""

    start: Point
    middle: Point
    end: Point

    def at(self, share: float) -> Point:
        first, second, third = (1 - share) ** 2, 2 * share * (1 - share), share**2
        x, y = (first * a + second * b + third * c for a, b, c in zip(self.start, self.middle, self.end, strict=True))
        return x, y

    def path(self) -> str:
        return "M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*self.start, *self.middle, *self.end)


def _curve(start: Point, end: Point, start_width: float, end_width: float, bend: float) -> _Curve:
    (x1, y1), (x2, y2) = start, end
    middle = (x1 + x2) / 2 + bend * (y2 - y1), (y1 + y2) / 2 - bend * (x2 - x1)
    return _Curve(_border(start, middle, start_width, 1), middle, _border(end, middle, end_width, 4))


def _border(at: Point, towards: Point, width: float, gap: float) -> Point:
    """Return the point `gap` pixels outside a box on the line from its centre."""
    x, y = towards[0] - at[0], towards[1] - at[1]
    length = hypot(x, y) or 1.0
    x, y = x / length, y / length
    reach = min((width / 2 + gap) / max(abs(x), 1e-9), (BOX / 2 + gap) / max(abs(y), 1e-9))
    return at[0] + reach * x, at[1] + reach * y


def _labels(curves: Sequence[tuple[GraphEdge, _Curve]], boxes: Sequence[_Rectangle]) -> list[str]:
    """Return labels beside the edges, each with the least overlap with boxes, earlier labels and edges."""
    taken = list(boxes)
    points = [curve.at(k / 32) for _, curve in curves for k in range(33)]
    texts = []
    for edge, curve in curves:
        width = text_width(edge.label) + 4
        apart = width / 2 + 4  # beside a steep edge
        places = (_beside(curve, at, aside) for aside in (*ASIDE, apart, -apart) for at in LABEL_PLACES)
        candidates = [_rectangle(place, width, LABEL_HEIGHT) for place in places]
        best = min(candidates, key=lambda place: _covered(place, taken, points))
        taken.append(best)
        x, y = (best.start + best.end) / 2, (best.top + best.bottom) / 2
        tone = "warn" if edge.tone == "open" else edge.tone
        texts.append(text_at(edge.label, x, y + 4, f"halo {tone}", "middle"))
    return texts


class _Rectangle(NamedTuple):
    start: float
    top: float
    end: float
    bottom: float


def _rectangle(middle: Point, width: float, height: float) -> _Rectangle:
    x, y = middle
    return _Rectangle(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def _covered(place: _Rectangle, taken: Sequence[_Rectangle], points: Sequence[Point]) -> float:
    """Return the overlap of a rectangle: its area on other rectangles, plus 4 for each point of an edge in it."""
    area = sum(
        max(0.0, min(place.end, box.end) - max(place.start, box.start))
        * max(0.0, min(place.bottom, box.bottom) - max(place.top, box.top))
        for box in taken
    )
    return area + 4 * sum(place.start <= x <= place.end and place.top <= y <= place.bottom for x, y in points)


def _beside(curve: _Curve, at: float, aside: float) -> Point:
    (x, y), (x1, y1), (x2, y2) = curve.at(at), curve.start, curve.end
    length = hypot(x2 - x1, y2 - y1) or 1.0
    return x + aside * (y2 - y1) / length, y - aside * (x2 - x1) / length


# --- stated graphs ----------------------------------------------------------------------------------------------------

HEAD, LEGEND_LINE = 40.0, 20.0  # pixels: height of title and remark above a graph, and of a line of the legend
MAX_ROW_WIDTH = 960  # pixels of a row of panels: the width of a report's text
MAX_LABEL_CHARS = 24


class EdgeStatus(StrEnum):
    """Status of a stated edge under the evidence: its class in the drawing."""

    PROVEN = "proven"
    UNPROVEN = "unproven"
    CONTRADICTED = "contradicted"
    MISSED = "missed"


MEANINGS: Mapping[EdgeStatus, str] = {
    EdgeStatus.PROVEN: "proven: stated, and every mechanism left has it",
    EdgeStatus.UNPROVEN: "unproven: stated, and some of those left have it",
    EdgeStatus.CONTRADICTED: "contradicted: stated, and none of those left has it",
    EdgeStatus.MISSED: "not stated, though every mechanism left has it",
}
SIGNS: Mapping[EdgeStatus, str] = {
    EdgeStatus.PROVEN: "#",
    EdgeStatus.UNPROVEN: "?",
    EdgeStatus.CONTRADICTED: "x",
    EdgeStatus.MISSED: "o",
}


TONES: Mapping[EdgeStatus, Tone] = {
    EdgeStatus.PROVEN: "good",
    EdgeStatus.UNPROVEN: "open",
    EdgeStatus.CONTRADICTED: "bad",
    EdgeStatus.MISSED: "missed",
}


@dataclass(frozen=True)
class GraphPicture:
    """One stated graph.

    title: name of its author; remark: outcome of the answer
    nodes: names, the last one at the bottom; edges: status under the evidence -> (parent, child)
    settings: interventions (name, value) in order
    """

    title: str
    remark: str
    nodes: tuple[str, ...]
    edges: Mapping[EdgeStatus, Sequence[tuple[str, str]]]
    settings: tuple[tuple[str, float], ...] = field(default=())

    @property
    def values(self) -> dict[str, str]:
        """Name -> text of the values that the node was set to, in order."""
        texts: dict[str, list[str]] = {}
        for name, value in self.settings:
            texts.setdefault(name, []).append(f"{value:g}")
        return {name: ", ".join(values) for name, values in texts.items()}


def graph_text(picture: GraphPicture) -> str:
    """Return a text matrix of causes by effects with a sign for every edge, and a legend."""
    sign = {edge: SIGNS[kind] for kind, edges in picture.edges.items() for edge in edges}
    rows = [[cause, *(sign.get((cause, effect), "-") for effect in picture.nodes)] for cause in picture.nodes]
    headings = ["cause \\ effect", *map(in_one_line, picture.nodes)]
    if picture.settings:
        headings.append("set to")
        rows = [[*row, picture.values.get(row[0], "")] for row in rows]
    table = aligned(headings, rows)
    kinds = [kind for kind in EdgeStatus if picture.edges.get(kind)]
    legend = [f"{SIGNS[kind]}  {MEANINGS[kind]}" for kind in kinds] or ["no edge is stated, and none is certain"]
    return "\n".join([in_one_line(picture.title), in_one_line(picture.remark), table, *legend])


def graphs_svg(pictures: Sequence[GraphPicture], prefix: str = "") -> str:
    """Return stated graphs side by side on rings, with a legend.

    prefix: of ids, unique in a page with several such drawings
    """
    rings = [_stated_ring(picture, prefix) for picture in pictures]
    width = max((ring.width for ring in rings), default=0.0)
    height = max((ring.height for ring in rings), default=0.0)
    columns = max(1, min(len(rings), int(MAX_ROW_WIDTH // max(width, 1))))
    marks = []
    for k, (picture, ring) in enumerate(zip(pictures, rings, strict=True)):
        title = text_at(_short(picture.title, int(width / 8.5)), 12, 16, "title")
        remark = text_at(_short(picture.remark, int(width / 7.2)), 12, 32, "soft")
        inner = f'<g transform="translate({(width - ring.width) / 2:.1f} {HEAD:.0f})">{"".join(ring.marks)}</g>'
        place = f"translate({k % columns * width:.1f} {k // columns * (height + HEAD):.1f})"
        marks.append(f'<g transform="{place}">{title}{remark}{inner}</g>')
    top = -(-len(rings) // columns) * (height + HEAD)
    kinds = [kind for kind in EdgeStatus if any(picture.edges.get(kind) for picture in pictures)]
    for k, kind in enumerate(kinds):
        y = top + LEGEND_LINE * (k + 0.5)
        marks.append(arrow(f"M12 {y:.1f}H56", TONES[kind], prefix, str(kind)))
        marks.append(text_at(MEANINGS[kind], 66, y + 4, "soft"))
    width = max(columns * width, 78 + widest(MEANINGS[kind] for kind in kinds))
    label = f"{len(pictures)} stated graphs"
    defined = arrow_heads([TONES[kind] for kind in kinds], prefix)
    return figure(width, top + LEGEND_LINE * len(kinds) + 8, label, [defined, *marks])


def _stated_ring(picture: GraphPicture, prefix: str) -> Ring:
    labels = {name: _short(f"set to {text}", MAX_LABEL_CHARS) for name, text in picture.values.items()}
    nodes = [GraphNode(name, labels.get(name, ""), "good" if name in labels else "") for name in picture.nodes]
    edges = [
        GraphEdge(parent, child, TONES[kind], title=MEANINGS[kind])
        for kind in EdgeStatus
        for parent, child in picture.edges.get(kind, ())
    ]
    return _ring(nodes, edges, prefix)


def _short(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "\N{HORIZONTAL ELLIPSIS}"
