"""The public text game's question runs, attributed: what the explorer's readings decided, and what was answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from calibrant.audits.attribution import Attribution, FourCounts, Kind, four_counts
from calibrant.audits.blickets.attribution import EpisodeAttribution
from calibrant.audits.finding import Finding, Standing
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE
from calibrant.dsl.blickets.text_game import TextRun
from calibrant.dsl.episode import Step
from calibrant.solvers.blickets.static import StaticSpace


@dataclass(frozen=True, slots=True)
class PublicRuns:
    """counts: by setting, such as "4 objects, conjunctive"
    runs, truth_kept: how many, and in how many the truth gives every reading
    """

    counts: Mapping[str, FourCounts]
    runs: int
    truth_kept: int

    def findings(self) -> list[Finding]:
        """One for the truth, one for each setting."""
        kept = Standing.PROVED if self.truth_kept == self.runs else Standing.REFUTED
        found = [
            Finding(
                "consistent",
                kept,
                "all runs",
                f"the stated rule gives every reading in {self.truth_kept} of {self.runs} runs",
                {"runs": self.runs, "truth_kept": self.truth_kept},
            )
        ]
        for setting, counts in sorted(self.counts.items()):
            decided, missed = counts.earned + counts.missed, counts.missed
            claim = f"{missed} of {decided} runs whose readings decide the blickets were answered wrong"
            figures = {"earned": counts.earned, "missed": missed, "lucky": counts.lucky, "short": counts.short}
            found.append(Finding("missed", Standing.PROVED if missed else Standing.REFUTED, setting, claim, figures))
        return found


def attributed_runs(runs: Iterable[TextRun]) -> PublicRuns:
    """Counts by setting; `decided` is for the class conjunctive or disjunctive over any set.

    The question is which objects are blickets, so rules of the same set give the same answer.
    """
    kinds: dict[str, list[Kind]] = defaultdict(list)
    kept = 0
    for run in runs:
        space = _last(run)
        kept += space.fits(run.rule)
        kinds[run.setting].append(_attribution(run, space).kind)
    total = sum(len(some) for some in kinds.values())
    return PublicRuns({setting: four_counts(some) for setting, some in kinds.items()}, total, kept)


def attributed_run(run: TextRun) -> EpisodeAttribution:
    """One run's attribution, as `attributed_runs` counts it; submitted after the last move."""
    moves, decided_at = 0, None
    for step, space in _spaces(run):
        moves += step.cost
        if decided_at is None and len(_sets(space)) == 1:
            decided_at = moves
    return EpisodeAttribution(_attribution(run, _last(run)), decided_at, moves)


def _spaces(run: TextRun) -> Iterator[tuple[Step[str], StaticSpace]]:
    """Every step with the space after it."""
    space = StaticSpace.full(len(run.objects))
    readings = run.readings()
    for step in run.steps:
        if not step.refused:
            placed, active = next(readings)
            space = space.after(placed, ACTIVE if active else INACTIVE)
        yield step, space


def _last(run: TextRun) -> StaticSpace:
    return [space for _, space in _spaces(run)][-1]


def _sets(space: StaticSpace) -> set[int]:
    return {rule.blickets for rule in space.verdicts()}


def _attribution(run: TextRun, space: StaticSpace) -> Attribution:
    return Attribution(len(_sets(space)) == 1, run.right, None, space.count, space.in_words)
