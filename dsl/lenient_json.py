"""Answers in a form that the papers' rules do not read: JSON with small mistakes, wrappers, and lines `key: value`.

Only the form may be wrong. Values are not changed, truncated JSON is not completed, and missing commas are not added.
Two different answers are no answer, unless one has a mark of the final answer, such as an <answer> tag.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]  # undocumented, in every CPython
from typing import Any, Final, NamedTuple

from calibrant.dsl.json_objects import FLAT_OBJECT, KEYED, LISTED, decode
from calibrant.dsl.parse_limits import possessive

MAX_DEPTH: Final = 500  # nested containers
MAX_WRAPPERS: Final = 4  # objects, lists or strings around an answer
MAX_EXAMINED_CHARS: Final = 2_000_000  # characters of a response, summed over all attempts

# --- JSON, and what is read as it: other quotes, bare keys, a last comma, comments, Python's words --------------------
_SPACES: Final = " \t\n\r"
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_LINE_COMMENT: Final = re.compile(r"(?://|#)[^\n]*")
_PLAIN_STRING: Final = re.compile(r'"([^"\\\x00-\x1f]*)"')
_CLOSING_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "„": "“", "‘": "’"}  # noqa: RUF001  # quotes of prose
_STRINGS: Final = {
    opens: re.compile(rf"{opens}([^{closes}\\]*+" + possessive(rf"\\.[^{closes}\\]*+", "*") + f"){closes}", re.DOTALL)
    for opens, closes in _CLOSING_QUOTES.items()
}
_ESCAPED_QUOTE: Final = re.compile(r"\\([^\"\\/bfnrtu])|(\\.)", re.DOTALL)
_BARE_KEY: Final = re.compile(r"[^\W\d]\w*")
_NUMBER: Final = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORD: Final = re.compile(r"-?[A-Za-z]+")
_WORD_VALUES: Final[Mapping[str, Any]] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
}
_JSON_WORDS: Final = frozenset({"true", "false", "null", "NaN", "Infinity", "-Infinity"})
# members that are strict JSON without containers are decoded together by the interpreter's decoder: 20 times as fast
_PAIRS: Final = json.JSONDecoder(object_pairs_hook=list)


class TooMuchToReadError(Exception):
    """More characters would be examined than MAX_EXAMINED_CHARS."""


class _Decoder:
    """Decoder of tolerant JSON from a given index of a text.

    num_examined: number of characters over all attempts; repairs: repairs of the last attempt
    conflicts: decoded objects that had a key twice with different values, by `id`
    settled: indices of brackets that a failed attempt left open; an attempt there would fail at the same character
    """

    def __init__(self) -> None:
        self.num_examined = 0
        self.repairs: set[str] = set()
        self.conflicts: dict[int, object] = {}
        self.settled: set[int] = set()
        self._reached = 0  # index up to which the last attempt has read
        self._open: list[int] = []  # indices of the brackets that it left open

    def decode_at(self, text: str, start: int) -> tuple[Any, int] | None:
        """Return the value that begins at `start` and its end; None if none does. `TooMuchToReadError` as `_charge`."""
        self.repairs, self._reached = set(), start
        try:
            value, end = self._decode(text, start)
        except (IndexError, ValueError):
            self.settled.update(self._open)
            self._charge(self._reached - start + 1)
            return None
        self._charge(end - start)
        return value, end

    def decode_flat_at(self, text: str, start: int) -> tuple[Any, int] | None:
        """Return a strict object without containers and its end; None for any other value."""
        flat = FLAT_OBJECT.match(text, start)
        if flat is None:
            return None
        self.repairs = set()
        members: dict[str, Any] = {}
        for key, value in _PAIRS.decode(flat[0]):
            self._add(members, key, value)
        self._charge(flat.end() - start)
        return members, flat.end()

    def decode_whole(self, text: str) -> tuple[Any] | None:
        """Return the container that the whole text is, in a tuple; None for other texts."""
        stripped = text.strip()
        if stripped[:1] not in ("{", "[") or stripped[-1] not in "}]":
            return None
        settled, self.settled = self.settled, set()
        decoded = self.decode_at(stripped, 0)
        self.settled = settled
        return None if decoded is None or decoded[1] != len(stripped) else (decoded[0],)

    def _charge(self, num_chars: int) -> None:
        self.num_examined += num_chars
        if self.num_examined > MAX_EXAMINED_CHARS:
            raise TooMuchToReadError

    def _decode(self, text: str, start: int) -> tuple[Any, int]:  # one loop over the tokens of a value
        containers: list[dict[str, Any] | list[Any]] = []
        starts: list[int] = []  # index of the bracket of each open container
        keys: list[str] = []  # current key of each open object
        self._open = starts
        position = start
        while True:  # a value starts at `position`
            character = text[position]
            value: Any
            if character == "{" or character == "[":
                if len(containers) == MAX_DEPTH:
                    raise ValueError("too deep")
                is_object = character == "{"
                containers.append({} if is_object else [])
                starts.append(position)
                position = self._skip(text, position + 1)
                if text[position] != ("}" if is_object else "]"):
                    position, is_closing = self._member(text, position, containers[-1], keys)
                    if not is_closing:
                        continue
                starts.pop()
                value, position = containers.pop(), position + 1
            else:
                value, position = self._scalar(text, position)
            while True:  # a value ends at `position`
                if not containers:
                    return value, position
                container = containers[-1]
                position = self._skip(text, position)
                if isinstance(container, dict):
                    self._add(container, keys.pop(), value)
                    closer = "}"
                else:
                    container.append(value)
                    closer = "]"
                character = text[position]
                if character == ",":
                    position = self._skip(text, position + 1)
                    is_closing = text[position] == closer
                    if not is_closing:
                        position, is_closing = self._member(text, position, container, keys)
                    if not is_closing:
                        break
                    self.repairs.add("trailing_comma")
                elif character != closer:
                    raise ValueError("expected ',' or a closing bracket")
                starts.pop()
                value, position = containers.pop(), position + 1

    def _member(
        self, text: str, position: int, container: dict[str, Any] | list[Any], keys: list[str]
    ) -> tuple[int, bool]:
        """Add the members that are strict JSON without containers; return the index of the value of the next one.

        If the container ends there after a comma, return the index of its closing bracket, and True.
        """
        run = (LISTED if isinstance(container, list) else KEYED).match(text, position)
        if run is not None:
            members = run[0].rstrip()[:-1]
            if isinstance(container, list):
                container += decode(f"[{members}]")
            else:
                for key, value in _PAIRS.decode(f"{{{members}}}"):
                    self._add(container, key, value)
            position = self._skip(text, run.end())
            if text[position] == ("]" if isinstance(container, list) else "}"):
                self.repairs.add("trailing_comma")
                return position, True
        if isinstance(container, dict):
            key, position = self._key(text, position)
            keys.append(key)
        return position, False

    def _add(self, container: dict[str, Any], key: str, value: Any) -> None:
        if key in container and comparable(container[key]) != comparable(value):
            self.conflicts[id(container)] = container
        container[key] = value

    def _key(self, text: str, position: int) -> tuple[str, int]:
        """Return the key at an index, and the index where its value begins."""
        if text[position] in _CLOSING_QUOTES:
            key, position = self._string(text, position)
        else:
            match = _BARE_KEY.match(text, position)
            if match is None:
                raise ValueError("expected a key")
            self.repairs.add("bare_keys")
            key, position = match[0], match.end()
        position = self._skip(text, position)
        if text[position] != ":":
            raise ValueError("expected ':'")
        return key, self._skip(text, position + 1)

    def _scalar(self, text: str, position: int) -> tuple[Any, int]:
        if text[position] in _CLOSING_QUOTES:
            return self._string(text, position)
        number = _NUMBER.match(text, position)
        if number is not None:
            self._reached = number.end()
            whole, fraction, exponent = number.groups()
            is_integer = fraction is None and exponent is None
            return (int(whole) if is_integer else float(number[0])), number.end()
        word = _WORD.match(text, position)
        if word is None or word[0] not in _WORD_VALUES:
            raise ValueError("expected a value")
        if word[0] not in _JSON_WORDS:
            self.repairs.add("literals")
        return _WORD_VALUES[word[0]], word.end()

    def _string(self, text: str, position: int) -> tuple[str, int]:
        quote = text[position]
        if quote == '"' and (plain := _PLAIN_STRING.match(text, position)):
            self._reached = plain.end()
            return plain[1], plain.end()
        match = _STRINGS[quote].match(text, position)
        if match is None:
            self._reached = len(text)
            raise ValueError("a string that is not closed")
        self._reached = match.end()
        return self._unescape(match[1], quote), match.end()

    def _unescape(self, body: str, quote: str) -> str:
        if quote != '"':
            self.repairs.add("quotes")
            if "\\\\" in body:
                raise ValueError("a backslash in other quotes")
        if any(character < " " for character in body):
            self.repairs.add("control_characters")
        if "\\" not in body:
            return body
        if "\\'" in body:
            body = _ESCAPED_QUOTE.sub(lambda escape: "'" if escape[1] == "'" else escape[0], body)
            self.repairs.add("quotes")
        if quote != '"':
            body = body.replace('"', '\\"').replace('\\\\"', '\\"')
        value, end = scanstring(f'{body}"', 0, False)
        if end != len(body) + 1:
            raise ValueError("an invalid escape")
        return str(value)

    def _skip(self, text: str, position: int) -> int:
        """Return the index after white space and comments."""
        while True:
            if position > self._reached:
                self._reached = position
            if text[position] in _SPACES:
                position = _SPACE.match(text, position).end()  # type: ignore[union-attr]  # matches anywhere
                if position > self._reached:
                    self._reached = position
            if text[position] not in "/#":
                return position
            if text.startswith("/*", position):
                end = text.find("*/", position + 2)
                self._reached = len(text) if end < 0 else end
                if end < 0:
                    raise ValueError("a comment that is not closed")
                position = end + 2
            elif match := _LINE_COMMENT.match(text, position):
                position = match.end()
            else:
                return position
            self.repairs.add("comments")


def comparable(value: Any) -> Hashable:
    """Return a key that is equal for equal JSON values: 1 equals 1.0, and neither equals true or "1"."""
    if isinstance(value, dict):
        return "object", frozenset((key, comparable(part)) for key, part in value.items())
    if isinstance(value, list | tuple):
        return "list", tuple(map(comparable, value))
    if isinstance(value, bool) or value is None:
        return "word", value
    if isinstance(value, float) and math.isnan(value):
        return "number", "NaN"
    return ("text", value) if isinstance(value, str) else ("number", value)


# --- The shape of an answer, by benchmark -----------------------------------------------------------------------------
FILLERS: Final = str.maketrans("", "", " _-")


def plain_key(key: str) -> str:
    """Return a key without case, spaces, `_` and `-`."""
    return key.translate(FILLERS).lower()


class Shaped(NamedTuple):
    """Answer of an object, keys in the spelling of the benchmark; repairs: names of the repairs needed."""

    answer: dict[str, Any]
    repairs: frozenset[str] = frozenset()


class Shape(NamedTuple):
    """Shape of an item's answer.

    match, read_lines: return the answer of an object, of lines `key: value`; None without one
    """

    match: Callable[[Mapping[str, Any]], Shaped | None]
    read_lines: Callable[[StatedLines], dict[str, Any] | None]


def shaped_keys(stated: Mapping[str, Any], names: Mapping[str, str], *, drops: bool = False) -> Shaped | None:
    """Return the members with given keys, in any spelling; None if one occurs twice.

    names: plain key -> key of the answer; drops: whether dropping other keys counts as a repair
    """
    answer: dict[str, Any] = {}
    repairs: set[str] = set()
    for key, value in stated.items():
        name = names.get(plain_key(str(key)))
        if name is None:
            repairs.update({"extra_keys"} if drops else ())
            continue
        if name in answer:
            return None
        if key != name:
            repairs.add("key_spelling")
        answer[name] = value
    return Shaped(answer, frozenset(repairs))


# --- Lines `key: value` -----------------------------------------------------------------------------------------------
MAX_LINE_CHARS: Final = 10_000
_LINE: Final = re.compile(
    r"[ \t]*(?:[-*+•][ \t]+)?(?P<mark>[*_'\"`]{0,3})(?P<key>[^\s:*'\"`](?:[^:*'\"`\n]{0,80}?[^\s:*'\"`])?)"
    r"(?P<closing>[*_'\"`]{0,3})[ \t]*:(?P<value>.*)"
)
_BULLET: Final = re.compile(r"[ \t]*[-*+•][ \t]+(.*)")
_VALUE_QUOTES: Final = {"'": "'", '"': '"', "`": "`", "“": "”", "‘": "’"}  # noqa: RUF001  # quotes of prose
_PYTHON_WORDS: Final[Mapping[str, Any]] = {"True": True, "False": False, "None": None}


def line_value(text: str) -> Any:
    """Return the value of a line: JSON, True, False or None, else the text without one pair of quotes or backticks."""
    stripped = text.strip()
    try:
        return decode(stripped)
    except ValueError:
        pass
    if stripped in _PYTHON_WORDS:
        return _PYTHON_WORDS[stripped]
    if len(stripped) > 1 and _VALUE_QUOTES.get(stripped[0]) == stripped[-1]:
        return stripped[1:-1]
    return stripped


class StatedLines:
    """Lines `key: value` of a text without JSON objects."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def pairs(self, start: int = 0) -> Iterator[tuple[int, str, str]]:
        """Yield index, key and value of each line `key: value` from line `start` on."""
        for index in range(start, len(self._lines)):
            line = self._lines[index]
            if len(line) <= MAX_LINE_CHARS and (match := _LINE.fullmatch(line)):
                value, mark = match["value"], match["mark"]
                if mark and not match["closing"] and value.startswith(mark):  # **key:** value
                    value = value[len(mark) :]
                yield index, match["key"].strip("_") if mark.startswith("_") else match["key"], value

    def values(self, names: Mapping[str, str], *, exactly: bool = False) -> dict[str, Any] | None:
        """Return the values of given keys; None if a key is repeated with another value.

        names: plain key (with `exactly`: unchanged key) of a line -> key of the result
        """
        stated: dict[str, Any] = {}
        for index, key, text in self.pairs():
            name = names.get(key if exactly else plain_key(key))
            if name is None:
                continue
            value = line_value(text) if text.strip() else self.bullets(index + 1)
            if name in stated and comparable(stated[name]) != comparable(value):
                return None
            stated[name] = value
        return stated

    def bullets(self, start: int) -> list[Any]:
        """Return the values of the bulleted lines from line `start` up to the first other line that is not blank."""
        bullet_values = []
        for index in range(start, len(self._lines)):  # a slice would copy all lines below each key
            match = _BULLET.fullmatch(self._lines[index])
            if match is not None:
                bullet_values.append(line_value(match[1]))
            elif self._lines[index].strip():
                break
        return bullet_values

    def values_below(self, name: str, keys: Collection[str]) -> dict[str, str] | None:
        """Return key -> text of lines below `name:`, for `keys` alone; None without it, or if a key has two texts."""
        start = next((index for index, key, text in self.pairs() if plain_key(key) == name and not text.strip()), -1)
        if start < 0:
            return None
        stated: dict[str, str] = {}
        for _, key, text in self.pairs(start + 1):
            if key not in keys:
                continue
            value = line_value(text)
            text = value if isinstance(value, str) else text.strip()
            if stated.setdefault(key, text) != text:
                return None
        return stated


# --- The answer of a text ---------------------------------------------------------------------------------------------
_NOTES: Final = frozenset(  # keys whose values hold no answer
    map(
        plain_key,
        (
            *("thought", "thoughts", "think", "thinking", "reasoning", "reasoning content", "rationale", "analysis"),
            *("explanation", "scratchpad", "memory", "past data", "notes", "draft", "drafts", "example", "examples"),
        ),
    )
)


# _OPENING matches a bracket before a member and its colon or comma, and a string that may be a container, as {a:1}
def _quoted_before(characters: str) -> str:
    """Return a pattern of a string in plain quotes before one of these characters or a comment."""
    string = r"%s[^%s\\]*+" + possessive(r"\\[\s\S][^%s\\]*+", "*") + "%s"
    return "|".join(rf"{string % ((quote,) * 4)}[ \t\n\r]*+[/#{re.escape(characters)}]" for quote in "\"'")


_OTHER_QUOTES: Final = "".join(_CLOSING_QUOTES.keys() - set("\"'"))
_MEMBER: Final = rf"""[ \t\n\r]*+(?:{_quoted_before(":")}|[/#{_OTHER_QUOTES}]|[^\W\d]\w*+[ \t\n\r]*+[/#:])"""
_OPENING: Final = re.compile(
    rf"""\{{(?={_MEMBER})"""
    rf"""|\[(?=[ \t\n\r]*+(?:{_quoted_before(",]")}|[/#{_OTHER_QUOTES}\[\-\w]|\{{(?:[ \t\n\r]*+\}}|{_MEMBER})))"""
    r"""|"(?=[{\[](?:[^"\\]|\\[\s\S]){4})(?=[{\[][^"\\]*+(?:\\|(?<=[}\]\s])"))"""
)
_ESCAPED: Final = re.compile(r'\\([{}\[\]_"])')
_ANSWER_TAG: Final = re.compile(r"<(answer|final_answer|response|solution|output)>|<\|begin_of_solution\|>")
_SOLUTION_END: Final = "<|end_of_solution|>"
_BOXED: Final = "\\boxed{"
_ANSWER_LINE: Final = re.compile(r"^[ \t#*_>`-]*(?:final )?answer[ \t#*_>`-]*(?::|\r?$)", re.IGNORECASE | re.MULTILINE)


class LenientAnswer(NamedTuple):
    """Result of the lenient reader.

    answer: None without one; repairs: names of the repairs needed, sorted
    problem: why there is none although the text may state answers: several answers, duplicate keys, too much to read
    """

    answer: dict[str, Any] | None
    repairs: tuple[str, ...] = ()
    problem: str = ""


class _Candidate(NamedTuple):
    """Answer inside the value text[start:end]; has_conflict: a key of it occurs twice with different values."""

    start: int
    end: int
    answer: dict[str, Any]
    repairs: frozenset[str]
    has_conflict: bool


def read_leniently(response: str | Mapping[str, Any], shape: Shape) -> LenientAnswer:
    """Return the answer of a text or object, whose form may have the mistakes that this module repairs."""
    reader = _Reader(shape)
    try:
        if isinstance(response, str):
            return reader.read_text(response)
        return _choose("", [*reader.inside(response, 0, len(response))], frozenset())
    except TooMuchToReadError:
        return LenientAnswer(None, problem="too much to read")


class _Reader:
    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._decoder = _Decoder()

    def read_text(self, text: str) -> LenientAnswer:
        candidates = [*self._candidates(text)]
        if candidates:
            return _choose(text, candidates, frozenset())
        plain = _ESCAPED.sub(r"\1", text)
        if plain != text:
            candidates = [*self._candidates(plain, without_backslash=True)]
            if candidates:
                return _choose(plain, candidates, frozenset({"backslashes"}))
        if "{" not in text and (answer := self._shape.read_lines(StatedLines(text))) is not None:
            return LenientAnswer(answer, ("lines",))
        return LenientAnswer(None)

    def _candidates(self, text: str, *, without_backslash: bool = False) -> Iterator[_Candidate]:
        position = 0
        self._decoder.settled.clear()  # indices of another text
        while match := _OPENING.search(text, position):
            start = match.start()
            position = start + 1
            if start in self._decoder.settled:
                continue
            decoded = self._decoder.decode_flat_at(text, start) or self._decoder.decode_at(text, start)
            if decoded is None:
                continue
            value, end = decoded
            is_string = isinstance(value, str)
            if without_backslash and "\\" in text[start:end]:
                position = position if is_string else end
                continue
            answers = [*self.inside(value, start, end, frozenset(self._decoder.repairs))]
            if answers or not is_string:
                position = end
            yield from answers

    def inside(
        self, value: Any, start: int, end: int, repairs: frozenset[str] = frozenset(), depth: int = 0
    ) -> Iterator[_Candidate]:
        """Yield the answers in a value, below at most MAX_WRAPPERS wrappers."""
        if isinstance(value, Mapping):
            shaped = self._shape.match(value)
            if shaped is not None:
                has_conflict = bool(self._decoder.conflicts) and self._has_conflict(value)
                yield _Candidate(start, end, shaped.answer, repairs | shaped.repairs, has_conflict)
                return
        if depth == MAX_WRAPPERS:
            return
        if isinstance(value, Mapping):
            for key, part in value.items():
                if isinstance(part, str | Mapping | list) and plain_key(str(key)) not in _NOTES:
                    yield from self.inside(part, start, end, repairs | {"wrapper"}, depth + 1)
        elif isinstance(value, list):
            wrapper = "array_of_one" if len(value) == 1 else "wrapper"
            for part in value:
                if isinstance(part, str | Mapping | list):
                    yield from self.inside(part, start, end, repairs | {wrapper}, depth + 1)
        elif isinstance(value, str) and (decoded := self._decoder.decode_whole(value)) is not None:
            inner = repairs | self._decoder.repairs | {"string_json"}
            yield from self.inside(decoded[0], start, end, inner, depth + 1)

    def _has_conflict(self, value: object) -> bool:
        waiting = [value]
        while waiting:
            part = waiting.pop()
            if id(part) in self._decoder.conflicts:
                return True
            if isinstance(part, dict):
                waiting += part.values()
            elif isinstance(part, list):
                waiting += part
        return False


def _choose(text: str, candidates: Sequence[_Candidate], repairs: frozenset[str]) -> LenientAnswer:
    """Return the answer on which all candidates, or all behind a mark of the final answer, agree; else a problem."""
    if not candidates:
        return LenientAnswer(None)
    if any(candidate.has_conflict for candidate in candidates):
        return LenientAnswer(None, problem="duplicate keys")
    if _agree(candidates):
        return _answer(candidates[0], repairs)
    for start, end in _regions(text):
        marked = [candidate for candidate in candidates if start <= candidate.start and candidate.end <= end]
        if marked and _agree(marked):
            return _answer(marked[0], repairs | {"answer_mark"})
        if marked:
            break
    return LenientAnswer(None, problem="several answers")


def _answer(candidate: _Candidate, repairs: frozenset[str]) -> LenientAnswer:
    return LenientAnswer(candidate.answer, tuple(sorted(candidate.repairs | repairs)))


def _agree(candidates: Sequence[_Candidate]) -> bool:
    first = comparable(candidates[0].answer)
    return all(comparable(candidate.answer) == first for candidate in candidates[1:])


def _regions(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans (start, end) behind marks of the final answer: the last tag, box and answer line."""
    tags = [*_ANSWER_TAG.finditer(text)]
    if tags:
        tag = tags[-1]
        end = text.find(f"</{tag[1]}>" if tag[1] else _SOLUTION_END, tag.end())
        yield tag.end(), len(text) if end < 0 else end
    box = text.rfind(_BOXED)
    if box >= 0:
        yield box + len(_BOXED), len(text)
    lines = [*_ANSWER_LINE.finditer(text)]
    if lines:
        yield lines[-1].end(), len(text)
