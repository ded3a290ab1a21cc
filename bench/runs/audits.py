"""Audits of a pool: parallel over items, resumable, one JSON line per (pool, item, options).

Records depend only on the pool and the options, not on the number of workers, the order in which they finish, or
interruptions; a wall budget makes them depend on the machine too. The file is append-only (bench.runs.records) and
sorted on completion. Two completed audits of one pool with equal options and no wall budget differ only in `timing`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from sys import intern
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from calibrant.audits.why import Why
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.items import refuse_empty
from calibrant.bench.core.registry import benchmark as named_benchmark
from calibrant.bench.pages.capabilities import EXPLANATIONS
from calibrant.bench.pages.terminal_tables import wrapped_lines
from calibrant.bench.runs.executors import HERE, Execution, Failure, Jobs, Progress, error_line, one_line
from calibrant.bench.runs.records import ItemHead, JsonlFile, RecordKind, Timing, config_digest
from calibrant.bench.runs.runner import EVERYTHING, Selection
from calibrant.bench.runs.workers import open_sharing
from calibrant.bench.terminal import json_text
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.records import file_digest
from calibrant.solvers.outcome import BudgetSpent

# --- Reasons why items are open (several hypotheses fit), in records of audits ----------------------------------------
ReasonState: TypeAlias = Literal["decided", "open", "empty", "uncounted", "unexplained"]


class ReasonRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Summary of why an item is open; `calibrant show POOL ID --why --json` has the full reason."""

    state: Annotated[ReasonState, Meta(description="state of the count; unexplained: there is no reason")]
    reason: Annotated[str, Meta(description="one or two sentences; of unexplained items why there is no reason")]
    fit: Annotated[str, Meta(description="hypotheses that fit, as people read it")] = ""
    lower: Annotated[str, Meta(description="certified lower bound of that number, empty without one")] = ""
    upper: Annotated[str, Meta(description="certified upper bound, equal where the count is exact")] = ""


class ExplainedAudit(Protocol):
    """The fields of an audit's record that tables of reasons read."""

    @property
    def instance(self) -> str: ...
    @property
    def error(self) -> str: ...
    @property
    def why(self) -> ReasonRecord | None: ...


def explain_item(bench: Benchmark[Any], item: Any) -> Why | str:
    """Return the reason why several hypotheses fit an item before any step, or a line on why there is no reason."""
    try:
        return bench.require(EXPLANATIONS).explain(item, ())
    except CalibrantError as error:
        return str(error)


def reason_record(why: Why | str) -> ReasonRecord:
    """Return the summary of a reason."""
    if isinstance(why, str):
        return ReasonRecord("unexplained", why)
    return ReasonRecord(why.state, why.reason_text, why.count.in_words(), why.count.lower, why.count.upper or "")


def reason_of(record: ExplainedAudit) -> ReasonRecord:
    """Return the reason in a record; "unexplained" for records of earlier versions and of items without results."""
    return record.why or ReasonRecord(
        "unexplained", record.error or "recorded without a reason; audit it into a new --out"
    )


def reason_lines(records: Sequence[ExplainedAudit], width: int | None) -> Iterator[str]:
    """Yield the lines of a table of items, numbers of fitting hypotheses, and reasons, wrapped to the width."""

    def rows() -> Iterator[tuple[str, str, str]]:
        return ((record.instance, (why := reason_of(record)).fit, why.reason) for record in records)

    return wrapped_lines(["Instance", "Fit", "Why"], rows, width)


Outcome = Literal["audited", "out_of_budget", "crashed"]


class AuditKey(NamedTuple):
    """Key of a record; a file has at most one record per key."""

    pool_digest: str
    instance: str
    config_digest: str


class AuditHead(ItemHead, frozen=True, forbid_unknown_fields=True):
    """First fields of every benchmark's record; the results, `error`, `program`, `timing` and `version` follow."""

    config: Annotated[dict[str, Any], Meta(description="what was asked for")]
    outcome: Annotated[Outcome, Meta(description="whether it was audited")]

    @property
    def key(self) -> AuditKey:
        config = intern(config_digest(self.config))  # one object for all records with these options
        return AuditKey(intern(self.pool_digest), self.instance, config)

    def to_dict(self) -> dict[str, Any]:
        """Return the record for JSON without the timing, so that it is equal for equal pools and options."""
        fields: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        del fields["timing"]
        return fields


def record_order(record: AuditHead) -> tuple[object, ...]:
    """Return the sort key of a record in a completed file."""
    key = record.key
    return intern(record.pool), key.pool_digest, key.config_digest, record.index


class StoredAudit(Protocol):
    """A record of an audit: the fields that those of all benchmarks share."""

    __struct_fields__: ClassVar[tuple[str, ...]]

    @property
    def pool(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def instance(self) -> str: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def error(self) -> str: ...
    @property
    def why(self) -> ReasonRecord | None: ...
    @property
    def version(self) -> int: ...
    @property
    def key(self) -> AuditKey: ...
    def to_dict(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=StoredAudit)


class AuditFile(JsonlFile[R]):
    """The record file of an audit's folder."""

    def records_at(self, keys: Iterable[AuditKey]) -> Sequence[R]:
        """Return the records with these keys, in this order; many records are read one by one at access."""
        return self.find_lines(keys).read_as(msgspec.json.Decoder(self.kind.type).decode)


class AuditResult(NamedTuple):
    """Result of the audit of one item.

    result: result of the benchmark's audit; None if the audit failed
    why: why several hypotheses fit the item; None if the audit failed
    """

    outcome: Outcome
    result: Any
    error: str
    timing: Timing
    why: ReasonRecord | None = None


class AuditWork(Protocol[R]):
    """Audit of an item, which can be pickled for other processes.

    kind: kind of the record file; config: options that are part of a record's key
    """

    @property
    def kind(self) -> RecordKind[R]: ...

    @property
    def config(self) -> Mapping[str, Any]: ...

    def audit(self, item: Any) -> Any:
        """Return the results for an item; `BudgetSpent` if the budget does not suffice."""
        ...

    def record(self, head: Mapping[str, Any], audited: AuditResult) -> R:
        """Return the record of an audit's result.

        head: the fields of AuditHead
        """
        ...


@dataclass(frozen=True)
class AuditedPool(Generic[R]):
    """The selected items of a pool with their records, in order. skipped: number of items that were audited before."""

    name: str
    digest: str
    items: Sequence[Any]
    records: Sequence[R]
    skipped: int


def audit_items(
    benchmark: Benchmark[Any],
    path: Path,
    folder: Path,
    work: AuditWork[R],
    selection: Selection = EVERYTHING,
    *,
    execution: Execution = HERE,
    progress: Progress = lambda name, done, total: None,
) -> AuditedPool[R]:
    """Audit every selected item that has no record in the folder yet, and append its record.

    Items whose record has no results are audited again.

    execution: executor and time limit of an item; progress: called with (pool, number of items done, number of items)
    """
    pool, digest = benchmark.items.read_pool(path), file_digest(path)
    refuse_empty(len(pool), path)
    for instance in sorted(selection.only):
        benchmark.items.find(pool, instance)  # raises for an unknown id
    chosen = selection.ids_by_index(pool)
    config = {**work.config, "wall_budget": execution.wall_budget}
    keys = {i: AuditKey(digest, name, config_digest(config)) for i, name in chosen.items()}
    with AuditFile(folder, work.kind) as file, open_sharing(execution) as executor:
        unfinished = {record.key for record in file if record.outcome != "audited"}
        pending = Jobs(
            (i for i, key in keys.items() if key in unfinished or key not in file.keys), pool.items.__getitem__
        )
        done = skipped = len(keys) - len(pending)
        results = executor.as_completed(partial(timed_audit, work.audit, benchmark.name), pending)
        progress(pool.name, done, len(keys))  # after processes have started: it starts a thread
        for index, result in results:
            audited = _failed_audit(result, execution.wall_budget) if isinstance(result, Failure) else result
            item = pool.items[index]
            head = {
                "pool": pool.name,
                "pool_digest": digest,
                "pool_size": len(pool),
                "index": index,
                "instance": item.id,
                "setting": item.setting,
                "stratum": item.stratum,
                "config": config,
                "outcome": audited.outcome,
            }
            write = file.replace if keys[index] in unfinished else file.append
            write(work.record(head, audited))
            done += 1
            progress(pool.name, done, len(keys))
        file.sort()
        return AuditedPool(
            pool.name, digest, _items_at(pool.items, list(chosen)), file.records_at(keys.values()), skipped
        )


def _items_at(items: Sequence[Any], indices: Sequence[int]) -> Sequence[Any]:
    """Return the items at ascending indices; a prefix of the pool is a slice, which a large pool reads at access."""
    if indices and indices[-1] == len(indices) - 1:
        return items[: len(indices)]
    return tuple(items[i] for i in indices)


def _failed_audit(failure: Failure, wall_budget: float | None) -> AuditResult:
    seconds = (wall_budget or 0.0) if failure.outcome == "out_of_budget" else 0.0  # the time of a crash is unknown
    return AuditResult(failure.outcome, None, failure.error, Timing(seconds, _now()))


def timed_audit(audit: Callable[[Any], Any], name: str, item: Any) -> AuditResult:
    """Audit one item; a spent budget gives the outcome "out_of_budget", any other exception "crashed"."""
    started, clock = _now(), time.perf_counter()
    try:
        result = audit(item)
    except BudgetSpent as spent:
        return AuditResult("out_of_budget", None, one_line(spent), Timing(time.perf_counter() - clock, started))
    except Exception as error:
        return AuditResult("crashed", None, error_line(error), Timing(time.perf_counter() - clock, started))
    try:
        why = reason_record(explain_item(named_benchmark(name), item))
    except Exception as error:  # a failed explanation must not lose the findings
        why = reason_record(error_line(error))
    return AuditResult("audited", result, "", Timing(time.perf_counter() - clock, started), why)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


# --- JSON in pieces, for documents that need not fit into memory ------------------------------------------------------


def list_pieces(elements: Iterable[Any], depth: int = 0) -> Iterator[str]:
    """Yield the pieces of `json_text(list(elements))`, one for each element.

    depth: depth of the list, for its indentation
    """
    margin, opening = "\n" + " " * (depth + 1), "["
    for element in elements:
        yield opening + margin + json_text(element).replace("\n", margin)
        opening = ","
    yield "[]" if opening == "[" else "\n" + " " * depth + "]"


def object_pieces(lists: Mapping[str, Iterable[Any]], fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the pieces of a JSON object: first long lists, then the other fields."""
    opening = "{"
    for name, elements in lists.items():
        yield f"{opening}\n {json_text(name)}: "
        yield from list_pieces(elements, 1)
        opening = ","
    for name, value in fields.items():
        yield f"{opening}\n {json_text(name)}: " + json_text(value).replace("\n", "\n ")
        opening = ","
    yield "{}" if opening == "{" else "\n}"
