"""Text files of other tools: bounded, UTF-8 with or without BOM, lines that end in CR, LF or CRLF."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.logic.clause import MAX_NAME_CHARS, is_node_name

MAX_FILE_BYTES = 1 << 26  # the largest published data set has 26 kB; lists of networks reach megabytes
_LINE_END = re.compile(r"\r\n|\r|\n")


def read_text(path: Path) -> str:
    """Return the text of a file; `PoolError` if it cannot be read, is too large or is not UTF-8."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise PoolError(f"cannot be read: {error.strerror or error}", file=path.name) from None
    if len(content) > MAX_FILE_BYTES:
        raise PoolError(f"larger than {MAX_FILE_BYTES} bytes", file=path.name)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PoolError(f"byte {error.start} is not UTF-8; save the file as UTF-8", file=path.name) from None


def split_lines(text: str) -> list[str]:
    """Return the lines of a text; only CR, LF and CRLF end a line."""
    return _LINE_END.split(text)


def table_rows(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and trimmed fields of each line of a CSV text that is not blank; no field spans lines.

    Empty fields behind those of the header, and lines of empty fields, are left out: spreadsheets write both.
    """
    width = 0
    for number, line in enumerate(split_lines(text), 1):
        if not line.strip():
            continue
        try:
            fields = next(csv.reader([line], strict=True))
        except (csv.Error, StopIteration) as error:
            raise PoolError(
                f"not a line of comma-separated fields: {error}", file=file, instance=f"line {number}"
            ) from None
        fields = [field.strip() for field in fields]
        if not any(fields):
            continue
        if not width:
            width = len(fields)
            while not fields[width - 1]:
                width -= 1
            if width == 1 and (";" in fields[0] or "\t" in fields[0]):
                separator = "semicolons" if ";" in fields[0] else "tabs"
                problem = f"fields are separated by {separator}; save the file with commas, and with decimal points"
                raise PoolError(problem, file=file, instance=f"line {number}")
        yield number, fields[:width] if not any(fields[width:]) else fields


def check_name(name: str, *, file: str, where: str) -> str:
    """Return the name of a node; `PoolError` if some format could not write it."""
    if not is_node_name(name):
        allowed = (
            f"1 to {MAX_NAME_CHARS} printable characters without blanks and without , : ; ! + & | ( ) < > = and quotes,"
            " the first not #"
        )
        raise PoolError(f"{short_repr(name)} is no name of a node; allowed: {allowed}", file=file, instance=where)
    return name


def find_repeated(names: list[str]) -> str | None:
    """Return the first name that occurs a second time, None if there is none."""
    seen_names: set[str] = set()
    for name in names:
        if name in seen_names:
            return name
        seen_names.add(name)
    return None
