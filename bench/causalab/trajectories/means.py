"""Means over runs by step: what `calibrant table --trajectory` prints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import exp, fsum, log
from typing import Any, NamedTuple

from calibrant.audits.causalab.attribution import Moment, trajectory
from calibrant.bench.report.answers.transcripts import Transcript
from calibrant.bench.report.rows import differing_names, option_suffix
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.episode import verify_transcript
from calibrant.solvers.budget import BudgetSpent

HEADINGS = (
    "Setting", "System", "Step", "n", "Going on", "Left", "F1", "Root F1", "Weight F1", "Fits", "Contradicted",
)  # fmt: skip


class StepMeans(NamedTuple):
    """Means over the runs of a system on a suite after a step; a run that has ended counts with its last moment.

    going_on: runs that have this step; members: geometric mean; fits, contradicted: shares of the runs
    """

    setting: str
    system: str
    step: int
    n: int
    going_on: int
    members: float
    edge_f1: float
    root_f1: float
    weight_f1: float
    fits: float
    contradicted: float

    def cells(self) -> list[str]:
        figures = (self.edge_f1, self.root_f1, self.weight_f1, self.fits, self.contradicted)
        counts = [self.setting, self.system, str(self.step), str(self.n), str(self.going_on), f"{self.members:.4g}"]
        return [*counts, *(f"{figure:.3f}" for figure in figures)]


class TrajectoryTable(NamedTuple):
    """rows: by suite, system and step; num_uncounted: runs whose mechanisms are not counted, and which are left out."""

    rows: Sequence[StepMeans]
    num_uncounted: int

    @property
    def headings(self) -> Sequence[str]:
        return HEADINGS

    def to_dict(self) -> dict[str, Any]:
        return {"rows": [row._asdict() for row in self.rows], "uncounted": self.num_uncounted}


def mean_trajectories(transcripts: Iterable[Transcript], items: Mapping[tuple[str, str], LabItem]) -> TrajectoryTable:
    """Return the means of replayed runs; items: by digest of the pool and id; runs on others are passed over."""
    courses: defaultdict[tuple[str, str, str], list[Sequence[Moment]]] = defaultdict(list)
    configurations: defaultdict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    num_uncounted = 0
    for context, steps in transcripts:
        item = items.get((context.pool_digest, context.instance))
        if item is None:
            continue
        verify_transcript(LabEpisode(item), steps)
        try:
            moments = trajectory(item, steps).moments
        except BudgetSpent:
            num_uncounted += 1
            continue
        if moments:
            options = context.options
            configurations[context.system][options] = context.config
            courses[context.setting, context.system, options].append(moments)
    rows: list[StepMeans] = []
    for setting, system, options in sorted(courses):
        stated = configurations[system]
        suffix = option_suffix(stated[options], differing_names(list(stated.values())))
        rows += _step_means(setting, system + suffix, courses[setting, system, options])
    return TrajectoryTable(rows, num_uncounted)


def _step_means(setting: str, system: str, courses: Sequence[Sequence[Moment]]) -> Iterable[StepMeans]:
    for step in range(max(map(len, courses))):
        moments = [course[min(step, len(course) - 1)] for course in courses]
        number = len(moments)
        yield StepMeans(
            setting,
            system,
            step + 1,
            number,
            sum(step < len(course) for course in courses),
            exp(fsum(log(max(1, moment.members)) for moment in moments) / number),
            fsum(moment.score.all_edge.f1 for moment in moments) / number,
            fsum(moment.score.root.f1 for moment in moments) / number,
            fsum(moment.score.freq_weight.f1 for moment in moments) / number,
            sum(moment.equation_fits for moment in moments) / number,
            sum(moment.contradicted for moment in moments) / number,
        )
