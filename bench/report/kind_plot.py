"""The plot of kinds: how many answers were earned, by setting and system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from calibrant.audits.attribution import Kind
from calibrant.bench.pages.charts import Part, stacked_svg
from calibrant.bench.report.rows import Row
from calibrant.bench.report.sections import Plot

# the end of good is the accuracy; undecided answers are in stripes
PARTS = {
    Kind.EARNED: Part("good"),
    Kind.LUCKY: Part("good", is_striped=True),
    Kind.SHORT: Part("bad", is_striped=True),
    Kind.MISSED: Part("bad"),
}


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
    """Return, by panel and system, the share of each kind among the answers whose kind is known, an item as one."""
    sums: dict[str, dict[str, dict[Kind, Fraction]]] = {}
    for row in rows:
        kinds = {kind: row.frame.total(row.places[key]) for kind, key in zip(Kind, about.metrics, strict=True)}
        if any(kinds.values()):
            of_system = sums.setdefault(about.panel(row), {}).setdefault(row.system, dict.fromkeys(Kind, Fraction()))
            of_system |= {kind: of_system[kind] + number for kind, number in kinds.items()}
    return {
        panel: {
            system: {kind: float(number / sum(kinds.values())) for kind, number in kinds.items()}
            for system, kinds in by_system.items()
        }
        for panel, by_system in sums.items()
    }


def attribution_plot(rows: Sequence[Row], about: KindPlot) -> Plot | None:
    """Stacked shares; None where no answer has an attribution."""
    shares = kind_shares(rows, about)
    if not shares:
        return None
    panels = {
        panel: {system: [kinds[kind] for kind in PARTS] for system, kinds in of_systems.items()}
        for panel, of_systems in shares.items()
    }
    svg = stacked_svg(panels, {str(kind): part for kind, part in PARTS.items()}, about.title, "share of answers")
    return Plot(about.name, about.title, about.caption, svg)
