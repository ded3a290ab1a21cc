"""Text files of other tools: bounded, UTF-8 with or without BOM, lines that end in CR, LF or CRLF."""

from __future__ import annotations

import re
from pathlib import Path

from calibrant.dsl.errors import PoolError

MAX_FILE_BYTES = 1 << 26  # the largest published data set has 26 kB; lists of networks reach megabytes
_LINE_END = re.compile(r"\r\n|\r|\n")


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file; `PoolError` if it cannot be read or is too large."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise PoolError(f"cannot be read: {error.strerror or error}", file=path.name) from None
    if len(content) > MAX_FILE_BYTES:
        raise PoolError(f"larger than {MAX_FILE_BYTES} bytes", file=path.name)
    return content


def read_text(path: Path) -> str:
    """Return the text of a file; `PoolError` if it cannot be read, is too large or is not UTF-8."""
    return decode_text(read_bytes(path), path.name)


def decode_text(content: bytes, file: str) -> str:
    """Return the text of bytes; `PoolError` if they are not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PoolError(f"byte {error.start} is not UTF-8; save the file as UTF-8", file=file) from None


def split_lines(text: str) -> list[str]:
    """Return the lines of a text; only CR, LF and CRLF end a line."""
    return _LINE_END.split(text)
