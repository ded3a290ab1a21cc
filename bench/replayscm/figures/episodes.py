"""Figures of extended items: bits left by world, and calibration of stated posteriors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log2
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from calibrant.audits.replayscm.extended.items import CalibrationBin, calibration_bins
from calibrant.bench.answers.names import natural
from calibrant.bench.core.attribution import KEY, POSTERIOR
from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, panels_svg
from calibrant.bench.replayscm.episodes import TOP_TRUE, is_episode
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import Plot, ReportContents
from calibrant.bench.report.sources import transcripts
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.records import pool_digest
from calibrant.dsl.replayscm.episode import steps_evidence, task_class
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.experiments.shares import posterior_bits
from calibrant.solvers.replayscm.hidden.mass import count_members
from calibrant.solvers.replayscm.noise.posterior import Posterior

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark


# --- Numbers of the plots of extended items: bits left by world, and how often stated posteriors come true ------------
# a curve of a noisy episode of 10 variables takes a second, of any other a tenth
MAX_ITEMS, MAX_NOISY_ITEMS = 200, 24  # of a system
NUM_DRAWS = 64  # for an entropy under noise: a standard error of a few tenths of a bit, of means over items less


@dataclass(frozen=True)
class LeftPoint:
    """Mean bits left after so many worlds.

    low, high: two standard errors of the mean over items below and above; the mean where there is one item
    """

    worlds: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class LeftCurve:
    """One system's curve over its items.

    points: from the start on, up to its longest episode; a finished episode keeps its last value
    """

    system: str
    num_items: int
    points: tuple[LeftPoint, ...]


def episode_bits(problem: Problem, steps: Sequence[Step[Any]]) -> list[float]:
    """Return the bits that are left after the start and after every world; `BudgetSpent` if they are not computed.

    Without noise the logarithm of the number of SCMs; under noise the posterior entropy, from drawn members.
    """
    posterior = Posterior(task_class(problem.task))
    is_silent = posterior.scm_class.noise.is_silent
    bits = []
    for number, world in enumerate(steps_evidence(steps)):
        posterior = posterior.condition(world)
        if is_silent:
            bits.append(log2(count_members(posterior)))
        else:
            bits.append(max(0.0, posterior_bits(posterior, f"{problem.id}|{number}", NUM_DRAWS).value))
    return bits


def left_curves(episodes: Iterable[tuple[str, Problem, Sequence[Step[Any]]]]) -> list[LeftCurve]:
    """Return a curve for each system, of its first MAX_ITEMS; episodes whose bits are not computed are left out.

    episodes: system, item and steps of each
    """
    by_system: dict[str, list[list[float]]] = {}
    # rows that only infer have greedy's worlds
    memo: dict[str, tuple[Any, list[float]]] = {}
    for system, problem, steps in episodes:
        if not is_episode(problem):
            continue
        curves = by_system.setdefault(system, [])
        is_silent = task_class(problem.task).noise.is_silent
        if len(curves) >= (MAX_ITEMS if is_silent else MAX_NOISY_ITEMS):
            continue
        worlds = steps_evidence(steps)
        if problem.id not in memo or memo[problem.id][0] != worlds:
            try:
                memo[problem.id] = worlds, episode_bits(problem, steps)
            except BudgetSpent:
                continue
        curves.append(memo[problem.id][1])
    return [_curve(system, by_system[system]) for system in sorted(by_system, key=natural) if by_system[system]]


def _curve(system: str, items: Sequence[Sequence[float]]) -> LeftCurve:
    points = []
    for worlds in range(max(map(len, items))):
        values = [bits[min(worlds, len(bits) - 1)] for bits in items]
        mean = fmean(values)
        error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
        points.append(LeftPoint(worlds, mean, max(0.0, mean - 2 * error), mean + 2 * error))
    return LeftCurve(system, len(items), tuple(points))


def posterior_statements(answers: Iterable[Answer]) -> list[tuple[Fraction, bool]]:
    """Return one statement an item: the posterior of its top behaviour, and whether that is gold's.

    Statements of one item are not independent: the first system's by name counts.
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
    return [(Fraction(entry[POSTERIOR]).limit_denominator(10**12), entry[TOP_TRUE] is True) for entry in statements]


def answer_bins(answers: Iterable[Answer]) -> list[CalibrationBin]:
    """Return the calibration of the posteriors that answers were attributed with."""
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


def left_plot(curves: Sequence[LeftCurve]) -> Plot | None:
    """Return the curves of all systems; None without any."""
    if not curves:
        return None
    lines = [
        Line(in_one_line(curve.system), tuple(Mark(p.worlds, p.mean, p.low, p.high) for p in curve.points))
        for curve in curves
    ]
    title = "Bits left by world"
    top = max(point.high for curve in curves for point in curve.points)
    drawing = panels_svg([Panel("", tuple(lines))], Axis("worlds", 0), Axis("bits left", 0, top), title)
    return Plot("bits_left", title, LEFT_CAPTION, drawing, in_page=True)


def calibration_plot(bins: Sequence[CalibrationBin]) -> Plot | None:
    """Return stated against true shares; None without statements."""
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


def episode_plots(of: Benchmark[Any], answers: Sequence[Answer], contents: ReportContents) -> list[Plot]:
    """Return the figures of these answers that there is something for."""
    is_noisy = any(isinstance(score.get(KEY), Mapping) and TOP_TRUE in score[KEY] for _, score in answers)
    plots = [
        left_plot(left_curves(_episodes(of, contents))) if any("worlds" in score for _, score in answers) else None,
        calibration_plot(answer_bins(answers)) if is_noisy else None,
    ]
    return [plot for plot in plots if plot is not None]


def _episodes(of: Benchmark[Any], contents: ReportContents) -> Iterator[tuple[str, Problem, Sequence[Step[Any]]]]:
    """Yield system, item and steps of the episodes whose pools and transcripts are at hand."""
    from calibrant.bench.core.registry import benchmark_of

    pools = [path for path in contents.pools if benchmark_of(path).name == of.name]
    sources = contents.transcripts.get(of.name, ())
    if not pools or not sources:
        return
    items = {
        (digest, item.id): item
        for path in pools
        for digest in [pool_digest(path)]
        for item in of.items.read_pool(path).items
        if is_episode(item)
    }
    for transcript in transcripts(sources, pools, contents.fields):
        item = items.get((transcript.context.pool_digest, transcript.context.instance))
        if item is not None and transcript.steps:
            yield transcript.context.system, item, transcript.steps
