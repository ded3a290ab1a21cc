"""Audits whose findings are claims with certificates (audits.claims): recorded, shown, written, checked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import msgspec
from markupsafe import Markup
from msgspec import Meta

from calibrant.audits.claims import Certificate, ClaimStatus, EngineName, Finding, verify
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import FINDINGS
from calibrant.bench.core.options import OptionError
from calibrant.bench.core.registry import benchmark
from calibrant.bench.pages.aligned import wrapped_lines
from calibrant.bench.pages.page import html_page
from calibrant.bench.pages.why import MAX_EMBEDDED, IndexItem, IndexText, index_page
from calibrant.bench.pools.capabilities import CertificateCheck, Printed
from calibrant.bench.pools.certificates import FindingRecord
from calibrant.bench.runs.audits import (
    Audited,
    AuditedPool,
    AuditHead,
    AuditWork,
    ReasonRecord,
    list_pieces,
    reason_lines,
    reason_of,
    record_order,
)
from calibrant.bench.runs.jsonl_file import RecordKind
from calibrant.bench.runs.records import Timing
from calibrant.bench.version import program_version
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.item import Item
from calibrant.dsl.records import items_by_id
from calibrant.dsl.text import known_names, plural

RECORD_VERSION = 1
KINDS = (
    "ambiguous",
    "unwinnable",
    "bounded-orders",
    "vacuous",
    "unfair",
    "leak",
    "duplicate",
    "trivial",
    "gameable",
    "copyable",
    "wrong_label",
    "unusual-bases",
)


class FindingsRecord(AuditHead, frozen=True, forbid_unknown_fields=True):
    """The audit of one item of a pool, or why there is none."""

    findings: Annotated[tuple[FindingRecord, ...] | None, Meta(description="null if it was not")]
    error: Annotated[str, Meta(description="why it was not; empty otherwise")]
    program: Annotated[str, Meta(description="version of the program")]
    timing: Annotated[Timing, Meta(description="when, and how long")]
    version: Annotated[int, Meta(description="version of the format")] = RECORD_VERSION
    why: Annotated[ReasonRecord | None, Meta(description="why the item is open; null without results")] = None


RECORDS = RecordKind("audits", "an audit of findings", FindingsRecord, RECORD_VERSION, record_order)


@dataclass(frozen=True)
class FindingsWork:
    """Implements AuditWork (bench.runs.audits).

    name: of the benchmark, which itself need not be picklable
    """

    name: str

    @property
    def kind(self) -> RecordKind[FindingsRecord]:
        return RECORDS

    @property
    def config(self) -> Mapping[str, Any]:
        return {}

    def audit(self, item: Item[Any, Any]) -> tuple[FindingRecord, ...]:
        return tuple(map(_finding_record, benchmark(self.name).require(FINDINGS).findings(item)))

    def record(self, head: Mapping[str, Any], audited: Audited) -> FindingsRecord:
        version, timing = program_version(), audited.timing
        result = {"findings": audited.result, "error": audited.error, "why": audited.why}
        return FindingsRecord(**head, **result, program=version, timing=timing)


def _finding_record(finding: Finding) -> FindingRecord:
    data, certificate = dict(finding.data), finding.certificate
    return FindingRecord(finding.where, finding.kind, finding.verdict, finding.claim, data, certificate)


@dataclass(frozen=True)
class FindingsAudit:
    """Implements Auditable and CertificateCheckable for the benchmark of that name, from its FINDINGS."""

    name: str
    workers: int | None = 1  # an item takes milliseconds, a process a second to start

    def work(self, options: Any, fail_on: str | None, *, certify: bool) -> FindingsWork:
        return FindingsWork(self.name)

    def report(
        self, audited: AuditedPool[FindingsRecord], work: AuditWork[Any], options: Any, fail_on: str | None
    ) -> FindingsReport:
        return FindingsReport(audited, benchmark(self.name).title, fail_on)

    def check_against(self, pool: Path, engine: EngineName | None = None) -> CertificateCheck:
        of = benchmark(self.name)
        if engine is not None:
            raise OptionError(f"certificates of {of.title} have no encoding for it; verify without it", "--engine")
        items = items_by_id(of.items.read_pool(pool).items)
        return lambda certificate: check_certificate(of, certificate, items)


@dataclass(frozen=True)
class FindingsReport:
    """Implements AuditReport.

    kind: of the findings that fail the command; None if none does
    """

    audited: AuditedPool[FindingsRecord]
    title: str
    kind: str | None

    def findings(self) -> Iterator[FindingRecord]:
        """Yield all findings, item by item; the records may be in a file."""
        return chain.from_iterable(record.findings or () for record in self.audited.records)

    @cached_property
    def _counts(self) -> Counter[tuple[str, ClaimStatus]]:
        return Counter((finding.kind, finding.verdict) for finding in self.findings())

    def failures(self) -> tuple[bool, Sequence[str]]:
        """Fail if an item could not be audited, or if a finding of the kind is proved."""
        kinds = {*KINDS, *(kind for kind, _ in self._counts)}
        if self.kind is not None and self.kind not in kinds:
            raise CalibrantError(f"unknown kind {short_repr(self.kind)}; {known_names(self.kind, sorted(kinds))}")
        records = self.audited.records
        errors = [in_one_line(f"{one.instance}: {one.error}") for one in records if one.outcome != "audited"]
        return bool(errors) or self._counts[self.kind or "", ClaimStatus.PROVED] > 0, errors

    def page(self, pool: Path, bodies: Mapping[int, Markup]) -> str:
        """Return the items and why each is open, and of the first ones what is proved; findings by kind."""
        records = self.audited.records
        without = sum(record.findings == () for record in records)
        unfinished = Counter(record.outcome.replace("_", " ") for record in records if record.findings is None)
        chips = [
            (len(records), "items"),
            (without, "without a finding"),
            *((n, name) for name, n in sorted(unfinished.items())),
        ]
        text = IndexText(
            title=f"Audit of {self.audited.name}",
            crumb="Audit",
            command=f"calibrant audit {pool.name} --only ID --html FILE",
            columns=("findings",),
            chips=[(str(number), name) for number, name in chips],
            sections=self.section(),
            footer=f" \u00b7 pool sha256 {self.audited.digest}",
        )
        items = (findings_item(record, bodies, k < MAX_EMBEDDED) for k, record in enumerate(records))
        return index_page(self.audited.name, items, text)

    def section(self) -> Markup:
        """Return the part of the page that counts findings by kind."""
        kinds = [(kind, str(verdict), number) for (kind, verdict), number in sorted(self._counts.items())]
        return Markup(html_page("audit/findings_pool.html", {"benchmark": self.title, "kinds": kinds}))

    def write_certificates(self, folder: Path) -> Iterator[str]:
        """Write a file for each finding that has a certificate, numbered."""
        number = 0
        for finding in self.findings():
            if finding.certificate is not None:
                content = {"instance": finding.instance, "certificate": msgspec.to_builtins(finding.certificate)}
                write_atomically(folder / f"{number:04}.claim.json", json.dumps(content, indent=1) + "\n")
                number += 1
        yield f"{plural(number, 'certificates')} written to {folder}"

    def text(self, pool: Path, width: int | None) -> Printed:
        reasons = reason_lines(self.audited.records, width)
        return Printed(chain(reasons, [""], findings_lines(self.findings(), width)))

    def json_pieces(self) -> Iterator[str]:
        return list_pieces(chain.from_iterable(map(_json_rows, self.audited.records)))


def _json_rows(record: FindingsRecord) -> Iterator[dict[str, Any]]:
    """Yield the findings of an item, each with the item's reason; a row without a finding where there is none."""
    why = reason_of(record)
    reason = {"state": why.state, "fit": why.fit, "reason": why.reason}
    for finding in record.findings or ():
        yield msgspec.to_builtins(finding) | reason
    if not record.findings:
        yield {"instance": record.instance, "kind": None, "verdict": None, "claim": record.error or None} | reason


def findings_item(record: FindingsRecord, bodies: Mapping[int, Markup], has_page: bool) -> IndexItem:
    """Return the line of an item with findings, and its page where it has one; the further cell counts findings."""
    findings = record.findings or ()
    numbers = Counter(str(finding.verdict) for finding in findings)
    words = (
        ", ".join(f"{numbers[verdict]} {verdict}" for verdict in map(str, ClaimStatus) if numbers[verdict]) or "none"
    )
    cell = words if record.findings is not None else record.outcome.replace("_", " ")
    body = Markup("")
    if has_page:
        listed = [
            {
                "kind": one.kind,
                "verdict": str(one.verdict),
                "claim": one.claim,
                "data": json.dumps(one.data) if one.data else "",
                "certified": "yes" if one.certificate is not None else "no",
            }
            for one in findings
        ]
        body = bodies.get(record.index, body) + Markup(
            html_page("audit/findings_item.html", {"record": record, "findings": listed})
        )
    return IndexItem(record.instance, reason_of(record), body, cells=(cell,))


def findings_lines(findings: Iterable[FindingRecord], width: int | None = None) -> Iterator[str]:
    """Yield the lines of the table of findings; claims are wrapped to the width."""
    cells = [(finding.instance, finding.kind, str(finding.verdict), finding.claim) for finding in findings]
    if not cells:
        return iter(["nothing found"])
    return wrapped_lines(["Instance", "Kind", "Verdict", "Claim"], cells, width)


def check_certificate(
    of: Benchmark[Any], content: Mapping[str, Any], items: Mapping[str, Item[Any, Any]]
) -> tuple[bool, str]:
    """Return whether a certificate holds about the item that it names, and why not, or the class derived again."""
    if not isinstance(content, dict) or content.keys() != {"instance", "certificate"}:
        return False, "not an object with the keys instance and certificate"
    item = items.get(content["instance"]) if isinstance(content["instance"], str) else None
    if item is None:
        return False, "it is about no instance of this pool"
    try:
        certificate = msgspec.convert(content["certificate"], Certificate, strict=True)
    except (msgspec.ValidationError, ValueError) as error:  # ValueError: half a surrogate pair
        return False, str(error)
    claims = of.require(FINDINGS)
    verdict = verify(certificate, claims.evidence(item), claims.verifiers)
    return verdict.holds, verdict.reason or f"{item.id}: {certificate.claim}; class: {verdict.in_words}"
