"""Capabilities that reports and tables of episodes need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from calibrant.bench.core.capabilities import Capability

if TYPE_CHECKING:
    from calibrant.bench.report.rows import Answer
    from calibrant.bench.report.sections import ReportContents, Section
    from calibrant.bench.report.sources import Transcript
    from calibrant.bench.runs.executors import Progress


class Reportable(Protocol):
    """A benchmark with a section of `calibrant report`.

    table_ids: of the tables in its section, in their order
    """

    @property
    def table_ids(self) -> Sequence[str]: ...

    def section(self, answers: Sequence[Answer], contents: ReportContents, progress: Progress) -> Section:
        """Return the section; `NoAnswersError` if these answers belong into none of the requested tables."""
        ...


class TableRow(Protocol):
    """A row of a table."""

    def cells(self) -> list[str]: ...


class TrajectoryMeans(Protocol):
    """Means over runs by step.

    headings: of the columns; num_uncounted: runs that are left out
    """

    @property
    def headings(self) -> Sequence[str]: ...
    @property
    def rows(self) -> Sequence[TableRow]: ...
    @property
    def num_uncounted(self) -> int: ...

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        ...


class TrajectoryAverage(Protocol):
    """Averages runs by step."""

    def __call__(self, transcripts: Iterable[Transcript], items: Mapping[tuple[str, str], Any]) -> TrajectoryMeans:
        """Return the means; items: by digest of the pool and id."""
        ...


REPORT: Capability[Reportable] = Capability("`report`", "report:REPORT")
TRAJECTORIES: Capability[TrajectoryAverage] = Capability("`table --trajectory`")
EXPECTATIONS: Capability[Callable[[Any, Sequence[Any], Mapping[str, Any]], dict[str, float | None]]] = Capability(
    "chance in `table`"
)
"""Exact expectations of guessers, from item, steps and score; of benchmarks whose levels in reports are others."""
