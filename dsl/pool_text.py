"""The bytes of a pool file, whether it is compressed or not: what is read, and what its digest is of."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from stat import S_ISREG
from tempfile import TemporaryFile
from typing import IO, NamedTuple

from calibrant.dsl.errors import PoolError
from calibrant.dsl.parse_limits import MAX_JSON_BYTES

MAX_BYTES = 1 << 30  # the largest published file has 84 MB; a few kilobytes can decompress to anything
_MAX_HEADER_BYTES = 1 << 24  # of a pool of 100,000 variants, with the map of each
_BLOCK = 1 << 16
_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"  # a byte order mark in UTF-8


class Line(NamedTuple):
    """A line of a pool file, without its end.

    number: from 1; place: the byte where it begins; size: in bytes
    """

    number: int
    place: int
    size: int
    text: str


def pool_head(path: Path) -> str:
    """Return the first line of a file that has one of reasonable length, whatever it says; empty otherwise."""
    with _open_text(path) as file:
        return file.readline(_MAX_HEADER_BYTES).decode("utf-8-sig", errors="replace")


@contextmanager
def plain_pool(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to read from any place again.

    It is that file, or an unnamed copy of what a compressed one (or a pipe) holds.
    """
    with _open_text(path) as file:
        if isinstance(file, BufferedReader) and S_ISREG(os.fstat(file.fileno()).st_mode):
            if os.fstat(file.fileno()).st_size > MAX_BYTES:
                raise PoolError(f"larger than {MAX_BYTES} bytes")
            yield file
            return
        with TemporaryFile() as copy:
            while block := file.read(1 << 20):
                copy.write(block)
                if copy.tell() > MAX_BYTES:
                    raise PoolError(f"larger than {MAX_BYTES} bytes")
            copy.seek(0)
            yield copy


def pool_lines(file: IO[bytes]) -> Iterator[Line]:
    """Its lines that are not blank, in UTF-8 with or without a byte order mark; `PoolError` without the file's name."""
    mark = place = 0
    for number, raw in enumerate(iter(partial(file.readline, MAX_JSON_BYTES + 1), b""), 1):
        if len(raw) > MAX_JSON_BYTES:
            raise PoolError(f"longer than {MAX_JSON_BYTES} bytes; an item is a line", instance=f"line {number}")
        start, place = place, place + len(raw)
        if number == 1 and raw.startswith(_MARK):
            mark = start = len(_MARK)
            raw = raw[mark:]
        text = _decode_line(raw, start - mark)
        if text.strip():
            yield Line(number, start, len(raw), text.removesuffix("\n"))


def text_lines(file: IO[bytes]) -> Iterator[str]:
    """Its text as `split` takes it apart at line feeds; `PoolError` without the file's name."""
    place = 0
    while raw := b"".join(file.readlines(_BLOCK)):
        raw = raw if place else raw.removeprefix(_MARK)
        *lines, partial_line = _decode_line(raw, place).split("\n")
        yield from lines
        if partial_line:  # the last line of all, which does not end
            yield partial_line
            return
        place += len(raw)
    if place:
        yield ""


def _decode_line(raw: bytes, place: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise PoolError(f"not UTF-8 at byte {place + error.start}") from None


def pool_digest(path: Path, *, prefix: bytes = b"") -> str:
    """SHA-256 of a prefix and what a file holds, in hexadecimal: the same for a file and the compressed file of it."""
    with _open_text(path) as file:
        digest = hashlib.sha256(prefix)
        while block := file.read(1 << 20):
            digest.update(block)
        return digest.hexdigest()


def file_digest(path: Path | str) -> str:
    """SHA-256 of a file's content, decompressed, in hexadecimal; `PoolError` names the file if it cannot be read."""
    path = Path(path)
    try:
        return pool_digest(path)
    except PoolError as error:
        raise error.with_location(file=path.name) from None


@contextmanager
def _open_text(path: Path) -> Iterator[BufferedIOBase]:
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
