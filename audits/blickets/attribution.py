"""Attribution of episodes: whether the answer was earned, and after which move the readings decided it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from calibrant.audits.attribution import Attribution, attribute_answer, is_decided
from calibrant.dsl.blickets.episode import steps_with_state
from calibrant.dsl.blickets.item import BlicketItem, Task
from calibrant.dsl.blickets.score import grade
from calibrant.dsl.episode import Step
from calibrant.solvers.blickets.exact import DetectorSpace, after_step, class_of


@dataclass(frozen=True, slots=True)
class EpisodeAttribution:
    """Attribution of an episode's answer, and when the evidence first decided it.

    attribution: of the answer, from what all readings left
    decided_at: number of moves after which the answer was first decided; None if it never was. A switch or noise may
        have opened it again.
    submitted_at: number of moves before the submission; None without one
    """

    attribution: Attribution
    decided_at: int | None
    submitted_at: int | None


@dataclass(frozen=True, slots=True)
class Narrowing:
    """One step and the space before and after it.

    placed: object numbers on the detector after the step, first placed first; moves: up to and with it
    before, after: the members; the same where nothing was read, unless a rule may switch by moves
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
    """Return the posterior of the most probable answer, of a detector that is not reliable; None of others."""
    return max(space.posterior().values(), default=0.0) if item.sealed.p < 1 else None


def attribute_episode(
    item: BlicketItem, steps: Sequence[Step[str]], space: DetectorSpace | None = None
) -> EpisodeAttribution:
    """Return the attribution of an episode; `TranscriptError` if the item does not answer so.

    space: the class, before any reading; by default the one that knows the item's condition (`class_of`). What a
    system that is not told of switches, order or noise could have concluded is a question about another class:
    `StaticSpace.full`.
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
    return EpisodeAttribution(attribution, decided_at, None if answer is None else result.steps)
