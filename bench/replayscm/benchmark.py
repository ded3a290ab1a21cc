"""ReplaySCM: tasks in four disclosures, answered by SCMs that are scored by replaying worlds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from calibrant.bench.core.benchmark import EpisodeHandout, TaskHandout
from calibrant.bench.core.capabilities import ANSWER_EXPLANATIONS, EXPLANATIONS, FITTING, Providers
from calibrant.bench.core.evaluator import Evaluator
from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.core.solutions import ItemFunctions
from calibrant.bench.core.statistics import PoolStatistic
from calibrant.bench.pools.capabilities import (
    ALTERNATIVE_ITEMS,
    ALTERNATIVES,
    AUDIT,
    CHECK,
    GENERATE,
    HARDEN,
    SAMPLE,
    SEPARATE,
    STORED_RESULTS,
    VERIFY,
)
from calibrant.bench.protocols.registry import Protocols
from calibrant.bench.replayscm.extended.items import ExtendedItems
from calibrant.bench.replayscm.options import ScoreOptions
from calibrant.bench.report.overview.contract import GUIDE
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import ReportContents, Section
from calibrant.bench.runs.jobs import Progress
from calibrant.bench.scoring.evaluator_cache import EvaluatorCache
from calibrant.dsl.episode import Step
from calibrant.dsl.message import Message
from calibrant.dsl.replayscm.episodes.episode import ScmEpisode
from calibrant.dsl.replayscm.problem import BENCHMARK as NAME
from calibrant.dsl.replayscm.problem import Pool, Problem

if TYPE_CHECKING:
    from calibrant.audits.replayscm.attribution import HeldoutDecision
    from calibrant.bench.replayscm.options import ConvertOptions
    from calibrant.bench.replayscm.training import ReplayScmTraining


MAX_OBJECTS = 64  # whose digests are cached


class ReplayScm(ExtendedItems):
    name = NAME
    title = "ReplaySCM"
    settings = ("Ordered", "Block", "Hidden-order", "Hidden-roots")
    demo_protocols = ("exact", "posterior")
    bundled = ("ordered", "block", "hidden_order", "hidden_roots")
    provides: ClassVar[Providers] = {
        ALTERNATIVES: "alternatives:ALTERNATIVES",
        ALTERNATIVE_ITEMS: "pools.alternative_scm:ALTERNATIVE_ITEMS",
        AUDIT: "audit.auditor:AUDIT",
        CHECK: "pools.check:CHECK",
        ANSWER_EXPLANATIONS: "why.failure:ANSWERS",
        EXPLANATIONS: "why.explainer:EXPLANATIONS",
        FITTING: "fitting.command:FITTING",
        GENERATE: "generate:GENERATE",
        GUIDE: "guide:GUIDE",
        HARDEN: "harden:HARDEN",
        SAMPLE: "generate:SAMPLE",
        SEPARATE: "separate:SEPARATE",
        STORED_RESULTS: "stored_results:StoredResults",
        VERIFY: "audit.auditor:AUDIT",
    }
    extracts_when_scored = True
    report_options = ScoreOptions(structure=True)
    reports_read_pools = True  # which items share a latent SCM
    public_fields = (
        "id",
        "kind",
        "variables",
        "units",
        "disclosure",
        "training",  # without the environments: their keys are the roots
        "operators",
        "allow_constants",
        "shares_units",
        "reference",
        "setting",  # of this benchmark it is what is disclosed
        "num_heldout",
        "max_parents",
        "prior",
        "noise",
        "hidden",
        "allowance",
        "question",
        "asked",
    )

    @cached_property
    def protocols(self) -> Protocols:
        from calibrant.bench.replayscm.extended.protocols import EXTENDED
        from calibrant.bench.replayscm.protocols.discovery import DISCOVERY
        from calibrant.bench.replayscm.protocols.exact import Exact, ExactIntegerProgram
        from calibrant.bench.replayscm.protocols.posterior import MostPosterior
        from calibrant.bench.replayscm.protocols.score_portfolios import SCORE_PROTOCOLS
        from calibrant.bench.replayscm.protocols.simple import SIMPLE
        from calibrant.bench.replayscm.protocols.staged import StagedExactSearch

        listed = (Exact, ExactIntegerProgram, MostPosterior, StagedExactSearch, *SCORE_PROTOCOLS, *DISCOVERY, *SIMPLE)
        return {protocol.name: protocol for protocol in (*listed, *EXTENDED)}

    @property
    def measures(self) -> MetricSet:
        from calibrant.bench.replayscm.verdict import METRICS

        return METRICS

    @property
    def verbs(self) -> ItemFunctions:
        from calibrant.bench.replayscm.solve import VERBS

        return VERBS

    @property
    def training(self) -> ReplayScmTraining:
        from calibrant.bench.replayscm.training import TRAINING

        return TRAINING

    def read_pool(self, path: Path) -> Pool:
        from calibrant.dsl.replayscm.pools.files import read_pool

        return read_pool(path, keep_results=False)

    @property
    def pool_records(self) -> tuple[type[msgspec.Struct], ...]:
        from calibrant.dsl.replayscm.pools.records import HeaderRecord, ProblemRecord

        return HeaderRecord, ProblemRecord

    def line_records(self, kind: str) -> tuple[type[msgspec.Struct], ...]:
        from calibrant.audits.replayscm.certificates.shape import CertificateFile
        from calibrant.bench.replayscm.audit.records import AuditRecord

        records: dict[str, tuple[type[msgspec.Struct], ...]]
        records = {"audits": (AuditRecord,), "certificates": (CertificateFile,)}
        return records.get(kind, ())

    @property
    def verdict_record(self) -> type[msgspec.Struct]:
        from calibrant.bench.replayscm.fields import VerdictLine

        return VerdictLine

    @property
    def figures(self) -> Mapping[str, PoolStatistic[Problem]]:
        from calibrant.bench.replayscm.statistics import COLUMNS

        return COLUMNS

    def handout(self, item: Problem) -> TaskHandout | EpisodeHandout:
        return EpisodeHandout(item, ScmEpisode) if self.is_interactive(item) else TaskHandout(item.task)

    def no_answer(self, item: Problem) -> dict[str, Any]:
        from calibrant.bench.replayscm.protocols.answers import no_answer

        return no_answer(item.task.kind)

    def score(self, item: Problem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        from calibrant.bench.replayscm.verdict import score_record
        from calibrant.dsl.replayscm.score import Evaluator

        if item.task.extension is not None:
            return self.score_extended(item, answer, steps)
        return score_record(Evaluator(item).score_answer(answer))

    def attribution(
        self, item: Problem, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Decided: every SCM of the class replays the held-out worlds alike. The class is the smallest with gold.

        Extended items state their class; under noise a behaviour is decided from a posterior of 0.99 on.
        """
        from calibrant.bench.core.attribution import attribution_record

        if item.task.extension is not None:
            return self.attribute_extended(item, steps, score)
        decision = self.decide_heldout(item)
        if decision is None:
            return None
        attribution = decision.attribution(
            fits=score.get("trainExact") is True, correct=score.get("heldoutExact") is True
        )
        return attribution_record(attribution)

    def decide_heldout(self, item: Problem) -> HeldoutDecision | None:
        """Return the counts of an item, the same for every answer to it; large pools make their items again and again.

        Hence the key: what the item holds. The digests of a few objects are cached, for answers to one often follow
        each other.
        """
        from calibrant.audits.replayscm.attribution import heldout_decision

        digest = self._digests.get_for(item, lambda: sha256(msgspec.json.encode(self.record(item))).digest())
        return self._decisions.get(digest, lambda: heldout_decision(item))

    @cached_property
    def _digests(self) -> EvaluatorCache[bytes]:
        return EvaluatorCache(MAX_OBJECTS)

    @cached_property
    def _decisions(self) -> EvaluatorCache[HeldoutDecision | None]:
        return EvaluatorCache()

    def evaluator(self, item: Problem, options: ScoreOptions) -> Evaluator:
        from calibrant.bench.replayscm.evaluator import ReplayScmEvaluator

        if item.task.extension is not None:
            return self.extended_evaluator(item, options)
        return ReplayScmEvaluator(item, options)

    def setting_in_tables(self, setting: str, pool_digest: str) -> str:
        """Return the published table that the pool belongs to, else the disclosure."""
        from calibrant.dsl.replayscm.pools.published_files import table_setting

        return table_setting(pool_digest, setting)

    def unit(self, item: Problem) -> str:
        """Return the latent SCM that the pool file names, else the one that the instance's name says."""
        return item.sealed.labels.get("latent") or self.measures.unit(item.id)

    def prompt(self, item: Problem) -> str:
        return "\n\n".join(message["content"] for message in self.messages(item))

    def system_and_prompt(self, item: Problem) -> tuple[str, str]:
        from calibrant.dsl.replayscm.prompt import SYSTEM, prompt

        if self.is_interactive(item):
            return "", self.opening_prompt(item)
        return SYSTEM, prompt(item.task)

    def messages(self, item: Problem) -> list[Message]:
        system, prompt = self.system_and_prompt(item)
        user: Message = {"role": "user", "content": prompt}
        return [{"role": "system", "content": system}, user] if system else [user]

    def record(self, item: Problem) -> dict[str, Any]:
        """Without results that a file embeds: they are answers, and no part of the item."""
        from calibrant.dsl.replayscm.pools.files import record_from_problem

        record = record_from_problem(item)
        record.results = []
        return dict(msgspec.to_builtins(record))

    def shown_record(self, item: Problem) -> dict[str, Any]:
        from calibrant.bench.replayscm.pages import instance_record

        return instance_record(item)

    def revealed_record(self, item: Problem) -> dict[str, Any]:
        from calibrant.bench.replayscm.pages import sealed_record

        return self.shown_record(item) | {"sealed": sealed_record(item)}

    def text(self, item: Problem, *, reveal_sealed: bool) -> str:
        from calibrant.bench.replayscm.pages import instance_text, sealed_text

        return "\n\n".join([instance_text(item), *([sealed_text(item)] if reveal_sealed else [])])

    def find(self, pool: Any, instance: str | None) -> Problem:
        from calibrant.bench.replayscm.pages import find_instance

        return super().find(pool, None) if instance is None else find_instance(pool, instance)

    def item_of_record(self, record: Mapping[str, Any]) -> Problem:
        from calibrant.dsl.records import convert_object
        from calibrant.dsl.replayscm.pools.build import problem_from_record
        from calibrant.dsl.replayscm.pools.records import ProblemRecord

        parsed = convert_object(record, ProblemRecord)
        parsed.results = []
        return problem_from_record(parsed)

    @property
    def suites(self) -> Sequence[str]:
        """Return the suites: a stratum and a disclosure each.

        `calibrant generate` names the two apart, and does more than draw.
        """
        from calibrant.dsl.replayscm.sampling.problems import SETTINGS
        from calibrant.dsl.replayscm.sampling.strata import STRATA

        return tuple(f"{stratum.name}/{setting}" for stratum in STRATA for setting in SETTINGS)

    def drawn(self, suites: Sequence[str], seed: int, count: int) -> Sequence[Problem]:
        """Draw items as `calibrant sample` does."""
        from calibrant.dsl.replayscm.sampling.problems import sample_pool
        from calibrant.dsl.replayscm.sampling.strata import stratum

        parts = [suite.partition("/") for suite in suites]
        pools = [sample_pool([stratum(name)], count, seed, setting) for name, _, setting in parts]
        return tuple(problem for pool in pools for problem in pool.problems)

    def write_native(self, pool: Any, path: Path) -> None:
        from calibrant.dsl.replayscm.pools.files import write_pool

        write_pool(Pool(pool.name, tuple(pool.items), pool.metadata), path)

    def convert(self, source: Path, target: Path, options: ConvertOptions) -> int:
        """Write a pool in the native format, or in the official one where the file is called .yaml or .yml."""
        from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
        from calibrant.dsl.replayscm.pools.runtime_yaml import SUFFIXES, write_official

        pool = read_pool(source, keep_results=not options.drop_results)
        write = write_official if target.suffix.lower() in SUFFIXES else write_pool
        write(pool, target)
        return len(pool)

    @property
    def pool_schema(self) -> dict[str, Any]:
        from calibrant.dsl.replayscm.pools.records import schema

        return schema()

    @property
    def report_tables(self) -> Sequence[str]:
        from calibrant.bench.replayscm.tables.report import TABLE_IDS

        return TABLE_IDS

    def report(self, answers: Sequence[Answer], wanted: ReportContents, progress: Progress) -> Section:
        from calibrant.bench.replayscm.tables.ambiguity import ambiguities
        from calibrant.bench.replayscm.tables.appendix.facts import pool_facts
        from calibrant.bench.replayscm.tables.report import report_tables
        from calibrant.bench.replayscm.tables.rows import report_rows
        from calibrant.bench.report.intervals import LEVEL, RESAMPLES

        facts = pool_facts(wanted.pools)
        rows = report_rows(facts.relabelled(answers), wanted.by, wanted.means, facts.latents)
        audited = ambiguities(wanted.audits)
        plots = []
        tables = report_tables(rows, wanted, audited, facts, progress)
        if wanted.with_plots:
            from calibrant.bench.replayscm.figures.kinds import kinds_plot
            from calibrant.bench.replayscm.figures.plots import report_plots

            options = {"with_paper": wanted.with_paper, "with_times": wanted.with_times}
            plots = report_plots(rows, audited, **options, progress=progress)
            kinds = kinds_plot(answers)
            plots += [] if kinds is None else [kinds]
            plots += self.extended_plots(answers, wanted)
        return Section(
            self.title,
            f"In brackets: {round(100 * LEVEL)} % percentile bootstrap over latent SCMs ({RESAMPLES:,} resamples),"
            " answers held fixed; problems that share a latent SCM are drawn together; a rate of 0 or 1 on"
            " every problem has Wilson\N{RIGHT SINGLE QUOTATION MARK}s interval. * stands for a conditional rate"
            " over 1 to 5 answers, \N{EN DASH} for one over none.",
            frozenset(row.system for row in rows),
            tuple(sorted({(name, digest) for row in rows for digest, name in row.pool_labels.items()})),
            len(answers),
            tuple(tables),
            tuple(plots),
        )


BENCHMARK = ReplayScm()
