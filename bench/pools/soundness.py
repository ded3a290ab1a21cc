"""Checks of pools of any benchmark: errors of the file, and notes on its items for its author; statistics."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.audits.claims import ClaimStatus, ItemIdentity, Soundness
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import FINDINGS, STATISTICS
from calibrant.bench.core.items import Statistic
from calibrant.bench.core.metrics import UNDEFINED
from calibrant.bench.core.registry import benchmark as benchmark_named
from calibrant.dsl.item import Item
from calibrant.dsl.records import pool_digest

UNDECIDED, DUPLICATE = "undecided", "duplicate"


class Note(NamedTuple):
    """A property of an item that its author may not intend, such as being a duplicate."""

    kind: str
    instance: str
    claim: str


class FirstItems:
    """Index of the first item with each content, over all files of a check."""

    def __init__(self) -> None:
        self._first_by_content: dict[bytes, tuple[Path, str]] = {}

    def note_repeat(self, path: Path, item_id: str, content: bytes) -> Note | None:
        """Return a note if an earlier item has this content; else add the item to the index and return None."""
        location = path, item_id
        first_path, first_id = first = self._first_by_content.setdefault(content, location)
        if first is location:
            return None
        where = "" if first_path == path else f" of {first_path}"
        return Note(DUPLICATE, item_id, f"the same as {first_id}{where}")


NOT_OFFICIAL = "not an official file"


@dataclass
class CheckReport:
    """Result of the checks of one file.

    applied: check -> number of instances to which it applies; failures: (check, instance, reason)
    official: text on which official file this is, by name and digest
    official_failure: whether a requested check of this identity failed
    unread: path of a field that no instance uses -> number of records that have it
    notes: remarks that are no errors of the file; None for ReplaySCM, whose checks have none
    """

    pool: str
    digest: str
    num_instances: int
    applied: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, str, str]] = field(default_factory=list)
    official: str = ""
    official_failure: bool = False
    unread: Mapping[str, int] = field(default_factory=dict)
    notes: list[Note] | None = None

    @property
    def passed(self) -> bool:
        return not self.failures and not self.official_failure

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        record = dataclasses.asdict(self) | {"passed": self.passed, "applied": dict(self.applied)}
        notes = record.pop("notes")
        record |= {"failures": [{"check": c, "instance": i, "reason": r} for c, i, r in self.failures]}
        return record if notes is None else record | {"notes": [note._asdict() for note in self.notes or ()]}


@dataclass(frozen=True)
class ItemChecks:
    """Implementation of Checkable (bench.pools.capabilities) item by item. name: name of the benchmark."""

    name: str
    soundness: Soundness[Any]

    def check(self, pools: Sequence[Path], options: Any) -> Iterator[CheckReport]:
        return check_items(benchmark_named(self.name), pools, self.soundness)

    @property
    def identity(self) -> ItemIdentity[Any]:
        return self.soundness.identity


def check_items(benchmark: Benchmark[Any], paths: Sequence[Path], soundness: Soundness[Any]) -> Iterator[CheckReport]:
    """Yield a report on each pool; items of earlier files count for duplicates. `PoolError` for a bad file."""
    first_items = FirstItems()
    for path in paths:
        pool = benchmark.items.read_pool(path)
        notes: list[Note] = []
        report = CheckReport(pool.name, pool_digest(path), len(pool), official="", notes=notes)
        for item in pool.items:
            _check(report, item, soundness)
            repeat = first_items.note_repeat(path, item.id, soundness.identity.duplicate_key(item))
            notes += [repeat] if repeat is not None else []
            notes += _notes(benchmark, item, soundness)
        yield report


def _check(report: CheckReport, item: Item[Any, Any], soundness: Soundness[Any]) -> None:
    for name, check in soundness.checks.items():
        reason = check(item)
        if reason is not None:
            report.applied[name] += 1
        if reason:
            report.failures.append((name, item.id, reason))


def _notes(benchmark: Benchmark[Any], item: Item[Any, Any], soundness: Soundness[Any]) -> Iterator[Note]:
    if reason := soundness.explain_undecided(item):
        yield Note(UNDECIDED, item.id, reason)
    for finding in benchmark.require(FINDINGS).findings(item):
        if finding.verdict is ClaimStatus.PROVED:
            yield Note(finding.kind, item.id, finding.claim)


# --- Statistics of a pool, per stratum --------------------------------------------------------------------------------


@dataclass(frozen=True)
class PoolStats:
    """Statistics of one setting and stratum of a pool.

    figures: column -> its statistic: a number, [least, greatest], {least, median, greatest} or counts by value
    """

    pool: str
    setting: str
    stratum: str
    figures: Mapping[str, Statistic]

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics for JSON, null for undefined ones."""
        return {"pool": self.pool, "setting": self.setting, "stratum": self.stratum or None, **self.figures}

    def cells(self) -> dict[str, str]:
        """Return the values as texts for a table."""
        labels = {"pool": self.pool, "setting": self.setting, "stratum": self.stratum or UNDEFINED}
        return labels | {key: _text(figure) for key, figure in self.figures.items()}


def pool_stats(name: str, items: Iterable[Item[Any, Any]], benchmark: Benchmark[Any]) -> list[PoolStats]:
    """Return the statistics of each setting and suite, in order of appearance; items are read once, not stored."""
    statistics = benchmark.require(STATISTICS)
    columns = statistics.columns
    groups: dict[tuple[str, str], dict[str, list[Any]]] = {}
    for item in items:
        key = item.setting, statistics.group(item)
        values = groups.get(key) or groups.setdefault(key, {column: [] for column in columns})
        for column, statistic in columns.items():
            values[column].extend(statistic.values(item))
    return [
        PoolStats(
            name, setting, suite, {column: statistic.summary(values[column]) for column, statistic in columns.items()}
        )
        for (setting, suite), values in groups.items()
    ]


def _text(figure: Statistic) -> str:
    """Return a range as 8-11; least, median and greatest as 3/7/12; counts as `value:count`, separated by spaces."""
    match figure:
        case None:
            return UNDEFINED
        case [low, high]:
            return str(low) if low == high else f"{low}-{high}"
        case {"least": least, "median": middle, "greatest": greatest}:
            return "/".join((_format_number(least), f"{middle:g}", _format_number(greatest)))
        case dict():
            return " ".join(f"{name}:{count}" for name, count in figure.items())
        case float():
            return f"{figure:.3f}"
        case _:
            return str(figure)


def _format_number(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:g}"
