"""Figures of extended items in a report: bits left by world, calibration of posteriors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from calibrant.bench.core.attribution import KEY
from calibrant.bench.replayscm.episodes import TOP_TRUE, is_episode
from calibrant.bench.replayscm.extended.curves import answer_bins, left_curves
from calibrant.bench.replayscm.figures.episodes import calibration_plot, left_plot
from calibrant.bench.report.answers.transcripts import transcripts
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import Plot, ReportContents
from calibrant.dsl.episode import Step
from calibrant.dsl.records import pool_digest
from calibrant.dsl.replayscm.item import Problem

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark


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
