"""JSON lines from a file, a compressed file or standard input, each bounded before it is read."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.parse_limits import (
    MAX_JSON_BYTES,
    TooDeepError,
    check_json_text,
    quote_deep_members,
    unique_keys,
)

STANDARD_INPUT = Path("-")
_SPACE = " \t\r\n"
Scanner: TypeAlias = Callable[[str, int], tuple[Any, int]]
# as `json.loads`, but made once, and without its two searches for space: together they take a fifth of a line's time
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_scan_unique_keys = json.JSONDecoder(object_pairs_hook=unique_keys).scan_once  # type: ignore[attr-defined]
_GZIP, _BYTE_ORDER_MARK = b"\x1f\x8b", b"\xef\xbb\xbf"


def shown_name(path: Path) -> str:
    """Return what messages call the file."""
    return "standard input" if path == STANDARD_INPUT else str(path)


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
    else:
        with path.open("rb") as file:
            yield file


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers; first bytes tell gzip and a byte order mark.

    `CalibrantError` for a line of more than MAX_JSON_BYTES, and for a compressed file that breaks off or is damaged.
    """
    with _open(path) as file:
        source = file if hasattr(file, "peek") else BufferedReader(cast(Any, file))
        first = cast(Any, source).peek(2)[:2]
        lines: BinaryIO = cast(BinaryIO, gzip.GzipFile(fileobj=source)) if first == _GZIP else source
        try:
            # a line without end must not be read: 19 MB of gzip can hold one of 4 GB
            for number, line in enumerate(iter(partial(lines.readline, MAX_JSON_BYTES + 1), b""), 1):
                if len(line) > MAX_JSON_BYTES:
                    limit = f"longer than {MAX_JSON_BYTES} bytes; give one object a line"
                    raise CalibrantError(f"{shown_name(path)}: line {number}: {limit}")
                text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
                if text and not text.isspace():
                    yield number, text
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise CalibrantError(f"{shown_name(path)}: not whole as a gzip file: {error}") from None


def json_object(raw: bytes) -> dict[str, Any] | None:
    """Return the object that a line spells, or None.

    `TooLargeError` for one of too many values, `PoolError` for a key that occurs twice in one object.
    """
    return _object(raw, check_json_text, _scan_unique_keys)


def prediction_object(raw: bytes) -> dict[str, Any] | None:
    """Return the object of a prediction's line as `json_object`, but a member that nests too deeply as its text.

    What a system wrote is not the file's fault: as a text it is scored like other responses without an answer.
    """
    try:
        return json_object(raw)
    except TooDeepError:
        return json_object(quote_deep_members(raw.decode("utf-8")).encode("utf-8"))


def answer_object(raw: bytes) -> dict[str, Any] | None:
    """Return the object that a system's text spells; None if there is none, or it nests too deeply.

    Of equal keys the last counts, as in all replies.
    """
    try:
        return _object(raw, check_json_text, _scan)
    except TooDeepError:
        return None


def _object(
    raw: bytes, check: Callable[[str], None], scan: Callable[[str, int], tuple[Any, int]]
) -> dict[str, Any] | None:
    try:
        text = raw.decode("utf-8").strip(_SPACE)
        check(text)
        value, end = scan(text, 0)
    except (ValueError, RecursionError, StopIteration):  # bad JSON or UTF-8, endless integer; endless nesting; nothing
        return None
    return value if end == len(text) and isinstance(value, dict) else None
