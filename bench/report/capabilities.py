"""Capability of a benchmark to have a section in reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from calibrant.bench.core.capabilities import Capability

if TYPE_CHECKING:
    from calibrant.bench.report.rows import Answer
    from calibrant.bench.report.sections import ReportContents, Section
    from calibrant.bench.runs.jobs import Progress


class Reportable(Protocol):
    """A benchmark with a section of `calibrant report`.

    table_ids: of the tables in its section, in their order
    reads_pools: whether the section depends on the pool's file where nothing is scored or attributed with it
    """

    @property
    def table_ids(self) -> Sequence[str]: ...
    @property
    def reads_pools(self) -> bool: ...

    def section(self, answers: Sequence[Answer], contents: ReportContents, progress: Progress) -> Section:
        """Return the section; `NoAnswersError` if these answers belong into none of the requested tables."""
        ...


REPORT: Capability[Reportable] = Capability("`report`")
