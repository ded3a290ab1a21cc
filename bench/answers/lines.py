"""JSON lines from a file, a compressed file or standard input."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast

from dsl.errors import CalibrantError

STANDARD_INPUT = Path("-")
_GZIP, _BYTE_ORDER_MARK = b"\x1f\x8b", b"\xef\xbb\xbf"


def shown_name(path: Path) -> str:
    """What messages call the file."""
    return "standard input" if path == STANDARD_INPUT else str(path)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
    else:
        with path.open("rb") as file:
            yield file


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers; gzip and a byte order mark are recognised by their first bytes.

    `CalibrantError` for a compressed file that breaks off or is damaged.
    """
    with _opened(path) as file:
        source = file if hasattr(file, "peek") else BufferedReader(cast(Any, file))
        first = cast(Any, source).peek(2)[:2]
        lines: BinaryIO = cast(BinaryIO, gzip.GzipFile(fileobj=source)) if first == _GZIP else source
        try:
            for number, line in enumerate(lines, 1):
                text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
                if text.strip():
                    yield number, text
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise CalibrantError(f"{shown_name(path)}: not whole as a gzip file: {error}") from None


def json_object(raw: bytes) -> dict[str, Any] | None:
    """The object that a line spells, or None."""
    try:
        value = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):  # bad JSON, bad UTF-8, an integer without end; nesting without end
        return None
    return value if isinstance(value, dict) else None
