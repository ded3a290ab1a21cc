"""Capabilities that judge and make whole pools; those of single items are in bench.core.capabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from calibrant.bench.core.capabilities import Capability
from calibrant.bench.runs.audits import AuditedPool, AuditWork

CertificateCheck: TypeAlias = Callable[[Mapping[str, object]], tuple[bool, str]]
"""Whether a certificate holds, and one line."""


class Printed(NamedTuple):
    """Lines for standard output, and for standard error after them."""

    lines: Iterable[str]
    notes: Sequence[str] = ()


class AuditReport(Protocol):
    """An audited pool as `calibrant audit` shows it."""

    def failures(self) -> tuple[bool, Sequence[str]]:
        """Return whether the command fails, and lines that say why; `CalibrantError` for an unknown --fail-on."""
        ...

    def page(self) -> str:
        """Return the page of --html."""
        ...

    def write_certificates(self, folder: Path) -> Iterator[str]:
        """Write the files of --certificates; yield a line for each item without one that should have one, and a sum."""
        ...

    def text(self, pool: Path, width: int | None) -> Printed:
        """Return what is printed. width: columns of the terminal; None for as many as needed"""
        ...

    def json_pieces(self) -> Iterator[str]:
        """Yield the JSON of --json."""
        ...


class Auditable(Protocol):
    """A benchmark whose pools `calibrant audit` judges.

    workers: processes where --workers is not given; None for one per core
    """

    @property
    def workers(self) -> int | None: ...

    def work(self, options: Any, fail_on: str | None, *, certify: bool) -> AuditWork[Any]:
        """Return what to do with each item; refuse options that do not go together. options: of `audit`"""
        ...

    def report(self, audited: AuditedPool[Any], work: AuditWork[Any], options: Any, fail_on: str | None) -> AuditReport:
        """Return the report on an audited pool."""
        ...


class CertificateCheckable(Protocol):
    """A benchmark whose certificates `calibrant verify` checks."""

    def check_against(self, pool: Path) -> CertificateCheck:
        """Return the check of one certificate against the items of a pool."""
        ...


AUDIT: Capability[Auditable] = Capability("`audit`")
VERIFY: Capability[CertificateCheckable] = Capability("`verify`")
