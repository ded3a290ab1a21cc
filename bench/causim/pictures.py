"""Pictures of programs, causes above effects: nodes with noise, values and marks, as SVG and as plain text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from html import escape

from calibrant.bench.pages.charts import figure, text_at, text_width, widest
from calibrant.bench.pages.graphs import Layers, Spacing, arrow, arrow_heads, curve_path
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.text import plural


class Mark(StrEnum):
    """Mark of a node; its value is the CSS class of the drawing."""

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
    noise, value: short texts of what is known of the noise and the value of the node
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

    remark: sentence below the title; nodes: in topological order
    """

    title: str
    remark: str
    nodes: tuple[LayeredNode, ...]

    @property
    def marks(self) -> list[Mark]:
        return [mark for mark in Mark if any(mark in node.marks for node in self.nodes)]

    @property
    def depths(self) -> dict[str, int]:
        """The length of the longest directed path to each node from a root."""
        depth_by_name: dict[str, int] = {}
        for node in self.nodes:
            depth_by_name[node.name] = 1 + max((depth_by_name[parent] for parent in node.parents), default=-1)
        return depth_by_name


# --- text -------------------------------------------------------------------------------------------------------------

STEP = ". "  # a node of depth d is indented by d of these


def layered_text(picture: LayeredPicture) -> str:
    """Return a table of the nodes, names indented by depth, with parents, noise and facts."""
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

CHIP, LINE = 18.0, 20.0  # height of a node's noise, and of a line of the legend
SPACING = Spacing(44, gap=34, fall=78, margin=20, above=CHIP)
ENTRY, ARROW = (
    0.32,
    9,
)  # share of a box's upper edge where arrows enter (noise has the rest); px that an arrow needs there
LEGEND = SPACING.margin + 36  # x of the texts of the legend


def layered_svg(picture: LayeredPicture, meanings: Mapping[Mark, str] = MEANINGS, prefix: str = "") -> str:
    """Return one SVG in the design's colour tokens; all texts are escaped.

    meanings: texts of the legend by mark; prefix: of ids, unique in a page with several drawings
    """
    layout = Layers({node.name: node.parents for node in picture.nodes}, _widths(picture), SPACING)
    heads = f"{prefix}tip-"
    marks = [arrow_heads(("", "cut"), heads)]
    marks += [_edge(parent, node, layout, heads) for node in picture.nodes for parent in node.parents]
    marks += [_node(node, layout) for node in picture.nodes]
    marks += [
        _legend_line(mark, meanings[mark], layout.height + LINE * (k + 0.5)) for k, mark in enumerate(picture.marks)
    ]
    width = max(layout.width, LEGEND + widest(meanings[mark] for mark in picture.marks) + SPACING.margin)
    height = layout.height + LINE * len(picture.marks) + 8
    label = f"Graph of {plural(len(picture.nodes), 'variables')} with their noise"
    return figure(width if picture.marks else layout.width, height, label, marks)


def _widths(picture: LayeredPicture) -> dict[str, float]:
    widths = {}
    for node in picture.nodes:
        text = max(text_width(node.name, 13, "bold"), text_width(node.value, 12, "mono") * 1.1) + 24
        noise, arrows = _chip_width(node) / (1 - ENTRY) + 8, ARROW * len(node.parents) / ENTRY
        widths[node.name] = max(text, noise, arrows)
    return widths


def _chip_width(node: LayeredNode) -> float:
    return text_width(node.noise, 12, "mono") + 10


def _edge(parent: str, child: LayeredNode, layout: Layers, heads: str) -> str:
    share = ENTRY * (child.parents.index(parent) + 0.5) / len(child.parents)
    is_cut = Mark.SET in child.marks
    title = f"{parent} -> {child.name}" + (", cut by do" if is_cut else "")
    return arrow(curve_path(layout.route(parent, child.name, share)), "cut" if is_cut else "", heads, title)


def _node(node: LayeredNode, layout: Layers) -> str:
    (x, y), width, chip = layout.place(node.name), layout.widths[node.name], _chip_width(node)
    middle = x + (width - chip) / 2
    marks = "".join(f" {mark}" for mark in Mark if mark in node.marks)
    facts = "; ".join([node.noise, *(f"{heading} {text}" for heading, text in (node.facts or {}).items() if text)])
    rect = f'<rect x="{middle - chip / 2:.1f}" y="{y - CHIP - 4:.1f}" width="{chip:.1f}" height="16" rx="8"/>'
    noise = f'<path d="M{middle:.1f} {y - 6:.1f}V{y:.1f}"/>{rect}'
    noise += text_at(node.noise, middle, y - CHIP + 8, anchor="middle")
    box = f'<rect class="box" x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{SPACING.box:g}" rx="7"/>'
    texts = text_at(node.name, x, y + (19 if node.value else 27), "name", "middle")
    texts += text_at(node.value, x, y + 35, "value", "middle") if node.value else ""
    title = escape(f"{node.name}: {facts}")
    return f'<g class="node{marks}"><title>{title}</title><g class="noise">{noise}</g>{box}{texts}</g>'


def _legend_line(mark: Mark, meaning: str, y: float) -> str:
    x = SPACING.margin
    box = f'<g class="{mark}"><rect class="box" x="{x:g}" y="{y - 7:.1f}" width="26" height="14" rx="4"/></g>'
    return box + text_at(meaning, LEGEND, y + 4, "soft")
