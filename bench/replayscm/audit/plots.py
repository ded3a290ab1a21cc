"""Charts of an audit page: members by stratum and class, held-out agreement, reliability of ceilings, sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from statistics import median
from typing import NamedTuple

from markupsafe import Markup

from calibrant.audits.why import number_text
from calibrant.bench.pages.charts import Axis, Line, Look, Mark, Panel, bar_chart, panels_svg
from calibrant.bench.replayscm.audit.records import AuditRecord
from calibrant.bench.replayscm.audit.text import counted_bounds, heldout_share
from calibrant.bench.statistics import Reliability

SIZE = (960.0, 340.0)
EMPTY = 0.6  # how far below the scale points lie that have no logarithm
MAX_POINTS = 2_000  # of a plot; of more, evenly chosen ones are drawn
MAX_TICKS = 9
LANES, SPREAD = 0.86, 0.62  # of a stratum: all its classes; of a class: its points
DIAGRAM = (360.0, 352.0)
MEDIAN = "median of the nonempty ones"


class ScatterPlot(NamedTuple):
    """A chart of points. left_out: those that are not drawn."""

    svg: Markup
    left_out: int


def profile_plot(records: Sequence[AuditRecord], anchors: Mapping[str, str]) -> ScatterPlot:
    """Return log10 of the number of members, a column a stratum and in it one a class; medians of nonempty counts."""
    audited = [record for record in records if record.findings]
    strata = list(dict.fromkeys(record.stratum for record in audited))
    bounds = counted_bounds(audited)
    lane = LANES / max(1, len(bounds))
    columns = dict[tuple[int, str], list[Mark]]()
    for record in audited:
        for count in record.findings.classes if record.findings else ():
            members, bound = int(count.members), count.max_parents
            column = columns.setdefault((bound, record.stratum), [])
            centre = _lane_centre(strata.index(record.stratum), bounds.index(bound), lane)
            spread = ((len(column) * 7) % 10 - 4.5) / 10 * lane * SPREAD  # side by side, in a fixed order
            title = f"{record.instance}, parents <= {bound}: {members} SCMs"
            item = anchors.get(record.instance, "")
            y = log10(members) if members else -EMPTY
            column.append(Mark(centre + spread, y, title=title, item=item, radius=3.2))
    lines = [
        Line(f"parents \N{LESS-THAN OR EQUAL TO} {bound}", tuple(marks), kind="points")
        for bound in bounds
        if (marks := [mark for (of_bound, _), listed in columns.items() if of_bound == bound for mark in listed])
    ]
    lines, left_out = _evenly_chosen(lines)
    medians = []
    for (bound, stratum), column in columns.items():
        if inside := [mark.y for mark in column if mark.y != -EMPTY]:
            x, reach = _lane_centre(strata.index(stratum), bounds.index(bound), lane), lane * 0.42
            medians.append(Mark(x, median(inside), x_low=x - reach, x_high=x + reach))
    lines.append(Line(MEDIAN, tuple(medians), kind="levels"))
    names = tuple((float(number), name or "all instances") for number, name in enumerate(strata))
    x_axis, y_axis = Axis("", -0.5, max(0.5, len(strata) - 0.5), names), _powers(lines, "empty")
    look = {line.name: Look(f"scale-{1 + number % 4}", "circle") for number, line in enumerate(lines)}
    label = f"SCMs that fit, as a power of ten, by stratum and class: {_number(lines)} points"
    svg = panels_svg([Panel("", tuple(lines))], x_axis, y_axis, label, look=look, size=SIZE)
    return ScatterPlot(Markup(svg), left_out)


def _lane_centre(stratum: int, bound: int, lane: float) -> float:
    return stratum - LANES / 2 + lane * (bound + 0.5)


def agreement_plot(records: Sequence[AuditRecord], anchors: Mapping[str, str]) -> ScatterPlot:
    """Return ambiguity (log10 members of the headline class) against the share of members that are held-out exact."""
    marks = []
    for record in records:
        if record.findings:
            class_count = record.findings.class_count(record.findings.headline)
            share, members = heldout_share(class_count), int(class_count.members)
            if share is not None:
                title = f"{record.instance}: {members} SCMs, {share:.3g} of them held-out exact"
                item = anchors.get(record.instance, "")
                marks.append(Mark(log10(members), log10(share) if share else -9e9, title=title, item=item, radius=3.2))
    low = floor(min([-1.0, *(mark.y for mark in marks if mark.y > -9e9)]))
    placed = tuple(mark if mark.y > -9e9 else mark._replace(y=low - EMPTY) for mark in marks)
    (line,), left_out = _evenly_chosen([Line("", placed, kind="points")])
    exponents = range(low, 1, max(1, ceil(-low / MAX_TICKS)))
    ticks = ((low - EMPTY, "none"), *((float(exponent), _share_text(exponent)) for exponent in exponents))
    label = f"share of held-out exact SCMs by how many fit: {_number([line])} points"
    x_axis = Axis("SCMs that fit, log10", 0, max([1.0, *(mark.x for mark in placed)]))
    y_axis = Axis("held-out exact share", low - 1, 0.1, ticks)
    look = {"": Look("scale-3", "circle")}
    svg = panels_svg([Panel("", (line,))], x_axis, y_axis, label, look=look, size=SIZE)
    return ScatterPlot(Markup(svg), left_out)


def _powers(lines: Sequence[Line], below: str) -> Axis:
    """Return an axis of powers of ten from 1, with a place below it."""
    high = max(1, ceil(max((mark.y for line in lines for mark in line.marks), default=1.0)))
    ticks = ((float(value), str(value)) for value in range(0, high + 1, max(1, ceil(high / MAX_TICKS))))
    return Axis("SCMs that fit, log10", -1, high, ((-EMPTY, below), *ticks))


def _share_text(exponent: int) -> str:
    """Return a power of ten of at most 1, in full where that is short."""
    return f"{10.0**exponent:.{-exponent}f}" if exponent >= -4 else f"10^{exponent}"


def _evenly_chosen(lines: Sequence[Line]) -> tuple[list[Line], int]:
    """Return lines of together at most MAX_POINTS marks, evenly over their order, and how many others there are."""
    number = _number(lines)
    if number <= MAX_POINTS:
        return list(lines), 0
    chosen = [line._replace(marks=line.marks[:: ceil(number / MAX_POINTS)]) for line in lines]
    return chosen, number - _number(chosen)


def _number(lines: Sequence[Line]) -> int:
    return sum(len(line.marks) for line in lines if line.kind != "levels")


def reliability_diagram(prior: str, reliability: Reliability) -> Markup:
    """Return mean predictions against what was realised; the areas of marks grow with the number of instances."""
    largest = max((bin_.number for bin_ in reliability.bins), default=1)
    marks = tuple(
        Mark(
            bin_.predicted,
            bin_.realised,
            *bin_.interval,
            title=f"{bin_.number} instances, predicted {bin_.predicted:.3f}, realised {bin_.realised:.3f} "
            f"(95 % interval {bin_.interval[0]:.3f} to {bin_.interval[1]:.3f})",
            radius=round(3 + 6 * (bin_.number / largest) ** 0.5, 1),
        )
        for bin_ in reliability.bins
    )
    lines = (Line("right", (Mark(0, 0), Mark(1, 1)), kind="reference"), Line("bins", marks, kind="points"))
    x, y = Axis("predicted", 0, 1), Axis("realised", 0, 1)
    label = f"reliability diagram, {prior}"
    return Markup(panels_svg([Panel("", lines)], x, y, label, size=DIAGRAM, with_legend=False))


def spectrum_bars(by_size: Mapping[int, str]) -> Markup:
    """Return members by total formula size."""
    numbers = list(map(int, by_size.values()))
    label = "members by total formula size"
    return Markup(bar_chart(list(map(str, by_size)), numbers, list(map(number_text, numbers)), label))
