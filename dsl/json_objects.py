"""JSON objects in a text, and limits on what is parsed."""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate
from json.decoder import scanstring  # type: ignore[attr-defined]  # undocumented, in every CPython
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import inspect

from calibrant.dsl.errors import CalibrantError, PoolError, short_repr
from calibrant.dsl.memory import gc_paused

# --- Limits on parsing untrusted text: nesting depth, size with aliases expanded, and number of values before
# parsing
#
# Whatever walks a value that nests deeply runs out of stack; a value that holds itself many times over (YAML aliases)
# explodes when it is printed; an empty list takes 64 bytes in memory and three in a file.
MAX_DEPTH = 200  # pool files are ten levels deep
MAX_JSON_BYTES = 1 << 26  # of one JSON text; a line with 64 long responses has 25 MB
# measured at the peak: 138 bytes for nested objects of one member, each under another key; 96 for nested lists, 72 for
# an object of many members, 32 for numbers with a decimal point
MAX_TOKEN_BYTES = 140
MAX_PARSED_BYTES = 560_000_000  # memory of the values of one text, long strings aside
MAX_JSON_TOKENS = MAX_PARSED_BYTES // MAX_TOKEN_BYTES  # 4,000,000
# Shorter texts are not checked: of the shapes measured nested lists take most memory, 96 bytes for "[" and "]",
# which makes 50 MB.
UNCHECKED_JSON = 1 << 20
# A token is a string (or the rest of the text where it is not closed), "[", "{" or ",". Possessive: linear time.
_TOKEN = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{,]'
_TEXT_TOKEN, _BYTES_TOKEN = re.compile(_TOKEN, re.DOTALL), re.compile(_TOKEN.encode(), re.DOTALL)
_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{}\]]', re.DOTALL)  # or a string, whose brackets do not count
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'[]{}"'))  # what `bytes.translate` deletes: depth is in the others alone
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # 1 and -1 as signed bytes
T = TypeVar("T")


class TooLargeError(CalibrantError):
    """A text is longer, or would create more values, than is read."""


class TooDeepError(TooLargeError):
    """A text has lists or objects more than MAX_DEPTH deep."""


def load_json(text: str | bytes, **options: Any) -> Any:
    """Return the value of a JSON text; `TooLargeError` before anything large is made, else as `json.loads`."""
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
    """Return the text of an object in which the members that nest too deeply are strings of their own text.

    Whether such a member is JSON is left open. A text that is deep elsewhere keeps its depth.
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
    # quotes that meet enclose no bracket, or separate strings that are passed over both
    structure = raw.translate(None, _NOT_STRUCTURE).replace(b'""', b"")
    brackets = b"".join(structure.split(b'"')[::2])
    return max(accumulate(array("b", brackets.translate(_STEPS))), default=0)


def json_fault(error: Exception) -> str:
    """Return the fault of a text of one line, with its column; the line is that of the file, which the caller knows."""
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg}, column {error.colno}"
    return f"not JSON: {error}"


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these members, for `object_pairs_hook`; `PoolError` names a key that occurs twice."""
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        twice = next(key for key, number in Counter(key for key, _ in pairs).items() if number > 1)
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
    if len(text) <= UNCHECKED_JSON:
        return
    if len(text) > MAX_JSON_BYTES:
        raise TooLargeError(f"a JSON text of more than {MAX_JSON_BYTES} bytes; split it or leave out what is not read")
    count: Callable[[str], int] = text.count if isinstance(text, str) else lambda token: text.count(token.encode())
    brackets = count("[") + count("{")
    allowance = MAX_JSON_TOKENS - brackets
    # counts inside strings included are an upper bound; only a text above it is split into tokens, which is slower
    if allowance < 0 or (count(",") + count('"') > allowance and _has_more_tokens(text)):
        raise TooLargeError(f"a JSON text of more than {MAX_JSON_TOKENS} strings, lists, objects and commas")


def _has_more_tokens(text: str | bytes) -> bool:
    tokens: Iterator[object]
    tokens = _TEXT_TOKEN.finditer(text) if isinstance(text, str) else _BYTES_TOKEN.finditer(text)
    return next((True for number, _ in enumerate(tokens, 1) if number > MAX_JSON_TOKENS), False)


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


def decode_text(content: bytes, file: str) -> str:
    """Return the text of bytes; `PoolError` if they are not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PoolError(f"byte {error.start} is not UTF-8; save the file as UTF-8", file=file) from None


def split_lines(text: str) -> list[str]:
    """Return the lines of a text; only CR, LF and CRLF end a line."""
    return _LINE_END.split(text)


# --- Every JSON object of a text, in linear time whatever the text ----------------------------------------------------
# An object of a text is what `json.JSONDecoder().raw_decode` decodes at one of its `{`: nested objects count, and so do
# objects spelled inside strings or after broken JSON. JSON is Python's: NaN and Infinity are numbers, the last of equal
# keys wins, a raw control character in a string is an error, and so is an integer beyond the interpreter's digit limit.
# One deviation: an object that nests more than MAX_NESTING containers, itself included, does not decode. CPython's own
# limit depends on how deep the caller stands.
#
# Why linear: decoding at `{` needs no context, so one attempt settles every container it opens, and none of them is
# tried again; those still open when it breaks all break at the same character. An attempt that starts while an earlier
# one would still be reading starts inside a string of that one. Both go on only as long as each quote closes a string
# of one and opens a string of the other (neither allows a backslash outside strings). So no character is read by more
# than two attempts.
MAX_NESTING = 500  # far below the 990 or so at which CPython's decoder gives up under a shallow stack

_DECODER = json.JSONDecoder()
_scan_scalar: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]
_SPACE = " \t\n\r"
_CLOSER = {"{": "}", "[": "]"}

# Strict JSON without containers, escapes and exponents, which regular expressions find and the C decoder reads at once
_WS = r"[ \t\n\r]*+"
_TEXT = r'"[^"\\\x00-\x1f]*+"'
SCALAR = rf"(?:{_TEXT}|-?(?:0|[1-9][0-9]{{0,15}})(?:\.[0-9]+)?+|true|false|null)"
LISTED = re.compile(rf"(?:{SCALAR}{_WS},{_WS})++")
KEYED = re.compile(rf"(?:{_TEXT}{_WS}:{_WS}{SCALAR}{_WS},{_WS})++")
FLAT_OBJECT = re.compile(rf"\{{{_WS}(?:{_TEXT}{_WS}:{_WS}{SCALAR}{_WS}(?:,{_WS}(?={_TEXT})|(?=\}})))*+\}}")
# a brace that opens well: it closes, or key, colon and the start of a value stand behind it, as far as the text goes
_VALUE = rf'{_WS}(?:["{{\[0-9tfnNI-]|\Z)'
_OPENING = re.compile(rf'\{{(?={_WS}(?:\}}|\Z|"[^"\\\x00-\x1f]*+(?:"{_WS}(?::{_VALUE}|\Z)|\\|\Z)))')


class JsonObject(NamedTuple):
    """One object and its place: text[start] is its `{`; `end` is behind its `}`, or where it breaks."""

    value: dict[str, Any]
    start: int
    end: int


def json_objects(text: str) -> Iterator[JsonObject]:
    """Every object of the text, in order of start; holds one byte per character and what one attempt decoded."""
    scans = _SCANS.get()
    if scans is None or not MIN_SHARED_CHARS <= len(text) <= MAX_SHARED_CHARS:
        return _scan_objects(text)
    objects = scans.get(text)
    if objects is None:
        scans.clear()
        objects = scans[text] = tuple(_scan_objects(text))
    return iter(objects)


def _scan_objects(text: str) -> Iterator[JsonObject]:
    scan = _Scan(text)
    for start in scan.openings():
        complete_object = scan.complete.pop(start, None)
        if complete_object is not None:
            yield complete_object


# --- One scan of a long text for several readers ----------------------------------------------------------------------
MIN_SHARED_CHARS, MAX_SHARED_CHARS = 20_000, 2_000_000  # 200 bytes a character at most are held
_SCANS: ContextVar[dict[str, tuple[JsonObject, ...]] | None] = ContextVar("scans", default=None)


@contextmanager
def scans_shared(text: str) -> Iterator[None]:
    """Scan a long text once for all that ask for its objects inside; they leave the objects as they are."""
    if len(text) < MIN_SHARED_CHARS or _SCANS.get() is not None:
        yield
        return
    token = _SCANS.set({})
    try:
        with gc_paused():  # half of the time would go into objects that are all in use
            yield
    finally:
        _SCANS.reset(token)


def json_fragments(text: str) -> Iterator[JsonObject]:
    """Every object of the text that opens well and then breaks or ends too early, with the members before the break.

    A container among the members is whole; a number may be cut short. In no particular order.
    """
    scan = _Scan(text)
    for _ in scan.openings():
        scan.complete.clear()
        while scan.unclosed:
            frame = scan.unclosed.pop()
            if isinstance(frame, _OpenObject):
                yield JsonObject(frame.value, frame.start, scan.reached)
            if scan.unclosed:
                scan.unclosed[-1].drop_last()


def decode(text: str) -> Any:
    """Return the value that a text without white space around it spells, or ValueError.

    Differs from `json.loads` only in the nesting limit, and never raises RecursionError.
    """
    closer = _CLOSER.get(text[:1], "")
    if not text.endswith(closer):
        raise ValueError("the text does not end where its first bracket closes")
    if not closer or text.count("{") + text.count("[") <= MAX_NESTING:
        try:
            value, end = _DECODER.raw_decode(text)
        except RecursionError:  # the caller stands deep in its own recursion
            pass
        else:
            if end == len(text):
                return value
            raise ValueError("the text goes on after a JSON value")
    container, end = _Scan(text).attempt(0)
    if end != len(text):
        raise ValueError("the text is not one JSON value")
    return container


def _decode_flat(text: str) -> dict[str, Any]:
    value: dict[str, Any] = _DECODER.raw_decode(text)[0]
    return value


class _OpenObject:
    """An object whose `}` has not been met; `key` is that of the member being read."""

    __slots__ = ("key", "start", "value")
    closer = "}"

    def __init__(self, start: int) -> None:
        self.start = start
        self.value: dict[str, Any] = {}
        self.key = ""

    def member(self, text: str, position: int) -> int:
        """Read the key at `position`; where its value starts."""
        if text[position] != '"':
            raise ValueError("expected a key")
        self.key, position = _string(text, position)
        position = _skip_space(text, position)
        if text[position] != ":":
            raise ValueError("expected ':'")
        return _skip_space(text, position + 1)

    def add(self, value: object) -> None:
        self.value[self.key] = value

    def drop_last(self) -> None:
        del self.value[self.key]


class _OpenArray:
    """An array whose `]` has not been met."""

    __slots__ = ("start", "value")
    closer = "]"

    def __init__(self, start: int) -> None:
        self.start = start
        self.value: list[Any] = []

    def member(self, text: str, position: int) -> int:
        return position

    def add(self, value: object) -> None:
        self.value.append(value)

    def drop_last(self) -> None:
        self.value.pop()


_Open: TypeAlias = _OpenObject | _OpenArray


class _Scan:
    """The progress of a scan for the objects of one text.

    settled: 1 at the `{` of every object that an attempt has opened
    complete: those that closed, by start
    unclosed: the containers that the last attempt left open, innermost last; it came as far as `reached`
    """

    __slots__ = ("complete", "reached", "settled", "text", "unclosed")

    def __init__(self, text: str) -> None:
        self.text = text
        self.settled = bytearray(len(text))
        self.complete: dict[int, JsonObject] = {}
        self.unclosed: deque[_Open] = deque()
        self.reached = 0

    def openings(self) -> Iterator[int]:
        """Every `{` that opens well, each settled before it is given."""
        text, settled = self.text, self.settled
        for opening in _OPENING.finditer(text):
            start = opening.start()
            if not settled[start]:
                flat = FLAT_OBJECT.match(text, start)
                if flat is None:
                    self.attempt(start)
                else:
                    self.complete[start] = JsonObject(_decode_flat(flat[0]), start, flat.end())
            yield start

    def attempt(self, start: int) -> tuple[Any, int]:
        """Decode from the bracket at `start`: the outermost container that decodes and its end, or (None, -1).

        That is the one at `start`, unless it nests too deeply.
        """
        text, position = self.text, start
        # A container with MAX_NESTING open ones inside cannot decode any more: it falls off the outer end.
        frames: deque[_Open] = deque(maxlen=MAX_NESTING)
        self.unclosed = frames
        try:
            while True:  # a value starts at `position`
                character = text[position]
                if character in "{[":
                    frame = _OpenObject(position) if character == "{" else _OpenArray(position)
                    if character == "{":
                        self.settled[position] = 1
                    if frames:
                        frames[-1].add(frame.value)
                    frames.append(frame)
                    position = _skip_space(text, position + 1)
                    if text[position] != frame.closer:
                        position = frame.member(text, position)
                        continue
                else:
                    value, position = _string(text, position) if character == '"' else _scan_scalar(text, position)
                    frames[-1].add(value)
                    position = _skip_space(text, position)
                while text[position] != ",":
                    frame = frames[-1]
                    if text[position] != frame.closer:
                        raise ValueError("expected ',' or a closing bracket")
                    frames.pop()
                    position += 1
                    if isinstance(frame, _OpenObject):
                        self.complete[frame.start] = JsonObject(frame.value, frame.start, position)
                    if not frames:
                        return frame.value, position
                    position = _skip_space(text, position)
                position = frames[-1].member(text, _skip_space(text, position + 1))
        except (IndexError, StopIteration, ValueError):  # end of text; no scalar; bad string or key, huge integer
            self.reached = position
            return None, -1


def _string(text: str, opening: int) -> tuple[str, int]:
    """Return the string whose quote is at `opening`, and its end.

    `scanstring` gets a copy of the literal, never the text: its error messages count the lines of all it was given.
    """
    segment = opening + 1
    closing = text.index('"', segment)
    while text[closing - 1] == "\\":
        backslashes = closing - segment - len(text[segment:closing].rstrip("\\"))
        if backslashes % 2 == 0:
            break
        segment = closing + 1
        closing = text.index('"', segment)
    value, _ = scanstring(text[opening : closing + 1], 1)
    return value, closing + 1


def _skip_space(text: str, position: int) -> int:
    while text[position] in _SPACE:
        position += 1
    return position


THINK, THINK_END = "<think>", "</think>"


def without_think_pairs(text: str) -> str:
    """Return a reply without its closed <think> blocks, as the released readers do; one that is never closed stays."""
    pieces, position = [], 0
    while (opening := text.find(THINK, position)) >= 0 and (closing := text.find(THINK_END, opening)) >= 0:
        pieces.append(text[position:opening])
        position = closing + len(THINK_END)
    return "".join(pieces) + text[position:]


def last_object(text: str) -> dict[str, Any] | None:
    """Return the last object that decodes and is not inside another that does."""
    start, stop = text.find("{"), text.rfind("}") + 1
    if start >= stop:
        return None
    try:  # one object from the first brace to the last is the only one outside: read in a third of the time
        value = decode(text[start:stop])
    except ValueError:
        pass
    else:
        return value if isinstance(value, dict) else None
    last, end = None, 0
    for match in json_objects(text):
        if match.start >= end:
            last, end = match.value, match.end
    return last


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
