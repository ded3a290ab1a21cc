"""Where the shared vectors and pools are found: beside the checkout, or where CALIBRANT_SHARED says.

They are not part of the project. Outside continuous integration their absence is a visible skip; with CI=true it is a
failure. A file without records, or without any of the kind that a test asks for, always fails it: nothing would be
compared. So does a file that begins as one of `shared_files.json` and has no more records, but another end: it is cut;
other files of the same kind pass. `python -m tests.support.emptied` runs the tests against empty files, or halves.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

MAX_EMPTY_BYTES = 300  # of a pool without problems: its metadata
MAX_BEGINNING_BYTES = 2_000
DIGESTS = Path(__file__).parent / "shared_files.json"
_CHECKOUT = Path(__file__).resolve().parent.parent.parent


def shared_folder() -> Path | None:
    """Return the folder that holds replayscm/, or None."""
    named = os.environ.get("CALIBRANT_SHARED")
    candidates = [Path(named)] if named else [_CHECKOUT.parent / "shared"]
    return next((path for path in candidates if (path / "replayscm").is_dir()), None)


def shared_file(name: str, *, part: str = "replayscm") -> Path:
    """Return a file of a part of the shared folder; skip the test (fail it under CI=true) when there is none."""
    folder = shared_folder()
    path = folder / part / name if folder else None
    if path is not None and path.exists():
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and _is_empty(file):
                pytest.fail(f"{file} is empty: nothing would be compared")
            if file.is_file():
                _require_whole(file, file.relative_to(folder).as_posix() if folder else name)
        return path
    reason = f"shared {part}/{name} not found beside the checkout; set CALIBRANT_SHARED to the folder that holds it"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def _is_empty(path: Path) -> bool:
    """Return whether a file has no record: no text, an empty JSON value, or a pool without problems."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        beginning = file.read(MAX_EMPTY_BYTES).strip()
    return beginning in (b"", b"{}", b"[]") or beginning.endswith(b"problems: []")


class FileDigest(NamedTuple):
    """Digests of a file's text, uncompressed: of its beginning and of all of it; records: lines of it."""

    num_beginning_bytes: int
    beginning: str
    whole: str
    records: int


def digest_of(text: bytes) -> FileDigest:
    """Return the digests of a text; the beginning is short enough to be in the first half."""
    size = min(MAX_BEGINNING_BYTES, len(text) // 4)
    return FileDigest(size, _sha256(text[:size]), _sha256(text), len(text.splitlines()))


def read_shared(path: Path) -> bytes:
    """Return the text of a shared file, uncompressed."""
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def _require_whole(path: Path, name: str) -> None:
    """Fail the test if the file is the one of that name in `shared_files.json` without its end.

    A file that begins alike and has more records is a longer one of its kind, which is compared as it is.
    """
    if name in (known := _digests(DIGESTS)):
        expected = known[name]
        beginning, whole, records = _read_digests(path, path.stat().st_mtime_ns, expected.num_beginning_bytes)
        if beginning == expected.beginning and whole != expected.whole and records <= expected.records:
            pytest.fail(f"{path} is cut or changed: {records} of {expected.records} records")


@cache
def _digests(path: Path) -> dict[str, FileDigest]:
    return {name: FileDigest(*fields) for name, fields in json.loads(path.read_text(encoding="utf-8")).items()}


@cache
def _read_digests(path: Path, changed: int, num_beginning_bytes: int) -> tuple[str, str, int]:
    """Return the digests of beginning and whole, and the lines; changed: time of the file, for the cache."""
    text = read_shared(path)
    return _sha256(text[:num_beginning_bytes]), _sha256(text), len(text.splitlines())


def _sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:20]


def shared_json(name: str, *, part: str = "replayscm") -> Any:
    """Return the value of a shared JSON file."""
    return json.loads(shared_file(name, part=part).read_text(encoding="utf-8"))


def shared_records(name: str, *, part: str = "replayscm", **fields: object) -> Iterator[dict[str, Any]]:
    """Yield the records of a shared JSONL file whose fields have these values; fail the test if there is none."""
    path = shared_file(name, part=part)
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        yield from matching(map(json.loads, lines), **fields)


def matching(records: Iterable[dict[str, Any]], **fields: object) -> Iterator[dict[str, Any]]:
    """Yield the records whose fields have these values; fail the test if there is none."""
    is_empty = True
    for record in records:
        if all(record[key] == value for key, value in fields.items()):
            is_empty = False
            yield record
    if is_empty:
        pytest.fail(f"no shared record with {fields}: nothing would be compared")
