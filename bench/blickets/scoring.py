"""Answers of extended blickets: how they are read, scored and attributed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from calibrant.bench.blickets.verdict import BlicketVerdict
from calibrant.bench.core.attribution import attribution_record
from calibrant.bench.core.scoring import Scorable
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import BlicketItem, condition_of
from calibrant.dsl.blickets.replies import answer_of
from calibrant.dsl.blickets.rule import rule_from_json
from calibrant.dsl.blickets.score import grade
from calibrant.dsl.episode import Step


class BlicketScoring(Scorable[BlicketItem]):
    """Implements Scorable (bench.core.scoring)."""

    @property
    def verdict_record(self) -> type[msgspec.Struct]:
        return BlicketVerdict

    def no_answer(self, item: BlicketItem) -> dict[str, Any]:
        return {}

    def score(self, item: BlicketItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Score an answer without a transcript, as submitted before any move."""
        return grade(item, _transcript(item, answer, steps)).as_json(item.task.objects)

    def extract(self, item: BlicketItem, response: str | Mapping[str, Any]) -> dict[str, Any]:
        return answer_of(response, item.task.objects)

    def same_answer(self, item: BlicketItem, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
        objects = item.task.objects
        return rule_from_json(first, objects) == rule_from_json(second, objects)


SCORING = BlicketScoring()


def attribute(
    item: BlicketItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return None for a mechanism that no condition has: there is no class that knows it."""
    from calibrant.audits.blickets.attribution import attribute_episode

    if condition_of(item.sealed) is None:
        return None
    result = attribute_episode(item, _transcript(item, answer, steps))
    times = {"decided_at": result.decided_at, "submitted_at": result.submitted_at}
    return attribution_record(result.attribution) | times


def _transcript(item: BlicketItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> Sequence[Step[Any]]:
    """Return the steps; of an answer without any, those of an episode that only submits it."""
    if steps:
        return steps
    episode = BlicketEpisode(item)
    if answer:
        episode.act({"check": dict(answer)})
    return episode.steps
