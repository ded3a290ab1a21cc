"""Extended blickets: episodes at a detector, answered by a rule and its objects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from calibrant.bench.core.benchmark import Benchmark, EpisodeHandout
from calibrant.bench.core.capabilities import EXPLANATIONS, FINDINGS, Providers
from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.core.statistics import PoolStatistic
from calibrant.bench.episodes import sole_action
from calibrant.bench.pages.timeline import Timeline
from calibrant.bench.pools.capabilities import AUDIT, CHECK, GENERATE, VERIFY
from calibrant.bench.protocols.registry import Protocols
from calibrant.bench.report.overview.contract import GUIDE
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import ReportContents, Section
from calibrant.bench.runs.jobs import Progress
from calibrant.dsl.action import Action
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.episode import Episode, Step
from calibrant.dsl.item import Pool

if TYPE_CHECKING:
    from calibrant.bench.blickets.solve import BlicketVerbs
    from calibrant.bench.blickets.training import BlicketTraining


class Blickets(Benchmark[BlicketItem]):
    name = "blickets"
    title = "Extended blickets"
    settings = ("conjunctive", "disjunctive", "moderator", "order", "stochastic", "noisy-moderator")
    demo_protocols = ("static", "switch-aware", "quiet")
    bundled = ("blickets",)
    provides: ClassVar[Providers] = {
        AUDIT: "audit:AUDIT",
        CHECK: "audit:CHECK",
        EXPLANATIONS: "why.explainer:EXPLANATIONS",
        FINDINGS: "audit:FINDINGS",
        GENERATE: "generate:GENERATE",
        GUIDE: "guide:GUIDE",
        VERIFY: "audit:AUDIT",
    }
    public_fields = (
        "id",
        "n",
        "objects",
        "budget",
        "condition",  # of an informed item
        "count",
        "order_reading",
        "informed",
        "graded",
        "start",
    )
    transcripts = True
    reports_read_pools = True  # episodes of a page

    @cached_property
    def protocols(self) -> Protocols:
        from calibrant.bench.blickets.protocols import ROWS

        return {protocol.name: protocol for protocol in ROWS}

    @property
    def measures(self) -> MetricSet:
        from calibrant.bench.blickets.verdict import METRICS

        return METRICS

    @cached_property
    def verbs(self) -> BlicketVerbs:
        from calibrant.bench.blickets.solve import BlicketVerbs

        return BlicketVerbs(self, BlicketItem)

    @property
    def training(self) -> BlicketTraining:
        from calibrant.bench.blickets.training import TRAINING

        return TRAINING

    def read_pool(self, path: Path) -> Pool[BlicketItem]:
        from calibrant.dsl.blickets.records import read_pool

        return read_pool(path)

    def handout(self, item: BlicketItem) -> EpisodeHandout:
        return EpisodeHandout(item, BlicketEpisode)

    def no_answer(self, item: BlicketItem) -> dict[str, Any]:
        return {}

    def score(self, item: BlicketItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Score an answer without a transcript, as submitted before any move."""
        from calibrant.dsl.blickets.grading import grade

        return grade(item, self._transcript(item, answer, steps)).as_json(item.task.objects)

    def attribution(
        self, item: BlicketItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """None for a mechanism that no condition has: there is no class that knows it."""
        from calibrant.audits.blickets.attribution import attribute_episode
        from calibrant.bench.core.attribution import attribution_record
        from calibrant.dsl.blickets.conditions import condition_of

        if condition_of(item.sealed) is None:
            return None

        result = attribute_episode(item, self._transcript(item, answer, steps))
        times = {"decided_at": result.decided_at, "submitted_at": result.submitted_at}
        return attribution_record(result.attribution) | times

    @property
    def report_tables(self) -> Sequence[str]:
        from calibrant.bench.blickets.views import TABLE_IDS

        return TABLE_IDS

    def report(self, answers: Sequence[Answer], wanted: ReportContents, progress: Progress) -> Section:
        from calibrant.bench.blickets.section import blicket_section
        from calibrant.bench.core.registry import benchmark_of
        from calibrant.bench.report.episodes import chosen_episodes
        from calibrant.dsl.pool_text import file_digest

        pools = [path for path in wanted.pools if benchmark_of(path).name == self.name]
        items = {(file_digest(path), item.id): item for path in pools for item in self.read_pool(path).items}
        part = blicket_section(self.title, answers, wanted, items)
        return replace(part, episodes=tuple(chosen_episodes(self, answers, wanted, items)))

    def prompt(self, item: BlicketItem) -> str:
        from calibrant.dsl.blickets.prompt import instructions

        return instructions(item.task)

    def record(self, item: BlicketItem) -> dict[str, Any]:
        from calibrant.dsl.blickets.records import record_from_item

        return dict(msgspec.to_builtins(record_from_item(item)))

    def shown_record(self, item: BlicketItem) -> dict[str, Any]:
        fields = super().shown_record(item)
        if item.task.condition is None:
            del fields["condition"]
        return fields

    def item_of_record(self, record: Mapping[str, Any]) -> BlicketItem:
        from calibrant.dsl.blickets.records import ItemRecord, item_from_record
        from calibrant.dsl.records import convert_object

        return item_from_record(convert_object(record, ItemRecord))

    def write_native(self, pool: Pool[BlicketItem], path: Path) -> None:
        from calibrant.dsl.blickets.records import write_pool

        write_pool(path, pool.name, pool.items, dict(pool.metadata))

    def episode(self, item: BlicketItem) -> BlicketEpisode:
        return BlicketEpisode(item)

    def handing_in(self, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> Sequence[Action]:
        return ({"check": dict(answer)},)

    def extract(self, item: BlicketItem, response: str | Mapping[str, Any]) -> dict[str, Any]:
        from calibrant.dsl.blickets.response import answer_of

        return answer_of(response, item.task.objects)

    def reply_action(self, item: BlicketItem, text: str) -> Action:
        from calibrant.dsl.blickets.wording import stated_action

        action = stated_action(text, item.task.objects)
        if action is not None:
            return action
        stated = sole_action(text)
        return stated_action(json.dumps(stated), item.task.objects) or stated

    def same_answer(self, item: BlicketItem, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        from calibrant.dsl.blickets.rule import rule_from_json

        objects = item.task.objects
        return rule_from_json(one, objects) == rule_from_json(other, objects)

    def parse_trace(self, item: BlicketItem, line: Mapping[str, Any]) -> Sequence[Step[Any]]:
        from calibrant.dsl.blickets.trace import checked_steps, trace_from_object

        return checked_steps(trace_from_object(line), item)

    def scored_log(self, path: Path) -> Iterator[Answer]:
        """Score the public text game's question runs."""
        from calibrant.bench.blickets.logs import scored_runs

        return scored_runs(path)

    @property
    def pool_records(self) -> tuple[type[msgspec.Struct], ...]:
        from calibrant.dsl.blickets.records import ItemRecord
        from calibrant.dsl.records import Header

        return Header, ItemRecord

    @property
    def verdict_record(self) -> type[msgspec.Struct]:
        from calibrant.bench.blickets.verdict import BlicketVerdict

        return BlicketVerdict

    def describe_step(self, episode: Episode[Any, Any], step: Step[Any]) -> str:
        from calibrant.dsl.blickets.prompt import observation

        assert isinstance(episode, BlicketEpisode)
        return observation(step, [episode.task.objects[index] for index in episode.placed], episode.left)

    def timeline(self, item: BlicketItem, steps: Sequence[Step[Any]], system: str) -> Timeline:
        from calibrant.bench.blickets.timeline import blicket_timeline

        return blicket_timeline(item, steps, system)

    @property
    def figures(self) -> Mapping[str, PoolStatistic[BlicketItem]]:
        from calibrant.bench.blickets.statistics import COLUMNS

        return COLUMNS

    @property
    def suites(self) -> Sequence[str]:
        from calibrant.dsl.blickets.sampling import SUITES

        return tuple(SUITES)

    def drawn(self, suites: Sequence[str], seed: int, count: int) -> Sequence[BlicketItem]:
        from calibrant.dsl.blickets.sampling import SUITES, sample_items

        return tuple(
            replace(item, id=f"{name}-{seed}-{place}", labels={**item.labels, "stratum": name})
            for name in suites
            for place, item in enumerate(islice(sample_items(SUITES[name], seed), count))
        )

    @staticmethod
    def _transcript(item: BlicketItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> Sequence[Step[Any]]:
        if steps:
            return steps
        episode = BlicketEpisode(item)
        if answer:
            episode.act({"check": dict(answer)})
        return episode.steps


BENCHMARK = Blickets()
