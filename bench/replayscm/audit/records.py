"""Records of ReplaySCM's audits, one JSON line per (pool, instance, options), and certificates of a pool."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from calibrant.audits.replayscm.certificates.certificate import build_certificate, to_json
from calibrant.audits.replayscm.certificates.counting import MAX_CAP
from calibrant.audits.replayscm.certificates.verify import CertificateFile
from calibrant.audits.replayscm.findings import Findings
from calibrant.bench.pools.certificates import FindingRecord
from calibrant.bench.replayscm.audit.generator_ceiling import GeneratorCeiling
from calibrant.bench.runs.audits import AuditHead, ReasonRecord, record_order
from calibrant.bench.runs.jsonl_file import RecordKind
from calibrant.bench.runs.records import Timing
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.text import plural
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.space import ModelClass

# --- Records of ReplaySCM's audits: one JSON line per (pool, instance, options), appended as instances are done -------
RECORD_VERSION = 4


class AuditRecord(AuditHead, frozen=True, forbid_unknown_fields=True):
    """The audit of one instance of a pool, or why there is none."""

    findings: Annotated[Findings | None, Meta(description="null if it was not")]
    generator: Annotated[
        GeneratorCeiling | None,
        Meta(description="the ceiling under the process that published items are drawn from; None without findings"),
    ]
    error: Annotated[str, Meta(description="why it was not; empty otherwise")]
    program: Annotated[str, Meta(description="version of the program")]
    timing: Annotated[Timing, Meta(description="when, and how long")]
    version: Annotated[int, Meta(description="version of the format")] = RECORD_VERSION
    extended: Annotated[
        tuple[FindingRecord, ...] | UnsetType,
        Meta(description="findings about an item with a stated class: an episode, noise or hidden variables"),
    ] = UNSET
    why: Annotated[ReasonRecord | None, Meta(description="why the item is open; null without results")] = None


AUDIT_RECORDS = RecordKind("audits", "an audit", AuditRecord, RECORD_VERSION, record_order)


LINE_RECORDS = {"audits": (AuditRecord,), "certificates": (CertificateFile,)}


# --- Certificates of a pool: one file per instance, named by its id ---------------------------------------------------
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")


def certificate_name(instance: str) -> str:
    """Return the id where it can be a file's name everywhere, else a digest of it."""
    name = instance if _PLAIN_NAME.fullmatch(instance) else f"id_{hashlib.sha256(instance.encode()).hexdigest()[:32]}"
    return f"{name}.json"


def _recountable(model_class: ModelClass) -> ModelClass:
    """Return the class; `ValueError` if its cap is larger than the checker can recount."""
    parents, size = model_class.max_parents, model_class.max_size
    max_size = MAX_CAP.get(parents, 0)
    if size is not None and size > max_size:
        raise ValueError(f"with {parents} parents, `calibrant verify` recounts sizes up to {max_size}, not {size}")
    return model_class


def write_certificates(
    problems: Iterable[Problem], folder: Path, class_of: Callable[[Problem], ModelClass]
) -> Iterator[str]:
    """Write the certificate of every count; yields a line for each instance that has none, and a last one."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    for problem in problems:
        try:
            text = to_json(build_certificate(problem, _recountable(class_of(problem))))
        except (ValueError, BudgetSpent) as error:
            yield f"no certificate of {problem.id}: {error}"
            continue
        write_atomically(folder / certificate_name(problem.id), f"{text}\n")
        number += 1
    yield f"{plural(number, 'certificates')} written to {folder}"
