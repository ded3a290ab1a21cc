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
from msgspec import Meta

from calibrant.audits.claims import Certificate, verify
from calibrant.audits.finding import ClaimStatus, Finding
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import FINDINGS
from calibrant.bench.core.registry import benchmark
from calibrant.bench.pages.aligned import GAP, aligned_lines, paragraphs, wrapped_row
from calibrant.bench.pages.html_page import html_page
from calibrant.bench.pages.json_stream import list_pieces
from calibrant.bench.pools.capabilities import CertificateCheck, Printed
from calibrant.bench.pools.claim_records import FindingRecord
from calibrant.bench.runs.audits import Audited, AuditedPool, AuditHead, AuditWork, record_order
from calibrant.bench.runs.jsonl_file import RecordKind
from calibrant.bench.runs.records import Timing
from calibrant.bench.terminal.width import RECORDS_BELOW
from calibrant.bench.version import program_version
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.item import Item
from calibrant.dsl.stored_items import items_by_id

RECORD_VERSION = 1
MIN_CLAIM_WIDTH = 24  # columns; in fewer a line holds one or two words
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
)


class FindingsRecord(AuditHead, frozen=True, forbid_unknown_fields=True):
    """The audit of one item of a pool, or why there is none."""

    findings: Annotated[tuple[FindingRecord, ...] | None, Meta(description="null if it was not")]
    error: Annotated[str, Meta(description="why it was not; empty otherwise")]
    program: Annotated[str, Meta(description="version of the program")]
    timing: Annotated[Timing, Meta(description="when, and how long")]
    version: Annotated[int, Meta(description="version of the format")] = RECORD_VERSION


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
        return FindingsRecord(**head, findings=audited.result, error=audited.error, program=version, timing=timing)


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

    def check_against(self, pool: Path) -> CertificateCheck:
        of = benchmark(self.name)
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
            raise CalibrantError(f"unknown kind {short_repr(self.kind)}; known: {', '.join(sorted(kinds))}")
        records = self.audited.records
        errors = [in_one_line(f"{one.instance}: {one.error}") for one in records if one.outcome != "audited"]
        return bool(errors) or self._counts[self.kind or "", ClaimStatus.PROVED] > 0, errors

    def page(self) -> str:
        """Return the findings as a page: how many of each kind, the items, and every finding with its figures."""
        return html_page("findings.html", self._page_content())

    def _page_content(self) -> Mapping[str, Any]:
        records = self.audited.records
        without = sum(record.findings == () for record in records)
        unfinished = Counter(record.outcome.replace("_", " ") for record in records if record.findings is None)
        tiles = [("items", len(records)), ("without a finding", without), *sorted(unfinished.items())]
        return {
            "pool": self.audited.name,
            "digest": self.audited.digest,
            "benchmark": self.title,
            "program": program_version(),
            "tiles": tiles,
            "kinds": [(kind, str(verdict), number) for (kind, verdict), number in sorted(self._counts.items())],
            "records": [_page_section(record) for record in records],
        }

    def write_certificates(self, folder: Path) -> Iterator[str]:
        """Write a file for each finding that has a certificate, numbered."""
        number = 0
        for finding in self.findings():
            if finding.certificate is not None:
                content = {"instance": finding.instance, "certificate": msgspec.to_builtins(finding.certificate)}
                write_atomically(folder / f"{number:04}.claim.json", json.dumps(content, indent=1) + "\n")
                number += 1
        yield f"{number} certificates written to {folder}"

    def text(self, pool: Path, width: int | None) -> Printed:
        return Printed(findings_lines(self.findings(), width))

    def json_pieces(self) -> Iterator[str]:
        return list_pieces(map(msgspec.to_builtins, self.findings()))


def _page_section(record: FindingsRecord) -> dict[str, Any]:
    """Return an item of the page: its findings, worst first, and how its verdict reads."""
    findings = record.findings or ()
    verdicts = {finding.verdict for finding in findings}
    worst = next((str(one) for one in (ClaimStatus.PROVED, ClaimStatus.OPEN) if one in verdicts), "clean")
    data = [json.dumps(finding.data) if finding.data else "" for finding in findings]
    listed = [
        {"kind": one.kind, "verdict": str(one.verdict), "claim": one.claim, "data": figures, "certified": certified}
        for one, figures in zip(findings, data, strict=True)
        for certified in ["yes" if one.certificate is not None else "no"]
    ]
    return {
        "anchor": f"i{record.index}",
        "record": record,
        "verdict": worst if record.findings is not None else record.outcome,
        "findings": listed,
    }


def findings_lines(findings: Iterable[FindingRecord], width: int | None = None) -> Iterator[str]:
    """Yield the lines of the table of findings; a claim that ends beyond the width continues below itself.

    width: columns of a line, as far as the other cells leave MIN_CLAIM_WIDTH of them; None: a line for each finding
    """
    cells = [
        [*map(in_one_line, (finding.instance, finding.kind, str(finding.verdict), finding.claim))]
        for finding in findings
    ]
    if not cells:
        return iter(["nothing found"])
    headings = ["Instance", "Kind", "Verdict", "Claim"]
    if width is not None and width < RECORDS_BELOW:
        rows = [dict(zip(headings, row, strict=True)) for row in cells]
        return iter(["\n\n".join(paragraphs(dict.fromkeys(headings, ""), rows, headings[:-1], width))])
    if width is not None:
        used = sum(
            max(map(len, column)) + GAP for column in zip(headings[:-1], *(row[:-1] for row in cells), strict=True)
        )
        claim_width = max(MIN_CLAIM_WIDTH, width - used)
        cells = [line for row in cells for line in wrapped_row(row, claim_width)]
    return aligned_lines(headings, cells)


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
