"""The plots of a report, as SVG that is the same bytes for the same rows. Drawing is bench.report.figures.drawing's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from bench.answers.columns import UNDEFINED
from bench.report.ambiguity import Ambiguities
from bench.report.figures.curves import (
    BINS,
    NUM_BINS,
    REST,
    RUNG_NAMES,
    ambiguity_bins,
    estimate,
    families,
    ladder_points,
    merged_systems,
    num_matched,
    size_medians,
)
from bench.report.figures.drawing import curve, drawn_svg, legend, new_figure, plain, shifts, style
from bench.report.layout import Source, TableRow
from bench.report.pairs import DIFFERENCES, HELDOUT_EXACT, RUNGS, TRAIN_EXACT
from bench.report.paper import with_printed_rows
from bench.report.rows import SystemRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#1f4e9c", "#b4562b", "#2f8f5b", "#8a4fa3", "#c79a1b", "#3aa0b8", "#7a1f3d", "#6c757f", "#94b447", "#d77fa1")
MARKERS = "osD^"  # one for each rung
PAPER_COLOUR = "#aab2bd"


class Plot(NamedTuple):
    """name: of its file and of its place in the page"""

    name: str
    title: str
    caption: str
    svg: str


def report_plots(rows: Sequence[SystemRow], audited: Ambiguities, *, with_paper: bool, with_times: bool) -> list[Plot]:
    """The plots that these rows and audits give; `MissingExtraError` without matplotlib."""
    with style():
        colours = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(sorted({row.system for row in rows}))}
        made = [_ladder(rows, colours), _train_heldout(rows, colours, with_paper=with_paper)]
        made.append(_ambiguity(rows, audited, colours))
        if with_times:
            made.append(_time_size(rows, colours))
    return [plot for plot in made if plot is not None]


def _ladder(rows: Sequence[SystemRow], colours: dict[str, str]) -> Plot | None:
    found = families(rows)
    if not found:
        return None
    figure, grid = new_figure(len(found), len(DIFFERENCES))
    for family, line in zip(found, grid, strict=True):
        rungs = sorted({RUNGS[row.setting][1] for row in family})
        for column, axes in zip(DIFFERENCES, line, strict=True):
            curves = ladder_points(family, column)
            beside = shifts(list(curves))
            for system, points in curves.items():
                curve(axes, points, beside[system], colours[system], system)
            axes.set_xticks(rungs, [RUNG_NAMES[rung].replace(" ", "\n") for rung in rungs])
            axes.set_ylim(-0.03, 1.03)
            axes.set_title(f"{column.heading}, {num_matched(family)} SCMs")
    legend(figure, grid[0][:1])
    caption = (
        "The same latent SCMs with less and less told about them. Points are means over the SCMs that a system has at"
        " all of its rungs, bars 95% bootstrap intervals over them; a row of panels for each set of matched pools."
        " HeldoutWorld is over valid answers only, so a system that rarely answers can look high there."
    )
    return Plot("ladder", "Disclosure ladder", caption, drawn_svg(figure))


def _train_heldout(rows: Sequence[SystemRow], colours: dict[str, str], *, with_paper: bool) -> Plot | None:
    scored = [row for row in rows if row.setting in RUNGS]
    if not scored:
        return None
    settings = [name for k, name in enumerate(RUNG_NAMES) if any(RUNGS[row.setting][1] == k for row in scored)]
    figure, grid = new_figure(1, len(settings), extra=0.4)
    for name, axes in zip(settings, grid[0], strict=True):
        here = [row for row in scored if RUNG_NAMES[RUNGS[row.setting][1]] == name]
        axes.plot([0, 1], [0, 1], color="#5b6675", linewidth=0.7, linestyle=":")
        if with_paper:
            _paper_points(axes, here)
        for row in here:
            _cross(axes, row, colours[row.system])
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), title=name, xlabel="TrainExact")
    grid[0][0].set_ylabel("HeldoutExact")
    legend(figure, grid[0])
    caption = (
        "Each point is a row: how many problems it fits, and on how many of them it also replays every held-out world."
        " Bars are 95% bootstrap intervals. No answer can be above the dotted line."
    )
    caption += " In grey: the rows that the paper prints, on its own pools." if with_paper else ""
    return Plot("train-heldout", "Training against held-out", caption, drawn_svg(figure))


def _cross(axes: Axes, row: SystemRow, colour: str) -> None:
    train, heldout = estimate(0, row, TRAIN_EXACT), estimate(0, row, HELDOUT_EXACT)
    assert train is not None
    assert heldout is not None
    axes.errorbar(
        [train.mean],
        [heldout.mean],
        xerr=[[reach] for reach in train.reach],
        yerr=[[reach] for reach in heldout.reach],
        color=colour,
        marker=MARKERS[RUNGS[row.setting][1]],
        elinewidth=0.7,
        linestyle="",
        label=plain(row.system),
    )


def _paper_points(axes: Axes, rows: Sequence[SystemRow]) -> None:
    lines = [TableRow((row.setting,), ()) for row in rows]
    printed = list(with_printed_rows("1", lines, ("train_exact", "heldout_exact")))
    if not any(row.source is Source.PAPER for row in printed):  # Hidden-roots has a table of its own
        printed = list(with_printed_rows("3B", lines, ("train_exact", "heldout_exact")))
    points = sorted({tuple(c.text for c in row.cells) for row in printed if row.source is Source.PAPER})
    known = [(float(x), float(y)) for x, y in points if UNDEFINED not in (x, y)]
    if known:
        axes.scatter([x for x, _ in known], [y for _, y in known], color=PAPER_COLOUR, s=14, label="in the paper")


def _ambiguity(rows: Sequence[SystemRow], audited: Ambiguities, colours: dict[str, str]) -> Plot | None:
    curves, draws = ambiguity_bins(rows, audited)
    if not curves:
        return None
    figure, ((axes,),) = new_figure(1, 1, extra=3.5)
    beside = shifts(list(curves))
    if draws:
        axes.plot(list(draws), list(draws.values()), color="#5b6675", linestyle=":", marker=".", label="a fair draw")
    for system, points in curves.items():
        curve(axes, points, beside[system], colours[system], system)
    axes.set_xticks(range(NUM_BINS), [*(name for name, _ in BINS), REST])
    axes.set(ylim=(-0.03, 1.03), xlabel="SCMs that fit the training worlds", ylabel="HeldoutExact")
    legend(figure, [axes])
    caption = (
        "HeldoutExact by how many SCMs of the audited class fit the evidence, exactly counted. Dotted: what drawing one"
        " of them fairly would score. Bars are 95% bootstrap intervals."
    )
    return Plot("ambiguity", "Ambiguity against success", caption, drawn_svg(figure))


def _time_size(rows: Sequence[SystemRow], colours: dict[str, str]) -> Plot | None:
    systems = [row for row in merged_systems(rows) if size_medians(row)]
    if not systems:
        return None
    figure, ((axes,),) = new_figure(1, 1, extra=3.5)
    for row in systems:
        points = sorted((o.gold_size, o.seconds) for o in row.observations if o.gold_size is not None and o.seconds)
        sizes, seconds = [size for size, _ in points], [second for _, second in points]
        axes.scatter(sizes, seconds, color=colours[row.system], s=5, alpha=0.3, linewidths=0)
        medians = size_medians(row)
        axes.plot(
            [size for size, _ in medians],
            [second for _, second in medians],
            color=colours[row.system],
            marker="o",
            label=plain(row.system),
        )
    axes.set_yscale("log")
    axes.set(xlabel="size of the latent SCM (nodes of its formulas)", ylabel="seconds")
    legend(figure, [axes])
    caption = "Wall seconds of each instance, and medians of four groups of instances by size."
    return Plot("time-size", "Time against size", caption, drawn_svg(figure))
