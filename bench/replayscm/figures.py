"""Pictures of ReplaySCM's episodes and answers."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from math import cos, log2, pi, sin, sqrt
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from calibrant.audits.replayscm.extended.items import CalibrationBin, calibration_bins
from calibrant.bench.answers import frame
from calibrant.bench.answers.rates import Interval, exact_mean, natural
from calibrant.bench.core.attribution import KEY, POSTERIOR
from calibrant.bench.core.metrics import UNDEFINED, Metric
from calibrant.bench.pages.charts import Axis, Line, Look, Mark, Panel, looks, panels_svg
from calibrant.bench.replayscm import paper
from calibrant.bench.replayscm.chance_and_best import Ambiguities
from calibrant.bench.replayscm.episodes import TOP_TRUE, is_episode
from calibrant.bench.replayscm.verdict import METRICS
from calibrant.bench.report.layout import Source, TableRow
from calibrant.bench.report.rows import Answer, Grouping, Observation, Row, section_rows
from calibrant.bench.report.sections import OTHERS, KindPlot, Plot, ReportContents, attribution_plot
from calibrant.bench.report.sources import transcripts
from calibrant.bench.runs.executors import Progress
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.records import pool_digest
from calibrant.dsl.replayscm.episode import steps_evidence, task_class
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.experiments.candidates import posterior_bits
from calibrant.solvers.replayscm.hidden.mass import count_members
from calibrant.solvers.replayscm.noise.posterior import Posterior

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark


# --- Data of the plots of extended items: remaining uncertainty by world, and calibration of stated posteriors --------
# items plotted per system; the curve of a noisy episode of 10 variables takes a second, any other a tenth of it
MAX_ITEMS, MAX_NOISY_ITEMS = 200, 24
NUM_DRAWS = 64  # samples for an entropy under noise: a standard error of a few tenths of a bit per item


@dataclass(frozen=True)
class UncertaintyPoint:
    """Mean over items of the uncertainty (bits, see `episode_bits`) after `num_worlds` worlds.

    low, high: mean minus and plus two standard errors; equal to the mean for one item
    """

    num_worlds: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class UncertaintyCurve:
    """One system's curve over its items.

    points: from 0 worlds to the longest episode; a finished episode keeps its last value
    """

    system: str
    num_items: int
    points: tuple[UncertaintyPoint, ...]


def episode_bits(problem: Problem, steps: Sequence[Step[Any]]) -> list[float]:
    """Return the uncertainty in bits at the start and after every world; `BudgetSpent` if it cannot be computed.

    Without noise it is log2 of the number of consistent SCMs; under noise, the posterior entropy, from samples.
    """
    posterior = Posterior(task_class(problem.task))
    is_noiseless = posterior.scm_class.noise.is_noiseless
    bits = []
    for index, world in enumerate(steps_evidence(steps)):
        posterior = posterior.condition(world)
        if is_noiseless:
            bits.append(log2(count_members(posterior)))
        else:
            bits.append(max(0.0, posterior_bits(posterior, f"{problem.id}|{index}", NUM_DRAWS).value))
    return bits


def uncertainty_curves(episodes: Iterable[tuple[str, Problem, Sequence[Step[Any]]]]) -> list[UncertaintyCurve]:
    """Return a curve for each system, without episodes that exceed the budget.

    Of each system, the first MAX_ITEMS episodes without noise and the first MAX_NOISY_ITEMS with noise are taken.

    episodes: (system, item, steps)
    """
    num_curves = Counter[tuple[str, bool]]()
    by_system: dict[str, list[list[float]]] = {}
    # item -> (worlds, bits) of its last episode: methods that only infer all get the worlds of `greedy`
    last_bits: dict[str, tuple[Any, list[float]]] = {}
    for system, problem, steps in episodes:
        if not is_episode(problem):
            continue
        curves = by_system.setdefault(system, [])
        is_noiseless = task_class(problem.task).noise.is_noiseless
        if num_curves[system, is_noiseless] >= (MAX_ITEMS if is_noiseless else MAX_NOISY_ITEMS):
            continue
        worlds = steps_evidence(steps)
        if problem.id not in last_bits or last_bits[problem.id][0] != worlds:
            try:
                last_bits[problem.id] = worlds, episode_bits(problem, steps)
            except BudgetSpent:
                continue
        curves.append(last_bits[problem.id][1])
        num_curves[system, is_noiseless] += 1
    return [_curve(system, by_system[system]) for system in sorted(by_system, key=natural) if by_system[system]]


def _curve(system: str, bits_of_items: Sequence[Sequence[float]]) -> UncertaintyCurve:
    points = []
    for num_worlds in range(max(map(len, bits_of_items))):
        values = [bits[min(num_worlds, len(bits) - 1)] for bits in bits_of_items]
        mean = fmean(values)
        error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
        points.append(UncertaintyPoint(num_worlds, mean, max(0.0, mean - 2 * error), mean + 2 * error))
    return UncertaintyCurve(system, len(bits_of_items), tuple(points))


def posterior_statements(answers: Iterable[Answer]) -> list[tuple[Fraction, bool]]:
    """Return, for each item, (posterior of the most probable held-out behaviour, whether it is that of the true SCM).

    Systems with the same evidence state the same posterior, so only the first system by name counts.
    """
    first: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    for context, score in answers:
        attribution = score.get(KEY)
        if not isinstance(attribution, Mapping) or attribution.get(TOP_TRUE) is None:
            continue
        key, system = (context.pool_digest, context.instance), context.system
        if key not in first or natural(system) < natural(first[key][0]):
            first[key] = system, attribution
    statements = [attribution for _, attribution in first.values()]
    # posteriors are recorded as floats: take the nearest fraction with a denominator of at most 10^12
    return [(Fraction(entry[POSTERIOR]).limit_denominator(10**12), entry[TOP_TRUE] is True) for entry in statements]


def answer_bins(answers: Iterable[Answer]) -> list[CalibrationBin]:
    """Return the calibration bins of the posteriors in the attributions of answers."""
    return calibration_bins(posterior_statements(answers))


# --- Figures of extended items in a page: bits left by world, and calibration of posteriors ---------------------------
LEFT_CAPTION = (
    "Mean bits left after each world: without noise the logarithm of the SCMs that fit, under noise the posterior"
    " entropy; a finished episode keeps its last value. Bars: two standard errors over items, of a system's first"
    f" {MAX_ITEMS} items without noise and {MAX_NOISY_ITEMS} with noise."
)
CALIBRATION_CAPTION = (
    "Posterior of the most probable held-out behaviour against the share of items where it is gold's, one statement an"
    " item, with 95 % Wilson intervals and the number of items. Items whose gold is drawn from the prior lie on the"
    " dashed line."
)


def uncertainty_plot(curves: Sequence[UncertaintyCurve]) -> Plot | None:
    """Return the plot of uncertainty by world; None without curves."""
    if not curves:
        return None
    lines = [
        Line(in_one_line(curve.system), tuple(Mark(p.num_worlds, p.mean, p.low, p.high) for p in curve.points))
        for curve in curves
    ]
    title = "Bits left by world"
    top = max(point.high for curve in curves for point in curve.points)
    drawing = panels_svg([Panel("", tuple(lines))], Axis("worlds", 0), Axis("bits left", 0, top), title)
    return Plot("bits_left", title, LEFT_CAPTION, drawing, in_page=True)


def calibration_plot(bins: Sequence[CalibrationBin]) -> Plot | None:
    """Return the plot of stated posteriors against observed shares; None without bins."""
    if not bins:
        return None
    marks = [Mark(bin_.mean_stated, bin_.share_true, *bin_.interval, str(bin_.number)) for bin_ in bins]
    lines = (
        Line("statements", tuple(sorted(marks))),
        Line("as often as stated", (Mark(0, 0), Mark(1, 1)), printed=True),
    )
    title = "Calibration of posteriors"
    drawing = panels_svg([Panel("", lines)], Axis("stated posterior", 0, 1), Axis("share true", 0, 1), title)
    return Plot("posterior_calibration", title, CALIBRATION_CAPTION, drawing, in_page=True)


# --- Figures of extended items in a report: bits left by world, calibration of posteriors -----------------------------


def episode_plots(bench: Benchmark[Any], answers: Sequence[Answer], contents: ReportContents) -> list[Plot]:
    """Return the figures that these answers have data for."""
    has_worlds = any("worlds" in score for _, score in answers)
    has_posteriors = any(isinstance(score.get(KEY), Mapping) and TOP_TRUE in score[KEY] for _, score in answers)
    plots = [
        uncertainty_plot(uncertainty_curves(_episodes(bench, contents))) if has_worlds else None,
        calibration_plot(answer_bins(answers)) if has_posteriors else None,
    ]
    return [plot for plot in plots if plot is not None]


def _episodes(bench: Benchmark[Any], contents: ReportContents) -> Iterator[tuple[str, Problem, Sequence[Step[Any]]]]:
    """Yield (system, item, steps) of the episodes whose pools and transcripts are given."""
    from calibrant.bench.core.registry import benchmark_of

    pools = [path for path in contents.pools if benchmark_of(path).name == bench.name]
    sources = contents.transcripts.get(bench.name, ())
    if not pools or not sources:
        return
    items = {
        (digest, item.id): item
        for path in pools
        for digest in [pool_digest(path)]
        for item in bench.items.read_pool(path).items
        if is_episode(item)
    }
    for transcript in transcripts(sources, pools, contents.fields):
        item = items.get((transcript.context.pool_digest, transcript.context.instance))
        if item is not None and transcript.steps:
            yield transcript.context.system, item, transcript.steps


# --- Data of the plots: the disclosure ladder, success by ambiguity, time by size -------------------------------------
RUNG_NAMES = ("Ordered", "Block", "Hidden order", "Hidden roots")
BINS = (("1", 1), ("to 100", 100), ("to 10⁴", 10**4), ("to 10⁶", 10**6))  # label, largest number of SCMs
LAST_BIN = "more"
NUM_BINS = len(BINS) + 1
NUM_SIZE_GROUPS = 4


class CurvePoint(NamedTuple):
    """One point of a curve.

    x: index of the rung or of the bin; num_items: number of items in the mean
    """

    x: int
    mean: float
    interval: Interval | None
    num_items: int


class SystemAnswers(NamedTuple):
    """A system's answers over several rows, by pool and item.

    column_indices: index of each metric among an answer's values
    """

    system: str
    observations: list[Observation]
    column_indices: Mapping[str, int]


def row_estimate(row: Row, metric: Metric) -> CurvePoint | None:
    """Return a row's rate, at x = 0; None if it is defined for no answer."""
    return estimate(0, [*row.observations], row.column_indices[metric.key])


def estimate(x: int, observations: Sequence[Observation], metric_index: int) -> CurvePoint | None:
    """Return the rate of a metric over answers; None if it is defined for none of them."""
    rate = frame.estimate((o.item, o.unit, o.values[metric_index]) for o in observations)
    return None if rate is None else CurvePoint(x, *rate)


def families(rows: Sequence[Row]) -> list[list[Row]]:
    """Group the rows of the disclosure ladder by shared latent SCMs; keep groups of at least two disclosures."""
    groups: list[list[Row]] = []
    for row in rows:
        if paper.RUNGS.get(row.setting, ("-", 0))[0]:  # a variant of a rung, or ("-") a setting that is on no rung
            continue
        connected = [group for group in groups if any(row.units & member.units for member in group)]
        groups = [group for group in groups if group not in connected]
        groups.append([*(member for group in connected for member in group), row])
    return [group for group in groups if len({paper.RUNGS[row.setting] for row in group}) > 1]


def ladder_points(family: Sequence[Row], metric: Metric) -> dict[str, list[CurvePoint]]:
    """Return system -> its mean at each rung, over the latent SCMs that it has at all of its rungs."""
    points: dict[str, list[CurvePoint]] = {}
    for system in dict.fromkeys(row.system for row in family):
        rungs: dict[int, list[Row]] = {}
        for row in family:
            if row.system == system:
                rungs.setdefault(paper.RUNGS[row.setting][1], []).append(row)
        if len(rungs) < 2:
            continue
        units_by_rung = [frozenset[str]().union(*(row.units for row in group)) for group in rungs.values()]
        matched = reduce(frozenset.intersection, units_by_rung)
        at_rungs = [
            estimate(rung, [o for o in _merge(group) if o.unit in matched], group[0].column_indices[metric.key])
            for rung, group in sorted(rungs.items())
        ]
        points[system] = [point for point in at_rungs if point is not None]
    return points


def num_matched(family: Sequence[Row]) -> int:
    """Count the latent SCMs that occur at more than one rung."""
    rungs_by_latent: dict[str, set[int]] = {}
    for row in family:
        for latent in row.units:
            rungs_by_latent.setdefault(latent, set()).add(paper.RUNGS[row.setting][1])
    return sum(len(rungs) > 1 for rungs in rungs_by_latent.values())


def ambiguity_bins(rows: Sequence[Row], audited: Ambiguities) -> tuple[dict[str, list[CurvePoint]], dict[int, float]]:
    """Return (system -> HeldoutExact in each bin, bin index -> mean expected score of a random consistent SCM).

    Bins are by the number of consistent SCMs (`bin_index_of`). audited: item -> that number and expected score
    """
    points: dict[str, list[CurvePoint]] = {}
    plotted: set[tuple[str, str]] = set()
    for merged in merged_systems([row for row in rows if not row.setting.startswith("Alt-")]):
        audited_here = [o for o in merged.observations if o.item in audited]
        plotted |= {o.item for o in audited_here}
        heldout = merged.column_indices[paper.HELDOUT_EXACT.key]
        in_bins = [
            estimate(
                bin_index, [o for o in audited_here if bin_index_of(audited[o.item].members) == bin_index], heldout
            )
            for bin_index in range(NUM_BINS)
        ]
        points[merged.system] = [point for point in in_bins if point is not None]
    draw_scores: dict[int, list[float]] = {}
    for key in sorted(plotted):
        if (draw_score := audited[key].draw) is not None:
            draw_scores.setdefault(bin_index_of(audited[key].members), []).append(draw_score)
    means = {bin_index: exact_mean(values) for bin_index, values in sorted(draw_scores.items())}
    return {system: curve for system, curve in points.items() if curve}, means


def bin_index_of(members: int) -> int:
    """Return the index in BINS for a number of SCMs; len(BINS) above the largest bin."""
    return next((index for index, (_, max_members) in enumerate(BINS) if members <= max_members), len(BINS))


def size_medians(timed: Sequence[tuple[int, float]]) -> list[tuple[float, float]]:
    """Return (median size, median seconds) of NUM_SIZE_GROUPS groups of about equally many answers.

    Answers of equal size are in one group. timed: (size of the true SCM, seconds), sorted
    """
    edges = [timed[len(timed) * k // NUM_SIZE_GROUPS][0] for k in range(1, NUM_SIZE_GROUPS)] if timed else []
    groups: dict[int, list[tuple[int, float]]] = {}
    for size, seconds in timed:
        groups.setdefault(bisect_right(edges, size), []).append((size, seconds))
    return [(median(size for size, _ in group), median(s for _, s in group)) for group in groups.values()]


def timed_answers(answers: SystemAnswers, sizes: Mapping[str, int]) -> list[tuple[int, float]]:
    """Return (gold size, seconds) of each answer for which both are known, sorted."""
    return sorted((sizes[o.unit], o.seconds) for o in answers.observations if o.unit in sizes and o.seconds)


def merged_systems(rows: Sequence[Row]) -> list[SystemAnswers]:
    """Merge each system's rows: its answers to all pools under all settings."""
    by_system: dict[str, list[Row]] = {}
    for row in rows:
        by_system.setdefault(row.system, []).append(row)
    return [
        SystemAnswers(system, _merge(rows_of_system), rows_of_system[0].column_indices)
        for system, rows_of_system in by_system.items()
    ]


def _merge(rows: Sequence[Row]) -> list[Observation]:
    return sorted((o for row in rows for o in row.observations), key=lambda o: o.item)


# horizontal offsets of curves, in units of a rung: at most between the first and the last, and between neighbours
MAX_WIDTH, STEP = 0.5, 0.09
SPIRAL, GOLDEN_ANGLE = 0.014, pi * (3 - sqrt(5))  # the k-th of equal points: radius SPIRAL sqrt(k), angle k steps
SHARE = Axis("", -0.03, 1.03, tuple((share, f"{share:g}") for share in (0, 0.2, 0.4, 0.6, 0.8, 1)))
PAPER = "in the paper"
KINDS_CAPTION = (
    "Shares of answers by what the training worlds had decided: earned and missed where every SCM that fits them"
    " replays the held-out worlds alike, held-out exact and not; lucky and short where they do not, held-out exact and"
    f" not. {OTHERS}"
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
    """Return the plots that these rows and audits have data for."""
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
    """Plot shares of earned, missed, lucky and short answers, by disclosure and system; None without attributions."""
    attributed = [(origin, score) for origin, score in answers if KEY in score]
    rows = section_rows(attributed, METRICS, Grouping.SETTING)
    title = "Earned, missed, lucky, short"
    return attribution_plot(rows, KindPlot("attribution", title, KINDS_CAPTION, lambda row: row.setting))


def _curves(points: Mapping[str, Sequence[CurvePoint]]) -> Iterator[Line]:
    """Yield a line through the means of each system, offset horizontally so that intervals do not overlap.

    points: by system
    """
    width = min(MAX_WIDTH, STEP * (len(points) - 1))
    step = width / max(1, len(points) - 1)
    for index, (system, curve) in enumerate(points.items()):
        shift = index * step - width / 2
        ends = [point.interval or (None, None) for point in curve]
        marks = (Mark(p.x + shift, p.mean, low, high) for p, (low, high) in zip(curve, ends, strict=True))
        yield Line(system, tuple(marks))


def _ladder(rows: Sequence[Row], look: Looks) -> Plot | None:
    row_families = families(rows)
    if not row_families:
        return None
    panels = []
    for family in row_families:
        for column in paper.DIFFERENCES:
            title = f"{column.heading}, {num_matched(family)} SCMs"
            panels.append(Panel(title, tuple(_curves(ladder_points(family, column)))))
    rungs = sorted({paper.RUNGS[row.setting][1] for family in row_families for row in family})
    names = tuple((float(rung), RUNG_NAMES[rung].replace(" ", "\n")) for rung in rungs)
    x = Axis("", min(rungs) - MAX_WIDTH / 2, max(rungs) + MAX_WIDTH / 2, names)
    title = "Disclosure ladder"
    caption = (
        "The same latent SCMs with less and less told about them. Points are means over the SCMs that a system has at"
        " all of its rungs, bars 95% bootstrap intervals over them; a row of panels for each set of matched pools."
        " HeldoutWorld is over valid answers only, so a system that rarely answers can look high there."
    )
    svg = panels_svg(panels, x, SHARE, title, look=look, columns=len(paper.DIFFERENCES), size=(320, 260))
    return Plot("ladder", title, caption, svg)


def _train_heldout(rows: Sequence[Row], look: Looks, *, with_paper: bool) -> Plot | None:
    scored = [row for row in rows if row.setting in paper.RUNGS]
    if not scored:
        return None
    panels = []
    for name in (name for k, name in enumerate(RUNG_NAMES) if any(paper.RUNGS[row.setting][1] == k for row in scored)):
        panel_rows = [row for row in scored if RUNG_NAMES[paper.RUNGS[row.setting][1]] == name]
        lines = [Line("", (Mark(0, 0), Mark(1, 1)), kind="reference")]
        if with_paper and (marks := tuple(_paper_marks(panel_rows))):
            lines.append(Line(PAPER, marks, printed=True, kind="points"))
        panels.append(Panel(name, (*lines, *_points_with_intervals(panel_rows))))
    title = "Training against held-out"
    caption = (
        "Each point is a row: how many problems it fits, and on how many of them it also replays every held-out world."
        " Bars are 95% intervals. No answer can be above the dotted line. Rows at one place stand beside each other."
    )
    caption += " In grey, with their names: the rows that the paper prints, on its own pools." if with_paper else ""
    x, y = SHARE._replace(label="TrainExact"), SHARE._replace(label="HeldoutExact")
    svg = panels_svg(panels, x, y, title, look={"": look[PAPER], **look}, columns=2, size=(420, 360))
    return Plot("train-heldout", title, caption, svg)


def _points_with_intervals(rows: Sequence[Row]) -> Iterator[Line]:
    """Yield TrainExact and HeldoutExact of each row as a point with an interval in both directions."""
    pairs = [(row_estimate(row, paper.TRAIN_EXACT), row_estimate(row, paper.HELDOUT_EXACT)) for row in rows]
    points = [(row, train, heldout) for row, (train, heldout) in zip(rows, pairs, strict=True) if train and heldout]
    positions = spread_equal_points([(train.mean, heldout.mean) for _, train, heldout in points])
    for (row, train, heldout), (x, y) in zip(points, positions, strict=True):
        low, high = heldout.interval or (None, None)
        x_low, x_high = train.interval or (None, None)
        yield Line(row.system, (Mark(x, y, low, high, x_low=x_low, x_high=x_high),), kind="points")


def spread_equal_points(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return plot positions: points that are equal to two decimals lie on a small spiral."""
    num_equal: Counter[tuple[float, float]] = Counter()
    positions = []
    for x, y in points:
        key = round(x, 2), round(y, 2)
        radius, angle = SPIRAL * sqrt(num_equal[key]), GOLDEN_ANGLE * num_equal[key]
        num_equal[key] += 1
        positions.append((x + radius * cos(angle), y + radius * sin(angle)))
    return positions


def _paper_marks(rows: Sequence[Row]) -> Iterator[Mark]:
    """Yield marks of the rows that the paper prints for the same setting, with their names."""
    lines = [TableRow((row.setting,), ()) for row in rows[:1]]  # all rows have one setting, by which rows are printed
    printed = list(paper.with_printed_rows("1", lines, ("train_exact", "heldout_exact")))
    if not any(row.source is Source.PAPER for row in printed):  # Hidden-roots has a table of its own
        printed = list(paper.with_printed_rows("3B", lines, ("train_exact", "heldout_exact")))
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
    names = [*(name for name, _ in BINS), LAST_BIN]
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
    sizes = paper.gold_sizes(rows)
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
