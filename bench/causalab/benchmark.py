"""CausaLab: episodes in a laboratory, answered by a frequency and a causal hypothesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from calibrant.bench.core.benchmark import Benchmark, EpisodeHandout
from calibrant.bench.core.capabilities import EXPLANATIONS, FINDINGS, PAGES, Providers
from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.core.statistics import PoolStatistic
from calibrant.bench.episodes import sole_action
from calibrant.bench.pools.capabilities import AUDIT, CHECK, GENERATE, VERIFY
from calibrant.bench.protocols.registry import Protocols
from calibrant.bench.report.overview.contract import GUIDE
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import ReportContents, Section
from calibrant.bench.runs.jobs import Progress
from calibrant.dsl.action import Action
from calibrant.dsl.causalab.configs import is_suite, suite_pool
from calibrant.dsl.causalab.episode import HYPOTHESIS, LabEpisode
from calibrant.dsl.causalab.generation import PLANS
from calibrant.dsl.causalab.hypothesis import hypothesis
from calibrant.dsl.causalab.item import BENCHMARK as NAME
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.pool import LabRecord, item_of_record, read_pool, record_of_item, write_pool
from calibrant.dsl.causalab.run import last_dialled_frequency, last_raw
from calibrant.dsl.episode import Episode, Step, replay_actions
from calibrant.dsl.item import Pool
from calibrant.dsl.message import Message
from calibrant.dsl.records import convert_object
from calibrant.solvers.budget import BudgetSpent

if TYPE_CHECKING:
    from calibrant.bench.causalab.solve import LabVerbs
    from calibrant.bench.causalab.training import LabTraining

LEAST_PART, MOST_PARTS = 8, 8  # items that are labelled together; parts of a suite, each of which draws all topologies


class CausaLab(Benchmark[LabItem]):
    name = NAME
    title = "CausaLab"
    settings = tuple(PLANS)
    demo_protocols = ("exact", "greedy", "abstain")
    bundled = ("causalab",)
    provides: ClassVar[Providers] = {
        AUDIT: "audit:AUDIT",
        CHECK: "audit:CHECK",
        EXPLANATIONS: "why.explainer:EXPLANATIONS",
        FINDINGS: "audit:FINDINGS",
        GENERATE: "generate:GENERATE",
        GUIDE: "guide:GUIDE",
        PAGES: "pages:PAGES",
        VERIFY: "audit:AUDIT",
    }
    public_fields = (
        "id",
        "family",
        "properties",
        "freq_parent",
        "noise",
        "weights",
        "settable",
        "records",
        "trace",
        "baseline",
        "reactor",
        "allowance",
        "tries",
        "reading",
    )
    transcripts = True

    @cached_property
    def protocols(self) -> Protocols:
        from calibrant.bench.causalab.protocols import ROWS

        return {protocol.name: protocol for protocol in ROWS}

    @property
    def measures(self) -> MetricSet:
        from calibrant.bench.causalab.verdict import METRICS

        return METRICS

    @cached_property
    def verbs(self) -> LabVerbs:
        from calibrant.bench.causalab.solve import LabVerbs

        return LabVerbs(self, LabItem)

    @property
    def training(self) -> LabTraining:
        from calibrant.bench.causalab.training import TRAINING

        return TRAINING

    def read_pool(self, path: Path) -> Pool[LabItem]:
        """Return a native pool, or a released suite: its configs with fresh crystals of seed 0."""
        return suite_pool(path, seed=0) if is_suite(path) else read_pool(path)

    def handout(self, item: LabItem) -> EpisodeHandout:
        return EpisodeHandout(item, LabEpisode)

    def no_answer(self, item: LabItem) -> dict[str, Any]:
        return {"hypothesis": {}}

    def score(self, item: LabItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Score an answer without a transcript, as dialled and submitted before any setting."""
        from calibrant.dsl.causalab.run import run_score

        return run_score(item, steps or self._replay_submission(item, answer)).as_json()

    def attribution(
        self, item: LabItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Attribute frequency and graph; None without a submission, and where the members are not enumerated."""
        from calibrant.audits.causalab.attribution import attribute_run
        from calibrant.bench.causalab.verdict import attributions_record

        if not steps and not answer:
            return None
        try:
            attributions = attribute_run(item, steps or self._replay_submission(item, answer))
        except BudgetSpent:
            return None
        return attributions_record(attributions, item.task.nodes)

    @property
    def report_tables(self) -> Sequence[str]:
        from calibrant.bench.causalab.section import TABLE_IDS

        return TABLE_IDS

    def report(self, answers: Sequence[Answer], wanted: ReportContents, progress: Progress) -> Section:
        from calibrant.bench.causalab.section import lab_section

        return lab_section(self.title, answers, wanted)

    def prompt(self, item: LabItem) -> str:
        return "\n\n".join(message["content"] for message in self.messages(item))

    def messages(self, item: LabItem) -> list[Message]:
        from calibrant.dsl.causalab.prompt import messages

        return messages(item.task)

    def record(self, item: LabItem) -> dict[str, Any]:
        return dict(msgspec.to_builtins(record_of_item(item)))

    def item_of_record(self, record: Mapping[str, Any]) -> LabItem:
        return item_of_record(convert_object(record, LabRecord))

    def episode(self, item: LabItem) -> LabEpisode:
        return LabEpisode(item)

    def handing_in(self, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> Sequence[Action]:
        """Return the actions of a submission: dial the frequency unless it is there, then submit the hypothesis."""
        dial = (
            ()
            if answer.get("frequency") in (None, last_dialled_frequency(steps))
            else ({"reactor": answer["frequency"]},)
        )
        stated = {HYPOTHESIS: answer[HYPOTHESIS]} if HYPOTHESIS in answer else {}
        return (*dial, {"submit": stated})

    def handed_in(self, steps: Sequence[Step[Any]]) -> dict[str, Any] | None:
        if not any("submit" in step.action and not step.refused for step in steps):
            return None
        frequency = last_dialled_frequency(steps)
        return ({} if frequency is None else {"frequency": frequency}) | {HYPOTHESIS: dict(last_raw(steps) or {})}

    def extract(self, item: LabItem, response: str | Mapping[str, Any]) -> dict[str, Any]:
        return self.read_answer(item, response)[0]

    def read_answer(self, item: LabItem, response: str | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        from calibrant.dsl.causalab.response import read_answer

        return read_answer(response)

    def omission(self, steps: Sequence[Step[Any]]) -> str:
        return "no frequency" if last_dialled_frequency(steps) is None else ""

    def reply_action(self, item: LabItem, text: str) -> Action:
        from calibrant.dsl.causalab.paper_reply import is_paper_reply, paper_action

        stated = sole_action(text)
        return paper_action(stated, item.task.properties) if is_paper_reply(stated) else stated

    def same_answer(self, item: LabItem, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Return whether they agree in all that both state."""
        both = one.keys() & other.keys()
        if "frequency" in both and one["frequency"] != other["frequency"]:
            return False
        return HYPOTHESIS not in both or hypothesis(one[HYPOTHESIS]) == hypothesis(other[HYPOTHESIS])

    @property
    def pool_records(self) -> tuple[type[msgspec.Struct], ...]:
        from calibrant.dsl.causalab.pool import LabRecord
        from calibrant.dsl.records import Header

        return Header, LabRecord

    @property
    def verdict_record(self) -> type[msgspec.Struct]:
        from calibrant.bench.causalab.verdict import LabVerdict

        return LabVerdict

    def describe_step(self, episode: Episode[Any, Any], step: Step[Any]) -> str:
        from calibrant.dsl.causalab.prompt import shown_step

        return f"{shown_step(step)} Settings left: {episode.left}.".replace("\n", " ")

    def account(self, item: LabItem, steps: Sequence[Step[Any]], system: str) -> str:
        from calibrant.bench.causalab.pages import refuse_uncounted
        from calibrant.bench.causalab.picture import run_picture
        from calibrant.bench.pages.graph import graph_text

        with refuse_uncounted(item):
            return graph_text(run_picture(f"{system}, {item.id}", item, steps))

    def episodes_page(self, item: LabItem, episodes: Sequence[tuple[str, Sequence[Step[Any]]]]) -> str:
        from calibrant.bench.causalab.pages import refuse_uncounted
        from calibrant.bench.causalab.picture import graphs_page, run_picture

        with refuse_uncounted(item):
            return graphs_page(item, [run_picture(f"{name}, {item.id}", item, steps) for name, steps in episodes])

    @property
    def figures(self) -> Mapping[str, PoolStatistic[LabItem]]:
        from calibrant.bench.causalab.statistics import COLUMNS

        return COLUMNS

    @property
    def suites(self) -> Sequence[str]:
        return tuple(PLANS)

    def drawn(self, suites: Sequence[str], seed: int, count: int) -> Sequence[LabItem]:
        """With their difficulty labels, which are sealed."""
        return tuple(item for suite in suites for item in self.drawn_part(suite, seed, range(count)))

    def drawn_part(self, suite: str, seed: int, places: range) -> Sequence[LabItem]:
        """Topologies depend on the earlier ones, but it is labels that take the time."""
        from calibrant.audits.causalab.labels import generate_labelled

        return tuple(generate_labelled(PLANS[suite], seed, places.stop, places.start))

    def parts(self, count: int) -> Sequence[range]:
        size = max(LEAST_PART, -(-count // MOST_PARTS))
        return [range(first, min(first + size, count)) for first in range(0, count, size)]

    def write_native(self, pool: Pool[LabItem], path: Path) -> None:
        write_pool(pool, path)

    def _replay_submission(self, item: LabItem, answer: Mapping[str, Any]) -> Sequence[Step[Any]]:
        """Return the steps of a run that only submits; none if there is no answer."""
        return replay_actions(LabEpisode(item), self.handing_in(answer, ())).steps if answer else ()


BENCHMARK = CausaLab()
