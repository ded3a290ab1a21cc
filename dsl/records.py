"""Native pool files of any benchmark: a header line that names it, then one record a line.

Each benchmark gives the msgspec Struct of its records; a reader that it is not for says which benchmark a file holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any, Generic, NoReturn, Protocol, TypeVar

import msgspec
from msgspec import Meta

from calibrant.dsl.atomic_write import whole_file
from calibrant.dsl.errors import CalibrantError, PoolError, in_one_line, short_repr
from calibrant.dsl.item import Item, Pool
from calibrant.dsl.parse_limits import TooLargeError, json_fault, load_json, unique_keys
from calibrant.dsl.pool_text import Line, plain_pool, pool_lines
from calibrant.dsl.stored_items import stored_items

FORMAT = "calibrant-pool"
VERSION = 1


class Identified(Protocol):
    """The field of every item's record.

    id: unique in the pool
    """

    id: str


R = TypeVar("R")  # a msgspec Struct
S = TypeVar("S", bound=Identified)
I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


class Header(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """First line of a pool file."""

    format: Annotated[str, Meta(description="name of the format")]
    version: Annotated[int, Meta(description="version of the format")]
    benchmark: Annotated[str, Meta(description="whose items follow")]
    name: Annotated[str, Meta(description="of the pool, by default that of the file")] = ""
    metadata: Annotated[
        dict[str, Any], Meta(description="whatever its maker wants to say, such as seed and suites")
    ] = {}


@dataclass(frozen=True)
class RecordFile(Generic[R]):
    """An open pool file: records with their lines, read one at a time, not yet understood."""

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
    """Read the pool in a native file; a large one leaves its items there (dsl.stored_items).

    item_of: the item of a record; what it refuses is said with line and id
    """
    with read_records(path, benchmark, record) as file:
        items = stored_items(file.plain, _read_items(file.records, item_of), partial(_again, record, item_of))
    return Pool(file.name, benchmark, items, file.metadata)


def _again(record: type[S], item_of: Callable[[S], I], line: str) -> I:
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
        with whole_file(path) as file:
            file.write(encode(header) + b"\n")
            file.writelines(encode(record) + b"\n" for record in records)
    except OSError as error:
        raise PoolError(f"cannot be written: {error.strerror or error}", file=path.name) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise PoolError(f"does not fit JSON: {error}", file=path.name) from None


def decode_line(line: str, record: type[R], *, where: str = "") -> R:
    """Decode a JSON line as a record, strictly: no unknown, repeated or mistyped field; `PoolError` names the field.

    The id of the record is named too, and what its `EXAMPLES` (path -> what is allowed there) have for the field.
    """
    raw: Any = None
    try:
        raw = load_json(line, object_pairs_hook=unique_keys, parse_constant=_no_constant)
        if _ESCAPED_SURROGATE.search(line):
            json.dumps(raw, ensure_ascii=False).encode()  # half a character has no bytes in a file that we write
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
    """Return what would be allowed where a conversion failed; empty where that is not known."""
    _, _, path = message.partition(" - at `")
    examples: Mapping[str, str] = getattr(record, "EXAMPLES", {})
    allowed = next((text for start, text in examples.items() if path.startswith(start)), "")
    if "unknown field `" in message and not path:
        name, fields = message.split("unknown field `")[1].split("`")[0], msgspec.structs.fields(record)
        close = get_close_matches(name, [field.encode_name for field in fields], 1)
        allowed = f"did you mean {close[0]!r}?" if close else ""
    return f"; {allowed}" if allowed else ""


def decoded_again(line: str, record: type[R]) -> R:
    """Decode a line again that `decode_line` has accepted, without repeating its checks."""
    return msgspec.convert(json.loads(line), record, strict=True)


def convert_object(raw: Mapping[str, Any], record: type[R]) -> R:
    """Convert a JSON object to a record, as strictly as a line; `PoolError` names the field."""
    try:
        return decode_line(json.dumps(raw), record)
    except (TypeError, ValueError, RecursionError) as error:
        raise PoolError(f"not JSON: {in_one_line(str(error))[:200]}") from None


_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _no_constant(name: str) -> NoReturn:
    raise PoolError(f"{name} is not a JSON number")
