"""Records of runs: one JSON line per (pool, instance, protocol, options), appended as results come in.

The file is append-only (bench.runs.jsonl_file). When a run completes, its lines are sorted: two completed runs of the
same thing differ in `timing` only, whatever the number of workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from sys import intern
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from calibrant.bench.protocols import Outcome
from calibrant.bench.runs.jsonl_file import JsonlFile, RecordKind
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.json_objects import MAX_JSON_BYTES, TooLargeError, decode_json

RECORD_VERSION = 1


class Timing(msgspec.Struct, frozen=True, omit_defaults=True):
    """The only part of a record that differs between two runs."""

    seconds: Annotated[
        float, Meta(description="wall time of the protocol on the instance, without process start and warm-up")
    ]
    started: Annotated[str, Meta(description="UTC, ISO 8601")]
    moves: Annotated[
        list[float] | msgspec.UnsetType,
        Meta(description="of a person, seconds before each step, or before the one answer; absent elsewhere"),
    ] = msgspec.UNSET


class Key(NamedTuple):
    """Subject of a record; there is one record for each."""

    pool_digest: str
    instance: str
    protocol: str
    config_digest: str


class StepRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One step of an episode (dsl.episode.Step), ready for JSON."""

    action: Annotated[dict[str, Any], Meta(description="what was done")]
    reading: Annotated[Any, Meta(description="what was shown")] = None
    refused: Annotated[str, Meta(description="why nothing was done; empty if it was")] = ""
    cost: Annotated[int, Meta(description="what it took from the item's allowance")] = 0


class ItemHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """First fields of every record about an item of a pool."""

    pool: Annotated[str, Meta(description="name of the pool")]
    pool_digest: Annotated[str, Meta(description="SHA-256 of what the pool's file holds, decompressed")]
    pool_size: Annotated[int, Meta(description="how many items the pool has")]
    index: Annotated[int, Meta(description="place of the item in its pool, from 0")]
    instance: Annotated[str, Meta(description="id of the item")]
    setting: Annotated[
        str, Meta(description="row group of tables: the disclosure, or the published table that the pool belongs to")
    ]
    stratum: Annotated[str, Meta(description="the finer group of the generator; empty if there is none")]


class TiedScore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A score that some of the equally good answers have."""

    times: Annotated[int, Meta(description="how many of the scored answers have it")]
    score: Annotated[dict[str, Any], Meta(description="as the record's own")]


class TiedScores(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Scores of all answers that are as good as the one given: their mean is what tables print."""

    count: Annotated[str | None, Meta(description="how many such answers there are; null where they are not counted")]
    scored: Annotated[int, Meta(description="how many of them were scored: all, or uniform draws")]
    scores: Annotated[list[TiedScore], Meta(description="their distinct scores")]
    note: Annotated[str, Meta(description="what is not counted, and why; empty if all is")] = ""


class Record(ItemHead, frozen=True, forbid_unknown_fields=True):
    """What one protocol answered to one instance, and how that scores."""

    protocol: Annotated[str, Meta(description="name of the protocol")]
    config: Annotated[
        dict[str, Any],
        Meta(description="the protocol's options and the wall budget; `code` says whose code it is if it is not ours"),
    ]
    outcome: Annotated[
        Outcome, Meta(description="what the protocol says; `crashed` also where it says nothing that could be kept")
    ]
    answer: Annotated[dict[str, Any], Meta(description="the answer object, or what stands in for one")]
    size: Annotated[int | None, Meta(description="total formula size of the answer, where it has one")]
    score: Annotated[
        dict[str, Any],
        Meta(
            description=(
                "what the benchmark keeps of the verdict; of ReplaySCM the published scorer's keys without the "
                "per-variable ones, the validity funnel and the structure metrics"
            )
        ),
    ]
    provenance: Annotated[
        dict[str, Any], Meta(description="how the protocol came by it; of a crash `error`, `at` and `traceback`")
    ]
    program: Annotated[str, Meta(description="version of the program")]
    timing: Annotated[Timing, Meta(description="when, and how long")]
    version: Annotated[int, Meta(description="version of the format")] = RECORD_VERSION
    benchmark: Annotated[str | msgspec.UnsetType, Meta(description="absent for ReplaySCM")] = msgspec.UNSET
    steps: Annotated[
        list[StepRecord] | msgspec.UnsetType, Meta(description="of an episode, everything that was done in it")
    ] = msgspec.UNSET
    attribution: Annotated[
        dict[str, Any] | msgspec.UnsetType, Meta(description="of an episode, what its readings decided")
    ] = msgspec.UNSET
    ties: Annotated[
        TiedScores | msgspec.UnsetType, Meta(description="of rows that choose by a tie rule, all equally good answers")
    ] = msgspec.UNSET

    def __repr__(self) -> str:
        names = [in_one_line(name)[:40] for name in (self.protocol, self.instance, self.pool)]
        return f"<Record: {names[0]} on {names[1]} of {names[2]}: {self.outcome}>"

    @property
    def key(self) -> Key:
        config = intern(config_digest(self.config))  # one text for the 100,000 records that share it
        return Key(intern(self.pool_digest), self.instance, intern(self.protocol), config)


def config_digest(config: dict[str, Any]) -> str:
    """Return a digest that is equal for equal options, whatever their order."""
    return hashlib.sha256(msgspec.json.encode(config, order="sorted")).hexdigest()[:16]


def step_records(steps: Sequence[Step[Any]]) -> list[StepRecord]:
    """Return steps as a record keeps them."""
    return [StepRecord(dict(step.action), msgspec.to_builtins(step.reading), step.refused, step.cost) for step in steps]


def _place(record: Record) -> tuple[object, ...]:
    """Return the key by which the lines of a completed run are sorted."""
    key = record.key
    return intern(record.pool), key.pool_digest, key.protocol, key.config_digest, record.index


RUN_RECORDS = RecordKind("records", "a run", Record, RECORD_VERSION, _place)
FILE_NAME = RUN_RECORDS.file_name


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file; a torn last line is passed over. `CalibrantError` names file and line."""
    return RUN_RECORDS.read_records(path)


def folder_records(folder: Path) -> Iterator[Record]:
    """Yield the records in a run's folder."""
    path = folder / FILE_NAME
    if not path.is_file():
        raise CalibrantError(f"{folder}: no {FILE_NAME} there; give the folder that `calibrant run --out` wrote")
    return read_records(path)


class _RecordHead(msgspec.Struct):
    benchmark: str | None = None


def stated_benchmarks(folder: Path) -> frozenset[str | None]:
    """Return the benchmarks that the records in a run's folder state; None for records that state none.

    Other fields are passed over, which is faster than reading them. A line that is no record states nothing:
    `read_records` refuses it.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return frozenset()
    status = path.stat()
    return _stated_benchmarks(path, status.st_size, status.st_mtime_ns)


@lru_cache
def _stated_benchmarks(path: Path, size: int, modified: int) -> frozenset[str | None]:
    """Return what the lines of a file of this size and time of change state."""
    names = set[str | None]()
    with path.open("rb") as lines:
        for line in iter(partial(lines.readline, MAX_JSON_BYTES + 1), b""):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, TooLargeError):
                names.add(decode_json(line, _RecordHead).benchmark)
    return frozenset(names)


class RunFile(JsonlFile[Record]):
    """The record file of a run's folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, RUN_RECORDS)
