"""Acyclic graphs as pictures, causes above effects: nodes with noise, values and marks, as SVG and as plain text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from calibrant.bench.pages.aligned import aligned
from calibrant.dsl.errors import in_one_line


class Mark(StrEnum):
    """Mark of a special node: a class of its drawing."""

    SET = "set"
    REACHED = "reached"
    CHANGED = "changed"


MEANINGS: Mapping[Mark, str] = {
    Mark.SET: "set by do: the arrows into it, and its noise, have no effect any more",
    Mark.REACHED: "below what is set: may change",
    Mark.CHANGED: "has another value under do",
}


@dataclass(frozen=True)
class LayeredNode:
    """A node of a graph drawn in layers.

    parents: names, in the order of the equation
    noise, value: what is known of them, in a few words
    marks: CSS classes; facts: further columns of the text, by heading
    """

    name: str
    parents: tuple[str, ...]
    noise: str
    value: str = ""
    marks: frozenset[Mark] = frozenset()
    facts: Mapping[str, str] | None = None


@dataclass(frozen=True)
class LayeredPicture:
    """A graph drawn in layers.

    remark: its subject, in words; nodes: causes before effects
    """

    title: str
    remark: str
    nodes: tuple[LayeredNode, ...]

    @property
    def marks(self) -> list[Mark]:
        return [mark for mark in Mark if any(mark in node.marks for node in self.nodes)]

    @property
    def depths(self) -> dict[str, int]:
        """The longest way down to each node."""
        depth_by_name: dict[str, int] = {}
        for node in self.nodes:
            depth_by_name[node.name] = 1 + max((depth_by_name[parent] for parent in node.parents), default=-1)
        return depth_by_name


# --- text -------------------------------------------------------------------------------------------------------------

STEP = ". "  # a name is behind as many of these as it lies deep


def layered_text(picture: LayeredPicture) -> str:
    """Return a table of the nodes, deeper ones further to the right, with their parents, their noise and all facts."""
    depths = picture.depths
    columns = list(dict.fromkeys(heading for node in picture.nodes for heading in node.facts or {}))
    rows = [
        [STEP * depths[node.name] + node.name, ", ".join(node.parents) or "-", node.noise]
        + [(node.facts or {}).get(heading, "") for heading in columns]
        for node in picture.nodes
    ]
    table = aligned(["node", "from", "noise", *columns], rows)
    return "\n".join([in_one_line(picture.title), in_one_line(picture.remark), "", table])


# --- SVG --------------------------------------------------------------------------------------------------------------

LETTER, SMALL = 7.8, 7.3  # widths of a letter, of a smaller one
BOX, CHIP, GAP, FALL, MARGIN, LINE = 44, 18, 34, 78, 20, 20  # heights and distances
ENTRY, ARROW = 0.32, 9  # the share of a box's upper edge where arrows come in, noise has the rest; room for an arrow
LEGEND = MARGIN + 36  # where texts of the legend begin
STYLE = """
.layered text { font: 13px system-ui, sans-serif; fill: var(--ink); text-anchor: middle; }
.layered .name { font-weight: 600; }
.layered .value { font: 12px ui-monospace, monospace; fill: var(--soft); }
.layered .noise text { font: 12px ui-monospace, monospace; fill: var(--soft); }
.layered .noise rect { fill: var(--paper); stroke: var(--edge); stroke-dasharray: 3 2; }
.layered .noise path { stroke: var(--edge); stroke-dasharray: 3 2; fill: none; }
.layered .edge { fill: none; stroke: var(--soft); stroke-width: 1.6; }
.layered .edge.cut { stroke: var(--edge); stroke-dasharray: 3 4; }
.layered .box { fill: var(--panel); stroke: var(--edge); }
.layered .reached .box { stroke: var(--warn); stroke-dasharray: 6 3; }
.layered .changed .box { fill: var(--warn-ground); stroke: var(--warn); stroke-width: 2.4; stroke-dasharray: none; }
.layered .changed .value { fill: var(--warn); font-weight: 600; }
.layered .set .box { fill: var(--good-ground); stroke: var(--good); stroke-width: 2.4; }
.layered .set .value { fill: var(--good); font-weight: 600; }
.layered .set .noise text { text-decoration: line-through; }
.layered .legend { text-anchor: start; font-size: 12px; fill: var(--soft); }
.layered .tip { fill: var(--soft); }
.layered .tip.cut { fill: var(--edge); }
"""
Slot: TypeAlias = tuple[str, str, int]  # ("", name, depth) of a node; (parent, child, depth) where an edge passes


def layered_svg(picture: LayeredPicture, meanings: Mapping[Mark, str] = MEANINGS) -> str:
    """Return one SVG in the colours of the design's tokens; all texts are escaped.

    meanings: of the marks, in the legend
    """
    places, width, height = _places(picture)
    by_name = {node.name: node for node in picture.nodes}
    body = [_edge(by_name[p], node, places) for node in picture.nodes for p in node.parents]
    body += [_node(node, places["", node.name, picture.depths[node.name]]) for node in picture.nodes]
    legend = [_legend_line(mark, meanings[mark], height + LINE * (k + 0.5)) for k, mark in enumerate(picture.marks)]
    tips = "".join(
        f'<marker id="tip-{kind}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path class="tip {kind}" d="M0 0L10 5L0 10z"/></marker>'
        for kind in ("live", "cut")
    )
    room = max((LEGEND + SMALL * len(meanings[mark]) + MARGIN for mark in picture.marks), default=0)
    width, height = max(width, room), height + LINE * len(legend) + 8
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    label = f"Graph of {len(picture.nodes)} variables with their noise"
    content = f"<style>{STYLE}</style><defs>{tips}</defs>{''.join([*body, *legend])}"
    kind = f'class="layered fixed" role="img" aria-label="{escape(label)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {kind} {size}>{content}</svg>'


class _Place(NamedTuple):
    """The middle of a box's upper edge, and the box's width."""

    x: float
    y: float
    width: float


def _places(picture: LayeredPicture) -> tuple[dict[Slot, _Place], float, float]:
    """Return where every slot is, and the size of the drawing."""
    layers, depths = layered_slots(picture), picture.depths
    widths: dict[Slot, float] = {slot: 0.0 for layer in layers for slot in layer}
    for node in picture.nodes:
        text = max(LETTER * len(node.name), SMALL * 1.1 * len(node.value)) + 24
        noise, arrows = (SMALL * len(node.noise) + 10) / (1 - ENTRY) + 8, ARROW * len(node.parents) / ENTRY
        widths["", node.name, depths[node.name]] = max(text, noise, arrows)
    centres, widest = centred_layers(layers, widths.__getitem__, GAP)
    places = {
        slot: _Place(MARGIN + x, MARGIN + CHIP + depth * (BOX + FALL), widths[slot])
        for slot, (x, depth) in centres.items()
    }
    return places, widest + 2 * MARGIN, 2 * MARGIN + CHIP + len(layers) * (BOX + FALL) - FALL


def centred_layers(
    layers: Sequence[Sequence[Slot]], width: Callable[[Slot], float], gap: float
) -> tuple[dict[Slot, tuple[float, int]], float]:
    """Return the middle of each slot with its depth, layers centred above each other, and the greatest width."""
    totals = [sum(map(width, layer)) + gap * (len(layer) - 1) for layer in layers]
    widest = max(totals, default=0.0)
    centres: dict[Slot, tuple[float, int]] = {}
    for depth, (layer, total) in enumerate(zip(layers, totals, strict=True)):
        x = (widest - total) / 2
        for slot in layer:
            centres[slot] = x + width(slot) / 2, depth
            x += width(slot) + gap
    return centres, widest


def curve_path(points: Sequence[tuple[float, float]]) -> str:
    """Return the path through points from one layer to another that leaves and enters each vertically."""
    path = "M{:.1f} {:.1f}".format(*points[0])
    for (x1, y1), (x2, y2) in pairwise(points):
        middle = (y1 + y2) / 2
        path += f"C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
    return path


def layered_slots(picture: LayeredPicture) -> list[list[Slot]]:
    """Return nodes by depth with the slots of edges that pass, each layer in an order that crosses few edges."""
    depths = picture.depths
    layers: list[list[Slot]] = [[] for _ in range(max(depths.values(), default=-1) + 1)]
    near: dict[Slot, list[Slot]] = {}
    for node in picture.nodes:
        layers[depths[node.name]].append(("", node.name, depths[node.name]))
    for node in picture.nodes:
        for parent in node.parents:
            chain = edge_slots(parent, node.name, depths)
            for slot in chain[1:-1]:
                layers[slot[2]].append(slot)
            for upper, lower in pairwise(chain):
                near.setdefault(upper, []).append(lower)
                near.setdefault(lower, []).append(upper)
    for _ in range(6):
        for depth in [*range(1, len(layers)), *reversed(range(len(layers) - 1))]:
            _reorder(layers, depth, near)
    return layers


def _reorder(layers: list[list[Slot]], depth: int, near: Mapping[Slot, Sequence[Slot]]) -> None:
    """Return a layer by the mean place of each slot's neighbours, as a share of their layers."""
    share = {slot: (k + 0.5) / len(layer) for layer in layers for k, slot in enumerate(layer)}

    def key(slot: Slot) -> float:
        neighbours = near.get(slot, ())
        return sum(share[neighbour] for neighbour in neighbours) / len(neighbours) if neighbours else share[slot]

    layers[depth].sort(key=key)


def edge_slots(parent: str, child: str, depths: Mapping[str, int]) -> list[Slot]:
    inner: list[Slot] = [(parent, child, depth) for depth in range(depths[parent] + 1, depths[child])]
    return [("", parent, depths[parent]), *inner, ("", child, depths[child])]


def _edge(parent: LayeredNode, child: LayeredNode, places: Mapping[Slot, _Place]) -> str:
    depths = {slot[1]: slot[2] for slot in places if not slot[0]}
    start, *passed, end = (places[slot] for slot in edge_slots(parent.name, child.name, depths))
    entries, number = len(child.parents), child.parents.index(parent.name)
    points = [(start.x, start.y + BOX)]
    for place in passed:
        points += [(place.x, place.y - CHIP), (place.x, place.y + BOX)]
    points.append((end.x - end.width / 2 + end.width * ENTRY * (number + 0.5) / entries, end.y - 2))
    path = curve_path(points)
    kind = "cut" if Mark.SET in child.marks else "live"
    title = escape(f"{parent.name} -> {child.name}" + (", cut by do" if kind == "cut" else ""))
    return f'<path class="edge {kind}" d="{path}" marker-end="url(#tip-{kind})"><title>{title}</title></path>'


def _node(node: LayeredNode, place: _Place) -> str:
    left_edge, chip = place.x - place.width / 2, SMALL * len(node.noise) + 10
    middle = left_edge + place.width - chip / 2
    marks = "".join(f" {mark}" for mark in Mark if mark in node.marks)
    facts = "; ".join([node.noise, *(f"{heading} {text}" for heading, text in (node.facts or {}).items() if text)])
    noise = (
        f'<g class="noise"><path d="M{middle:.1f} {place.y - 6:.1f}V{place.y:.1f}"/>'
        f'<rect x="{middle - chip / 2:.1f}" y="{place.y - CHIP - 4:.1f}" width="{chip:.1f}" height="16" rx="8"/>'
        f'<text x="{middle:.1f}" y="{place.y - CHIP + 8:.1f}">{escape(node.noise)}</text></g>'
    )
    value = (
        f'<text class="value" x="{place.x:.1f}" y="{place.y + 35}">{escape(node.value)}</text>' if node.value else ""
    )
    return (
        f'<g class="node{marks}"><title>{escape(f"{node.name}: {facts}")}</title>{noise}'
        f'<rect class="box" x="{left_edge:.1f}" y="{place.y:.1f}" width="{place.width:.1f}" height="{BOX}" rx="7"/>'
        f'<text class="name" x="{place.x:.1f}" y="{place.y + (19 if node.value else 27)}">{escape(node.name)}</text>'
        f"{value}</g>"
    )


def _legend_line(mark: Mark, meaning: str, y: float) -> str:
    box = f'<g class="{mark}"><rect class="box" x="{MARGIN}" y="{y - 7:.1f}" width="26" height="14" rx="4"/></g>'
    return f'{box}<text class="legend" x="{LEGEND}" y="{y + 4:.1f}">{escape(meaning)}</text>'
