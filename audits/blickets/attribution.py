"""Episodes attributed: whether the answer was earned, and when the readings had decided it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from audits.attribution import Attribution, attributed
from dsl.blickets.grading import grade
from dsl.blickets.item import BlicketItem, Task
from dsl.blickets.readings import followed
from dsl.episode import Step
from solvers.blickets.families import DetectorSpace, after_step, class_of


@dataclass(frozen=True, slots=True)
class EpisodeAttribution:
    """attribution: of the answer, from what all readings left
    decided_at: number of moves after which one answer was first left; None if there never was one. A switch may have
        opened it again.
    submitted_at: number of moves before the submission; None without one
    """

    attribution: Attribution
    decided_at: int | None
    submitted_at: int | None


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What one step did to a space.

    placed: object numbers on the detector after the step, first placed first; moves: up to and with it
    before, after: the members; the same where nothing was read, unless a rule may switch by moves
    """

    step: Step[str]
    placed: tuple[int, ...]
    moves: int
    before: DetectorSpace
    after: DetectorSpace


def narrowed(task: Task, steps: Iterable[Step[str]], space: DetectorSpace) -> Iterator[Narrowing]:
    """Every step with the space before and after it."""
    moves = 0
    for placed, step in followed(task, steps):
        moves += step.cost
        before, space = space, after_step(space, placed, step)
        yield Narrowing(step, placed, moves, before, space)


def attributed_episode(
    item: BlicketItem, steps: Sequence[Step[str]], space: DetectorSpace | None = None
) -> EpisodeAttribution:
    """The attribution of an episode; `TranscriptError` if the item does not answer so.

    space: the class, before any reading; by default the one that knows the item's condition (`class_of`). What a
    system that is not told of switches, order or noise could have concluded is a question about another class:
    `StaticSpace.full`.
    """
    found = grade(item, steps)
    space = class_of(item) if space is None else space
    decided_at = None
    for one in narrowed(item.task, steps, space):
        space = one.after
        if decided_at is None and one.step.reading is not None and len(space.verdicts()) == 1:
            decided_at = one.moves
    answer = None if found.answer is None else found.answer.canonical
    attribution = attributed(space, answer, correct=bool(found.correct))
    return EpisodeAttribution(attribution, decided_at, None if answer is None else found.steps)
