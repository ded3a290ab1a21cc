"""Extended blickets: episodes at a detector, answered by a rule and its objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.answers.measures import Measures
from bench.benchmarks.base import Benchmark, EpisodeHandout
from bench.protocols.registry import Protocols
from dsl.blickets.episode import BlicketEpisode
from dsl.blickets.item import BlicketItem
from dsl.episode import Step
from dsl.item import Pool


class Blickets(Benchmark[BlicketItem]):
    name = "blickets"
    title = "Extended blickets"
    settings = ("conjunctive", "disjunctive", "moderator", "order", "stochastic", "noisy-moderator")

    @cached_property
    def protocols(self) -> Protocols:
        from bench.protocols.blickets.rows import ROWS

        return {protocol.name: protocol for protocol in ROWS}

    @property
    def measures(self) -> Measures:
        from bench.answers.blickets import MEASURES

        return MEASURES

    def read_pool(self, path: Path) -> Pool[BlicketItem]:
        from dsl.blickets.records import read_pool

        return read_pool(path)

    def handout(self, item: BlicketItem) -> EpisodeHandout:
        return EpisodeHandout(item, BlicketEpisode)

    def no_answer(self, item: BlicketItem) -> dict[str, Any]:
        return {}

    def score(self, item: BlicketItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Of an answer without a transcript: submitted before anything was done."""
        from dsl.blickets.grading import grade

        return grade(item, self._transcript(item, answer, steps)).as_json(item.task.objects)

    def attribution(
        self, item: BlicketItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any]:
        from audits.blickets.attribution import attributed_episode
        from bench.answers.attribution import attribution_record

        found = attributed_episode(item, self._transcript(item, answer, steps))
        times = {"decided_at": found.decided_at, "submitted_at": found.submitted_at}
        return attribution_record(found.attribution) | times

    @staticmethod
    def _transcript(item: BlicketItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> Sequence[Step[Any]]:
        if steps:
            return steps
        episode = BlicketEpisode(item)
        if answer:
            episode.act({"check": dict(answer)})
        return episode.steps


BENCHMARK = Blickets()
