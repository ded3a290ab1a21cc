"""Stated causal graphs as pictures: what the evidence makes of every edge, and what was set. As SVG and as plain text.

Nodes stand on a circle, so that any set of edges can be drawn, cycles too. Kinds of edges differ in colour, in how
their line is broken, and by a sign in the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from html import escape
from math import atan2, cos, hypot, pi, sin
from typing import NamedTuple

from calibrant.bench.pages.aligned import aligned
from calibrant.dsl.errors import in_one_line


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


@dataclass(frozen=True)
class GraphPicture:
    """One stated graph.

    title: whose it is; remark: what came of it, in words
    nodes: names, the last one at the bottom; edges: (parent, child) by what the evidence makes of them
    settings: (name, value) in the order in which they were made
    """

    title: str
    remark: str
    nodes: tuple[str, ...]
    edges: Mapping[EdgeStatus, Sequence[tuple[str, str]]]
    settings: tuple[tuple[str, float], ...] = field(default=())

    @property
    def values(self) -> dict[str, str]:
        """By name: the values that it was set to, in their order."""
        texts: dict[str, list[str]] = {}
        for name, value in self.settings:
            texts.setdefault(name, []).append(f"{value:g}")
        return {name: ", ".join(values) for name, values in texts.items()}


# --- text -------------------------------------------------------------------------------------------------------------


def graph_text(picture: GraphPicture) -> str:
    """Return a table of causes by effects with a sign for every edge, and a legend."""
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


# --- SVG --------------------------------------------------------------------------------------------------------------

LETTER, BOX, MARGIN, HEAD, LINE = (
    7.4,
    34,
    30,
    46,
    20,
)  # a letter's width, a node's height, room around, above and a line
MIN_NODE_WIDTH = 70  # a node; as much as what a property was set to needs
BEND = 0.12  # of an edge's length, so that two edges between the same nodes do not lie on each other
MAX_ROW_WIDTH = 960  # of all panels of a row: what a report has beside its contents
STYLE = """
.graph text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.graph .name { text-anchor: middle; }
.graph .title { font-weight: 600; font-size: 13px; }
.graph .soft { fill: var(--soft); font-size: 11px; }
.graph .value { font-size: 11px; fill: var(--good); text-anchor: middle; }
.graph .edge { fill: none; stroke-width: 2; }
.graph .edge.proven { stroke: var(--good); }
.graph .edge.unproven { stroke: var(--warn); stroke-dasharray: 7 4; }
.graph .edge.contradicted { stroke: var(--bad); stroke-dasharray: 2 3; }
.graph .edge.missed { stroke: var(--edge); stroke-dasharray: 12 3 2 3; }
.graph marker path { stroke: none; }
.graph .head.proven { fill: var(--good); }
.graph .head.unproven { fill: var(--warn); }
.graph .head.contradicted { fill: var(--bad); }
.graph .head.missed { fill: var(--edge); }
.graph .node rect { fill: var(--panel); stroke: var(--edge); }
.graph .node.set rect { fill: var(--good-ground); stroke: var(--good); stroke-width: 2; }
"""


def graphs_svg(pictures: Sequence[GraphPicture], prefix: str = "") -> str:
    """Return the pictures side by side with a legend below them, as an SVG in the tokens of the page around it.

    prefix: of ids, unique in a page that has several such drawings
    """
    panels = [_panel(picture, prefix) for picture in pictures]
    columns = max(1, min(len(panels), int(MAX_ROW_WIDTH // max((panel.width for panel in panels), default=1))))
    panel_width = max((panel.width for panel in panels), default=0.0)
    panel_height = max((panel.height for panel in panels), default=0.0)
    body = [
        f'<g transform="translate({k % columns * panel_width:.1f} {k // columns * panel_height:.1f})">{panel.body}</g>'
        for k, panel in enumerate(panels)
    ]
    top = -(-len(panels) // columns) * panel_height
    kinds = [kind for kind in EdgeStatus if any(picture.edges.get(kind) for picture in pictures)]
    body += [_legend_line(kind, top + LINE * (k + 0.5), prefix) for k, kind in enumerate(kinds)]
    width, height = max(columns * panel_width, 420.0), top + LINE * len(kinds) + 8
    heads = "".join(_head(kind, prefix) for kind in kinds)
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph fixed" {size}><style>{STYLE}</style>'
        f"<defs>{heads}</defs>{''.join(body)}</svg>"
    )


class _Panel(NamedTuple):
    width: float
    height: float
    body: str


def _panel(picture: GraphPicture, prefix: str) -> _Panel:
    widths = {node: max(MIN_NODE_WIDTH, LETTER * len(node) + 18) for node in picture.nodes}
    radius = max(88.0, 22.0 * len(picture.nodes))
    side = max(widths.values(), default=0.0) / 2 + MARGIN
    width = 2 * (radius + side)
    places = _places(picture.nodes, width / 2, HEAD + radius + MARGIN, radius)
    values = picture.values
    body = [
        f'<text class="title" x="12" y="16">{escape(_short(picture.title, int(width / 8)))}</text>',
        f'<text class="soft" x="12" y="32">{escape(_short(picture.remark, int(width / 5.6)))}</text>',
        *(_edge(edge, kind, places, widths, prefix) for kind in EdgeStatus for edge in picture.edges.get(kind, ())),
        *(_node(node, places[node], widths[node], values.get(node)) for node in picture.nodes),
    ]
    return _Panel(width, HEAD + 2 * (radius + MARGIN) + 8, "".join(body))


def _places(nodes: Sequence[str], x: float, y: float, radius: float) -> dict[str, tuple[float, float]]:
    """On a circle, the last at the bottom and the others clockwise from there."""
    step = 2 * pi / max(len(nodes), 1)
    return {node: (x - radius * sin(step * (k + 1)), y + radius * cos(step * (k + 1))) for k, node in enumerate(nodes)}


def _edge(
    edge: tuple[str, str],
    kind: EdgeStatus,
    places: Mapping[str, tuple[float, float]],
    widths: Mapping[str, float],
    prefix: str,
) -> str:
    parent, child = edge
    (x1, y1), (x2, y2) = places[parent], places[child]
    length = hypot(x2 - x1, y2 - y1)
    if length == 0:
        path = f"M{x1 - 10:.1f} {y1 - BOX / 2:.1f}c-14 -28 34 -28 20 -2"
    else:
        bend = BEND * length
        middle = (x1 + x2) / 2 - bend * (y2 - y1) / length, (y1 + y2) / 2 + bend * (x2 - x1) / length
        start, end = _border((x1, y1), middle, widths[parent], 1), _border((x2, y2), middle, widths[child], 3)
        path = "M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*start, *middle, *end)
    title = escape(f"{parent} -> {child}: {MEANINGS[kind]}")
    head = f"url(#{prefix}head-{kind})"
    return f'<path class="edge {kind}" d="{path}" marker-end="{head}"><title>{title}</title></path>'


def _border(at: tuple[float, float], towards: tuple[float, float], width: float, gap: float) -> tuple[float, float]:
    """Return where a line from a node's centre leaves its box, and a little further."""
    angle = atan2(towards[1] - at[1], towards[0] - at[0])
    across, along = max(abs(cos(angle)), 1e-9), max(abs(sin(angle)), 1e-9)
    reach = min((width / 2 + gap) / across, (BOX / 2 + gap) / along)
    return at[0] + reach * cos(angle), at[1] + reach * sin(angle)


def _node(name: str, place: tuple[float, float], width: float, values: str | None) -> str:
    x, y = place
    setting = f"set to {values}" if values else ""
    note = f'<text class="value" x="{x:.1f}" y="{y + 11:.1f}">{escape(_short(setting, int(width / 6)))}</text>'
    return (
        f'<g class="node{" set" if values else ""}"><title>{escape(f"{name} {setting}".strip())}</title>'
        f'<rect x="{x - width / 2:.1f}" y="{y - BOX / 2:.1f}" width="{width:.1f}" height="{BOX}" rx="6"/>'
        f'<text class="name" x="{x:.1f}" y="{y - 2 if values else y + 4:.1f}">{escape(name)}</text>'
        f"{note if values else ''}</g>"
    )


def _head(kind: EdgeStatus, prefix: str) -> str:
    return (
        f'<marker id="{prefix}head-{kind}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="6" markerHeight="6"'
        f' orient="auto"><path class="head {kind}" d="M0 0L10 5L0 10z"/></marker>'
    )


def _legend_line(kind: EdgeStatus, y: float, prefix: str) -> str:
    line = f'<path class="edge {kind}" d="M12 {y:.1f}H56" marker-end="url(#{prefix}head-{kind})"/>'
    return f'{line}<text class="soft" x="66" y="{y + 4:.1f}">{escape(MEANINGS[kind])}</text>'


def _short(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "\N{HORIZONTAL ELLIPSIS}"
