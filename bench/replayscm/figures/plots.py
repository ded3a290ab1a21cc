"""The plots of a report, as SVG that is the same bytes for the same rows. Drawing is bench.report.figures.drawing's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from calibrant.bench.core.rates import UNDEFINED
from calibrant.bench.pages.design.saved_figures import light
from calibrant.bench.replayscm.figures.curves import (
    BINS,
    NUM_BINS,
    REST,
    RUNG_NAMES,
    ambiguity_bins,
    families,
    ladder_points,
    merged_systems,
    num_matched,
    row_estimate,
    size_medians,
    timed_answers,
)
from calibrant.bench.replayscm.tables.ambiguity import Ambiguities
from calibrant.bench.replayscm.tables.pairs import DIFFERENCES, HELDOUT_EXACT, RUNGS, TRAIN_EXACT
from calibrant.bench.replayscm.tables.paper import with_printed_rows
from calibrant.bench.replayscm.tables.rows import gold_sizes
from calibrant.bench.report.figures.drawing import (
    Look,
    apart,
    curve,
    drawn_svg,
    legend,
    looks,
    new_figure,
    plain,
    shifts,
    style,
)
from calibrant.bench.report.layout import Source, TableRow
from calibrant.bench.report.rows import Row
from calibrant.bench.report.sections import Plot
from calibrant.bench.runs.jobs import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER_COLOUR = light("edge")
NAME_POINTS = 7  # font size of names: 9 pixels
LETTER, LINE = 0.021, 0.041  # of a panel's side: a letter of a dot's name, and the distance of two names


Looks: TypeAlias = Mapping[str, Look]


def report_plots(
    rows: Sequence[Row],
    audited: Ambiguities,
    *,
    with_paper: bool,
    with_times: bool,
    progress: Progress = lambda name, done, total: None,
) -> list[Plot]:
    """Return the plots that these rows and audits give; `MissingExtraError` without matplotlib."""
    look = looks(row.system for row in rows)
    makers: list[Callable[[], Plot | None]] = [
        partial(_ladder, rows, look),
        partial(_train_heldout, rows, look, with_paper=with_paper),
        partial(_ambiguity, rows, audited, look),
    ]
    if with_times:
        makers.append(partial(_time_size, rows, look))
    plots = []
    with style():
        for done, make in enumerate(makers):
            progress("plots", done, len(makers))
            plots.append(make())
    progress("plots", len(makers), len(makers))
    return [plot for plot in plots if plot is not None]


def _ladder(rows: Sequence[Row], look: Looks) -> Plot | None:
    row_families = families(rows)
    if not row_families:
        return None
    figure, grid = new_figure(len(row_families), len(DIFFERENCES))
    for family, line in zip(row_families, grid, strict=True):
        rungs = sorted({RUNGS[row.setting][1] for row in family})
        for column, axes in zip(DIFFERENCES, line, strict=True):
            curves = ladder_points(family, column)
            beside = shifts(list(curves))
            for system, points in curves.items():
                curve(axes, points, beside[system], look[system], system)
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


def _train_heldout(rows: Sequence[Row], look: Looks, *, with_paper: bool) -> Plot | None:
    scored = [row for row in rows if row.setting in RUNGS]
    if not scored:
        return None
    settings = [name for k, name in enumerate(RUNG_NAMES) if any(RUNGS[row.setting][1] == k for row in scored)]
    figure, grid = new_figure(1, len(settings), extra=0.4)
    for name, axes in zip(settings, grid[0], strict=True):
        panel_rows = [row for row in scored if RUNG_NAMES[RUNGS[row.setting][1]] == name]
        axes.plot([0, 1], [0, 1], color=light("soft"), linewidth=0.7, linestyle=":")
        if with_paper:
            _paper_points(axes, panel_rows)
        _crosses(axes, panel_rows, look)
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), title=name, xlabel="TrainExact")
    grid[0][0].set_ylabel("HeldoutExact")
    legend(figure, grid[0])
    caption = (
        "Each point is a row: how many problems it fits, and on how many of them it also replays every held-out world."
        " Bars are 95% intervals. No answer can be above the dotted line. Rows at one place stand side by side."
    )
    caption += " In grey, with their names: the rows that the paper prints, on its own pools." if with_paper else ""
    return Plot("train-heldout", "Training against held-out", caption, drawn_svg(figure))


def _crosses(axes: Axes, rows: Sequence[Row], look: Looks) -> None:
    pairs = [(row_estimate(row, TRAIN_EXACT), row_estimate(row, HELDOUT_EXACT)) for row in rows]
    points = [(row, train, heldout) for row, (train, heldout) in zip(rows, pairs, strict=True) if train and heldout]
    places = apart([(train.mean, heldout.mean) for _, train, heldout in points])
    for (row, train, heldout), (x, y) in zip(points, places, strict=True):
        axes.errorbar(
            [x],
            [y],
            xerr=[[reach] for reach in train.reach],
            yerr=[[reach] for reach in heldout.reach],
            color=look[row.system].colour,
            marker=look[row.system].marker,
            elinewidth=0.7,
            linestyle="",
            label=plain(row.system),
        )


def _paper_points(axes: Axes, rows: Sequence[Row]) -> None:
    """Draw the paper's rows of the same setting, each as a dot with its name."""
    lines = [TableRow((row.setting,), ()) for row in rows[:1]]
    printed = list(with_printed_rows("1", lines, ("train_exact", "heldout_exact")))
    if not any(row.source is Source.PAPER for row in printed):  # Hidden-roots has a table of its own
        printed = list(with_printed_rows("3B", lines, ("train_exact", "heldout_exact")))
    names_by_place: dict[tuple[float, float], list[str]] = {}
    for row in printed:
        texts = [cell.text for cell in row.cells]
        if row.source is Source.PAPER and UNDEFINED not in texts:
            names_by_place.setdefault((float(texts[0]), float(texts[1])), []).append(row.labels[1])
    if not names_by_place:
        return
    axes.scatter(
        [x for x, _ in names_by_place], [y for _, y in names_by_place], color=PAPER_COLOUR, s=12, label="in the paper"
    )
    for (x, y), (x_text, height), text in _names_beside(names_by_place):
        axes.annotate(
            plain(text), (x, y), (x_text, height), fontsize=NAME_POINTS, color=PAPER_COLOUR, va="center",
            arrowprops={"arrowstyle": "-", "color": PAPER_COLOUR, "linewidth": 0.3, "shrinkA": 0, "shrinkB": 1},
        )  # fmt: skip


_Place: TypeAlias = tuple[float, float]


def _names_beside(names_by_place: Mapping[_Place, Sequence[str]]) -> Iterator[tuple[_Place, _Place, str]]:
    """For each dot the left end of its name, at the nearest height at which no other name stands."""
    occupied = [(x - 0.01, x + 0.01, y) for x, y in names_by_place]  # no name stands on a dot either
    for (x, y), names in sorted(names_by_place.items()):
        text = ", ".join(names)
        width = LETTER * len(text)
        x_text = min(x + 0.02, 1.0 - width) if x < 0.5 else max(0.0, x - 0.02 - width)
        heights = sorted((k * LINE / 2 for k in range(-60, 61)), key=lambda up: (abs(up), up))
        free = (
            y + up
            for up in heights
            if 0 <= y + up <= 1
            and all(abs(y + up - h) >= LINE or x_text > end or x_text + width < begin for begin, end, h in occupied)
        )
        height = next(free, y)
        occupied.append((x_text, x_text + width, height))
        yield (x, y), (x_text, height), text


def _ambiguity(rows: Sequence[Row], audited: Ambiguities, look: Looks) -> Plot | None:
    curves, draws = ambiguity_bins(rows, audited)
    if not curves:
        return None
    figure, ((axes,),) = new_figure(1, 1, extra=3.5)
    beside = shifts(list(curves))
    if draws:
        axes.plot(
            list(draws), list(draws.values()), color=light("soft"), linestyle=":", marker=".", label="a fair draw"
        )
    for system, points in curves.items():
        curve(axes, points, beside[system], look[system], system)
    axes.set_xticks(range(NUM_BINS), [*(name for name, _ in BINS), REST])
    axes.set(ylim=(-0.03, 1.03), xlabel="SCMs that fit the training worlds", ylabel="HeldoutExact")
    legend(figure, [axes])
    caption = (
        "HeldoutExact by how many SCMs of the audited class fit the evidence, exactly counted. Dotted: what drawing one"
        " of them fairly would score. Bars are 95% bootstrap intervals."
    )
    return Plot("ambiguity", "Ambiguity against success", caption, drawn_svg(figure))


def _time_size(rows: Sequence[Row], look: Looks) -> Plot | None:
    sizes = gold_sizes(rows)
    timed_by_system = {answers.system: timed_answers(answers, sizes) for answers in merged_systems(rows)}
    if not any(timed_by_system.values()):
        return None
    figure, ((axes,),) = new_figure(1, 1, extra=3.5)
    for system, timed in timed_by_system.items():
        if not timed:
            continue
        colour = look[system].colour
        axes.scatter(
            [size for size, _ in timed], [second for _, second in timed], color=colour, s=5, alpha=0.3, linewidths=0
        )
        medians = size_medians(timed)
        axes.plot(
            [size for size, _ in medians],
            [second for _, second in medians],
            color=colour,
            marker=look[system].marker,
            label=plain(system),
        )
    axes.set_yscale("log")
    axes.set(xlabel="size of the latent SCM (nodes of its formulas)", ylabel="seconds")
    legend(figure, [axes])
    caption = "Wall seconds of each instance, and medians of four groups of instances by size."
    return Plot("time-size", "Time against size", caption, drawn_svg(figure))
