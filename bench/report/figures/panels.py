"""Panels visible as SVG in the design's tokens, without a library: lines with intervals, paths and stacked bars.

Printed figures of a paper are hollow marks on dashed lines. Tokens are declared inside each drawing, so that a saved
file follows the reader's theme as a page does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from math import fsum
from typing import NamedTuple

from calibrant.bench.pages.design.plots import LETTER, Scale
from calibrant.bench.pages.design.saved_figures import CYCLE
from calibrant.bench.pages.design.tokens import token_rules
from calibrant.bench.terminal import printable

SEVERAL, ALONE = (250.0, 190.0), (480.0, 320.0)  # width and height of a panel beside others, of one alone, pixels
LEFT, RIGHT, TOP, BOTTOM = 46.0, 12.0, 26.0, 40.0  # room around the plotted area
COLUMNS = 3
LINE_HEIGHT = 18.0
MARKS = ("circle", "square", "diamond", "triangle")
RADIUS = 3.6
RULES = """
.cal-plot text{font:12px system-ui,sans-serif;fill:var(--ink)}.cal-plot .soft{fill:var(--soft)}
.cal-plot .rule{stroke:var(--line)}.cal-plot .reach{stroke-width:1.2}.cal-plot .path{fill:none;stroke-width:1.6}
.cal-plot .printed{stroke-dasharray:4 3}.cal-plot .title{font-weight:600}
"""


class Mark(NamedTuple):
    """A point of a line. low, high: ends of its interval, None for none; note: beside it."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    note: str = ""


class Line(NamedTuple):
    """Points of one system, joined in their order. printed: of a paper, with hollow marks; arrow: at its end."""

    name: str
    marks: tuple[Mark, ...]
    printed: bool = False
    arrow: bool = False


class Panel(NamedTuple):
    title: str
    lines: tuple[Line, ...]


class Axis(NamedTuple):
    """A label with the range of values; None: what the marks span."""

    label: str
    low: float | None = None
    high: float | None = None


def panels_svg(panels: Sequence[Panel], x: Axis, y: Axis, label: str) -> str:
    """Return panels side by side on common scales, with one legend below."""
    visible = [panel for panel in panels if any(line.marks for line in panel.lines)]
    marks = [mark for panel in visible for line in panel.lines for mark in line.marks]
    spans = _span(x, [mark.x for mark in marks]), _span(y, [mark.y for mark in marks])
    systems = list(dict.fromkeys(line.name for panel in visible for line in panel.lines))
    columns = max(1, min(COLUMNS, len(visible)))
    size = SEVERAL if len(visible) > 1 else ALONE
    parts: list[str] = []
    for number, panel in enumerate(visible):
        place = (number % columns) * size[0], (number // columns) * size[1]
        parts.append(f'<g transform="translate({place[0]:.0f} {place[1]:.0f})">')
        parts += _panel(panel, spans, x.label, y.label if number % columns == 0 else "", systems, size)
        parts.append("</g>")
    height = size[1] * -(-len(visible) // columns)
    width = max(size[0] * columns, _entry_width(systems))
    legend, rows = _legend(systems, width, height)
    return _drawing(width, height + rows * LINE_HEIGHT + 8, label, [*parts, *legend])


def _span(axis: Axis, values: Sequence[float]) -> tuple[float, float]:
    low = min(values, default=0.0) if axis.low is None else axis.low
    high = max(values, default=1.0) if axis.high is None else axis.high
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _panel(
    panel: Panel,
    spans: tuple[tuple[float, float], tuple[float, float]],
    x_label: str,
    y_label: str,
    systems: list[str],
    size: tuple[float, float],
) -> Iterator[str]:
    width, height = size
    across = Scale(*spans[0], LEFT + 8, width - RIGHT - 8)
    up = Scale(*spans[1], height - BOTTOM, TOP)
    yield f'<text class="title" x="{LEFT:.0f}" y="15">{_text(panel.title)}</text>'
    for value in up.ticks():
        y = up.at(value)
        yield f'<line class="rule" x1="{LEFT:.1f}" x2="{width - RIGHT:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="soft" x="{LEFT - 5:.1f}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    for value in across.ticks():
        bottom = height - BOTTOM + 15
        yield f'<text class="soft" x="{across.at(value):.1f}" y="{bottom:.1f}" text-anchor="middle">{value:g}</text>'
    middle = (LEFT + width - RIGHT) / 2
    yield f'<text class="soft" x="{middle:.1f}" y="{height - 8:.1f}" text-anchor="middle">{_text(x_label)}</text>'
    if y_label:
        centre = (TOP + height - BOTTOM) / 2
        turned = f'transform="rotate(-90 12 {centre:.1f})"'
        yield f'<text class="soft" x="12" y="{centre:.1f}" text-anchor="middle" {turned}>{_text(y_label)}</text>'
    for line in panel.lines:
        yield from _line(line, across, up, systems.index(line.name))


def _line(line: Line, across: Scale, up: Scale, number: int) -> Iterator[str]:
    colour = f"var(--{CYCLE[number % len(CYCLE)]})"
    points = [(across.at(mark.x), up.at(mark.y)) for mark in line.marks]
    if len(points) > 1:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        kind = "path printed" if line.printed else "path"
        yield f'<polyline class="{kind}" style="stroke:{colour}" points="{path}"/>'
    for mark, (x, y) in zip(line.marks, points, strict=True):
        if mark.low is not None and mark.high is not None:
            ends = f'y1="{up.at(mark.low):.1f}" y2="{up.at(mark.high):.1f}"'
            yield f'<line class="reach" style="stroke:{colour}" x1="{x:.1f}" x2="{x:.1f}" {ends}/>'
        yield _symbol(MARKS[number // len(CYCLE) % len(MARKS)], x, y, colour, is_hollow=line.printed)
        if mark.note:
            yield f'<text class="soft" x="{x + 6:.1f}" y="{y - 5:.1f}">{_text(mark.note)}</text>'
    if line.arrow and len(points) > 1:
        yield _arrow_head(points[-2], points[-1], colour)


def _symbol(kind: str, x: float, y: float, colour: str, *, is_hollow: bool) -> str:
    look = f'style="fill:{"var(--paper)" if is_hollow else colour};stroke:{colour};stroke-width:1.4"'
    r = RADIUS
    if kind == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" {look}/>'
    if kind == "square":
        return f'<rect x="{x - r:.1f}" y="{y - r:.1f}" width="{2 * r}" height="{2 * r}" {look}/>'
    corners = {
        "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
        "triangle": ((0, -1.2), (1.2, 1), (-1.2, 1)),
    }[kind]
    points = " ".join(f"{x + r * dx:.1f},{y + r * dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" {look}/>'


def _arrow_head(start: tuple[float, float], end: tuple[float, float], colour: str) -> str:
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = max(1e-6, (dx * dx + dy * dy) ** 0.5)
    ux, uy = dx / length, dy / length
    x, y = end[0] - 5 * ux, end[1] - 5 * uy
    corners = ((x, y), (x - 7 * ux - 4 * uy, y - 7 * uy + 4 * ux), (x - 7 * ux + 4 * uy, y - 7 * uy - 4 * ux))
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
    return f'<polygon points="{points}" style="fill:{colour}"/>'


def _entry_width(names: Sequence[str]) -> float:
    return max((LETTER * len(printable(name)) for name in names), default=0.0) + 36


def _legend(names: Sequence[str], width: float, top: float) -> tuple[list[str], int]:
    """Return the entries below the panels and the number of their rows."""
    widest = _entry_width(names)
    columns = max(1, int(width // widest))
    parts = []
    for number, name in enumerate(names):
        x, y = 14 + (number % columns) * widest, top + 10 + (number // columns) * LINE_HEIGHT
        colour = f"var(--{CYCLE[number % len(CYCLE)]})"
        parts.append(_symbol(MARKS[number // len(CYCLE) % len(MARKS)], x, y, colour, is_hollow=False))
        parts.append(f'<text x="{x + 10:.1f}" y="{y + 4:.1f}">{_text(name)}</text>')
    return parts, -(-len(names) // columns) if names else 0


def stacked_svg(bars: Mapping[str, Sequence[float]], parts: Mapping[str, str], label: str) -> str:
    """Return a horizontal bar for each name, divided by the shares of its parts. parts: name -> token."""
    margin = max((LETTER * len(printable(name)) for name in bars), default=0.0) + 20
    scale = Scale(0, 1, margin, margin + 420)
    marks: list[str] = []
    for number, (name, values) in enumerate(bars.items()):
        y, total, done = 12 + number * 28.0, fsum(values) or 1.0, 0.0
        marks.append(f'<text x="{margin - 8:.1f}" y="{y + 14:.1f}" text-anchor="end">{_text(name)}</text>')
        for value, token in zip(values, parts.values(), strict=True):
            x, width = scale.at(done / total), scale.at((done + value) / total) - scale.at(done / total)
            marks.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="20" style="fill:var(--{token});'
                'stroke:var(--paper)"/>'
            )
            done += value
    bottom = 12 + len(bars) * 28.0
    x = margin
    for name, token in parts.items():
        marks.append(f'<rect x="{x:.1f}" y="{bottom + 6:.1f}" width="12" height="12" style="fill:var(--{token})"/>')
        marks.append(f'<text x="{x + 17:.1f}" y="{bottom + 16:.1f}">{_text(name)}</text>')
        x += LETTER * len(name) + 36
    return _drawing(max(margin + 440, x), bottom + 30, label, marks)


def _drawing(width: float, height: float, label: str, marks: Iterable[str]) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    ground = f'<rect width="{width:.0f}" height="{height:.0f}" style="fill:var(--paper)"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
        f"<title>{_text(label)}</title><style>{_scoped_tokens()}{RULES}</style>"
        f'<g class="cal-plot">{ground}{"".join(marks)}</g></svg>\n'
    )


def _scoped_tokens() -> str:
    """Return the tokens for drawings alone: the page around a drawing keeps its own."""
    rules = token_rules()
    for selector in (":root[data-theme=dark]", ":root:not([data-theme=light])", ":root"):
        rules = rules.replace(f"{selector}{{", f"{selector} .cal-plot{{").replace(
            f"{selector},", f"{selector} .cal-plot,"
        )
    return rules.replace("color-scheme:light;", "").replace("color-scheme:dark;", "")


def _text(text: str) -> str:
    return escape(printable(text))
