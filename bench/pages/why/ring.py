"""Graphs whose edges may run both ways: nodes on an ellipse, the last one at the bottom; edges by their status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import cos, hypot, pi, sin
from typing import Literal, NamedTuple, TypeAlias

LETTER, SMALL = 8.0, 6.6  # widths of a letter
BOX, MARGIN = 42, 12  # height of a box, border of the drawing
STRAIGHT, BENT = 0.06, 0.22  # how far an edge is bent, as a share of its length; edges both ways need room
LABEL_PLACES = (0.45, 0.55, 0.35, 0.65, 0.27, 0.73)  # along an edge: the first at which a label covers nothing
ASIDE = (9, -9, 18, -18)  # of a label beside its edge, first on the side to which the edge is bent
LABEL_HEIGHT = 14
LEAST_SCALE = 0.77  # in narrow pages: labels of 12 px stay above 9
MAX_LABELS = 8  # more would cover each other: pointers over edges and the matrix still show them

EdgeTone: TypeAlias = Literal["good", "open", "bad"]


@dataclass(frozen=True)
class RingNode:
    """Node of a drawn graph; label: below the name; tone: empty, open or good."""

    name: str
    label: str = ""
    tone: str = ""


@dataclass(frozen=True)
class RingEdge:
    """Edge of a drawn graph: proven is good and solid, open is dashed, contradicted is bad and dotted."""

    cause: str
    effect: str
    tone: EdgeTone
    label: str = ""


def draw_ring(nodes: Sequence[RingNode], edges: Sequence[RingEdge], label: str, prefix: str) -> str:
    """Return an SVG; label: the finding, for readers of the page; prefix: of ids, unique in the page."""
    widths = {n.name: max(72.0, LETTER * len(n.name) + 22, SMALL * len(n.label) + 16) for n in nodes}
    side = max(widths.values(), default=72.0) / 2 + MARGIN
    across, along = max(120.0, 30.0 * len(nodes)), max(96.0, 24.0 * len(nodes))
    width, height = 2 * (across + side), 2 * (along + BOX / 2 + MARGIN)
    places = {
        n.name: (width / 2 - across * sin(_angle(k, len(nodes))), height / 2 + along * cos(_angle(k, len(nodes))))
        for k, n in enumerate(nodes)
    }
    pairs = {(edge.cause, edge.effect) for edge in edges}
    labelled = len(edges) <= MAX_LABELS
    lines, curves = [], list[tuple[RingEdge, _Curve]]()
    for edge in edges:
        bend = BENT if (edge.effect, edge.cause) in pairs else STRAIGHT
        curve = _curve(places[edge.cause], places[edge.effect], widths[edge.cause], widths[edge.effect], bend)
        lines.append(_line(edge, curve, f"{prefix}-{edge.tone}"))
        if edge.label and labelled:
            curves.append((edge, curve))
    texts = _labels(curves, [_rectangle(places[n.name], widths[n.name], BOX) for n in nodes])
    heads = "".join(_head(f"{prefix}-{tone}", tone) for tone in dict.fromkeys(edge.tone for edge in edges))
    boxes = "".join(_box(node, places[node.name], widths[node.name]) for node in nodes)
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    size += f' style="max-width:100%;min-width:{LEAST_SCALE * width:.0f}px"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" {size}>'
        f"<defs>{heads}</defs>{''.join(lines)}{boxes}{''.join(texts)}</svg>"
    )


@dataclass(frozen=True)
class _Curve:
    """Quadratic curve between the borders of two boxes."""

    start: tuple[float, float]
    middle: tuple[float, float]
    end: tuple[float, float]

    def at(self, share: float) -> tuple[float, float]:
        first, second, third = (1 - share) ** 2, 2 * share * (1 - share), share**2
        x, y = (first * a + second * b + third * c for a, b, c in zip(self.start, self.middle, self.end, strict=True))
        return x, y


def _angle(position: int, number: int) -> float:
    """Return the angle of a node: the last one is at the bottom, the others clockwise from there."""
    return 2 * pi * (position + 1) / max(1, number)


def _curve(
    start: tuple[float, float], end: tuple[float, float], start_width: float, end_width: float, bend: float
) -> _Curve:
    (x1, y1), (x2, y2) = start, end
    middle = (x1 + x2) / 2 + bend * (y2 - y1), (y1 + y2) / 2 - bend * (x2 - x1)
    return _Curve(_border(start, middle, start_width, 1), middle, _border(end, middle, end_width, 4))


def _border(at: tuple[float, float], towards: tuple[float, float], width: float, gap: float) -> tuple[float, float]:
    """Return where a line from a node's centre leaves its box, and a little further."""
    x, y = towards[0] - at[0], towards[1] - at[1]
    length = hypot(x, y) or 1.0
    x, y = x / length, y / length
    reach = min((width / 2 + gap) / max(abs(x), 1e-9), (BOX / 2 + gap) / max(abs(y), 1e-9))
    return at[0] + reach * x, at[1] + reach * y


def _line(edge: RingEdge, curve: _Curve, head: str) -> str:
    path = "M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*curve.start, *curve.middle, *curve.end)
    words = {"good": "proven", "open": "open", "bad": "contradicted"}[edge.tone]
    title = escape(f"{edge.cause} to {edge.effect}: {edge.label or words}")
    return f'<path class="arrow {edge.tone}" d="{path}" marker-end="url(#{head})"><title>{title}</title></path>'


def _labels(curves: Sequence[tuple[RingEdge, _Curve]], boxes: Sequence[_Rectangle]) -> list[str]:
    """Place a label beside each edge where it covers the least of boxes, earlier labels and other edges."""
    taken = list(boxes)
    points = {edge: [curve.at(k / 16) for k in range(17)] for edge, curve in curves}
    texts = []
    for edge, curve in curves:
        others = [point for passing, listed in points.items() if passing != edge for point in listed]
        width = SMALL * len(edge.label) + 4
        places = (_beside(curve, at, aside) for at in LABEL_PLACES for aside in ASIDE)
        candidates = [_rectangle(place, width, LABEL_HEIGHT) for place in places]
        best = min(candidates, key=lambda place: _covered(place, taken, others))
        taken.append(best)
        x, y = (best.start + best.end) / 2, (best.top + best.bottom) / 2
        tone = "warn" if edge.tone == "open" else edge.tone
        place = f'x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle"'
        texts.append(f'<text class="halo {tone}" {place}>{escape(edge.label)}</text>')
    return texts


class _Rectangle(NamedTuple):
    start: float
    top: float
    end: float
    bottom: float


def _rectangle(middle: tuple[float, float], width: float, height: float) -> _Rectangle:
    x, y = middle
    return _Rectangle(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def _covered(place: _Rectangle, taken: Sequence[_Rectangle], points: Sequence[tuple[float, float]]) -> float:
    """Return the area that is covered twice, then a little for each point of another edge."""
    area = sum(
        max(0.0, min(place.end, box.end) - max(place.start, box.start))
        * max(0.0, min(place.bottom, box.bottom) - max(place.top, box.top))
        for box in taken
    )
    return area + 4 * sum(place.start <= x <= place.end and place.top <= y <= place.bottom for x, y in points)


def _beside(curve: _Curve, at: float, aside: float) -> tuple[float, float]:
    (x, y), (x1, y1), (x2, y2) = curve.at(at), curve.start, curve.end
    length = hypot(x2 - x1, y2 - y1) or 1.0
    return x + aside * (y2 - y1) / length, y - aside * (x2 - x1) / length


def _head(name: str, tone: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="10" markerHeight="10"'
        f' markerUnits="userSpaceOnUse" orient="auto"><path class="tip {tone}" d="M0 0L10 5L0 10z"/></marker>'
    )


def _box(node: RingNode, place: tuple[float, float], width: float) -> str:
    x, y = place
    label = f'<text class="soft" x="{x:.1f}" y="{y + 13:.1f}" text-anchor="middle">{escape(node.label)}</text>'
    name_y = y - 3 if node.label else y + 5
    return (
        f'<rect class="box {node.tone}" x="{x - width / 2:.1f}" y="{y - BOX / 2:.1f}" width="{width:.1f}"'
        f' height="{BOX}" rx="6"/>'
        f'<text class="name" x="{x:.1f}" y="{name_y:.1f}" text-anchor="middle">{escape(node.name)}</text>'
        f"{label if node.label else ''}"
    )
