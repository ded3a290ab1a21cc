"""Capabilities that reports and tables of episodes need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import msgspec

from calibrant.bench.core.capabilities import Capability

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark
    from calibrant.bench.report.rows import Answer
    from calibrant.bench.report.sections import ReportContents, Section
    from calibrant.bench.report.sources import Transcript
    from calibrant.bench.runs.executors import Progress
    from calibrant.dsl.episode import Step


class Reportable(Protocol):
    """A benchmark with a section of `calibrant report`.

    table_ids: ids of the tables in its section, in order
    """

    @property
    def table_ids(self) -> Sequence[str]: ...

    def section(self, answers: Sequence[Answer], contents: ReportContents, progress: Progress) -> Section:
        """Return the section; `NoAnswersError` if no requested table has rows for these answers."""
        ...


class TableRow(Protocol):
    """A row of a table."""

    def cells(self) -> list[str]: ...


class TrajectoryMeans(Protocol):
    """Means over runs, a row for each step.

    headings: headings of the columns; num_uncounted: number of runs that are left out of the means
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
    """Function that averages runs by step."""

    def __call__(self, transcripts: Iterable[Transcript], items: Mapping[tuple[str, str], Any]) -> TrajectoryMeans:
        """Return the means. items: (digest of the pool, id) -> item."""
        ...


REPORT: Capability[Reportable] = Capability("`report`", "report:REPORT")
TRAJECTORIES: Capability[TrajectoryAverage] = Capability("`table --trajectory`")
EXPECTATIONS: Capability[Callable[[Any, Sequence[Any], Mapping[str, Any]], dict[str, float | None]]] = Capability(
    "chance in `table`"
)
"""(item, steps, score) -> exact expected rates of guessers, where they differ from the levels of reports."""


# --- Remaining hypotheses: those consistent with the evidence of an answer, as texts and as a count -------------------

MAX_SHOWN = 10  # entries of a list on a page
MAX_EXPORTED = 1_000  # entries of a list in a file


class Hypothesis(NamedTuple):
    """One entry of a list: a hypothesis, or all hypotheses that share a property.

    text: description; number: number of hypotheses in the entry
    posterior: their total probability, where readings are noisy; None where all hypotheses count alike
    """

    text: str
    number: int = 1
    posterior: float | None = None


@dataclass(frozen=True)
class Remaining:
    """All hypotheses of a class that are consistent with an answer's evidence.

    noun: noun for a hypothesis, singular and plural; count: exact number of hypotheses, as in attributions
    listed: the first entries in a fixed order, without repetition
    by: property that the hypotheses of an entry share; empty if each entry is one hypothesis
    note: a sentence about the list
    """

    noun: tuple[str, str]
    count: int
    listed: tuple[Hypothesis, ...]
    by: str = ""
    note: str = ""

    @property
    def num_unlisted(self) -> int:
        return self.count - sum(entry.number for entry in self.listed)

    def lines(self) -> list[str]:
        """Return the entries as lines, then the number of unlisted hypotheses if there are any."""
        from calibrant.audits.why import number_text

        lines = [self._line(entry) for entry in self.listed]
        if self.num_unlisted:
            lines.append(f"and {number_text(self.num_unlisted)} more")
        return lines

    @property
    def heading(self) -> str:
        """Number and noun, then `by`."""
        return f"{self._counted(self.count)}{f', {self.by}' if self.by else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON; numbers are texts because they may be arbitrarily large."""
        entries = [
            {"hypothesis": entry.text, "number": str(entry.number)}
            | ({} if entry.posterior is None else {"posterior": entry.posterior})
            for entry in self.listed
        ]
        return {"of": self.noun[1], "count": str(self.count), "by": self.by, "listed": entries} | {
            "unlisted": str(self.num_unlisted),
            "note": self.note,
        }

    def _line(self, entry: Hypothesis) -> str:
        details = [self._counted(entry.number)] if self.by and entry.posterior is None else []
        details += [] if entry.posterior is None else [f"probability {entry.posterior:.3g}"]
        return f"{entry.text} ({', '.join(details)})" if details else entry.text

    def _counted(self, number: int) -> str:
        from calibrant.audits.why import number_text

        return f"{number_text(number)} {self.noun[number != 1]}"


class RemainingLists:
    """Cache of lists of remaining hypotheses for one benchmark, by item and steps.

    limit: largest number of entries in a list
    """

    def __init__(self, bench: Benchmark[Any], limit: int = MAX_SHOWN) -> None:
        self._list = bench.capability(REMAINING)
        self._limit = limit
        self._lists: dict[tuple[str, str, bytes], Remaining | None] = {}

    def get(self, pool_digest: str, item: Any, steps: Sequence[Step[Any]]) -> Remaining | None:
        """Return the hypotheses consistent with an item and an answer's steps; None where they are not counted."""
        if self._list is None:
            return None
        key = pool_digest, item.id, msgspec.json.encode(list(steps))
        if key not in self._lists:
            self._lists[key] = self._list(item, steps, self._limit)
        return self._lists[key]


def first_entries(entries: Iterable[Hypothesis], limit: int) -> tuple[Hypothesis, ...]:
    """Return the first `limit` entries; the rest of the iteration is not computed."""
    return tuple(islice(entries, limit))


ListRemaining: TypeAlias = Callable[[Any, "Sequence[Step[Any]]", int], Remaining | None]
REMAINING: Capability[ListRemaining] = Capability("hypotheses that were open at an answer", "play:list_remaining")
"""(item, steps of an answer, largest number of entries) -> remaining hypotheses; None where they are not counted."""
