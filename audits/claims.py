"""Claims of any benchmark: findings, certificates that a third party can check, and the limit on a check's time.

The envelope is common; each kind of claim defines its data and its check. The caller passes verifiers as a mapping, and
this module imports no solver, so that no claim is checked by the code that produced it. A verifier trusts nothing in a
certificate: it derives the class again and refuses data of another shape.

A check that is stopped early neither verifies nor refutes its certificate.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec
from msgspec import Meta

from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr

# --- Time limit and progress of a check: verifiers call `checkpoint`, which informs the caller and stops late checks --
Listener: TypeAlias = Callable[[str, int, int], None]  # part of the check, steps done, steps in all


class RecountLimitError(CalibrantError):
    """The limit of time or steps was reached; the message names the part and how far it was."""


EngineName: TypeAlias = Literal["sat", "smt"]  # of the search that proves a claim a second time


class NotExaminedError(CalibrantError):
    """The claim cannot be examined, by this engine or within a limit; the message states the reason."""


@dataclass
class _Watch:
    seconds: float
    listen: Listener
    started: float = field(default_factory=time.monotonic)


_watch: ContextVar[_Watch | None] = ContextVar("recount", default=None)


@contextmanager
def limited_recount(seconds: float, listen: Listener = lambda part, done, total: None) -> Iterator[None]:
    """Stop the checks in this context after `seconds`: their next checkpoint raises `RecountLimitError`."""
    token = _watch.set(_Watch(seconds, listen))
    try:
        yield
    finally:
        _watch.reset(token)


def checkpoint(part: str, done: int, total: int) -> None:
    """Report the progress of a check; `RecountLimitError` once the time is over."""
    watch = _watch.get()
    if watch is None:
        return
    if time.monotonic() - watch.started > watch.seconds:
        raise RecountLimitError(f"in {watch.seconds:g} seconds (--budget): {part} (step {done} of {total})")
    watch.listen(part, done, total)


# --- Certificates of any benchmark: a claim about evidence, in an envelope that a third party can check ---------------
FORMAT = "calibrant-claim"
VERSION = 1


class Certificate(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Claim about evidence, with the data to check it."""

    claim: Annotated[str, Meta(description="name of the claim, which defines how to read `data`")]
    in_words: Annotated[str, Meta(description="the class of hypotheses that the claim is about")]
    evidence: Annotated[str, Meta(description="SHA-256 of the evidence, see `evidence_digest`")]
    data: Annotated[
        dict[str, Any], Meta(description="whatever a verifier of this claim needs beside the evidence, as JSON")
    ]
    format: Annotated[str, Meta(description="calibrant-claim")]
    version: Annotated[int, Meta(description="of the format, 1")]


def write_claim(folder: Path, number: int, instance: str, certificate: Certificate) -> None:
    """Write a certificate about an item of a pool as a numbered file, for `calibrant verify` with that pool."""
    content = {"instance": instance, "certificate": msgspec.to_builtins(certificate)}
    write_atomically(folder / f"{number:04}.claim.json", json.dumps(content, indent=1) + "\n")


# (evidence, certificate) -> why the claim does not follow from the evidence, "" if it does
Verifier: TypeAlias = Callable[[Any, Certificate], str]


class Refused(CalibrantError):  # noqa: N818  # a verdict, raised where it is reached
    """A certificate that does not hold; the message says what is wrong."""


class NoData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Empty data, for a claim that is checked by the evidence alone."""


@dataclass(frozen=True, slots=True)
class ClaimKind:
    """A verifier of one claim.

    data: type of the certificate's data; other types, missing and unknown fields are refused
    in_words: derives the class, in words, from the evidence and the checked data
    check: returns why the claim does not follow, "" if it does; called with data of the type `data` only
    statement: the claim in words; "" for claims whose name suffices
    """

    data: type[msgspec.Struct]
    in_words: Callable[[Any, Certificate], str]
    check: Verifier
    statement: Callable[[Certificate], str] = lambda certificate: ""

    def __call__(self, evidence: Any, certificate: Certificate) -> str:
        msgspec.convert(certificate.data, self.data, strict=True)
        reason = self.check(evidence, certificate)
        if reason:
            return reason
        return "" if certificate.in_words == self.in_words(evidence, certificate) else "it is about another class"


def fixed_words(text: str) -> Callable[[Any, Certificate], str]:
    """Return an `in_words` for a claim whose class is the same for all evidence."""
    return lambda evidence, certificate: text


@runtime_checkable
class PartlySealed(Protocol):
    """Evidence with a part hidden from solvers, which a verifier reads and the digest omits."""

    @property
    def digested(self) -> object: ...


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """Result of checking a certificate.

    holds: whether the claim follows; reason: why it does not
    in_words, statement: as `ClaimKind` derives them for a certificate that holds; else ""
    """

    holds: bool
    reason: str = ""
    in_words: str = field(default="", compare=False)
    statement: str = field(default="", compare=False)


def evidence_digest(evidence: object) -> str:
    """Return the SHA-256 of evidence as JSON with sorted keys, in hexadecimal."""
    content = evidence.digested if isinstance(evidence, PartlySealed) else evidence
    text = json.dumps(msgspec.to_builtins(content), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def certify(claim: str, in_words: str, evidence: object, data: Mapping[str, Any]) -> Certificate:
    """Return a certificate of a claim about evidence."""
    return Certificate(
        claim=claim,
        in_words=in_words,
        evidence=evidence_digest(evidence),
        data=dict(data),
        format=FORMAT,
        version=VERSION,
    )


def verify(certificate: Certificate, evidence: object, verifiers: Mapping[str, Verifier]) -> ClaimCheck:
    """Check a certificate against evidence.

    A claim without a verifier does not hold. Neither does one whose data raise an exception in the verifier (missing
    or mistyped entries); only `RecountLimitError` and `NotExaminedError` pass through.
    """
    if reason := _foreign_reason(certificate, evidence):
        return ClaimCheck(False, reason)
    verifier = verifiers.get(certificate.claim)
    if verifier is None:
        return ClaimCheck(False, f"no verifier for the claim {short_repr(certificate.claim)}")
    try:
        reason = verifier(evidence, certificate)
    except (RecountLimitError, NotExaminedError):
        raise
    except Exception as error:  # whatever the data break: a certificate that cannot be checked does not hold
        return ClaimCheck(False, f"data that do not fit the claim: {short_repr(_message(error))}")
    if reason:
        return ClaimCheck(False, in_one_line(reason)[:MAX_REASON_CHARS])
    if not isinstance(verifier, ClaimKind):
        return ClaimCheck(True)
    return ClaimCheck(True, "", verifier.in_words(evidence, certificate), verifier.statement(certificate))


def examine(
    certificate: Certificate,
    evidence: object,
    kinds: Mapping[str, Verifier],
    examiners: Mapping[str, Callable[[Any, Certificate, EngineName], str]],
    engine: EngineName,
) -> str:
    """Prove a claim a second time by SAT or SMT search; return one line on how it was proved.

    kinds, examiners: by name of the claim, its `ClaimKind` and its search

    `Refused` with a counterexample if it is false, `NotExaminedError` for claims that have no encoding,
    `RecountLimitError` if steps or time ran out.
    """
    if reason := _foreign_reason(certificate, evidence):
        raise Refused(reason)
    kind = kinds.get(certificate.claim)
    if not isinstance(kind, ClaimKind):
        raise Refused(f"there is no claim {short_repr(certificate.claim)}")
    if certificate.claim not in examiners:
        raise NotExaminedError(
            f"{engine} search has no encoding of {certificate.claim}, which is checked by a replay or a recount alone"
        )
    msgspec.convert(certificate.data, kind.data, strict=True)
    line = examiners[certificate.claim](evidence, certificate, engine)
    if certificate.in_words != kind.in_words(evidence, certificate):
        raise Refused("it is about another class")
    return line


def _foreign_reason(certificate: Certificate, evidence: object) -> str:
    """Return why a certificate is of another format or about other evidence; "" if it is not."""
    if (certificate.format, certificate.version) != (FORMAT, VERSION):
        return f"not a '{FORMAT}' of version {VERSION}"
    return "" if certificate.evidence == evidence_digest(evidence) else "made for other evidence"


MAX_REASON_CHARS = 500


def _message(error: Exception) -> str:
    return str(error) or type(error).__name__


# --- Findings: results of audits, in one shape for every benchmark ----------------------------------------------------


class ClaimStatus(StrEnum):
    """Status of a claim: proved, proved false, or neither within the budget."""

    PROVED = "proved"
    REFUTED = "refuted"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim of an audit, and its status.

    kind: the sort of flaw, such as `misprint`, which an option of a command may name as an error
    where: the item, table or file that the claim is about
    claim: one line
    data: statistics of the claim, flat and ready for JSON
    certificate: lets a third party check the claim; None if none was issued
    """

    kind: str
    verdict: ClaimStatus
    where: str
    claim: str
    data: Mapping[str, int | float | str] = field(default_factory=dict)
    certificate: Certificate | None = None

    def __repr__(self) -> str:
        about = f"{in_one_line(self.where)[:60]}: {in_one_line(self.claim)[:80]}"
        return f"<Finding: {self.kind}, {self.verdict}, {about}>"


# --- Soundness of an item before it is used: checks of its record, whether it can be decided, and duplicates ----------
I = TypeVar("I")  # noqa: E741  # an item

Check: TypeAlias = Callable[[I], str | None]
"""Why an item fails, "" if it passes, None if the check does not apply to it."""


@dataclass(frozen=True)
class ItemIdentity(Generic[I]):
    """Keys that are equal for items of one equivalence class.

    units: plural noun for latent models, as `programs`
    duplicate_key: equal for items that show and ask the same, whatever a system does within the budget
    model_keys: keys of the item's latent models, equal up to renaming; empty if the item states none
    structure_key: key of the model's graph, equal up to renaming; only for items with a model
    """

    units: str
    duplicate_key: Callable[[I], bytes]
    model_keys: Callable[[I], tuple[bytes, ...]]
    structure_key: Callable[[I], bytes]


@dataclass(frozen=True)
class Soundness(Generic[I]):
    """Soundness of an item.

    checks: by statement of the file about the item, its check; a failed one is an error of the file
    explain_undecided: why no system can be sure of a right answer within the item's budget, by an exact solver of the
        item's class; "" if one can
    identity: keys of equal items
    """

    checks: Mapping[str, Check[I]]
    explain_undecided: Check[I]
    identity: ItemIdentity[I]
