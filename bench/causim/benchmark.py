"""CauSim: causal questions about a program, answered by one member of the complete answer set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from calibrant.bench.core.benchmark import Benchmark, TaskHandout
from calibrant.bench.core.capabilities import EXPLANATIONS, FINDINGS, PAGES, WORKED_SOLUTIONS, Providers
from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.core.statistics import PoolStatistic
from calibrant.bench.pools.capabilities import AUDIT, CHECK, GENERATE, HARDEN, VERIFY
from calibrant.bench.protocols.registry import Protocols
from calibrant.bench.report.overview.contract import GUIDE
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import ReportContents, Section
from calibrant.bench.runs.jobs import Progress
from calibrant.dsl.action import ActionError
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.values import ModelError
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import PoolError
from calibrant.dsl.item import Pool
from calibrant.dsl.records import convert_object

if TYPE_CHECKING:
    from calibrant.bench.causim.solve import CausimVerbs
    from calibrant.bench.causim.training import CausimTraining


class Causim(Benchmark[CausimItem]):
    name = "causim"
    title = "CauSim"
    settings = ("deduction", "intervention", "abduction", "counterfactual")
    demo_protocols = ("exact", "graph_only", "copy")
    bundled = ("causim",)
    provides: ClassVar[Providers] = {
        AUDIT: "audit:AUDIT",
        CHECK: "audit:CHECK",
        EXPLANATIONS: "why.explainer:EXPLANATIONS",
        FINDINGS: "audit:FINDINGS",
        GENERATE: "generate:GENERATE",
        GUIDE: "guide:GUIDE",
        HARDEN: "hardening:HARDEN",
        PAGES: "pages:PAGES",
        VERIFY: "audit:AUDIT",
        WORKED_SOLUTIONS: "worked_solutions:WORKED_SOLUTIONS",
    }
    public_fields = (
        "id",
        "type",
        "scenario",
        "view",
        "program",  # where it is shown, not sentences
        "fixed_exogenous",
        "unknown_exogenous",
        "do",
        "observed_endogenous",
        "with_noise",
    )

    @cached_property
    def protocols(self) -> Protocols:
        from calibrant.bench.causim.protocols import ROWS

        return {protocol.name: protocol for protocol in ROWS}

    @property
    def measures(self) -> MetricSet:
        from calibrant.bench.causim.verdict import METRICS

        return METRICS

    @cached_property
    def verbs(self) -> CausimVerbs:
        from calibrant.bench.causim.solve import CausimVerbs

        return CausimVerbs(self)

    @property
    def training(self) -> CausimTraining:
        from calibrant.bench.causim.training import TRAINING

        return TRAINING

    def read_pool(self, path: Path) -> Pool[CausimItem]:
        from calibrant.dsl.causim.records import read_pool

        return read_pool(path)

    def handout(self, item: CausimItem) -> TaskHandout:
        return TaskHandout(item.task)

    def no_answer(self, item: CausimItem) -> dict[str, Any]:
        """Return a key that no question asks for: an empty object is right where nothing is unknown."""
        return {"no answer": None}

    def score(self, item: CausimItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Return the score of an answer, its flags computed, whatever the item's labels are."""
        from calibrant.bench.causim.verdict import score_record

        judge = self.verbs.judge(item)
        record = score_record(judge, judge.judge_object(answer))
        return record | {"why": "no_object"} if dict(answer) == self.no_answer(item) else record

    def attribution(
        self, item: CausimItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Attribute answers to questions that state one answer; where any of several counts, None."""
        from calibrant.audits.causim.items import attribute_item_answer
        from calibrant.bench.causim.verdict import is_answered, is_right
        from calibrant.bench.core.attribution import attribution_record

        fits = is_right(score) if is_answered(score) else None
        result = attribute_item_answer(item, fits=fits)
        return None if result is None else attribution_record(result)

    @property
    def report_tables(self) -> Sequence[str]:
        from calibrant.bench.causim.section import TABLE_IDS

        return TABLE_IDS

    def report(self, answers: Sequence[Answer], wanted: ReportContents, progress: Progress) -> Section:
        from calibrant.bench.causim.section import causim_section

        return causim_section(self.title, answers, wanted)

    def extract(self, item: CausimItem, response: str | Mapping[str, Any]) -> dict[str, Any]:
        """Return the last object that is not inside another; the verdict checks its keys."""
        from calibrant.dsl.causim.score import last_object

        answer = last_object(response) if isinstance(response, str) else dict(response)
        if answer is None:
            raise ActionError("no JSON object in the response")
        return answer

    def read_answer(self, item: CausimItem, response: str | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return the object, and what is wrong with its form: an answer in another wrapping, or no value."""
        from calibrant.dsl.causim.score import answer_of, misplaced_answer_message, odd_value_message

        extracted = self.extract(item, response)
        keys = item.task.question.required_keys(item.task.model)
        answer = answer_of(extracted, keys)
        return extracted, misplaced_answer_message(response, keys) if answer is None else odd_value_message(answer)

    def same_answer(self, item: CausimItem, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Keys count in any case that fits, and `true` is not 1."""
        from calibrant.dsl.causim.score import answer_of

        keys = item.task.question.required_keys(item.task.model)
        answers = answer_of(one, keys), answer_of(other, keys)
        return answers[0] == answers[1] if None not in answers else dict(one) == dict(other)

    @property
    def pool_records(self) -> tuple[type[msgspec.Struct], ...]:
        from calibrant.dsl.causim.records import ItemRecord
        from calibrant.dsl.records import Header

        return Header, ItemRecord

    def line_records(self, kind: str) -> tuple[type[msgspec.Struct], ...]:
        from calibrant.audits.causim.training import TrainingHeader, TrainingRecord

        return (TrainingHeader, TrainingRecord) if kind == "training" else ()

    @property
    def verdict_record(self) -> type[msgspec.Struct]:
        from calibrant.bench.causim.verdict import CausimVerdict

        return CausimVerdict

    def prompt(self, item: CausimItem) -> str:
        return item.task.prompt

    def record(self, item: CausimItem) -> dict[str, Any]:
        """With the world and the labels, which are not in the prompt, under `sealed`."""
        from calibrant.dsl.causim.records import record_of_item

        record = dict(msgspec.to_builtins(record_of_item(item)))
        sealed = {"world": record.pop("world", {}), "labels": record.pop("labels")}
        return record | {"sealed": sealed}

    def shown_record(self, item: CausimItem) -> dict[str, Any]:
        fields = super().shown_record(item)
        if item.task.view != "code":
            del fields["program"]
        return fields

    def item_of_record(self, record: Mapping[str, Any]) -> CausimItem:
        from calibrant.dsl.causim.records import ItemRecord, item_from_record

        sealed = record.get("sealed")
        if not isinstance(sealed, Mapping) or not sealed.keys() <= {"world", "labels"}:
            raise PoolError("an object with world and labels is needed", field="sealed")
        native = {key: value for key, value in record.items() if key != "sealed"} | dict(sealed)
        try:
            return item_from_record(convert_object(native, ItemRecord))
        except ModelError as error:
            raise PoolError(str(error)) from None

    def suite_of(self, item: CausimItem) -> str:
        """Its topology; a stratum has the number of nodes beside it."""
        return item.topology

    @property
    def figures(self) -> Mapping[str, PoolStatistic[CausimItem]]:
        from calibrant.bench.causim.statistics import COLUMNS

        return COLUMNS

    @property
    def suites(self) -> Sequence[str]:
        from calibrant.dsl.causim.topology import TOPOLOGIES
        from calibrant.solvers.causim.items import BUILT_IN

        return (*TOPOLOGIES, *BUILT_IN)

    def drawn(self, suites: Sequence[str], seed: int, count: int) -> Sequence[CausimItem]:
        """Return items of suites.

        A suite is a topology: programs of 2, 4, 6, 8 and 10 nodes in turns, with a question of each type about each; or
        a built-in model, of which there may be fewer items.
        """
        from calibrant.solvers.causim.items import BUILT_IN, built_in_items, sampled_items

        sequences = [(built_in_items if name in BUILT_IN else sampled_items)(seed, name) for name in suites]
        return tuple(item for sequence in sequences for item in islice(sequence, count))

    def write_native(self, pool: Pool[CausimItem], path: Path) -> None:
        from calibrant.dsl.causim.records import write_pool

        write_pool(path, pool.items, name=pool.name, metadata=dict(pool.metadata))


BENCHMARK = Causim()
