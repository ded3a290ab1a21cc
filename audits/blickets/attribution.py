"""Attribution of episodes and of the public text game's runs: whether an answer was earned.

Earned: decided by the evidence and right; missed: decided, wrong; lucky: undecided, right; short: undecided, wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from calibrant.audits.attribution import Attribution, FourCounts, Kind, attribute_answer, four_counts, is_decided
from calibrant.audits.claims import ClaimStatus, Finding
from calibrant.dsl.blickets.episode import steps_with_state
from calibrant.dsl.blickets.item import BlicketItem, Task
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE
from calibrant.dsl.blickets.replies import TextRun
from calibrant.dsl.blickets.score import grade
from calibrant.dsl.episode import Step
from calibrant.solvers.blickets.exact import DetectorSpace, after_step, class_of
from calibrant.solvers.blickets.space import StaticSpace

# --- Attribution of episodes: whether the answer was earned, and after which move the readings decided it -------------


@dataclass(frozen=True, slots=True)
class EpisodeAttribution:
    """Attribution of an episode's answer, and when the evidence first decided it.

    attribution: of the answer, given the detectors consistent with all readings
    decided_at: number of moves after which the answer was first decided (a switch or noise may have undone that); None
        if it never was
    submitted_at: number of moves before the submission; None without one
    """

    attribution: Attribution
    decided_at: int | None
    submitted_at: int | None


@dataclass(frozen=True, slots=True)
class Narrowing:
    """One step and the space before and after it.

    placed: object numbers on the detector after the step, first placed first
    moves: number of moves so far, this step included
    before, after: consistent detectors; equal if the step has no reading, unless a rule may switch by moves
    """

    step: Step[str]
    placed: tuple[int, ...]
    moves: int
    before: DetectorSpace
    after: DetectorSpace


def trace_narrowing(task: Task, steps: Iterable[Step[str]], space: DetectorSpace) -> Iterator[Narrowing]:
    """Yield every step with the space before and after it."""
    moves = 0
    for placed, step in steps_with_state(task, steps):
        moves += step.cost
        before, space = space, after_step(space, placed, step)
        yield Narrowing(step, placed, moves, before, space)


def best_posterior(item: BlicketItem, space: DetectorSpace) -> float | None:
    """Return the posterior of the most probable answer; None for a detector without noise (p = 1)."""
    return max(space.posterior().values(), default=0.0) if item.sealed.p < 1 else None


def attribute_episode(
    item: BlicketItem, steps: Sequence[Step[str]], space: DetectorSpace | None = None
) -> EpisodeAttribution:
    """Return the attribution of an episode; `TranscriptError` if the item gives other readings.

    space: consistent detectors before any reading, by default those of the item's condition (`class_of`). For a system
        that does not expect switches, order or noise, pass `StaticSpace.full`.
    """
    result = grade(item, steps)
    space = class_of(item) if space is None else space
    decided_at = None
    for narrowing in trace_narrowing(item.task, steps, space):
        space = narrowing.after
        if decided_at is None and narrowing.step.reading is not None:
            decided_at = narrowing.moves if is_decided(len(space.verdicts()), best_posterior(item, space)) else None
    answer = None if result.answer is None else result.answer.canonical
    posterior = best_posterior(item, space)
    attribution = attribute_answer(space, answer, correct=bool(result.correct), posterior=posterior)
    return EpisodeAttribution(attribution, decided_at, None if answer is None else result.steps)  # `steps`: moves


# --- Attribution of the public text game's question runs: answers beside what the explorer's readings decided ---------


@dataclass(frozen=True, slots=True)
class PublicRuns:
    """Statistics of published runs.

    counts: by setting, such as "4 objects, conjunctive"
    runs: number of runs; truth_kept: number of runs whose true rule gives every reading
    """

    counts: Mapping[str, FourCounts]
    runs: int
    truth_kept: int

    def findings(self) -> list[Finding]:
        """Return one finding on the true rules, and one for each setting."""
        status = ClaimStatus.PROVED if self.truth_kept == self.runs else ClaimStatus.REFUTED
        findings = [
            Finding(
                "consistent",
                status,
                "all runs",
                f"the true rule gives every reading in {self.truth_kept} of {self.runs} runs",
                {"runs": self.runs, "truth_kept": self.truth_kept},
            )
        ]
        for setting, counts in sorted(self.counts.items()):
            decided, missed = counts.earned + counts.missed, counts.missed
            claim = f"{missed} of {decided} runs whose readings decide the blickets were answered wrong"
            figures = {"earned": counts.earned, "missed": missed, "lucky": counts.lucky, "short": counts.short}
            status = ClaimStatus.PROVED if missed else ClaimStatus.REFUTED  # REFUTED: no decided run was answered wrong
            findings.append(Finding("missed", status, setting, claim, figures))
        return findings


def attribute_runs(runs: Iterable[TextRun]) -> PublicRuns:
    """Count attributions by setting; hypotheses: one fixed rule, conjunctive or disjunctive over any set of objects.

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
    """Return one run's attribution, as `attribute_runs` counts it; runs submit after their last move."""
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
    decided = len(_blicket_sets(space)) == 1
    return Attribution(decided, run.right, fits=None, members=space.count, in_words=space.in_words)
