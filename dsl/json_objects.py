"""JSON objects in a text, found in linear time, and one scan of a long text shared by several readers."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from json.decoder import scanstring  # type: ignore[attr-defined]  # undocumented, in every CPython
from typing import Any, NamedTuple, TypeAlias

from calibrant.dsl.memory import gc_paused
from calibrant.dsl.parse_limits import possessive

# --- Every JSON object of a text, in linear time whatever the text ----------------------------------------------------
# An object of a text is what `json.JSONDecoder().raw_decode` decodes at one of its `{`: nested objects count, and so do
# objects spelled inside strings or after broken JSON. JSON is Python's: NaN and Infinity are numbers, the last of equal
# keys wins, a raw control character in a string is an error, and so is an integer beyond the interpreter's digit limit.
# One deviation: an object that nests more than MAX_NESTING containers, itself included, does not decode. CPython's own
# limit depends on the depth of the caller's stack.
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
_FRACTION = possessive(r"\.[0-9]+", "?")
SCALAR = rf"(?:{_TEXT}|-?(?:0|[1-9][0-9]{{0,15}}){_FRACTION}|true|false|null)"
LISTED = re.compile(possessive(rf"{SCALAR}{_WS},{_WS}", "+"))
KEYED = re.compile(possessive(rf"{_TEXT}{_WS}:{_WS}{SCALAR}{_WS},{_WS}", "+"))
_MEMBER = rf"{_TEXT}{_WS}:{_WS}{SCALAR}{_WS}(?:,{_WS}(?={_TEXT})|(?=\}}))"
FLAT_OBJECT = re.compile(rf"\{{{_WS}{possessive(_MEMBER, '*')}\}}")
# a brace that may open an object: followed by `}` or by key, colon and start of a value, as far as the text goes
_VALUE = rf'{_WS}(?:["{{\[0-9tfnNI-]|\Z)'
_OPENING = re.compile(rf'\{{(?={_WS}(?:\}}|\Z|"[^"\\\x00-\x1f]*+(?:"{_WS}(?::{_VALUE}|\Z)|\\|\Z)))')


class JsonObject(NamedTuple):
    """One object in a text: text[start] is its `{`; end: index after its `}`, or of the character where it breaks."""

    value: dict[str, Any]
    start: int
    end: int


def json_objects(text: str) -> Iterator[JsonObject]:
    """Yield every object in a text by ascending start; takes a byte per character and the memory of one attempt."""
    scans = _SCANS.get()
    if scans is None or not MIN_SHARED_CHARS <= len(text) <= MAX_SHARED_CHARS:
        return _scan_objects(text)
    objects = scans.objects.get(text)
    if objects is None:
        scans.objects = {text: (objects := tuple(_scan_objects(text)))}
    return iter(objects)


def _scan_objects(text: str) -> Iterator[JsonObject]:
    scan = _Scan(text)
    for start in scan.openings():
        complete_object = scan.complete.pop(start, None)
        if complete_object is not None:
            yield complete_object


# --- One scan of a long text for several readers ----------------------------------------------------------------------
MIN_SHARED_CHARS, MAX_SHARED_CHARS = 20_000, 2_000_000  # a scan takes at most 200 bytes per character


class _SharedScans:
    """Objects of the last long text, and the value at its start with the index of its end."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[JsonObject, ...]] = {}
        self.whole: dict[str, tuple[Any, int]] = {}


_SCANS: ContextVar[_SharedScans | None] = ContextVar("scans", default=None)


@contextmanager
def scans_shared(text: str) -> Iterator[None]:
    """Scan a long text once for all calls of `json_objects` in the context; callers must not change the objects."""
    if len(text) < MIN_SHARED_CHARS or _SCANS.get() is not None:
        yield
        return
    token = _SCANS.set(_SharedScans())
    try:
        with gc_paused():  # otherwise half of the time would be spent on traversing objects that are all in use
            yield
    finally:
        _SCANS.reset(token)


def json_fragments(text: str) -> Iterator[JsonObject]:
    """Yield, in no particular order, every incomplete object in a text, with its members before the break.

    Containers among the members are complete; a number may be truncated.
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
    """Return the value of a JSON text without surrounding white space; `ValueError` if it is invalid.

    Differs from `json.loads` only in the nesting limit, and never raises RecursionError.
    """
    closer = _CLOSER.get(text[:1], "")
    if not text.endswith(closer):
        raise ValueError("the text does not end where its first bracket closes")
    if not closer or text.count("{") + text.count("[") <= MAX_NESTING:
        try:
            value, end = _DECODER.raw_decode(text)
        except RecursionError:  # the caller's stack is deep
            pass
        else:
            if end == len(text):
                return value
            raise ValueError("the text goes on after a JSON value")
    container, end = _decode_deep(text)
    if end != len(text):
        raise ValueError("the text is not one JSON value")
    return container


def _decode_deep(text: str) -> tuple[Any, int]:
    """Return the value at the beginning of a text, and its end, as `attempt` does; long texts share one scan."""
    scans = _SCANS.get()
    if scans is None or not MIN_SHARED_CHARS <= len(text) <= MAX_SHARED_CHARS:
        return _Scan(text).attempt(0)
    decoded = scans.whole.get(text)
    if decoded is None:
        scans.whole = {text: (decoded := _Scan(text).attempt(0))}
    return decoded


def _decode_flat(text: str) -> dict[str, Any]:
    value: dict[str, Any] = _DECODER.raw_decode(text)[0]
    return value


class _OpenObject:
    """An object whose `}` was not reached yet; key: of the current member."""

    __slots__ = ("key", "start", "value")
    closer = "}"

    def __init__(self, start: int) -> None:
        self.start = start
        self.value: dict[str, Any] = {}
        self.key = ""

    def member(self, text: str, position: int) -> int:
        """Read the key at `position`; return the index where its value starts."""
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
    """An array whose `]` was not reached yet."""

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

    settled: one byte for each character, 1 at the `{` of every object that an attempt has opened
    complete: complete objects by start
    unclosed: containers that the last attempt left open, innermost last; reached: index where it stopped
    """

    __slots__ = ("complete", "reached", "settled", "text", "unclosed")

    def __init__(self, text: str) -> None:
        self.text = text
        self.settled = bytearray(len(text))
        self.complete: dict[int, JsonObject] = {}
        self.unclosed: deque[_Open] = deque()
        self.reached = 0

    def openings(self) -> Iterator[int]:
        """Yield the index of every `{` that may open an object, after an attempt has settled it."""
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
        """Decode from the bracket at `start`; return the outermost complete container and its end, or (None, -1).

        This is the container at `start`, unless it nests too deeply.
        """
        text, position = self.text, start
        # A container with MAX_NESTING open ones inside is too deep to decode, and is dropped from the outer end.
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

    `scanstring` gets a copy of the literal, not the text, because its error messages count the lines of its argument.
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
    """Return a reply without its closed <think> blocks, as the released readers do; an unclosed block remains."""
    pieces, position = [], 0
    while (opening := text.find(THINK, position)) >= 0 and (closing := text.find(THINK_END, opening)) >= 0:
        pieces.append(text[position:opening])
        position = closing + len(THINK_END)
    return "".join(pieces) + text[position:]


def last_object(text: str) -> dict[str, Any] | None:
    """Return the last complete object in a text that is not inside another one; None without one."""
    start, stop = text.find("{"), text.rfind("}") + 1
    if start >= stop:
        return None
    try:  # the usual case, one object from the first brace to the last, takes a third of the time
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
