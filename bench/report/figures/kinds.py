"""The plot of kinds: how many answers were earned, by setting and system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from calibrant.audits.attribution import Kind
from calibrant.bench.pages.design.saved_figures import light
from calibrant.bench.report.figures.drawing import drawn_svg, legend, new_figure, plain, style
from calibrant.bench.report.rows import Row
from calibrant.bench.report.sections import Plot

COLUMNS = 3
TOKENS = {Kind.EARNED: "good", Kind.LUCKY: "good", Kind.SHORT: "bad", Kind.MISSED: "bad"}  # accuracy: end of good
UNDECIDED = (Kind.LUCKY, Kind.SHORT)  # drawn in stripes


class KindPlot(NamedTuple):
    """Subject of a plot of kinds.

    name, title, caption: as of the plot
    metrics: keys of the metrics that are 1 for answers of each kind, in the order of `Kind`
    panel: the title of the panel that has a row
    """

    name: str
    title: str
    caption: str
    metrics: tuple[str, ...]
    panel: Callable[[Row], str]


KIND_METRICS = tuple(str(kind) for kind in Kind)


def kind_shares(rows: Sequence[Row], about: KindPlot) -> dict[str, dict[str, dict[Kind, float]]]:
    """Return, by panel and system, the share of each kind among the answers whose kind is known."""
    counts: dict[str, dict[str, Counter[Kind]]] = {}
    for row in rows:
        places = [(kind, row.places[key]) for kind, key in zip(Kind, about.metrics, strict=True)]
        kinds = Counter(kind for o in row.observations for kind, place in places if o.values[place] == 1)
        if kinds:
            counts.setdefault(about.panel(row), {}).setdefault(row.system, Counter()).update(kinds)
    return {
        panel: {system: {kind: kinds[kind] / kinds.total() for kind in Kind} for system, kinds in by_system.items()}
        for panel, by_system in counts.items()
    }


def attribution_plot(rows: Sequence[Row], about: KindPlot) -> Plot | None:
    """Stacked shares; None where no answer has an attribution. `MissingExtraError` without matplotlib."""
    shares = kind_shares(rows, about)
    if not shares:
        return None
    with style():
        columns = min(COLUMNS, len(shares))
        figure, grid = new_figure(-(-len(shares) // columns), columns, extra=0.8)
        panels = [axes for line in grid for axes in line]
        for axes, (place, of_systems) in zip(panels, shares.items(), strict=False):
            systems = list(of_systems)
            offsets = [0.0] * len(systems)
            for kind, token in TOKENS.items():
                widths = [of_systems[system][kind] for system in systems]
                colour = light(token)
                look: dict[str, Any] = (
                    {"facecolor": light("paper"), "edgecolor": colour, "hatch": "/////", "linewidth": 0.6}
                    if kind in UNDECIDED
                    else {"facecolor": colour, "edgecolor": colour, "linewidth": 0.6}
                )
                axes.barh(range(len(systems)), widths, left=offsets, label=str(kind), **look)
                offsets = [start + width for start, width in zip(offsets, widths, strict=True)]
            axes.set_yticks(range(len(systems)), [plain(system) for system in systems])
            axes.set_xlim(0, 1)
            axes.set_title(plain(place))
            axes.invert_yaxis()
        for axes in panels[len(shares) :]:
            axes.set_visible(False)
        legend(figure, panels[:1])
        return Plot(about.name, about.title, about.caption, drawn_svg(figure))
