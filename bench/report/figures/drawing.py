"""Drawing of plots: style, curves with intervals, legends, and SVG that is the same bytes for the same figures.

Only this file imports matplotlib, and only when a plot is asked for.
"""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import cos, pi, sin, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from calibrant.bench.pages.design.saved_figures import CYCLE, figure_style, light, with_dark_rules
from calibrant.bench.report.intervals import Interval
from calibrant.bench.terminal import printable
from calibrant.dsl.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE: dict[str, Any] = {
    "svg.hashsalt": "calibrant",
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"],
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "errorbar.capsize": 2,
    "lines.markersize": 5,
}
PANEL = 3.3  # inches
WIDEST, STEP = 0.5, 0.09  # of the distance of two rungs: all curves together, and two neighbours
MARKERS = "osD^vP*X<>phd8H"
LEGEND_LETTER, LEGEND_HANDLE, LEGEND_LINE = 0.066, 0.5, 0.18  # inches
SPIRAL, GOLDEN_ANGLE = 0.014, pi * (3 - sqrt(5))  # points at one place: distance of neighbours, and turn


class Look(NamedTuple):
    """Colour and marker of one system, equal in every plot."""

    colour: str
    marker: str


class CurvePoint(NamedTuple):
    """One point of a curve.

    place: of its group on the horizontal axis: the rung, or the bin
    num: answers behind the mean
    """

    place: int
    mean: float
    interval: Interval | None
    num: int

    @property
    def reach(self) -> tuple[float, float]:
        """Return how far the interval reaches below and above the mean."""
        if self.interval is None:
            return 0.0, 0.0
        return max(0.0, self.mean - self.interval.low), max(0.0, self.interval.high - self.mean)


def looks(systems: Iterable[str]) -> dict[str, Look]:
    """Return a look for every system; of up to 135 no two are alike, and neighbours differ in both."""
    looks_by_name = {}
    for number, name in enumerate(sorted(set(systems))):
        turn, colour = divmod(number, len(CYCLE))
        looks_by_name[name] = Look(light(CYCLE[colour]), MARKERS[(colour + turn) % len(MARKERS)])
    return looks_by_name


@contextmanager
def style() -> Iterator[None]:
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("plots need matplotlib: pip install 'calibrant[report]'") from None
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(cast(Any, figure_style() | STYLE))
        yield


def new_figure(num_rows: int, num_columns: int, *, extra: float = 0.0) -> tuple[Figure, list[list[Axes]]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(PANEL * num_columns + extra, PANEL * 0.85 * num_rows + 0.5), layout="constrained")
    return figure, [list(line) for line in figure.subplots(num_rows, num_columns, squeeze=False)]


def drawn_svg(figure: Figure) -> str:
    """Drawn once: `savefig` would go through everything beforehand, only to lay it out, which drawing does too."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    out = io.StringIO()
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with warnings.catch_warnings():
        # names are written as text: the reader's fonts draw what matplotlib's cannot measure or have no room for
        for message in ("Glyph ", "constrained_layout not applied", "Matplotlib currently does not support"):
            warnings.filterwarnings("ignore", message=message, category=UserWarning)
        FigureCanvasSVG(figure).print_svg(out, metadata=nothing)  # type: ignore[no-untyped-call]
    return with_dark_rules(re.sub(r" *<metadata>.*?</metadata>\n?", "", out.getvalue(), flags=re.DOTALL))


def curve(axes: Axes, points: Sequence[CurvePoint], shift: float, look: Look, label: str) -> None:
    """Means joined by a line, with their intervals; curves are side by side, not on top of each other."""
    reaches = [point.reach for point in points]
    axes.errorbar(
        [point.place + shift for point in points],
        [point.mean for point in points],
        yerr=[[low for low, _ in reaches], [high for _, high in reaches]],
        color=look.colour,
        marker=look.marker,
        linewidth=1.2,
        elinewidth=0.8,
        label=plain(label),
    )


def shifts(systems: Sequence[str]) -> dict[str, float]:
    """Return how far to the side each curve is drawn, so that no interval hides another."""
    width = min(WIDEST, STEP * (len(systems) - 1))
    step = width / max(1, len(systems) - 1)
    return {name: k * step - width / 2 for k, name in enumerate(systems)}


def apart(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return where to draw points: those at one place side by side on a small spiral around it."""
    num_at_place: Counter[tuple[float, float]] = Counter()
    positions = []
    for x, y in points:
        place = round(x, 2), round(y, 2)
        radius, angle = SPIRAL * sqrt(num_at_place[place]), GOLDEN_ANGLE * num_at_place[place]
        num_at_place[place] += 1
        positions.append((x + radius * cos(angle), y + radius * sin(angle)))
    return positions


def plain(name: str) -> str:
    """Return a name as plain text: no mathematics, nothing that XML cannot hold, and not hidden from the legend."""
    text = printable(name).replace("$", r"\$")
    return (" " if text.startswith("_") else "") + text


def legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """Draw one legend below all panels, each label once and whole; the figure grows by what the legend takes."""
    labelled: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            labelled.setdefault(label, handle)
    if not labelled:
        return
    width, height = figure.get_size_inches()
    entry = LEGEND_LETTER * max(map(len, labelled)) + LEGEND_HANDLE
    columns = max(1, min(len(labelled), int(width // entry)))
    lines = -(-len(labelled) // columns)
    figure.set_size_inches(max(width, entry), height + LEGEND_LINE * (lines + 1))
    figure.legend(list(labelled.values()), list(labelled), loc="outside lower center", ncols=columns, columnspacing=1.0)
