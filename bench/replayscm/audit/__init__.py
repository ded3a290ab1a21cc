"""ReplaySCM as `calibrant audit` and `calibrant verify` see it: exact counts of SCMs, and their certificates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from calibrant.audits.claims import NotExaminedError
from calibrant.audits.replayscm.ambiguity import MIN_PARENTS, PARENTS, restrict_to_grammar
from calibrant.audits.replayscm.certificates.counting import MAX_CAP
from calibrant.audits.replayscm.findings import Findings
from calibrant.audits.replayscm.items import AuditOptions, audit_instance
from calibrant.bench.answers.rates import SHORT_DIGEST
from calibrant.bench.core.options import OptionError
from calibrant.bench.core.registry import benchmark
from calibrant.bench.pools.capabilities import Printed
from calibrant.bench.pools.findings_audit import FindingRecord, FindingsAudit, FindingsReport
from calibrant.bench.replayscm.audit import extended as audit_extended
from calibrant.bench.replayscm.audit import records as audit_records
from calibrant.bench.replayscm.audit import text as audit_text
from calibrant.bench.replayscm.options import AuditOptions as AuditArguments
from calibrant.bench.runs.audits import AuditedPool, AuditResult, audit_items, object_pieces, reason_lines
from calibrant.bench.runs.executors import HERE, Execution, Progress
from calibrant.bench.runs.records import RecordKind, folder_records
from calibrant.bench.runs.runner import EVERYTHING, Selection
from calibrant.bench.terminal import DEFAULT_WIDTH
from calibrant.bench.version import program_version
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.item import Item
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.text import plural
from calibrant.solvers.replayscm.space import ModelClass

if TYPE_CHECKING:
    from markupsafe import Markup

    from calibrant.audits.claims import EngineName
    from calibrant.bench.runs.audits import AuditWork


# --- Audits of a pool: exact counts of the consistent SCMs of each problem, recorded by bench.runs.audits -------------


@dataclass(frozen=True)
class ScmAudit:
    """Implements AuditWork (bench.runs.audits)."""

    options: AuditOptions

    @property
    def kind(self) -> RecordKind[audit_records.AuditRecord]:
        return audit_records.AUDIT_RECORDS

    @property
    def config(self) -> Mapping[str, Any]:
        return self.options.to_dict()

    def audit(self, item: Problem) -> tuple[Findings, audit_records.GeneratorCeiling] | tuple[FindingRecord, ...]:
        if item.task.extension is not None:
            return tuple(audit_extended.finding_records(item))
        return audit_instance(item, self.options), audit_records.generator_ceiling(item)

    def record(self, head: Mapping[str, Any], audited: AuditResult) -> audit_records.AuditRecord:
        result = audited.result
        is_plain = isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], Findings)
        findings, generator = result if is_plain else (None, None)
        return audit_records.AuditRecord(
            **head,
            findings=findings,
            generator=generator,
            extended=UNSET if is_plain or result is None else result,
            error=audited.error,
            program=program_version(),
            timing=audited.timing,
            why=audited.why,
        )


def audit_pool(
    path: Path,
    folder: Path,
    options: AuditOptions,
    selection: Selection = EVERYTHING,
    *,
    execution: Execution = HERE,
    progress: Progress = lambda name, done, total: None,
) -> AuditedPool[audit_records.AuditRecord]:
    """Audit every selected problem that has no record in the folder yet, and append its record."""
    work, replayscm = ScmAudit(options), benchmark("replayscm")
    return audit_items(replayscm, path, folder, work, selection, execution=execution, progress=progress)


@dataclass(frozen=True)
class ScmAuditor(FindingsAudit):
    """Audits of problems: certified counts of consistent SCMs; findings about extended problems."""

    name: str = "replayscm"
    workers: int | None = None  # an audit takes seconds

    def work(self, options: AuditArguments, fail_on: str | None, *, certify: bool) -> ScmAudit:
        for folder in options.runs:
            folder_records(folder)  # refuses a folder without records before the work
        _check_cap(options.max_parents, options.max_size, certify=certify)
        gate = None if fail_on is None else audit_text.gate_class(fail_on)
        classes = tuple(sorted({*PARENTS, *([gate] if gate else [])}))
        return ScmAudit(AuditOptions(options.max_parents, classes, nested_roots=options.nested_roots))

    def report(
        self,
        audited: AuditedPool[audit_records.AuditRecord],
        work: AuditWork[audit_records.AuditRecord],
        options: AuditArguments,
        fail_on: str | None,
    ) -> ScmAuditReport:
        assert isinstance(work, ScmAudit)
        return ScmAuditReport(audited, benchmark(self.name).title, fail_on, work.options, options)

    def check(
        self, content: Mapping[str, Any], items: Mapping[str, Item[Any, Any]], engine: EngineName | None
    ) -> tuple[bool, str]:
        from calibrant.audits.replayscm.certificates.cross_examination import examine_certificate
        from calibrant.audits.replayscm.certificates.verify import verify

        instance = content.get("instance")
        problem = items.get(instance) if isinstance(instance, str) else None
        if not isinstance(problem, Problem):
            return False, "it is about no instance of this pool"
        if audit_extended.is_extended_certificate(content):
            if engine is not None:
                raise NotExaminedError(f"{engine} search has no encoding of noise, hidden variables or episodes")
            return True, f"{instance}: {audit_extended.check_certificate(content, problem)}"
        return True, verify(content, problem) if engine is None else examine_certificate(content, problem, engine)


def _check_cap(max_parents: int | None, max_size: int | None, *, certify: bool) -> None:
    if max_size is None:
        return
    if not certify:
        raise OptionError("it is the cap of the certificates' class: give --certificates too", "--max-size")
    parents = max_parents or MIN_PARENTS
    limit = MAX_CAP.get(parents, 0)
    if max_size > limit:
        reason = f"with {parents} parents, `calibrant verify` recounts sizes up to {limit}"
        raise OptionError(reason if limit else f"{reason}: none", "--max-size")


@dataclass(frozen=True)
class ScmAuditReport(FindingsReport[audit_records.AuditRecord]):
    """An audited pool: counts of plain problems, and findings of extended ones.

    kind: value of --fail-on, which names the class that has to have one member
    """

    options: AuditOptions
    arguments: AuditArguments

    @cached_property
    def records(self) -> Sequence[audit_records.AuditRecord]:
        """The records of extended problems."""
        return [record for record in self.audited.records if record.extended is not UNSET]

    def findings_of(self, record: audit_records.AuditRecord) -> tuple[FindingRecord, ...] | None:
        return None if record.extended is UNSET else record.extended

    @cached_property
    def _calibration(self) -> audit_extended.Calibration:
        return audit_extended.calibration(self._plain, self.arguments.runs)

    def failures(self) -> tuple[bool, Sequence[str]]:
        """Fail if an instance has no findings or, with --fail-on, not exactly one member of the class."""
        records = (record for record in self.audited.records if record.extended is UNSET)
        errors = [in_one_line(f"{record.instance}: {record.error}") for record in records if record.findings is None]
        if self.kind is None:
            return bool(errors), errors
        gate = audit_text.gate_class(self.kind)
        reasons = (
            [f"--fail-on: {line}" for line in audit_text.summary(self._plain, gate).splitlines()] if self._plain else []
        )
        open_items = list(
            dict.fromkeys(finding.instance for finding in self.findings() if finding.kind in audit_extended.OPEN)
        )
        reasons += [in_one_line(f"--fail-on: {instance} is ambiguous") for instance in open_items]
        is_unique = all(audit_text.verdict(record, gate) == "unique" for record in self._plain)
        return not is_unique or bool(open_items), errors + reasons

    @cached_property
    def _plain(self) -> Sequence[audit_records.AuditRecord]:
        """The records of plain items; all records, which may be in a file, if the pool has no extended ones."""
        records = self.audited.records
        return [record for record in records if record.extended is UNSET] if self.records else records

    def page(self, pool: Path, bodies: Mapping[int, Markup]) -> str:
        from calibrant.bench.replayscm.audit.page import audit_page

        if self.records and not self._plain:
            return super().page(pool, bodies)
        return audit_page(self, self._plain, self._calibration, pool, bodies)

    def write_certificates(self, folder: Path) -> Iterator[str]:
        extended = [item for item in self.audited.items if item.task.extension is not None] if self.records else []
        if extended:
            folder.mkdir(parents=True, exist_ok=True)
            for problem in extended:
                stem = audit_records.certificate_name(problem.id).removesuffix(".json")
                yield from map(in_one_line, audit_extended.write_item_certificates(problem, folder, stem))
            num_files = sum(1 for _ in folder.glob("*.json"))
            yield f"{plural(num_files, 'certificates')} written to {folder}"
        items = [item for item in self.audited.items if item.task.extension is None] if extended else self.audited.items
        if items or not extended:
            yield from map(in_one_line, audit_records.write_certificates(items, folder, self._certified_class))

    def _certified_class(self, problem: Problem) -> ModelClass:
        parents = self.options.headline(problem)
        requested = ModelClass(parents, self.arguments.max_size, self.options.nested_roots)
        restricted = restrict_to_grammar(requested, problem.task.grammar)
        return restricted if (restricted.max_size or 0) <= MAX_CAP.get(parents, 0) else requested

    def text(self, pool: Path, width: int | None) -> Printed:
        audited, records = self.audited, self._plain
        details = (audit_text.details_text(record) + "\n" for record in records if self.arguments.details)
        pool_line = in_one_line(f"{audited.name} ({pool.name}, sha256 {audited.digest[:SHORT_DIGEST]})")
        if self.records:
            lines = chain([pool_line], super().text(pool, width).lines, self._count_lines())
            if not records:
                return Printed(lines, [])
            pool_line = "\n".join([*lines, ""])
        table = audit_text.audits_table(records, width, with_ceilings=self._prints_ceilings)
        below = audit_text.calibration_text(self._calibration, width or DEFAULT_WIDTH) if self._prints_ceilings else ""
        legend = audit_text.table_legend(table.included, width or DEFAULT_WIDTH)
        reasons = chain([""], reason_lines(records, width))
        tables = chain(audit_text.answer_lines(records), ["", pool_line, table.text, ""], legend, reasons)
        lines = chain(details, tables, audit_text.closing_lines(records), ["", below] if below else [])
        left_out = f"Left out to fit the width: {', '.join(table.left_out)}; --json has all."
        return Printed(lines, [left_out] if table.left_out else [])

    @property
    def _prints_ceilings(self) -> bool:
        """Whether ceilings were requested, or answers are compared with them."""
        return self.arguments.ceilings or bool(self.arguments.runs)

    def _count_lines(self) -> Iterator[str]:
        """Yield the number of extended problems by kind of finding."""
        counts = Counter(finding.kind for finding in self.findings())
        without = sum(not self.findings_of(record) for record in self.records)
        parts = [*(f"{number} {kind}" for kind, number in sorted(counts.items())), f"{without} without a finding"]
        yield ""
        yield f"{', '.join(parts)}, of {plural(len(self.records), 'instances')} with a stated class"

    def json_pieces(self) -> Iterator[str]:
        instances = (record.to_dict() for record in self.audited.records)
        return object_pieces({"instances": instances}, {"calibration": self._calibration.to_dict()})


AUDIT = ScmAuditor()
