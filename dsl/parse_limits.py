"""Limits on parsing untrusted text: nesting depth, size with aliases expanded, and number of values before parsing.

Reasons: code that traverses a deeply nested value runs out of stack; a value that contains another one many times (YAML
aliases) grows exponentially when printed; an empty list takes 64 bytes in memory and three in a file.
"""

from __future__ import annotations

import json
import re
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from calibrant.dsl.errors import CalibrantError, PoolError, readable_repr, short_repr

MAX_DEPTH = 200  # pool files are ten levels deep
MAX_JSON_BYTES = 1 << 26  # size of one JSON text; a line with 64 long responses has 25 MB
MAX_BLANK_LINES = 100_000  # in a row: 1 MB of gzip can hold a thousand million, two minutes of reading
BLANK_LINES = f"more than {MAX_BLANK_LINES} blank lines in a row"
# peak memory of a token (string, [, { or comma), measured: 138 bytes in nested objects of one member with different
# keys, 96 in nested lists, 72 in an object of many members, 32 for numbers with a decimal point
MAX_TOKEN_BYTES = 140
MAX_PARSED_BYTES = 560_000_000  # memory of the values of one text, long strings aside
MAX_JSON_TOKENS = MAX_PARSED_BYTES // MAX_TOKEN_BYTES  # 4,000,000
# Texts of fewer bytes are not checked: nested lists take most memory of the shapes measured, 96 bytes for "[]", which
# is 50 MB here.
MAX_UNCHECKED_BYTES = 1 << 20
# Up to CPython 3.11.4 a possessive group backtracks (gh-106052), so that `{"}` matches as an object
_HAS_POSSESSIVE_GROUPS = sys.version_info >= (3, 11, 5)


def possessive(group: str, times: str) -> str:
    """Return a pattern that repeats a group without backtracking; times: `*`, `+`, `?` or `{m,}`.

    Before 3.11.5 it is an atomic group, which matches the same but holds about 200 bytes for each repetition.
    """
    return f"(?:{group}){times}+" if _HAS_POSSESSIVE_GROUPS else f"(?>(?:{group}){times})"


# A token is a string (or the rest of the text where it is not closed), "[", "{" or ",". Possessive: linear time.
_STRING = r'"[^"\\]*+' + possessive(r'\\.[^"\\]*+', "*") + '"?'
_TOKEN = _STRING + r"|[\[{,]"
_TEXT_TOKEN, _BYTES_TOKEN = re.compile(_TOKEN, re.DOTALL), re.compile(_TOKEN.encode(), re.DOTALL)
_BRACKET = re.compile(_STRING + r"|[\[{}\]]", re.DOTALL)  # or a string, whose brackets do not count
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'[]{}"'))  # deleted by `bytes.translate`; the depth depends on the others
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # 1 and -1 as signed bytes
T = TypeVar("T")


class TooLargeError(CalibrantError):
    """A text is longer, or would create more values, than the limits of this module allow."""


class TooDeepError(TooLargeError):
    """A text has lists or objects more than MAX_DEPTH deep."""


def load_json(text: str | bytes, **options: Any) -> Any:
    """Return the value of a JSON text; `TooLargeError` before anything large is created, else as `json.loads`."""
    check_json_text(text)
    return json.loads(text, **options)


def decode_json(text: str | bytes, kind: type[T]) -> T:
    """Return a JSON text as that type; `TooLargeError` as `load_json`, else as `msgspec.json.decode`."""
    check_json_text(text)
    return msgspec.json.decode(text, type=kind)


def check_json_text(text: str | bytes) -> None:
    """Raise `TooLargeError` for what `check_json_size` or `check_json_depth` refuses."""
    check_json_size(text)
    check_json_depth(text)


def check_json_depth(text: str | bytes) -> None:
    """Raise `TooDeepError` for lists and objects more than MAX_DEPTH deep, before parsing.

    The depth is that of the text up to where it stops being JSON. It does not depend on the caller's stack, as the
    limits of `json` and msgspec do.
    """
    opens = ("[", "{") if isinstance(text, str) else (b"[", b"{")
    if sum(map(text.count, opens)) > MAX_DEPTH and _json_depth(text) > MAX_DEPTH:  # type: ignore[arg-type]
        raise TooDeepError(f"nested more than {MAX_DEPTH} deep")


def quote_deep_members(text: str) -> str:
    """Return the text of an object in which each member deeper than MAX_DEPTH is replaced by a string of its text.

    Such a member need not be valid JSON. A text that is too deep in another place stays too deep.
    """
    if not text.lstrip().startswith("{"):
        return text
    parts, end, start, depth, deepest = [], 0, 0, 0, 0
    for token in _BRACKET.finditer(text):
        if (bracket := token[0]) in ("[", "{"):
            depth += 1
            if depth == 2:
                start, deepest = token.start(), 0
            deepest = max(deepest, depth)
        elif bracket in ("]", "}"):
            depth -= 1
            if depth == 1 and deepest > MAX_DEPTH:
                parts += [text[end:start], json.dumps(text[start : token.end()])]
                end = token.end()
    return "".join([*parts, text[end:]])


def _json_depth(text: str | bytes) -> int:
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if b"\\" in raw:
        raw = _ESCAPE.sub(b"", raw)
    # drop adjacent quotes: an empty string, or the end of one string and the start of the next
    structure = raw.translate(None, _NOT_STRUCTURE).replace(b'""', b"")
    brackets = b"".join(structure.split(b'"')[::2])
    return max(accumulate(array("b", brackets.translate(_STEPS))), default=0)


def json_fault(error: Exception) -> str:
    """Return the fault of a JSON line, with its column; callers add the number of the line."""
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg}, column {error.colno}"
    return f"not JSON: {error}"


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these members, for `object_pairs_hook`; `PoolError` names a key that occurs twice."""
    mapping = {sys.intern(key): value for key, value in pairs}  # 10^5 lines have the same keys: a third of their memory
    if len(mapping) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise PoolError(f"key {short_repr(twice)} occurs twice in one object")
    return mapping


def read_bounded(path: Path) -> bytes:
    """Return the bytes of a file of one JSON text; `TooLargeError` if it has more than MAX_JSON_BYTES."""
    with path.open("rb") as file:
        text = file.read(MAX_JSON_BYTES + 1)
    check_json_size(text)
    return text


def check_json_size(text: str | bytes) -> None:
    """Raise `TooLargeError` for more than MAX_JSON_BYTES bytes, or MAX_JSON_TOKENS strings, "[", "{" and commas.

    Of a `str` the characters are counted instead of bytes, because it is in memory already. "[" and "{" are limited
    inside strings too: an answer in a string is decoded after the line that holds it.
    """
    if len(text) <= MAX_UNCHECKED_BYTES:
        return
    if len(text) > MAX_JSON_BYTES:
        raise TooLargeError(f"a JSON text of more than {MAX_JSON_BYTES} bytes; split it or leave out what is not read")
    count: Callable[[str], int] = text.count if isinstance(text, str) else lambda token: text.count(token.encode())
    brackets = count("[") + count("{")
    allowance = MAX_JSON_TOKENS - brackets
    # counts that include strings are an upper bound; only a text above the limit is split into tokens, which is slower
    if allowance < 0 or (count(",") + count('"') > allowance and _has_more_tokens(text)):
        raise TooLargeError(f"a JSON text of more than {MAX_JSON_TOKENS} strings, lists, objects and commas")


def _has_more_tokens(text: str | bytes) -> bool:
    tokens: Iterator[object]
    tokens = _TEXT_TOKEN.finditer(text) if isinstance(text, str) else _BYTES_TOKEN.finditer(text)
    return next(islice(tokens, MAX_JSON_TOKENS, None), None) is not None


def check_nesting(value: Any, max_items: int) -> None:
    """Raise `PoolError` if containers nest more than MAX_DEPTH deep, or hold more than `max_items` items in all.

    max_items: callers pass the length of the text, since without aliases each item takes a character or more
    A container counts wherever it occurs, so one that contains itself is too deep.
    """
    stack = [(value, 1)] if isinstance(value, _CONTAINERS) else []
    items = 0
    while stack:
        container, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise PoolError(f"nested more than {MAX_DEPTH} deep")
        items += len(container)
        if items > max_items:
            raise PoolError("its aliases, written out, are longer than the file")
        children = container.values() if isinstance(container, dict) else container
        stack.extend([(child, depth + 1) for child in children if isinstance(child, _CONTAINERS)])


_CONTAINERS = (dict, list, tuple, set)


# --- Text files of other tools: bounded, UTF-8 with or without BOM, lines that end in CR, LF or CRLF ------------------
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


_WORKBOOK: Final = "it looks like a workbook; save the sheet as CSV in UTF-8"
# first bytes -> what a file is that holds no text in UTF-8, and what to do
_NO_TEXT: Final[Mapping[bytes, str]] = {
    b"\xff\xfe": "text in UTF-16; save it in UTF-8",
    b"\xfe\xff": "text in UTF-16; save it in UTF-8",
    b"\x1f\x8b": "compressed with gzip; give the file as it was: gunzip FILE",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard; give the file as it was: zstd -d FILE",
    b"BZh91AY": "compressed with bzip2; give the file as it was: bunzip2 FILE",
    b"\xfd7zXZ": "compressed with xz; give the file as it was: unxz FILE",
    b"PK\x03\x04": _WORKBOOK,
    b"\xd0\xcf\x11\xe0": _WORKBOOK,
}


def describe_no_text(beginning: bytes) -> str:
    """Return what a file is that begins like no text in UTF-8, and what to do; "" for a text.

    A text has no NUL, which UTF-16 without a byte order mark and binary files have.
    """
    stated = next((problem for magic, problem in _NO_TEXT.items() if beginning.startswith(magic)), "")
    return stated or ("no text in UTF-8, for it has a NUL; save it as text in UTF-8" if b"\0" in beginning else "")


def decode_text(content: bytes, file: str) -> str:
    """Return the text of bytes; `PoolError` if they are not UTF-8."""
    text, fault = "", ""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        fault = f"byte {error.start} is not UTF-8; save the file as UTF-8"
    if fault or "\0" in text:
        raise PoolError(describe_no_text(content) or fault, file=file)
    return text


NUM_PROBED_LINES = 50  # lines by which cells between blanks are recognised


def stated_delimiter(first_line: str) -> str:
    """Return the delimiter that a line of Excel above the names states, such as `sep=;`; "" for another line."""
    match = re.fullmatch(r"sep=([,;\t])", first_line.rstrip("\r\n"))
    return match[1] if match else ""


def describe_blanks(file: Iterable[str]) -> str:
    """Return what to do about cells between blanks, "" without them: all lines have as many words.

    All but the first may have one more: R's write.table separates so, and begins each row with its name.
    """
    bare = [re.sub(r'"[^"]*"', "x", line) for line in islice(file, NUM_PROBED_LINES) if line.strip()]
    widths = [len(line.split()) for line in bare]
    is_even = len(set(widths[1:])) == 1 and widths[1] - widths[0] in (0, 1)
    if not is_even or widths[0] < 2 or any(mark in line for line in bare for mark in ",;\t|"):
        return ""
    remedy = "write commas, semicolons or tabs; R does by write.csv(DATA, FILE, row.names = FALSE)"
    return f"cells are separated by blanks; {remedy}"


def advise_row(names: Sequence[str], row: Sequence[str], delimiter: str) -> str:
    """Return what to do about a row of another length than the head. delimiter: by which both were split."""
    if names[0].startswith("#"):
        return "take out the lines above the names"
    if row and row[0].lstrip().startswith("#"):
        return "take out lines that are comments"
    for separator in ",;\t":
        counts = [delimiter.join(cells).count(separator) for cells in (names, row)]
        if separator != delimiter and counts[0] == counts[1] > 0:
            return (
                f"if {readable_repr(separator)} separates, quote the name that has {readable_repr(delimiter)} before it"
            )
    if len(row) > len(names):
        return f"take out lines above the names, or quote values that have {readable_repr(delimiter)}"
    return "a row has one value a name"


def split_lines(text: str) -> list[str]:
    """Return the lines of a text; only CR, LF and CRLF end a line."""
    return _LINE_END.split(text)


# --- Types at a path of msgspec's errors: what would be allowed there -------------------------------------------------
def allowed_values(record: type[Any], path: str) -> str:
    """Return the values of the enumeration at a path of msgspec's, as `.family`; empty where there is none."""
    node: inspect.Type = inspect.type_info(record)
    for name, _ in re.findall(r"\.(\w+)|\[(\d*|\.\.\.)\]", path):
        node, _ = child_type(node, name)
    kinds = node.types if isinstance(node, inspect.UnionType) else (node,)
    enumerations = [kind.cls for kind in kinds if isinstance(kind, inspect.EnumType)]
    return f"allowed: {', '.join(str(member.value) for member in enumerations[0])}" if enumerations else ""


def plain_type(node: inspect.Type) -> inspect.Type:
    """Return a type without its description."""
    return node.type if isinstance(node, inspect.Metadata) else node


def child_type(node: inspect.Type, name: str) -> tuple[inspect.Type, str]:
    """Return the type of a field, or of the elements of a list, and its meaning; the type itself where none is."""
    node = plain_type(node)
    child = node
    if name and isinstance(node, inspect.StructType):
        child = next((field.type for field in node.fields if field.encode_name == name), node)
    elif not name and isinstance(node, inspect.ListType | inspect.VarTupleType):
        child = node.item_type
    schema = child.extra_json_schema if isinstance(child, inspect.Metadata) else None
    return plain_type(child), str((schema or {}).get("description", ""))
