"""Certificates of findings: their records, and files of them, read within bounds and checked one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from calibrant.audits.claims import (
    MAX_REASON_CHARS,
    Certificate,
    ClaimStatus,
    Listener,
    NotExaminedError,
    RecountLimitError,
    Refused,
    limited_recount,
)
from calibrant.bench.pools.capabilities import CertificateCheck
from calibrant.dsl.errors import PoolError, in_one_line, short_repr
from calibrant.dsl.parse_limits import TooLargeError, load_json, read_bounded, unique_keys

# --- Records of findings and of their certificates, for benchmarks without records of their own (audits.claims) -------


class ClaimFile(msgspec.Struct, forbid_unknown_fields=True):
    """A claim about an item, of any benchmark but ReplaySCM."""

    instance: Annotated[str, Meta(description="id of the item")]
    certificate: Annotated[Certificate, Meta(description="what is claimed, of which evidence")]


class FindingRecord(msgspec.Struct, forbid_unknown_fields=True):
    """What `calibrant audit --json` lists of any benchmark but ReplaySCM."""

    instance: Annotated[str, Meta(description="the item that it is about")]
    kind: Annotated[str, Meta(description="sort of flaw")]
    verdict: Annotated[ClaimStatus, Meta(description="proved, refuted, or open where the budget ended first")]
    claim: Annotated[str, Meta(description="in a line")]
    data: Annotated[dict[str, int | float | str], Meta(description="the figures behind it")]
    certificate: Annotated[
        Certificate | None, Meta(description="what a third party can check it by, null where there is none")
    ]


# --- Certificate files: read within bounds, and checked one by one; whatever a file holds, its verdict is one line ----


class Verdict(StrEnum):
    """Result of a check. OPEN: the limit of time was reached, or the engine lacks an encoding: nothing is shown."""

    VERIFIED = "verified"
    REFUSED = "refused"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class FileCheck:
    """The verdict on one file; `reason` is one line."""

    certificate: Path
    verdict: Verdict
    reason: str

    def to_dict(self) -> dict[str, object]:
        verified = self.verdict is Verdict.VERIFIED
        fields = {"certificate": str(self.certificate), "verified": verified, "reason": self.reason}
        return fields | {"verdict": str(self.verdict)}


def check_file(
    path: Path, check: CertificateCheck, seconds: float, listen: Listener = lambda part, done, total: None
) -> FileCheck:
    """Read and check a certificate; `OSError` only where the file cannot be read."""
    try:
        text = read_bounded(path)
    except TooLargeError as refusal:
        return FileCheck(path, Verdict.REFUSED, in_one_line(str(refusal)))
    try:
        with limited_recount(seconds, listen):
            holds, reason = check(parse_certificate(text))
        verdict = Verdict.VERIFIED if holds else Verdict.REFUSED
    except RecountLimitError as limit:
        verdict, reason = Verdict.OPEN, f"neither verified nor refuted {limit}"
    except NotExaminedError as lack:
        verdict, reason = Verdict.OPEN, f"neither verified nor refuted: {lack}"
    except Refused as refusal:
        verdict, reason = Verdict.REFUSED, str(refusal)
    except Exception as error:  # a certificate is hostile input: one that breaks its checker does not hold
        verdict, reason = Verdict.REFUSED, f"it cannot be checked: {type(error).__name__} {short_repr(str(error))}"
    return FileCheck(path, verdict, in_one_line(reason)[:MAX_REASON_CHARS])


def parse_certificate(text: bytes) -> Mapping[str, object]:
    """Return the object of a file; `Refused` for what is too large, no JSON, or has a field twice."""
    try:
        parsed = load_json(text, object_pairs_hook=unique_keys, parse_constant=_refuse_number, parse_float=_finite)
    except (TooLargeError, PoolError) as error:
        raise Refused(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise Refused(f"not JSON: {' '.join(str(error).split())}") from None
    if not isinstance(parsed, dict):
        raise Refused("not a JSON object")
    return parsed


def _refuse_number(text: str) -> object:
    raise Refused(f"not JSON: {text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Refused(f"the number {short_repr(text)} is too large")
    return number
