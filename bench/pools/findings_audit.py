"""Audits of a pool: findings with certificates (audits.claims) as records, pages, files and checks.

Benchmarks with further results derive from `FindingsAudit` and `FindingsReport`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import chain
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any, Generic

import msgspec
from markupsafe import Markup
from msgspec import Meta

from calibrant.audits import claims as audits_claims
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import FINDINGS, Capability
from calibrant.bench.core.registry import benchmark
from calibrant.bench.pages.page import html_page
from calibrant.bench.pages.terminal_tables import wrapped_lines
from calibrant.bench.pages.why import MAX_EMBEDDED, IndexItem, IndexText, index_page
from calibrant.bench.pools.capabilities import CertificateCheck, Printed
from calibrant.bench.runs import audits
from calibrant.bench.runs.records import RecordKind, Timing
from calibrant.bench.version import program_version
from calibrant.dsl.errors import CalibrantError, PoolError, in_one_line, require_extra, short_repr
from calibrant.dsl.item import Item
from calibrant.dsl.parse_limits import TooLargeError, load_json, read_bounded, unique_keys
from calibrant.dsl.records import items_by_id
from calibrant.dsl.text import known_names, plural

# --- Records of findings and certificates, for benchmarks without their own -------------------------------------------


class ClaimFile(msgspec.Struct, forbid_unknown_fields=True):
    """A claim about an item, of any benchmark but ReplaySCM."""

    instance: Annotated[str, Meta(description="id of the item")]
    certificate: Annotated[audits_claims.Certificate, Meta(description="what is claimed, of which evidence")]


class FindingRecord(msgspec.Struct, forbid_unknown_fields=True):
    """What `calibrant audit --json` lists of any benchmark but ReplaySCM."""

    instance: Annotated[str, Meta(description="the item that it is about")]
    kind: Annotated[str, Meta(description="sort of flaw")]
    verdict: Annotated[
        audits_claims.ClaimStatus, Meta(description="proved, refuted, or open where the budget ended first")
    ]
    claim: Annotated[str, Meta(description="in a line")]
    data: Annotated[dict[str, int | float | str], Meta(description="the figures behind it")]
    certificate: Annotated[
        audits_claims.Certificate | None,
        Meta(description="what a third party can check it by, null where there is none"),
    ]


# --- Certificate files: bounded in size, each checked to one line of verdict, whatever its content --------------------


class Verdict(StrEnum):
    """Result of a check. OPEN: the time limit was reached, or the engine has no encoding of the claim."""

    VERIFIED = "verified"
    REFUSED = "refused"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class FileCheck:
    """The verdict on one certificate file. reason: why, in one line."""

    certificate: Path
    verdict: Verdict
    reason: str

    def to_dict(self) -> dict[str, object]:
        verified = self.verdict is Verdict.VERIFIED
        fields = {"certificate": str(self.certificate), "verified": verified, "reason": self.reason}
        return fields | {"verdict": str(self.verdict)}


def check_file(
    path: Path, check: CertificateCheck, seconds: float, listen: audits_claims.Listener = lambda part, done, total: None
) -> FileCheck:
    """Read and check a certificate; raises only `OSError`, if the file cannot be read."""
    try:
        text = read_bounded(path)
    except TooLargeError as refusal:
        return FileCheck(path, Verdict.REFUSED, in_one_line(str(refusal)))
    try:
        with audits_claims.limited_recount(seconds, listen):
            holds, reason = check(parse_certificate(text))
        verdict = Verdict.VERIFIED if holds else Verdict.REFUSED
    except audits_claims.RecountLimitError as limit:
        verdict, reason = Verdict.OPEN, f"neither verified nor refuted {limit}"
    except audits_claims.NotExaminedError as lack:
        verdict, reason = Verdict.OPEN, f"neither verified nor refuted: {lack}"
    except audits_claims.Refused as refusal:
        verdict, reason = Verdict.REFUSED, str(refusal)
    except Exception as error:  # certificates are untrusted: one that breaks its checker is refused
        verdict, reason = Verdict.REFUSED, f"it cannot be checked: {type(error).__name__} {short_repr(str(error))}"
    return FileCheck(path, verdict, in_one_line(reason)[: audits_claims.MAX_REASON_CHARS])


def parse_certificate(text: bytes) -> Mapping[str, object]:
    """Parse the JSON object of a certificate file; `Refused` for too large values, invalid JSON or a repeated field."""
    try:
        parsed = load_json(text, object_pairs_hook=unique_keys, parse_constant=_refuse_number, parse_float=_finite)
    except (TooLargeError, PoolError) as error:
        raise audits_claims.Refused(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise audits_claims.Refused(f"not JSON: {' '.join(str(error).split())}") from None
    if not isinstance(parsed, dict):
        raise audits_claims.Refused("not a JSON object")
    return parsed


def _refuse_number(text: str) -> object:
    raise audits_claims.Refused(f"not JSON: {text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise audits_claims.Refused(f"the number {short_repr(text)} is too large")
    return number


RECORD_VERSION = 1
STATE_SENTENCES: Mapping[audits.ReasonState, str] = {
    "open": "open: what is shown leaves more than one possibility",
    "decided": "decided: what is shown leaves one possibility",
    "empty": "empty: nothing fits what is shown",
    "uncounted": "not counted: a limit was reached",
    "unexplained": "without a count",
}
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


class FindingsRecord(audits.AuditHead, frozen=True, forbid_unknown_fields=True):
    """The audit of one item of a pool, or the reason why it failed."""

    findings: Annotated[tuple[FindingRecord, ...] | None, Meta(description="null if it was not")]
    error: Annotated[str, Meta(description="why it was not; empty otherwise")]
    program: Annotated[str, Meta(description="version of the program")]
    timing: Annotated[Timing, Meta(description="when, and how long")]
    version: Annotated[int, Meta(description="version of the format")] = RECORD_VERSION
    why: Annotated[audits.ReasonRecord | None, Meta(description="why the item is open; null without results")] = None


RECORDS = RecordKind("audits", "an audit of findings", FindingsRecord, RECORD_VERSION, audits.record_order)


@dataclass(frozen=True)
class FindingsWork:
    """Implements AuditWork (bench.runs.audits).

    name: name of the benchmark
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

    def record(self, head: Mapping[str, Any], audited: audits.AuditResult) -> FindingsRecord:
        version, timing = program_version(), audited.timing
        result = {"findings": audited.result, "error": audited.error, "why": audited.why}
        return FindingsRecord(**head, **result, program=version, timing=timing)


def _finding_record(finding: audits_claims.Finding) -> FindingRecord:
    data, certificate = dict(finding.data), finding.certificate
    return FindingRecord(finding.where, finding.kind, finding.verdict, finding.claim, data, certificate)


@dataclass(frozen=True)
class FindingsAudit:
    """The audit and verification of a benchmark's pools, from its FINDINGS.

    name: name of the benchmark; workers: number of processes if --workers is not given; None for one per core
    """

    name: str
    workers: int | None = 1  # an item takes milliseconds, a process a second to start

    def work(self, options: Any, fail_on: str | None, *, certify: bool) -> audits.AuditWork[Any]:
        """Return the work on each item; `CalibrantError` for options of `audit` that exclude each other."""
        return FindingsWork(self.name)

    def report(
        self, audited: audits.AuditedPool[Any], work: audits.AuditWork[Any], options: Any, fail_on: str | None
    ) -> FindingsReport[Any]:
        """Return the report on an audited pool."""
        return FindingsReport[FindingsRecord](audited, benchmark(self.name).title, fail_on)

    def check_against(self, pool: Path, engine: audits_claims.EngineName | None = None) -> CertificateCheck:
        """Return a function that checks certificates against the items of a pool.

        `MissingExtraError` at once if the engine is not installed, so that this refuses no certificate.
        """
        bench = benchmark(self.name)
        if engine == "smt":
            require_extra("smt", "z3")
        items = items_by_id(bench.items.read_pool(pool).items)
        return lambda certificate: self.check(certificate, items, engine)

    def check(
        self, content: Mapping[str, Any], items: Mapping[str, Item[Any, Any]], engine: audits_claims.EngineName | None
    ) -> tuple[bool, str]:
        """Return (whether a certificate about one of the items holds, a line on why)."""
        bench = benchmark(self.name)
        if engine is None:
            return check_certificate(bench, content, items)
        item, certificate = _certificate_about(content, items)
        claims = bench.require(FINDINGS)
        line = audits_claims.examine(certificate, claims.evidence(item), claims.verifiers, claims.examiners, engine)
        return True, f"{item.id}: {certificate.claim}: {line}"


AUDIT: Capability[FindingsAudit] = Capability("`audit`", "audit:AUDIT")
VERIFY: Capability[FindingsAudit] = Capability("`verify`", "audit:AUDIT")


@dataclass(frozen=True)
class FindingsReport(Generic[audits.R]):
    """Report of `calibrant audit` on a pool.

    kind: kind of findings that makes the command fail; None for no kind
    """

    audited: audits.AuditedPool[audits.R]
    title: str
    kind: str | None

    @property
    def records(self) -> Sequence[audits.R]:
        """The records of the items' audits."""
        return self.audited.records

    def findings_of(self, record: audits.R) -> tuple[FindingRecord, ...] | None:
        """Return the findings in a record; None if the item has no results."""
        assert isinstance(record, FindingsRecord)
        return record.findings

    def findings(self) -> Iterator[FindingRecord]:
        """Yield all findings, item by item; records may be read from a file each time."""
        return chain.from_iterable(self.findings_of(record) or () for record in self.records)

    @cached_property
    def _counts(self) -> Counter[tuple[str, audits_claims.ClaimStatus]]:
        return Counter((finding.kind, finding.verdict) for finding in self.findings())

    def failures(self) -> tuple[bool, Sequence[str]]:
        """Return (whether the command fails, a line for each item's error); `CalibrantError` for an unknown `kind`.

        The command fails if an item could not be audited, or if a finding of `kind` is proved.
        """
        kinds = {*KINDS, *(kind for kind, _ in self._counts)}
        if self.kind is not None and self.kind not in kinds:
            raise CalibrantError(f"unknown kind {short_repr(self.kind)}; {known_names(self.kind, sorted(kinds))}")
        records = self.audited.records
        errors = [in_one_line(f"{r.instance}: {r.error}") for r in records if r.outcome != "audited"]
        return bool(errors) or self._counts[self.kind or "", audits_claims.ClaimStatus.PROVED] > 0, errors

    def page(self, pool: Path, bodies: Mapping[int, Markup]) -> str:
        """Return the page of --html: why each item is open, pages of the first items, findings by kind.

        bodies: index in the pool -> page on the reasons of an item, for the first items
        """
        records = self.records
        num_without = sum(self.findings_of(record) == () for record in records)
        outcomes = (record.outcome for record in records if self.findings_of(record) is None)
        unfinished = Counter(outcome.replace("_", " ") for outcome in outcomes)
        chips = [
            (len(records), "items"),
            (num_without, "without a finding"),
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
        items = (self.item(record, bodies, k < MAX_EMBEDDED) for k, record in enumerate(records))
        return index_page(self.audited.name, items, text)

    def section(self) -> Markup:
        """Return the part of the page that counts findings by kind."""
        kinds = [(kind, str(verdict), number) for (kind, verdict), number in sorted(self._counts.items())]
        return Markup(html_page("audit/findings_pool.html", {"benchmark": self.title, "kinds": kinds}))

    def write_certificates(self, folder: Path) -> Iterator[str]:
        """Write a file for each finding that has a certificate, numbered; yield lines on what was written."""
        number = 0
        for finding in self.findings():
            if finding.certificate is not None:
                audits_claims.write_claim(folder, number, finding.instance, finding.certificate)
                number += 1
        yield f"{plural(number, 'certificates')} written to {folder}"

    def text(self, pool: Path, width: int | None) -> Printed:
        """Return the printed report.

        width: columns of the terminal; None for as many as needed
        """
        reasons = audits.reason_lines(self.records, width)
        return Printed(chain(self._answer_lines(width), [""], reasons, [""], findings_lines(self.findings, width)))

    def _answer_lines(self, width: int | None) -> Iterator[str]:
        """Yield a sentence on the number of items in each state."""
        counts = Counter(audits.reason_of(record).state for record in self.records)
        for state, sentence in STATE_SENTENCES.items():
            if count := counts[state]:
                items = plural(len(self.records), "items")
                line = f"{count:,} of {items} {'is' if count == 1 else 'are'} {sentence}."
                yield from [line] if width is None else wrap(line, width)

    def json_pieces(self) -> Iterator[str]:
        """Yield the JSON of --json."""
        return audits.list_pieces(chain.from_iterable(map(self._json_rows, self.records)))

    def _json_rows(self, record: audits.R) -> Iterator[dict[str, Any]]:
        """Yield a row for each finding of an item, with the item's reason; without findings, one row with nulls."""
        why, findings = audits.reason_of(record), self.findings_of(record)
        reason = {"state": why.state, "fit": why.fit, "reason": why.reason}
        for finding in findings or ():
            yield msgspec.to_builtins(finding) | reason
        if not findings:
            yield {"instance": record.instance, "kind": None, "verdict": None, "claim": record.error or None} | reason

    def item(self, record: audits.R, bodies: Mapping[int, Markup], has_page: bool) -> IndexItem:
        """Return the index entry of an item, with its page if `has_page`; its extra cell counts findings by verdict."""
        findings = self.findings_of(record)
        counts = Counter(str(finding.verdict) for finding in findings or ())
        words = ", ".join(
            f"{counts[verdict]} {verdict}" for verdict in map(str, audits_claims.ClaimStatus) if counts[verdict]
        )
        cell = record.outcome.replace("_", " ") if findings is None else words or "none"
        body = Markup("")
        if has_page:
            finding_cells = findings and [
                {
                    "kind": finding.kind,
                    "verdict": str(finding.verdict),
                    "claim": finding.claim,
                    "data": json.dumps(finding.data) if finding.data else "",
                    "certified": "yes" if finding.certificate is not None else "no",
                }
                for finding in findings
            ]
            body = bodies.get(record.index, body) + Markup(
                html_page("audit/findings_item.html", {"record": record, "findings": finding_cells})
            )
        return IndexItem(record.instance, audits.reason_of(record), body, cells=(cell,))


def findings_lines(read_findings: Callable[[], Iterable[FindingRecord]], width: int | None = None) -> Iterator[str]:
    """Yield the lines of the table of findings, read in each pass anew; claims are wrapped to the width."""
    if not any(True for _ in read_findings()):
        return iter(["No item has a finding."])

    def rows() -> Iterator[tuple[str, str, str, str]]:
        return ((finding.instance, finding.kind, str(finding.verdict), finding.claim) for finding in read_findings())

    return wrapped_lines(["Instance", "Kind", "Verdict", "Claim"], rows, width)


def _certificate_about(
    content: Mapping[str, Any], items: Mapping[str, Item[Any, Any]]
) -> tuple[Item[Any, Any], audits_claims.Certificate]:
    """Return the item that a certificate names, and the certificate; `Refused` for a malformed file."""
    if not isinstance(content, dict) or content.keys() != {"instance", "certificate"}:
        raise audits_claims.Refused("not an object with the keys instance and certificate")
    item = items.get(content["instance"]) if isinstance(content["instance"], str) else None
    if item is None:
        raise audits_claims.Refused("it is about no instance of this pool")
    try:
        return item, msgspec.convert(content["certificate"], audits_claims.Certificate, strict=True)
    except (msgspec.ValidationError, ValueError) as error:  # ValueError: half a surrogate pair
        raise audits_claims.Refused(str(error)) from None


def check_certificate(
    bench: Benchmark[Any], content: Mapping[str, Any], items: Mapping[str, Item[Any, Any]]
) -> tuple[bool, str]:
    """Return (whether a certificate about one of the items holds, a line: why not, or what was rederived)."""
    try:
        item, certificate = _certificate_about(content, items)
    except audits_claims.Refused as refusal:
        return False, str(refusal)
    claims = bench.require(FINDINGS)
    verdict = audits_claims.verify(certificate, claims.evidence(item), claims.verifiers)
    claim = ": ".join(filter(None, (certificate.claim, verdict.statement)))
    return verdict.holds, verdict.reason or f"{item.id}: {claim}; class: {verdict.in_words}"
