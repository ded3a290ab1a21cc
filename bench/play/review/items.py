"""One ended item of a participant beside the ideal learner: what the answer was worth, what the evidence left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from calibrant.bench.core.attribution import KEY
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import WORDS
from calibrant.bench.pages.capabilities import EPISODE_VIEWS, REVEALED_VIEWS, TIMELINES
from calibrant.bench.pages.timeline import Timeline
from calibrant.bench.report.overview.contract import GUIDE, Explanation, Levels
from calibrant.bench.report.people.remaining import Remaining, RemainingLists
from calibrant.bench.report.scored_answers import context_of
from calibrant.bench.runs.records import Record
from calibrant.bench.runs.workers import ExactEpisode
from calibrant.bench.scoring.scorer import steps_of
from calibrant.dsl.episode import Step

IDEAL = "the ideal learner"


@dataclass(frozen=True)
class ReviewedItem:
    """One ended item. It is computed from the record alone; what is sealed is part of it.

    item: under its public id for participants, under the pool's own for those who run the study
    record: of the participant
    ideal: episode of the ideal learner, None of a question
    attribution: what the evidence had decided; empty where it is not counted
    """

    benchmark: Benchmark[Any]
    item: Any
    record: Record
    ideal: ExactEpisode | None
    attribution: Mapping[str, Any]

    @property
    def steps(self) -> Sequence[Step[Any]]:
        """The participant's steps; none of a question."""
        return () if self.record.steps is msgspec.UNSET else steps_of(self.record.steps)

    @property
    def is_right(self) -> bool | None:
        """Whether the answer is right; None where nothing is held out."""
        return self.benchmark.metrics.success.judge(self.record.score, self.record.setting)

    @property
    def kind(self) -> str:
        """Earned, lucky, short or missed; empty where it is not counted."""
        return str(self.attribution.get("kind", ""))

    @property
    def moves(self) -> int | None:
        return None if self.record.steps is msgspec.UNSET else sum(step.cost for step in self.steps)

    @property
    def ideal_moves(self) -> int | None:
        return None if self.ideal is None else self.ideal.num_moves

    def row(self) -> dict[str, Any]:
        """Return a line of the table, ready for JSON."""
        return {
            "item": self.item.id,
            "kind": self.benchmark.require(WORDS).kind[0].capitalize(),
            "right": self.is_right,
            "class": self.kind,
            "left": str(self.attribution.get("members", "")),
            "moves": self.moves,
            "ideal": self.ideal_moves,
        }

    @property
    def levels(self) -> Levels:
        """Chances of being right with the same evidence."""
        guide = self.benchmark.capability(GUIDE)
        return Levels() if guide is None else guide.levels(self.item, self.steps, self._score)

    @property
    def explanation(self) -> Explanation | None:
        """The answer in words, beside gold; None where the benchmark has no words for it."""
        guide = self.benchmark.capability(GUIDE)
        if guide is None:
            return None
        explained: Explanation = guide.explain(
            self.item, context_of(self.record), self.record.answer, self.steps, self._score
        )
        return explained

    @property
    def remaining(self) -> Remaining | None:
        """Hypotheses that were open when it was answered; None where they are not counted."""
        return RemainingLists(self.benchmark).get(self.record.pool_digest, self.item, self.steps)

    @property
    def _score(self) -> dict[str, Any]:
        return {**self.record.score, KEY: dict(self.attribution)} if self.attribution else dict(self.record.score)

    def timelines(self, name: str) -> list[Timeline]:
        """Return the participant's episode and the ideal learner's, step by step; none of a question."""
        make = self.benchmark.capability(TIMELINES)
        if make is None or self.ideal is None:
            return []
        return [make(self.item, self.steps, name), make(self.item, self.ideal.steps, IDEAL)]

    def texts(self, name: str) -> list[tuple[str, str]]:
        """Return both episodes as text, each with its title, where there are no timelines; none of a question."""
        views = self.benchmark.capability(REVEALED_VIEWS) or self.benchmark.capability(EPISODE_VIEWS)
        if views is None or self.ideal is None:
            return []
        return [
            (title, views.text(self.item, steps, title))
            for title, steps in ((name, self.steps), (IDEAL, self.ideal.steps))
        ]
