"""Charts as SVG, styled by classes of `templates/design/drawing.css`: text, scales, axes, panels, bars, legends.

They need no library and no network. `standalone_svg` of bench.pages.page makes a file of a chart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, cos, floor, fsum, log10, pi, sin
from typing import Final, Literal, NamedTuple, TypeAlias
from unicodedata import east_asian_width

from calibrant.bench.terminal import printable

Face: TypeAlias = Literal["plain", "bold", "mono"]
Tick: TypeAlias = tuple[float | str, str]
"""Position on an axis, in pixels or as text for SVG, and label."""

# --- text -------------------------------------------------------------------------------------------------------------

# widths of letters in em, in DejaVu Sans, the widest of the usual system fonts; for other letters see _other_width
_LETTER_EMS: Final = {
    letter: width
    for letters, width in (
        ("ijlIJ ,./:;\\|'f-", 0.36),
        ("t()[]!r", 0.42),
        ("DGHNOQUw#+<=>^~&\N{MULTIPLICATION SIGN}\N{RIGHTWARDS ARROW}", 0.85),
        ("mMW%@\N{HORIZONTAL ELLIPSIS}", 1.0),
    )
    for letter in letters
}
_BOLD, _MONO_EM = 1.13, 0.61  # width of bold letters in widths of plain ones; width of monospaced letters in em


def text_width(text: str, pixels: float = 12, face: Face = "plain") -> float:
    """Return an upper bound of the width of a text in the design's fonts, in pixels. pixels: font size."""
    if face == "mono":
        return pixels * _MONO_EM * len(text)
    ems = fsum(_LETTER_EMS.get(letter) or _other_width(letter) for letter in text)
    return pixels * ems * (_BOLD if face == "bold" else 1)


def _other_width(letter: str) -> float:
    if east_asian_width(letter) in "WF":
        return 1.0
    return 0.73 if letter.isupper() else 0.64


def widest(texts: Iterable[str], pixels: float = 12, face: Face = "plain") -> float:
    """Return the width of the widest text, 0 for no texts."""
    return max((text_width(printable(text), pixels, face) for text in texts), default=0.0)


def text_at(text: str, x: float | str, y: float, kind: str = "", anchor: str = "", more: str = "") -> str:
    """Return an escaped text element. kind: its class; anchor: start, middle or end; more: further attributes."""
    attributes = [f'class="{kind}"'] if kind else []
    attributes.append(f'x="{_px(x)}" y="{_px(y)}"')
    attributes += [f'text-anchor="{anchor}"'] if anchor else []
    attributes += [more] if more else []
    return f"<text {' '.join(attributes)}>{escape(printable(text))}</text>"


def _px(position: float | str) -> str:
    return position if isinstance(position, str) else f"{position:.1f}".removesuffix(".0")


def figure(width: float, height: float, label: str, marks: Iterable[str]) -> str:
    """Return an SVG element; phones shrink it to 9 px letters, then scroll. label: the finding, for screen readers."""
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    # pages of the design read this minimum width; elsewhere the figure has none
    size += f' style="--least:{LEAST_SCALE * width:.0f}px"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="fixed" role="img" aria-label="{escape(printable(label))}"'
        f" {size}>{''.join(marks)}</svg>"
    )


# --- scales and axes --------------------------------------------------------------------------------------------------

LEAST_SCALE = 0.76  # smallest scale of a figure, on phones: letters of 12 px shrink to 9 px
TICK_LINE = 14.0  # pixels between lines of labels below an axis
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Scale:
    """Map from values in [low, high] to pixels in [start, end]. whole: whether ticks are at integers only."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False
    whole: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a value, clipped to the range."""
        low, high, value = (self._transform(number) for number in (self.low, self.high, value))
        share = 0.0 if high == low else min(1.0, max(0.0, (value - low) / (high - low)))
        return self.start + share * (self.end - self.start)

    def _transform(self, value: float) -> float:
        return log10(max(value, 1e-12)) if self.logarithmic else value

    def ticks(self, max_ticks: int = 4) -> list[tuple[float, str]]:
        """Return (pixel, label) of about `max_ticks` powers of ten, or multiples of 1, 2 or 5 times a power of ten."""
        return [(self.at(value), _number_text(value)) for value in self._round_values(max_ticks)]

    def _round_values(self, max_ticks: int) -> list[float]:
        if self.logarithmic:
            first, last = ceil(log10(max(self.low, 1e-12))), floor(log10(max(self.high, 1e-12)))
            step = max(1, ceil((last - first + 1) / max(1, max_ticks)))
            powers = [10.0**power for power in range(first, last + 1, step)]
            if len(powers) > 1 or self.low == self.high:
                return powers
            parts = [factor * 10.0**power for power in range(first - 1, last + 1) for factor in (1, 2, 5)]
            return [value for value in parts if self.low <= value <= self.high]
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        raw = span / max_ticks
        unit = 10.0 ** floor(log10(raw))
        step_size = max(unit * next(factor for factor in (1, 2, 5, 10) if factor * unit >= raw), float(self.whole))
        first, last = ceil(self.low / step_size), floor(self.high / step_size + 1e-9)
        return [k * step_size for k in range(first, last + 1)]


def _number_text(value: float) -> str:
    if value and not 1e-4 <= abs(value) < 1e6 and (exponent := round(log10(abs(value)))) == log10(abs(value)):
        return f"{'-' if value < 0 else ''}10{str(exponent).translate(SUPERSCRIPTS)}"
    return f"{value:g}"


def rule(x1: float | str, y1: float, x2: float | str, y2: float, kind: str = "rule") -> str:
    """Return a straight line."""
    return f'<line class="{kind}" x1="{_px(x1)}" x2="{_px(x2)}" y1="{_px(y1)}" y2="{_px(y2)}"/>'


def side_axis(ticks: Iterable[tuple[float, str]], x: float, right: float) -> Iterator[str]:
    """Yield rules from x to `right` and, before x, their labels."""
    for y, text in ticks:
        yield rule(x, y, right, y)
        yield text_at(text, x - 6, y + 4, "soft", "end")


def foot_axis(ticks: Sequence[Tick], y: float) -> Iterator[str]:
    """Yield labels below y; if neighbours would touch, they alternate between two heights."""
    num_heights = 2 if _touch(ticks) else 1
    depth = max((text.count("\n") + 1 for _, text in ticks), default=1)
    for index, (x, text) in enumerate(ticks):
        for line, part in enumerate(text.split("\n")):
            yield text_at(part, x, y + 15 + TICK_LINE * (line + depth * (index % num_heights)), "soft", "middle")


def foot_height(ticks: Sequence[Tick]) -> float:
    """Return the height of the labels below an axis."""
    depth = max((text.count("\n") + 1 for _, text in ticks), default=1)
    return TICK_LINE * depth * (2 if _touch(ticks) else 1)


def _touch(ticks: Sequence[Tick]) -> bool:
    """Return whether labels of neighbouring ticks would touch in one line; positions as text are not compared."""
    extents = [(x, widest(text.split("\n"))) for x, text in ticks if not isinstance(x, str)]
    return any(x2 - x1 < (width1 + width2) / 2 + 4 for (x1, width1), (x2, width2) in pairwise(extents))


# --- looks ------------------------------------------------------------------------------------------------------------

COLOURS = ("scale-3", "bad", "warn", "gold", "scale-4", "edge", "scale-2", "ink", "soft")  # tokens, in order of use
RADIUS = 3.6  # radius of a mark, pixels


def _polygon(corners: int, turn: float = 0.0, inner: float = 1.0, size: float = 1.2) -> tuple[tuple[float, float], ...]:
    """Return the corners of a regular polygon around (0, 0), or of a star if inner < 1.

    turn: rotation in multiples of the angle between two corners; inner: radius of a star's inner corners, relative to
    that of its outer ones; size: radius of outer corners
    """
    num_points = corners if inner == 1 else 2 * corners
    radii = [size * (inner if k % 2 and inner != 1 else 1) for k in range(num_points)]
    angles = [2 * pi * (k / num_points + turn / corners) for k in range(num_points)]
    return tuple((radius * sin(angle), -radius * cos(angle)) for radius, angle in zip(radii, angles, strict=True))


SHAPES = {
    "circle": _polygon(24, size=1),
    "square": _polygon(4, 0.5, size=1.41),
    "diamond": _polygon(4, size=1.3),
    "triangle": _polygon(3, size=1.4),
    "down": _polygon(3, 0.5, size=1.4),
    "left": _polygon(3, 0.25, size=1.4),
    "right": _polygon(3, 0.75, size=1.4),
    "star": _polygon(5, inner=0.42, size=1.6),
    "plus": _polygon(4, inner=0.3, size=1.6),
    "cross": _polygon(4, 0.5, inner=0.3, size=1.6),
    "pentagon": _polygon(5, size=1.25),
    "hexagon": _polygon(6),
    "spark": _polygon(6, inner=0.5, size=1.5),
    "burst": _polygon(3, inner=0.35, size=1.7),
    "fan": _polygon(3, 0.5, inner=0.35, size=1.7),
}  # corners (x, y) in units of the mark's radius


class Look(NamedTuple):
    """Colour token and shape of one system."""

    colour: str
    shape: str


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Return name -> look; up to 135 (9 colours x 15 shapes) are distinct, and neighbours differ in both."""
    shapes = list(SHAPES)
    by_name = {}
    for index, name in enumerate(sorted(set(names))):
        turn, colour = divmod(index, len(COLOURS))
        by_name[name] = Look(COLOURS[colour], shapes[(colour + turn) % len(shapes)])
    return by_name


def symbol(look: Look, x: float, y: float, *, is_hollow: bool = False, radius: float = RADIUS, more: str = "") -> str:
    """Return a mark around (x, y). more: further attributes, then inner elements such as `title`."""
    fill = "var(--paper)" if is_hollow else f"var(--{look.colour})"
    style = f'style="fill:{fill};stroke:var(--{look.colour})"'
    attributes, _, inside = more.partition("<")
    inside = f"<{inside}" if inside else ""
    if look.shape == "circle":
        return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" {style}{attributes}>{inside}</circle>'
    points = " ".join(f"{x + radius * dx:.1f},{y + radius * dy:.1f}" for dx, dy in SHAPES[look.shape])
    return f'<polygon class="mark" points="{points}" {style}{attributes}>{inside}</polygon>'


def legend(entries: Mapping[str, str], width: float, top: float) -> tuple[list[str], float]:
    """Return the entries of a legend in columns, and its height. entries: name -> mark around (0, 0)."""
    entry_width = legend_width(entries)
    columns = max(1, int(width // entry_width)) if entries else 1
    marks = []
    for index, (name, mark) in enumerate(entries.items()):
        x, y = 14 + (index % columns) * entry_width, top + 10 + (index // columns) * LEGEND_LINE
        marks.append(f'<g transform="translate({x:.1f} {y:.1f})">{mark}{text_at(name, 12, 4)}</g>')
    return marks, LEGEND_LINE * -(-len(entries) // columns)


def legend_width(names: Iterable[str]) -> float:
    """Return the width of an entry of a legend."""
    return widest(names) + 36


# --- panels of lines and points ---------------------------------------------------------------------------------------

SEVERAL, ALONE = (250.0, 190.0), (480.0, 320.0)  # (width, height) of each of several panels, of a single one, pixels
RIGHT, TOP, FOOT = 12.0, 26.0, 26.0  # margins of the plotted area, pixels; FOOT: for the axis label below the ticks
COLUMNS = 3  # largest number of panels side by side
LEGEND_LINE = 18.0  # height of a line of the legend, pixels
NOTE_LINE, NOTE_STEPS = 13.0, 40  # height of a note, pixels; number of half lines that it may be moved up or down

LineKind: TypeAlias = Literal["joined", "points", "dots", "levels", "reference"]


class Mark(NamedTuple):
    """A point of a line.

    low, high: ends of its vertical interval, None if it has none; x_low, x_high: ends of its horizontal interval
    note: text beside it; title: tooltip; item: id of the item that a click opens; radius: pixels
    shape: name in SHAPES, or empty for that of its line
    """

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    note: str = ""
    x_low: float | None = None
    x_high: float | None = None
    title: str = ""
    item: str = ""
    shape: str = ""
    radius: float = RADIUS


class Line(NamedTuple):
    """Points of one system, joined in their order.

    printed: whether a paper prints the values, which are drawn as hollow marks; arrow: whether it ends in an arrow head
    kind: joined (by a line), points, dots (small, faint), levels (intervals without marks), reference (a dotted line)
    """

    name: str
    marks: tuple[Mark, ...]
    printed: bool = False
    arrow: bool = False
    kind: LineKind = "joined"


class Panel(NamedTuple):
    title: str
    lines: tuple[Line, ...]


class Axis(NamedTuple):
    """Label and range of an axis. low, high: None for the range of the marks.

    ticks: (value, label), empty for round values; whole: whether values are counts
    """

    label: str
    low: float | None = None
    high: float | None = None
    ticks: tuple[tuple[float, str], ...] = ()
    logarithmic: bool = False
    whole: bool = False

    def scale(self, values: Sequence[float], start: float, end: float) -> Scale:
        """Return the scale from these values to pixels."""
        low = min(values, default=1.0 if self.logarithmic else 0.0) if self.low is None else self.low
        high = max(values, default=1.0) if self.high is None else self.high
        if low >= high:
            low, high = (low / 2, high * 2) if self.logarithmic else (low - 0.5, high + 0.5)
        return Scale(low, high, start, end, self.logarithmic, self.whole)

    def ticks_on(self, scale: Scale) -> list[tuple[float, str]]:
        """Return positions and labels of its ticks."""
        named = [(scale.at(value), text) for value, text in self.ticks]
        return named or scale.ticks()


class PanelLayout(NamedTuple):
    """Size of each panel, margins for labels at its left and bottom, horizontal scale and vertical scale."""

    width: float
    height: float
    margin: float
    bottom: float
    across: Scale
    up: Scale


def panels_svg(
    panels: Sequence[Panel],
    x: Axis,
    y: Axis,
    label: str,
    *,
    look: Mapping[str, Look] | None = None,
    columns: int = COLUMNS,
    size: tuple[float, float] | None = None,
    with_legend: bool = True,
) -> str:
    """Return panels side by side with common scales, and one legend below.

    look: look of each name, if it is shared with other charts; size: width and height of a panel
    """
    visible = [panel for panel in panels if any(line.marks for line in panel.lines)]
    names = list(dict.fromkeys(line.name for panel in visible for line in panel.lines))
    look = look or looks(names)
    columns = max(1, min(columns, len(visible)))
    layout = _layout(visible, x, y, size or (SEVERAL if len(visible) > 1 else ALONE))
    parts: list[str] = []
    for index, panel in enumerate(visible):
        x_offset, y_offset = (index % columns) * layout.width, (index // columns) * layout.height
        parts.append(f'<g transform="translate({x_offset:.0f} {y_offset:.0f})">')
        parts += _panel(panel, x, y._replace(label=y.label if index % columns == 0 else ""), look, layout)
        parts.append("</g>")
    height = layout.height * -(-len(visible) // columns)
    entries = {name: _legend_mark(name, visible, look) for name in names if name} if with_legend else {}
    width = max(layout.width * columns, legend_width(entries) if entries else 0.0)
    marks, legend_height = legend(entries, width, height)
    return figure(width, height + legend_height + 8, label, [*parts, *marks])


def _layout(panels: Sequence[Panel], x: Axis, y: Axis, size: tuple[float, float]) -> PanelLayout:
    marks = [mark for panel in panels for line in panel.lines for mark in line.marks]
    ys = [mark.y for mark in marks] + [end for mark in marks for end in (mark.low, mark.high) if end is not None]
    labels = [text for _, text in y.ticks_on(y.scale(ys, size[1], 0))]
    margin = ceil(widest(labels)) + 10.0 + (18 if y.label else 2)
    size = max(size[0], margin + widest((panel.title for panel in panels), 12, "bold") + RIGHT), size[1]
    across = x.scale([mark.x for mark in marks], margin + 8, size[0] - RIGHT - 8)
    bottom = foot_height(x.ticks_on(across)) + (FOOT if x.label else 10)
    up = y.scale(ys, size[1] - bottom, TOP)
    return PanelLayout(*size, margin, bottom, across, up)


def _panel(panel: Panel, x: Axis, y: Axis, look: Mapping[str, Look], layout: PanelLayout) -> Iterator[str]:
    width, height, margin, bottom, across, up = layout
    yield text_at(panel.title, margin, 15, "title")
    yield from side_axis(y.ticks_on(up), margin, width - RIGHT)
    yield from foot_axis(x.ticks_on(across), height - bottom)
    yield text_at(x.label, (margin + width - RIGHT) / 2, height - 8, "soft", "middle")
    if y.label:
        centre = (TOP + height - bottom) / 2
        yield text_at(y.label, 12, centre, "soft", "middle", f'transform="rotate(-90 12 {centre:.1f})"')
    for line in panel.lines:
        yield from _line(line, across, up, look[line.name])
    yield from _notes(panel, layout)


def _line(line: Line, across: Scale, up: Scale, look: Look) -> Iterator[str]:
    stroke = f'style="stroke:var(--{look.colour})"'
    points = [(across.at(mark.x), up.at(mark.y)) for mark in line.marks]
    if len(points) > 1 and line.kind in ("joined", "reference"):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        kind = "path printed" if line.printed else "path reference" if line.kind == "reference" else "path"
        yield f'<polyline class="{kind}" {stroke if line.kind == "joined" else ""} points="{path}"/>'
    for mark, (x, y) in zip(line.marks, points, strict=True):
        kind = "level" if line.kind == "levels" else "reach"
        for low, high, scale in ((mark.low, mark.high, up), (mark.x_low, mark.x_high, across)):
            if low is not None and high is not None:
                start, end = scale.at(low), scale.at(high)
                ends = (x, start, x, end) if scale is up else (start, y, end, y)
                yield rule(*ends, kind).replace("/>", f" {stroke}/>" if kind == "reach" else "/>")
        if line.kind in ("joined", "points", "dots"):
            more = ' opacity=".35"' if line.kind == "dots" else ""
            more += f' data-item="{escape(mark.item)}"' if mark.item else ""
            more += f"<title>{escape(printable(mark.title))}</title>" if mark.title else ""
            mark_look = Look(look.colour, mark.shape or look.shape)
            radius = mark.radius if line.kind != "dots" else min(mark.radius, 2.0)
            yield symbol(mark_look, x, y, is_hollow=line.printed, radius=radius, more=more)
    if line.arrow and len(points) > 1:
        yield _arrow_head(points[-2], points[-1], look.colour)


def _arrow_head(start: tuple[float, float], end: tuple[float, float], colour: str) -> str:
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = max(1e-6, (dx * dx + dy * dy) ** 0.5)
    ux, uy = dx / length, dy / length
    x, y = end[0] - 5 * ux, end[1] - 5 * uy
    corners = ((x, y), (x - 7 * ux - 4 * uy, y - 7 * uy + 4 * ux), (x - 7 * ux + 4 * uy, y - 7 * uy - 4 * ux))
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
    return f'<polygon points="{points}" style="fill:var(--{colour})"/>'


def _notes(panel: Panel, layout: PanelLayout) -> Iterator[str]:
    """Yield the notes beside their marks, at the nearest height where they overlap neither marks nor other notes.

    Notes on marks at one position are joined into one text.
    """
    across, up = layout.across, layout.up
    notes: dict[tuple[float, float], list[str]] = {}
    taken: list[tuple[float, float, float]] = []
    for mark in (mark for line in panel.lines for mark in line.marks if line.kind not in ("levels", "reference")):
        x, y = across.at(mark.x), up.at(mark.y)
        taken.append((x - RADIUS, x + RADIUS, y))
        if mark.note:
            notes.setdefault((x, y), []).append(mark.note)
    offsets = sorted((k * NOTE_LINE / 2 for k in range(-NOTE_STEPS, NOTE_STEPS + 1)), key=lambda d: (abs(d + 3), d))
    for (x, y), listed in sorted(notes.items()):
        text = ", ".join(dict.fromkeys(listed))
        width = widest([text], 11)
        is_right = x + 8 + width <= layout.width
        start = x + 8 if is_right else max(0.0, x - 8 - width)
        free = (
            y + offset
            for offset in offsets
            if TOP <= y + offset <= layout.height - layout.bottom
            and all(abs(y + offset - h) >= NOTE_LINE or start > end or start + width < begin for begin, end, h in taken)
        )
        height = next(free, y - 3)
        taken.append((start, start + width, height))
        if abs(height - y) > NOTE_LINE:
            yield rule(x, y, start if is_right else start + width, height, "leader")
        yield text_at(text, start, height + 4, "note-text")


def _legend_mark(name: str, panels: Sequence[Panel], look: Mapping[str, Look]) -> str:
    """Return the mark of a name in the legend: a line for references and levels; hollow if all lines are printed."""
    lines = [line for panel in panels for line in panel.lines if line.name == name]
    if all(line.kind == "reference" for line in lines):
        return '<path class="path reference" d="M-7 0H7"/>'
    if all(line.kind == "levels" for line in lines):
        return '<path class="level" d="M-7 0H7"/>'
    return symbol(look[name], 0, 0, is_hollow=all(line.printed for line in lines))


# --- bars -------------------------------------------------------------------------------------------------------------

BAR_ROW, BAR = 26.0, 18.0  # distance between the tops of horizontal bars, and height of a bar, in pixels


class Part(NamedTuple):
    """Filling of a part of a divided bar: with the colour of a token, plain or in stripes."""

    token: str
    is_striped: bool = False


def stacked_svg(
    panels: Mapping[str, Mapping[str, Sequence[float]]], parts: Mapping[str, Part], label: str, axis_label: str = ""
) -> str:
    """Return panels of horizontal bars of equal length, each divided by the shares of its parts.

    panels: title -> name of a bar -> values of its parts, in the order of `parts`; parts: name -> how it is filled
    """
    margin = widest(name for bars in panels.values() for name in bars) + 20
    length = 420.0 if len(panels) == 1 else 180.0
    columns = max(1, min(COLUMNS, len(panels)))
    scale = Scale(0, 1, margin, margin + length)
    width = margin + max(length, widest(panels, face="bold")) + 24
    ticks = [(scale.at(share), f"{share:g}") for share in (0, 0.5, 1)]
    marks = [_stripes(part.token) for part in dict.fromkeys(parts.values()) if part.is_striped]
    top = 0.0
    for row in range(0, len(panels), columns):
        listed = list(panels.items())[row : row + columns]
        head = 24.0 if any(title for title, _ in listed) else 4.0
        height = max(len(bars) for _, bars in listed) * BAR_ROW + head
        for index, (title, bars) in enumerate(listed):
            marks.append(
                f'<g transform="translate({index * width:.1f} {top:.1f})">{text_at(title, margin, 15, "title")}'
            )
            for k, (name, values) in enumerate(bars.items()):
                marks += _divided_bar(name, values, parts.values(), scale, head + k * BAR_ROW)
            foot = head + len(bars) * BAR_ROW
            marks += [rule(x, head, x, foot, "rule") for x, _ in ticks]
            marks += [*foot_axis(ticks, foot), "</g>"]
        top += height + 24
    if axis_label:
        marks.append(text_at(axis_label, margin + length / 2, top + 12, "soft", "middle"))
        top += 18
    keys = {name: f'<rect x="-6" y="-6" width="12" height="12" {_fill(part)}/>' for name, part in parts.items()}
    entries, legend_height = legend(keys, width * columns, top)
    return figure(max(width * columns, legend_width(keys)), top + legend_height + 8, label, [*marks, *entries])


def _divided_bar(name: str, values: Sequence[float], parts: Iterable[Part], scale: Scale, y: float) -> Iterator[str]:
    total, done = fsum(values) or 1.0, 0.0
    yield text_at(name, scale.start - 8, y + 14, anchor="end")
    for value, part in zip(values, parts, strict=True):
        x, end = scale.at(done / total), scale.at((done + value) / total)
        if value:
            yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{end - x:.1f}" height="{BAR:g}" {_fill(part)}/>'
        done += value


def _fill(part: Part) -> str:
    if part.is_striped:
        return f'style="fill:url(#stripes-{part.token});stroke:var(--{part.token})"'
    return f'style="fill:var(--{part.token});stroke:var(--paper)"'


def _stripes(token: str) -> str:
    """Return the definition of stripes, equal to that in bench/pages/templates/report/report.html."""
    size = 'patternUnits="userSpaceOnUse" width="6" height="6" patternTransform="rotate(45)"'
    rects = "".join(
        f'<rect width="{width}" height="6" style="fill:var(--{colour})"/>'
        for width, colour in ((6, "paper"), (3, token))
    )
    return f'<defs><pattern id="stripes-{token}" {size}>{rects}</pattern></defs>'


class BarRow(NamedTuple):
    """A horizontal bar from 0 to a value, with a text after its end. kind: CSS class."""

    name: str
    value: float
    text: str
    kind: str = "bar-2"


def bar_rows(rows: Sequence[BarRow], label: str, *, length: float = 150, high: float | None = None) -> str:
    """Return horizontal bars; negative ones extend to the left.

    length: of a full bar, pixels; high: value of a full bar, by default the largest
    """
    margin, behind = widest(row.name for row in rows) + 24, widest(row.text for row in rows) + 14
    longest = high or max((abs(row.value) for row in rows), default=1.0) or 1.0
    zero = margin + (length + behind if any(row.value < 0 for row in rows) else 0)
    scale = Scale(0, longest, 0, length)
    marks = [rule(zero, 4, zero, BAR_ROW * len(rows) + 8)]
    for k, row in enumerate(rows):
        y, width = 8 + BAR_ROW * k, max(1.0, scale.at(abs(row.value)))
        x, end, anchor = (
            (zero, zero + width + 6, "start") if row.value >= 0 else (zero - width, zero - width - 6, "end")
        )
        marks += [
            text_at(row.name, margin - 8, y + 14, anchor="end"),
            f'<rect class="{row.kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR:g}"/>',
            text_at(row.text, end, y + 14, anchor=anchor),
        ]
    return figure(zero + length + behind, BAR_ROW * len(rows) + 16, label, marks)


def bar_chart(labels: Sequence[str], values: Sequence[int], texts: Sequence[str], label: str) -> str:
    """Return vertical bars on a logarithmic scale from 1, with texts above; the bar of a value of 0 is an outline."""
    width, height = 30.0, 90.0
    step = max(width, widest(texts) + 6, widest(labels) + 6)
    scale = Scale(1, max(10, *values), height, 18, logarithmic=True)
    marks = []
    for k, (name, value, text) in enumerate(zip(labels, values, texts, strict=True)):
        x, top = 8 + k * step, scale.at(max(1, value)) - 4
        kind = "bar-2" if value else "unlit"
        marks.append(
            f'<rect class="{kind}" x="{x + 3:.1f}" y="{top:.1f}" width="{step - 6:.1f}" height="{height - top:.1f}"/>'
        )
        for word, y in ((text, top - 4), (name, height + 15)):
            marks.append(text_at(word, x + step / 2, y, anchor="middle"))
    return figure(16 + step * len(values), height + 22, label, marks)
