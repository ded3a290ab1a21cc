"""Episodes attributed: whether the answer was earned, and when the readings had decided it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from audits.attribution import Attribution, attributed
from dsl.blickets.grading import grade
from dsl.blickets.item import BlicketItem
from dsl.blickets.readings import followed
from dsl.episode import Step
from solvers.blickets.families import DetectorSpace, knowing_space


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


def attributed_episode(
    item: BlicketItem, steps: Sequence[Step[str]], space: DetectorSpace | None = None
) -> EpisodeAttribution:
    """The attribution of an episode; `TranscriptError` if the item does not answer so.

    space: the class, before any reading; by default the one that knows the item's condition. What a system that is
    not told of switches, order or noise could have concluded is a question about another class: `StaticSpace.full`.
    """
    found = grade(item, steps)
    space = knowing_space(item.task, item.condition) if space is None else space
    moves, decided_at = 0, None
    for placed, step in followed(item.task, steps):
        moves += step.cost
        if step.reading is None:
            continue
        space = space.after(placed, step.reading)
        if decided_at is None and len(space.verdicts()) == 1:
            decided_at = moves
    answer = None if found.answer is None else found.answer.canonical
    attribution = attributed(space, answer, correct=bool(found.correct))
    return EpisodeAttribution(attribution, decided_at, None if answer is None else found.steps)
