"""The bytes of a pool file, whether it is compressed or not: what is read, and what its digest is of."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

from dsl.errors import PoolError

MAX_BYTES = 1 << 30  # the largest published file has 84 MB; a few kilobytes can decompress to anything
_LONGEST_HEAD = 1 << 20
_GZIP = b"\x1f\x8b"


def pool_text(path: Path) -> str:
    """The text of a file, in UTF-8 with or without a byte order mark; `PoolError` without the file's name."""
    with _opened(path) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise PoolError(f"larger than {MAX_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PoolError(f"not UTF-8 at byte {error.start}") from None


def pool_head(path: Path) -> str:
    """The first line of a file that has one of reasonable length, whatever it says; empty otherwise."""
    with _opened(path) as file:
        return file.readline(_LONGEST_HEAD).decode("utf-8-sig", errors="replace")


def pool_digest(path: Path) -> str:
    """SHA-256 of what a file holds, in hexadecimal: the same for a file and the compressed file of it."""
    with _opened(path) as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
        return digest.hexdigest()


@contextmanager
def _opened(path: Path) -> Iterator[BufferedIOBase]:
    try:
        with path.open("rb") as file:
            if file.peek(len(_GZIP))[: len(_GZIP)] != _GZIP:
                yield file
                return
            with gzip.GzipFile(fileobj=file) as content:
                yield content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise PoolError(f"not a complete gzip file: {error}") from None
    except OSError as error:
        raise PoolError(f"cannot be read: {error.strerror or error}") from None
