"""State files and query files in the layout of the paper.

State: {"scms": [{"scm_id", "history": [bundle, ...]}]}, one bundle a version. Queries:
scm_<id>/causal_queries/<type>/<scenario>/causal_queries_v<v>.json with `meta` and `instances`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from calibrant.dsl.atomic_write import whole_file
from calibrant.dsl.causim.bundle import Bundle
from calibrant.dsl.causim.question import TYPES, QuestionType, Scenario
from calibrant.dsl.errors import PoolError, in_one_line, short_repr
from calibrant.dsl.parse_limits import TooLargeError, check_json_depth

R = TypeVar("R")
MAX_BYTES = 1_000_000_000
MAX_VERSION = 10_000  # stands in file names
_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


class Scm(msgspec.Struct, frozen=True):
    """A program as it grew: history[k] has k + 1 nodes, as far as the paper's own go."""

    scm_id: str
    history: list[Bundle]


class StateFile(msgspec.Struct, frozen=True):
    scms: list[Scm]


class ExpectedOutput(msgspec.Struct, frozen=True):
    """support: the stored answers; size: how many there are; exhausted: whether all of them are stored."""

    support: list[dict[str, Any]]
    required_keys: list[str]
    size: int
    exhausted: bool


class Instance(msgspec.Struct, frozen=True, omit_defaults=True):
    """One question; values are JSON values.

    item: further fields of the record of a native pool that the file was made of; none in files from elsewhere
    """

    seed: int
    fixed_exogenous: dict[str, Any]
    unknown_exogenous: list[str]
    do: dict[str, Any]
    observed_endogenous: dict[str, Any]
    expected_output: ExpectedOutput
    item: dict[str, Any] = {}


class Meta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields that the instances of a file share."""

    scm_id: str
    v: int
    type: QuestionType
    scenario: Scenario
    topology: str = ""
    evidence: str = "full"
    with_noise: bool = False


class QueryFile(msgspec.Struct, frozen=True):
    meta: Meta
    instances: list[Instance]


def read_states(path: Path) -> list[Scm]:
    """`PoolError` names the file, and the place of what cannot be meant."""
    scms = _read_file(path, StateFile).scms
    for scm in scms:
        check_id(scm.scm_id, path.name)
        for bundle in scm.history:
            check_version(bundle.v, path.name)
    if len({scm.scm_id for scm in scms}) < len(scms):
        raise PoolError("two programs have the same scm_id", file=path.name)
    return scms


def read_queries(path: Path) -> QueryFile:
    """`PoolError` names the file, and the place of what cannot be meant."""
    queries = _read_file(path, QueryFile)
    check_id(queries.meta.scm_id, path.name)
    check_version(queries.meta.v, path.name)
    if queries.meta.type not in TYPES:
        raise PoolError(f"{short_repr(queries.meta.type)} is no type of question", file=path.name, field="meta.type")
    return queries


def write_states(path: Path, scms: Iterable[Scm]) -> None:
    """Write a state file, whole or not at all."""
    _write(path, StateFile(list(scms)))


def query_path(folder: Path, meta: Meta) -> Path:
    """Return the path of a kind of questions on a version; `PoolError` for an id that may not be part of a path."""
    check_id(meta.scm_id, "")
    return (
        folder / f"scm_{meta.scm_id}" / "causal_queries" / meta.type / meta.scenario / f"causal_queries_v{meta.v}.json"
    )


def write_queries(folder: Path, queries: QueryFile) -> Path:
    """Write a query file at its place in the folder; the path of the file."""
    path = query_path(folder, queries.meta)
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, queries)
    return path


def _read_file(path: Path, kind: type[R]) -> R:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise PoolError(f"larger than {MAX_BYTES} bytes", file=path.name)
        text = path.read_bytes()  # of up to MAX_BYTES, more than other JSON texts have
        check_json_depth(text)
        return msgspec.json.decode(text, type=kind)
    except OSError as error:
        raise PoolError(error.strerror or "cannot be read", file=path.name) from None
    except (msgspec.MsgspecError, UnicodeError, TooLargeError) as error:
        raise PoolError(in_one_line(str(error)), file=path.name) from None


def _write(path: Path, record: msgspec.Struct) -> None:
    with whole_file(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def check_version(version: int, file: str) -> None:
    """`PoolError` for a number of nodes that may not be part of a path."""
    if not 0 <= version <= MAX_VERSION:
        raise PoolError(f"{short_repr(version)}; a number from 0 to {MAX_VERSION} is expected", file=file, field="v")


def check_id(scm_id: str, file: str) -> None:
    """`PoolError` for an id that may not be part of a path."""
    if not _ID.fullmatch(scm_id):
        raise PoolError(f"{short_repr(scm_id)}; letters, digits, _ and - are allowed", file=file, field="scm_id")
