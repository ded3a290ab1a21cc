"""Pool files of any benchmark: their bytes, their records, and items that stay in the file.

Each benchmark supplies the msgspec Struct of its records; a file of another benchmark is refused with its name.

A file is read once, and every item is checked then. The items of a small pool are kept in memory. Of a large pool only
the start of each line is kept, and an item is decoded from its line at each access. The file stays open, so another
file may take its name; if its bytes change, an access raises `PoolError`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import weakref
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache, partial
from io import BufferedIOBase, BufferedReader
from itertools import chain, islice
from pathlib import Path
from stat import S_ISREG
from tempfile import TemporaryFile
from typing import IO, Annotated, Any, Generic, NamedTuple, NoReturn, Protocol, TypeVar, overload
from zlib import crc32

import msgspec
from msgspec import Meta

from calibrant.dsl.atomic_write import open_atomically, read_at
from calibrant.dsl.errors import CalibrantError, PoolError, in_one_line, short_repr
from calibrant.dsl.item import Item, Pool
from calibrant.dsl.parse_limits import (
    BLANK_LINES,
    MAX_BLANK_LINES,
    MAX_JSON_BYTES,
    TooLargeError,
    allowed_values,
    describe_no_text,
    json_fault,
    load_json,
    unique_keys,
)

# --- The bytes of a pool file, compressed or not: lines, and the digest of the content --------------------------------
MAX_BYTES = 1 << 30  # the largest published file has 84 MB; a few kilobytes can decompress to anything
_MAX_HEADER_BYTES = 1 << 24  # suffices for a pool of 100,000 variants, whose header has the renaming of each
_BLOCK_BYTES = 1 << 16  # read at a time
_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"  # a byte order mark in UTF-8
_MAX_MAGIC_BYTES = 8  # first bytes by which a file of another format is recognised


class Line(NamedTuple):
    """A line of a pool file, without its end.

    number: from 1; start: offset of its first byte; size: in bytes
    """

    number: int
    start: int
    size: int
    text: str


def pool_head(path: Path) -> str:
    """Return the first line that is not blank, up to _MAX_HEADER_BYTES; an object over several lines is joined.

    It is empty if the first MAX_BLANK_LINES are blank.
    """
    with _open_text(path) as file:
        lines = islice(iter(partial(file.readline, _MAX_HEADER_BYTES), b""), MAX_BLANK_LINES)
        head = next((line for line in lines if line.removeprefix(_MARK).strip()), b"")
        if _may_be_spread(head):
            head = _in_one_line(head + file.read(MAX_JSON_BYTES)) or head
        return head.decode("utf-8-sig", errors="replace")


def _may_be_spread(head: bytes) -> bool:
    """Return whether a first line opens a JSON object that it does not close."""
    text = head.removeprefix(_MARK).strip()
    return text.startswith(b"{") and not text.endswith(b"}")


def _in_one_line(content: bytes) -> bytes | None:
    """Return a JSON object that spans several lines as one line; None for anything else."""
    joined = content.removeprefix(_MARK).replace(b"\r", b" ").replace(b"\n", b" ")  # JSON strings have no line ends
    try:
        return joined if isinstance(load_json(joined), dict) else None
    except (ValueError, TooLargeError):
        return None


@contextmanager
def plain_pool(path: Path) -> Iterator[IO[bytes]]:
    """Open a file uncompressed and seekable.

    Yield the file itself, or for a compressed file or a pipe an unnamed copy of the content. A file of one JSON object
    over several lines becomes one line.
    """
    with _plain_file(path) as file:
        is_spread = _may_be_spread(file.readline(_MAX_HEADER_BYTES))
        file.seek(0)
        joined = _in_one_line(file.read(MAX_JSON_BYTES + 1)) if is_spread else None
        file.seek(0)
        if joined is None:
            yield file
            return
        with TemporaryFile() as copy:
            copy.write(joined)
            copy.seek(0)
            yield copy


@contextmanager
def _plain_file(path: Path) -> Iterator[IO[bytes]]:
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
    """Yield the non-blank lines of a UTF-8 file; a byte order mark is dropped; `PoolError` lacks the file's name."""
    mark = position = last = 0
    for line_number, raw in enumerate(iter(partial(file.readline, MAX_JSON_BYTES + 1), b""), 1):
        if len(raw) > MAX_JSON_BYTES:
            raise PoolError(f"longer than {MAX_JSON_BYTES} bytes; an item is a line", instance=f"line {line_number}")
        start, position = position, position + len(raw)
        if line_number == 1 and raw.startswith(_MARK):
            mark = start = len(_MARK)
            raw = raw[mark:]
        text = _decode_line(raw, start - mark)
        if text.strip():
            last = line_number
            yield Line(line_number, start, len(raw), text.removesuffix("\n"))
        elif line_number - last > MAX_BLANK_LINES:
            raise PoolError(BLANK_LINES, instance=f"line {line_number}")


def text_lines(file: IO[bytes]) -> Iterator[str]:
    """Yield the parts of a file's text that `split` at line feeds would return; `PoolError` lacks the file's name."""
    position = num_blank = 0
    while raw := b"".join(file.readlines(_BLOCK_BYTES)):
        num_blank = num_blank + raw.count(b"\n") if raw.isspace() else 0
        if num_blank > MAX_BLANK_LINES:
            raise PoolError(BLANK_LINES)
        raw = raw if position else raw.removeprefix(_MARK)
        *lines, partial_line = _decode_line(raw, position).split("\n")
        yield from lines
        if partial_line:  # the last line of the file, without a line feed
            yield partial_line
            return
        position += len(raw)
    if position:
        yield ""


def _decode_line(raw: bytes, start: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        known_format = "" if start else describe_no_text(raw[:_MAX_MAGIC_BYTES])
        raise PoolError(known_format or f"not UTF-8 at byte {start + error.start}") from None


def pool_digest(path: Path, *, prefix: bytes = b"") -> str:
    """Return the SHA-256 of a prefix and a file's content, decompressed, in hexadecimal."""
    with _open_text(path) as file:
        digest = hashlib.sha256(prefix)
        while block := file.read(1 << 20):
            digest.update(block)
        return digest.hexdigest()


def file_digest(path: Path | str) -> str:
    """Return the SHA-256 of a file's content, decompressed, in hexadecimal; `PoolError` names an unreadable file."""
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


# --- Items that stay in their file: a pool of 100,000 takes the memory of one of 2,000, for any benchmark -------------
MAX_CACHED_ITEMS = 2000  # a pool of more items stays in its file; this number of ReplaySCM's takes 80 MB
MAX_CACHED_LOOKUPS = 64  # cached items, of those that stay in a file, that were looked up by id

I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item
F = TypeVar("F")  # source of an item in a file: the item itself, or a parsed record


def stored_items(
    file: IO[bytes], lines_with_items: Iterable[tuple[Line, I]], decode_item: Callable[[str], I]
) -> Sequence[I]:
    """Return the items of a file opened by `plain_pool`; more than MAX_CACHED_ITEMS stay in it.

    decode_item: return the item of a line that was checked before; must be picklable
    """
    items: list[I] = []
    ids: list[str] = []
    lines = _LineIndex(array("Q"), array("I"), array("I"))
    for line, item in lines_with_items:
        ids.append(item.id)
        lines.add(line)
        if len(ids) <= MAX_CACHED_ITEMS:
            items.append(item)
        elif items:
            items.clear()
    if len(ids) <= MAX_CACHED_ITEMS:
        return tuple(items)
    return StoredItems(_Source(os.dup(file.fileno())), lines, ids, decode_item)


def copied_items(
    sources: Iterator[F], item: Callable[[F], I], line: Callable[[F], bytes], decode_item: Callable[[str], I]
) -> Sequence[I]:
    """Return the items of a file that has no line for each; of more than MAX_CACHED_ITEMS, lines go to an unnamed file.

    item, line: return the item of a source, and its line; decode_item: return the item of such a line; picklable
    """
    first = list(islice(sources, MAX_CACHED_ITEMS + 1))
    if len(first) <= MAX_CACHED_ITEMS:
        return tuple(item(source) for source in first)
    with TemporaryFile() as copy:
        return stored_items(copy, _write_lines(copy, chain(first, sources), item, line), decode_item)


def _write_lines(
    copy: IO[bytes], sources: Iterable[F], item: Callable[[F], I], line: Callable[[F], bytes]
) -> Iterator[tuple[Line, I]]:
    position = 0
    for line_number, source in enumerate(sources, 1):
        raw = line(source)
        copy.write(raw)
        yield Line(line_number, position, len(raw), raw.decode()), item(source)
        position += len(raw)
    copy.flush()


def item_ids(items: Sequence[Item[Any, Any]]) -> list[str]:
    """Return the ids of items; stored items are not decoded."""
    return items.ids if isinstance(items, StoredItems) else [item.id for item in items]


def items_by_id(items: Sequence[I]) -> Mapping[str, I]:
    """Return the items by id; stored ones are decoded at access, and the last MAX_CACHED_LOOKUPS are cached."""
    return _ById(items) if isinstance(items, StoredItems) else {item.id: item for item in items}


class _Source:
    """An open file that several sequences share; closed with the last of them.

    It can be passed only to a process that this one starts.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def __reduce__(self) -> tuple[Callable[..., _Source], tuple[Any]]:
        from multiprocessing import reduction  # imported here because reading a pool does not need it

        if not hasattr(reduction, "DupFd"):  # Windows: the process gets a copy
            return _copy_file, (read_at(self._descriptor, os.fstat(self._descriptor).st_size, 0),)
        return _inherit_file, (reduction.DupFd(self._descriptor),)

    def text(self, start: int, size: int, checksum: int) -> str:
        """Return a line; `PoolError` if its bytes have changed."""
        raw = read_at(self._descriptor, size, start)
        if crc32(raw) != checksum:
            raise PoolError("the pool file changed while it was read")
        return raw.decode()


def _inherit_file(file: Any) -> _Source:
    return _Source(file.detach())


def _copy_file(content: bytes) -> _Source:
    with TemporaryFile() as copy:
        copy.write(content)
        copy.flush()
        return _Source(os.dup(copy.fileno()))


class _LineIndex:
    """Starts, sizes in bytes and CRC-32 of lines."""

    def __init__(self, starts: array[int], sizes: array[int], checksums: array[int]) -> None:
        self._starts, self._sizes, self._checksums = starts, sizes, checksums

    def add(self, line: Line) -> None:
        raw = line.text.encode()
        self._starts.append(line.start)
        self._sizes.append(len(raw))
        self._checksums.append(crc32(raw))

    def __getitem__(self, chosen: slice) -> _LineIndex:
        return _LineIndex(self._starts[chosen], self._sizes[chosen], self._checksums[chosen])

    def line(self, index: int) -> tuple[int, int, int]:
        return self._starts[index], self._sizes[index], self._checksums[index]


class StoredItems(Sequence[I], Generic[I]):
    """Items of a file, each decoded at access; equal to any sequence of equal items. `PoolError` if the file changes.

    ids: ids of the items, in their order
    A process that is being started with it shares the open file; otherwise a pickle or copy of it is a tuple.
    """

    def __init__(self, source: _Source, lines: _LineIndex, ids: list[str], decode_item: Callable[[str], I]) -> None:
        self.ids = ids
        self._source, self._lines, self._decode_item = source, lines, decode_item

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[I]:
        return (self._item(index) for index in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> I: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[I]: ...
    def __getitem__(self, index: int | slice) -> I | Sequence[I]:
        if isinstance(index, slice):
            return StoredItems(self._source, self._lines[index], self.ids[index], self._decode_item)
        return self._item(index)

    def _item(self, index: int) -> I:
        try:
            return self._decode_item(self._source.text(*self._lines.line(index)))
        except PoolError as error:
            raise error.with_location(instance=short_repr(self.ids[index])) from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(item == other_item for item, other_item in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # unhashable like a list; a hash would read the whole file

    def __reduce__(self) -> tuple[Any, ...]:
        from multiprocessing.context import get_spawning_popen

        if get_spawning_popen() is None:
            return tuple, (tuple(self),)
        return StoredItems, (self._source, self._lines, self.ids, self._decode_item)

    def __repr__(self) -> str:
        return f"<{len(self)} stored items>"


class _ById(Mapping[str, I]):
    def __init__(self, items: StoredItems[I]) -> None:
        self._items = items
        self._indices = {name: index for index, name in enumerate(items.ids)}
        self._item = lru_cache(MAX_CACHED_LOOKUPS)(items.__getitem__)

    def __getitem__(self, name: str) -> I:
        item: I = self._item(self._indices[name])
        return item

    def __reduce__(self) -> tuple[Callable[[Sequence[I]], Mapping[str, I]], tuple[Sequence[I]]]:
        return items_by_id, (self._items,)

    def __contains__(self, name: object) -> bool:
        return name in self._indices

    def __iter__(self) -> Iterator[str]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)


# --- Native pool files of any benchmark: a header line that names it, then one record a line --------------------------
FORMAT = "calibrant-pool"
VERSION = 1


class Identified(Protocol):
    """A record with an id that is unique in its pool."""

    id: str


R = TypeVar("R")  # a msgspec Struct
S = TypeVar("S", bound=Identified)


class Header(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """First line of a pool file."""

    format: Annotated[str, Meta(description="name of the format")]
    version: Annotated[int, Meta(description="version of the format")]
    benchmark: Annotated[str, Meta(description="benchmark of the items")]
    name: Annotated[str, Meta(description="name of the pool; by default that of the file")] = ""
    metadata: Annotated[dict[str, Any], Meta(description="free fields, such as seed and suites")] = {}


@dataclass(frozen=True)
class RecordFile(Generic[R]):
    """An open pool file.

    records: each record with its line, decoded one at a time, not yet converted to an item
    plain: the uncompressed file
    """

    name: str
    metadata: Mapping[str, Any]
    records: Iterator[tuple[Line, R]]
    plain: IO[bytes]


@contextmanager
def read_records(path: Path, benchmark: str, record: type[R]) -> Iterator[RecordFile[R]]:
    """Open the records of a native pool file; `PoolError` names file, line and field of what is invalid."""
    try:
        with plain_pool(path) as plain:
            lines = pool_lines(plain)
            first = next(lines, None)
            if first is None:
                raise PoolError("empty; a pool begins with a header line")
            header = decode_line(first.text, Header, where=f"line {first.number}")
            _check(header, benchmark)
            records = ((line, decode_line(line.text, record, where=f"line {line.number}")) for line in lines)
            yield RecordFile(header.name or path.name, header.metadata, records, plain)
    except PoolError as error:
        raise error.with_location(file=path.name) from None


def read_items(path: Path, benchmark: str, record: type[S], item_of: Callable[[S], I]) -> Pool[I]:
    """Return the pool in a native file; a large one keeps its items in the file.

    item_of: return the item of a record; its errors get the line and the id
    """
    with read_records(path, benchmark, record) as file:
        items = stored_items(file.plain, _read_items(file.records, item_of), partial(_decode_item, record, item_of))
    return Pool(file.name, benchmark, items, file.metadata)


def _decode_item(record: type[S], item_of: Callable[[S], I], line: str) -> I:
    return item_of(decoded_again(line, record))


def _read_items(records: Iterable[tuple[Line, S]], item_of: Callable[[S], I]) -> Iterator[tuple[Line, I]]:
    ids: set[str] = set()
    for line, record in records:
        where = f"line {line.number} ({short_repr(record.id)})"
        if record.id in ids:
            raise PoolError("a second item of that id", instance=where, field="id")
        ids.add(record.id)
        try:
            item = item_of(record)
        except PoolError as error:
            raise error.with_location(instance=where) from None
        except CalibrantError as error:
            raise PoolError(str(error), instance=where) from None
        yield line, item


def _check(header: Header, benchmark: str) -> None:
    if (header.format, header.version) != (FORMAT, VERSION):
        actual_format = f"{short_repr(header.format)} version {short_repr(header.version)}"
        raise PoolError(f"{actual_format}; this program reads '{FORMAT}' version {VERSION}", field="format")
    if header.benchmark != benchmark:
        raise PoolError(f"a pool of {short_repr(header.benchmark)}; '{benchmark}' was expected", field="benchmark")


def write_records(path: Path, header: Header, records: Iterable[msgspec.Struct]) -> None:
    """Write a native pool file; it appears complete or not at all."""
    encode = msgspec.json.Encoder(order="deterministic").encode
    try:
        with open_atomically(path) as file:
            file.write(encode(header) + b"\n")
            file.writelines(encode(record) + b"\n" for record in records)
    except OSError as error:
        raise PoolError(f"cannot be written: {error.strerror or error}", file=path.name) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise PoolError(f"does not fit JSON: {error}", file=path.name) from None


def decode_line(line: str, record: type[R], *, where: str = "") -> R:
    """Decode a JSON line as a record, strictly: no unknown, repeated or mistyped field; `PoolError` names the field.

    The message also has the record's id, and the entry of its `EXAMPLES` (path -> allowed values) for the field.
    """
    raw: Any = None
    try:
        raw = load_json(line, object_pairs_hook=unique_keys, parse_constant=_no_constant)
        if _ESCAPED_SURROGATE.search(line):
            json.dumps(raw, ensure_ascii=False).encode()  # raises for a lone surrogate, which UTF-8 cannot encode
        record = _form_of(record, raw)
        return msgspec.convert(raw, record, strict=True)
    except PoolError as error:
        raise PoolError(error.problem, field=where) from None
    except TooLargeError as error:
        raise PoolError(str(error), field=where) from None
    except RecursionError:
        raise PoolError("nested too deeply", field=where) from None
    except json.JSONDecodeError as error:
        raise PoolError(json_fault(error), field=where) from None
    except ValueError as error:  # msgspec's, which name the path of the field
        message = " ".join(str(error).split())[:300]
        name = f"{identity}: " if (identity := _id_of(raw)) else ""
        raise PoolError(f"{name}{message}{_remedy(message, record)}", field=where) from None


def _id_of(raw: Any) -> str:
    name = raw.get("id") if isinstance(raw, dict) else None
    return short_repr(name) if isinstance(name, str) and name else ""


def _remedy(message: str, record: type[Any]) -> str:
    """Return what a field allows whose conversion failed, as the end of a message; empty if unknown."""
    _, _, path = message.partition(" - at `")
    examples: Mapping[str, str] = getattr(record, "EXAMPLES", {})
    allowed = next((text for start, text in examples.items() if path.startswith(start)), "")
    if message.startswith("Invalid enum value") and not allowed:
        allowed = allowed_values(record, path.rstrip("`"))
    if "unknown field `" in message and not path:
        name, fields = message.split("unknown field `")[1].split("`")[0], msgspec.structs.fields(record)
        close = get_close_matches(name, [field.encode_name for field in fields], 1)
        allowed = f"did you mean {close[0]!r}?" if close else ""
    return f"; {allowed}" if allowed else ""


def decoded_again(line: str, record: type[R]) -> R:
    """Decode a line that `decode_line` has accepted before, without its checks."""
    raw = json.loads(line)
    return msgspec.convert(raw, _form_of(record, raw), strict=True)


def _form_of(record: type[R], raw: object) -> type[R]:
    """Return the Struct of a line: that of `FORMS` (field -> Struct) whose field the line has, else `record`."""
    forms: Mapping[str, type[R]] = getattr(record, "FORMS", {})
    return next((form for key, form in forms.items() if isinstance(raw, dict) and key in raw), record)


def convert_object(raw: Mapping[str, Any], record: type[R]) -> R:
    """Convert a JSON object to a record, as strictly as a line; `PoolError` names the field."""
    try:
        return decode_line(json.dumps(raw), record)
    except (TypeError, ValueError, RecursionError) as error:
        raise PoolError(f"not JSON: {in_one_line(str(error))[:200]}") from None


_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _no_constant(name: str) -> NoReturn:
    raise PoolError(f"{name} is not a JSON number")
