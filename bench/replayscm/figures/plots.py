"""The plots of a report, as SVG that is the same bytes for the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import cos, pi, sin, sqrt
from typing import TypeAlias

from calibrant.bench.core.attribution import KEY
from calibrant.bench.core.metrics import UNDEFINED
from calibrant.bench.pages.charts import Axis, Line, Look, Mark, Panel, looks, panels_svg
from calibrant.bench.replayscm.expectations import Ambiguities
from calibrant.bench.replayscm.figures.curves import (
    BINS,
    REST,
    RUNG_NAMES,
    CurvePoint,
    ambiguity_bins,
    families,
    ladder_points,
    merged_systems,
    num_matched,
    row_estimate,
    size_medians,
    timed_answers,
)
from calibrant.bench.replayscm.paper import (
    DIFFERENCES,
    HELDOUT_EXACT,
    RUNGS,
    TRAIN_EXACT,
    gold_sizes,
    with_printed_rows,
)
from calibrant.bench.replayscm.verdict import METRICS
from calibrant.bench.report.kind_plot import KIND_METRICS, KindPlot, attribution_plot
from calibrant.bench.report.layout import Source, TableRow
from calibrant.bench.report.rows import Answer, Grouping, Row, section_rows
from calibrant.bench.report.sections import Plot
from calibrant.bench.runs.jobs import Progress

MAX_WIDTH, STEP = 0.5, 0.09  # of the distance of two rungs: all curves together, and two neighbours
SPIRAL, GOLDEN_ANGLE = 0.014, pi * (3 - sqrt(5))  # points at one place: distance of neighbours, and turn
SHARE = Axis("", -0.03, 1.03, tuple((share, f"{share:g}") for share in (0, 0.2, 0.4, 0.6, 0.8, 1)))
PAPER = "in the paper"
KINDS_CAPTION = (
    "Shares of answers by what the training worlds had decided: earned and missed where every SCM that fits them"
    " replays the held-out worlds alike, held-out exact and not; lucky and short where they do not, held-out exact and"
    " not."
)
Looks: TypeAlias = Mapping[str, Look]


def report_plots(
    rows: Sequence[Row],
    audited: Ambiguities,
    *,
    with_paper: bool,
    with_times: bool,
    progress: Progress = lambda name, done, total: None,
) -> list[Plot]:
    """Return the plots that these rows and audits give."""
    look = looks([*(row.system for row in rows)]) | {PAPER: Look("edge", "circle")}
    makers: list[Callable[[], Plot | None]] = [
        partial(_ladder, rows, look),
        partial(_train_heldout, rows, look, with_paper=with_paper),
        partial(_ambiguity, rows, audited, look),
    ]
    if with_times:
        makers.append(partial(_time_size, rows, look))
    plots = []
    for done, make in enumerate(makers):
        progress("plots", done, len(makers))
        plots.append(make())
    progress("plots", len(makers), len(makers))
    return [plot for plot in plots if plot is not None]


def kinds_plot(answers: Sequence[Answer]) -> Plot | None:
    """Return how many answers were earned, by disclosure and system; None where no answer has an attribution."""
    attributed = [(origin, score) for origin, score in answers if score.get(KEY)]
    if not attributed:
        return None
    rows = section_rows(attributed, METRICS, Grouping.SETTING)
    title = "Earned, missed, lucky, short"
    return attribution_plot(rows, KindPlot("attribution", title, KINDS_CAPTION, KIND_METRICS, lambda row: row.setting))


def _curves(points: Mapping[str, Sequence[CurvePoint]]) -> Iterator[Line]:
    """Yield means joined by lines, with their intervals; curves stand side by side, so that no interval hides another.

    points: by system
    """
    width = min(MAX_WIDTH, STEP * (len(points) - 1))
    step = width / max(1, len(points) - 1)
    for number, (system, listed) in enumerate(points.items()):
        shift = number * step - width / 2
        ends = [point.interval or (None, None) for point in listed]
        marks = (Mark(p.place + shift, p.mean, low, high) for p, (low, high) in zip(listed, ends, strict=True))
        yield Line(system, tuple(marks))


def _ladder(rows: Sequence[Row], look: Looks) -> Plot | None:
    row_families = families(rows)
    if not row_families:
        return None
    panels = []
    for family in row_families:
        for column in DIFFERENCES:
            title = f"{column.heading}, {num_matched(family)} SCMs"
            panels.append(Panel(title, tuple(_curves(ladder_points(family, column)))))
    rungs = sorted({RUNGS[row.setting][1] for family in row_families for row in family})
    names = tuple((float(rung), RUNG_NAMES[rung].replace(" ", "\n")) for rung in rungs)
    x = Axis("", min(rungs) - MAX_WIDTH / 2, max(rungs) + MAX_WIDTH / 2, names)
    title = "Disclosure ladder"
    caption = (
        "The same latent SCMs with less and less told about them. Points are means over the SCMs that a system has at"
        " all of its rungs, bars 95% bootstrap intervals over them; a row of panels for each set of matched pools."
        " HeldoutWorld is over valid answers only, so a system that rarely answers can look high there."
    )
    svg = panels_svg(panels, x, SHARE, title, look=look, columns=len(DIFFERENCES), size=(320, 260))
    return Plot("ladder", title, caption, svg)


def _train_heldout(rows: Sequence[Row], look: Looks, *, with_paper: bool) -> Plot | None:
    scored = [row for row in rows if row.setting in RUNGS]
    if not scored:
        return None
    panels = []
    for name in (name for k, name in enumerate(RUNG_NAMES) if any(RUNGS[row.setting][1] == k for row in scored)):
        panel_rows = [row for row in scored if RUNG_NAMES[RUNGS[row.setting][1]] == name]
        lines = [Line("", (Mark(0, 0), Mark(1, 1)), kind="reference")]
        if with_paper and (marks := tuple(_paper_marks(panel_rows))):
            lines.append(Line(PAPER, marks, printed=True, kind="points"))
        panels.append(Panel(name, (*lines, *_crosses(panel_rows))))
    title = "Training against held-out"
    caption = (
        "Each point is a row: how many problems it fits, and on how many of them it also replays every held-out world."
        " Bars are 95% intervals. No answer can be above the dotted line. Rows at one place stand side by side."
    )
    caption += " In grey, with their names: the rows that the paper prints, on its own pools." if with_paper else ""
    x, y = SHARE._replace(label="TrainExact"), SHARE._replace(label="HeldoutExact")
    svg = panels_svg(panels, x, y, title, look={"": look[PAPER], **look}, columns=2, size=(420, 360))
    return Plot("train-heldout", title, caption, svg)


def _crosses(rows: Sequence[Row]) -> Iterator[Line]:
    pairs = [(row_estimate(row, TRAIN_EXACT), row_estimate(row, HELDOUT_EXACT)) for row in rows]
    points = [(row, train, heldout) for row, (train, heldout) in zip(rows, pairs, strict=True) if train and heldout]
    places = apart([(train.mean, heldout.mean) for _, train, heldout in points])
    for (row, train, heldout), (x, y) in zip(points, places, strict=True):
        low, high = heldout.interval or (None, None)
        x_low, x_high = train.interval or (None, None)
        yield Line(row.system, (Mark(x, y, low, high, x_low=x_low, x_high=x_high),), kind="points")


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


def _paper_marks(rows: Sequence[Row]) -> Iterator[Mark]:
    """Yield the paper's rows of the same setting, each with its name."""
    lines = [TableRow((row.setting,), ()) for row in rows[:1]]
    printed = list(with_printed_rows("1", lines, ("train_exact", "heldout_exact")))
    if not any(row.source is Source.PAPER for row in printed):  # Hidden-roots has a table of its own
        printed = list(with_printed_rows("3B", lines, ("train_exact", "heldout_exact")))
    for row in printed:
        texts = [cell.text for cell in row.cells]
        if row.source is Source.PAPER and UNDEFINED not in texts:
            yield Mark(float(texts[0]), float(texts[1]), note=row.labels[1], radius=2.4)


def _ambiguity(rows: Sequence[Row], audited: Ambiguities, look: Looks) -> Plot | None:
    curves, draws = ambiguity_bins(rows, audited)
    if not curves:
        return None
    reference = "a fair draw"
    lines = [Line(reference, tuple(Mark(*draw) for draw in draws.items()), kind="reference")] if draws else []
    names = [*(name for name, _ in BINS), REST]
    x = Axis("SCMs that fit the training worlds", -MAX_WIDTH, len(names) - MAX_WIDTH, tuple(enumerate(names)))
    title = "Ambiguity against success"
    caption = (
        "HeldoutExact by how many SCMs of the audited class fit the evidence, exactly counted. Dotted: what drawing one"
        " of them fairly would score. Bars are 95% bootstrap intervals."
    )
    panel = Panel("", (*lines, *_curves(curves)))
    y = SHARE._replace(label="HeldoutExact")
    svg = panels_svg([panel], x, y, title, look={reference: look[PAPER], **look}, size=(620, 340))
    return Plot("ambiguity", title, caption, svg)


def _time_size(rows: Sequence[Row], look: Looks) -> Plot | None:
    sizes = gold_sizes(rows)
    timed_by_system = {answers.system: timed_answers(answers, sizes) for answers in merged_systems(rows)}
    lines = [
        line
        for system, timed in timed_by_system.items()
        if timed
        for line in (Line(system, _marks(timed), kind="dots"), Line(system, _marks(size_medians(timed))))
    ]
    if not lines:
        return None
    x, y = Axis("size of the latent SCM (nodes of its formulas)"), Axis("seconds", logarithmic=True)
    title = "Time against size"
    caption = "Wall seconds of each instance, and medians of four groups of instances by size."
    svg = panels_svg([Panel("", tuple(lines))], x, y, title, look=look, size=(620, 340))
    return Plot("time-size", title, caption, svg)


def _marks(points: Iterable[tuple[float, float]]) -> tuple[Mark, ...]:
    return tuple(Mark(x, y) for x, y in points)
