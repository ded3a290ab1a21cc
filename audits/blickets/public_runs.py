"""Attribution of the public text game's question runs: answers beside what the explorer's readings decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from calibrant.audits.attribution import Attribution, FourCounts, Kind, four_counts
from calibrant.audits.blickets.attribution import EpisodeAttribution
from calibrant.audits.claims import ClaimStatus, Finding
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE
from calibrant.dsl.blickets.text_game import TextRun
from calibrant.dsl.episode import Step
from calibrant.solvers.blickets.space import StaticSpace


@dataclass(frozen=True, slots=True)
class PublicRuns:
    """Statistics of published runs.

    counts: by setting, such as "4 objects, conjunctive"
    runs, truth_kept: how many, and in how many the truth gives every reading
    """

    counts: Mapping[str, FourCounts]
    runs: int
    truth_kept: int

    def findings(self) -> list[Finding]:
        """Return one for the truth, one for each setting."""
        status = ClaimStatus.PROVED if self.truth_kept == self.runs else ClaimStatus.REFUTED
        findings = [
            Finding(
                "consistent",
                status,
                "all runs",
                f"the stated rule gives every reading in {self.truth_kept} of {self.runs} runs",
                {"runs": self.runs, "truth_kept": self.truth_kept},
            )
        ]
        for setting, counts in sorted(self.counts.items()):
            decided, missed = counts.earned + counts.missed, counts.missed
            claim = f"{missed} of {decided} runs whose readings decide the blickets were answered wrong"
            figures = {"earned": counts.earned, "missed": missed, "lucky": counts.lucky, "short": counts.short}
            findings.append(
                Finding("missed", ClaimStatus.PROVED if missed else ClaimStatus.REFUTED, setting, claim, figures)
            )
        return findings


def attribute_runs(runs: Iterable[TextRun]) -> PublicRuns:
    """Return counts by setting; `decided` is for the class conjunctive or disjunctive over any set.

    The question is which objects are blickets, so rules of the same set give the same answer.
    """
    kinds: dict[str, list[Kind]] = defaultdict(list)
    truth_kept = 0
    for run in runs:
        space = _last_space(run)
        truth_kept += space.fits(run.rule)
        kinds[run.setting].append(_attribution(run, space).kind)
    total = sum(len(group) for group in kinds.values())
    return PublicRuns({setting: four_counts(group) for setting, group in kinds.items()}, total, truth_kept)


def attribute_run(run: TextRun) -> EpisodeAttribution:
    """Return one run's attribution, as `attribute_runs` counts it; submitted after the last move."""
    moves, decided_at = 0, None
    for step, space in _spaces_by_step(run):
        moves += step.cost
        if decided_at is None and len(_blicket_sets(space)) == 1:
            decided_at = moves
    return EpisodeAttribution(_attribution(run, _last_space(run)), decided_at, moves)


def _spaces_by_step(run: TextRun) -> Iterator[tuple[Step[str], StaticSpace]]:
    """Yield every step with the space after it."""
    space = StaticSpace.full(len(run.objects))
    readings = run.readings()
    for step in run.steps:
        if not step.refused:
            placed, active = next(readings)
            space = space.after(placed, ACTIVE if active else INACTIVE)
        yield step, space


def _last_space(run: TextRun) -> StaticSpace:
    return [space for _, space in _spaces_by_step(run)][-1]


def _blicket_sets(space: StaticSpace) -> set[int]:
    return {rule.blickets for rule in space.verdicts()}


def _attribution(run: TextRun, space: StaticSpace) -> Attribution:
    return Attribution(len(_blicket_sets(space)) == 1, run.right, None, space.count, space.in_words)
