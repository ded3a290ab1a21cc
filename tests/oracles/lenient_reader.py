"""Lenient reader of answers, character by character and without bounds of time: the meaning of dsl.lenient_json.

Every bracket of a text is tried; a value is decoded by recursion on a copy of the rest. Quadratic: for short texts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

DEPTH = 500
WRAPPERS = 4
ENDS = {'"': '"', "'": "'", "\u201c": "\u201d", "\u201e": "\u201c", "\u2018": "\u2019"}
WORDS = {
    "true": True, "false": False, "null": None, "True": True, "False": False, "None": None,
    "NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf,
}  # fmt: skip
NOTES = (
    "thought", "thoughts", "think", "thinking", "reasoning", "reasoningcontent", "rationale", "analysis", "explanation",
    "scratchpad", "memory", "pastdata", "notes", "draft", "drafts", "example", "examples",
)  # fmt: skip
ANSWER_TAGS = {f"<{name}>": f"</{name}>" for name in ("answer", "final_answer", "response", "solution", "output")} | {
    "<|begin_of_solution|>": "<|end_of_solution|>"
}
Match = Callable[[Mapping[str, Any]], dict[str, Any] | None]


class PlainShape(NamedTuple):
    """Shape of an item's answer: of an object, and of lines."""

    match: Match
    read_lines: Callable[[str], dict[str, Any] | None]


class Members(dict[str, Any]):
    """Object of a text; is_double: two equal keys of it have different values."""

    is_double = False


# --- Tolerant JSON ----------------------------------------------------------------------------------------------------
def _value(text: str, depth: int = 0) -> tuple[Any, str]:
    """Return the value with which a text begins, and the rest; `ValueError` for none."""
    first = text[:1]
    if first in ENDS and first:
        return _string(text)
    if first in ("{", "["):
        if depth == DEPTH:
            raise ValueError("too deep")
        return _container(text, depth)
    number = re.match(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", text, re.ASCII)
    if number:
        return json.loads(number[0]), text[number.end() :]
    word = re.match("-?[A-Za-z]+", text)
    if word and word[0] in WORDS:
        return WORDS[word[0]], text[word.end() :]
    raise ValueError("no value")


def _container(text: str, depth: int) -> tuple[Any, str]:
    is_object, rest = text[0] == "{", _gap(text[1:])
    closer = "}" if is_object else "]"
    pairs: list[tuple[str, Any]] = []
    values: list[Any] = []
    while not rest.startswith(closer):
        if is_object:
            key, rest = _key(rest)
            rest = _gap(rest)
            if not rest.startswith(":"):
                raise ValueError("no colon")
            value, rest = _value(_gap(rest[1:]), depth + 1)
            pairs.append((key, value))
        else:
            value, rest = _value(rest, depth + 1)
            values.append(value)
        rest = _gap(rest)
        if rest.startswith(","):
            rest = _gap(rest[1:])
        elif not rest.startswith(closer):
            raise ValueError("no comma")
    if not is_object:
        return values, rest[1:]
    members = Members(pairs)
    members.is_double = any(not same(value, members[key]) for key, value in pairs)
    return members, rest[1:]


def _key(text: str) -> tuple[str, str]:
    if text[:1] in ENDS and text:
        return _string(text)
    name = re.match(r"[^\W\d]\w*", text)
    if not name:
        raise ValueError("no key")
    return name[0], text[name.end() :]


def _string(text: str) -> tuple[str, str]:
    opens, body, position = text[0], "", 1
    while text[position : position + 1] != ENDS[opens]:
        character = text[position : position + 1]
        if not character:
            raise ValueError("an open string")
        if character == "\\":
            escaped = text[position + 1 : position + 2]
            if escaped == "\\" and opens != '"':
                raise ValueError("a backslash")
            num_chars = 6 if escaped == "u" else 2
            if escaped == "'":
                body += "'"
            else:
                body += text[position : position + num_chars]  # a pair of surrogates is joined below
                if escaped == "u" and not re.fullmatch("[0-9a-fA-F]{4}", text[position + 2 : position + 6]):
                    raise ValueError("no escape")
            position += num_chars
            continue
        body += '\\"' if character == '"' else character
        position += 1
    return json.loads(f'"{body}"', strict=False), text[position + 1 :]


def _gap(text: str) -> str:
    """Return a text without the white space and comments with which it begins."""
    while True:
        text = text.lstrip(" \t\n\r")
        if text.startswith("/*"):
            end = text.find("*/", 2)
            if end < 0:
                raise ValueError("an open comment")
            text = text[end + 2 :]
        elif text.startswith(("//", "#")):
            end = text.find("\n")
            text = "" if end < 0 else text[end:]
        else:
            return text


def same(first: Any, second: Any) -> bool:
    """Return whether two JSON values are equal: 1 equals 1.0, and neither equals true or "1"."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, float) and isinstance(second, float) and math.isnan(first):
        return math.isnan(second)
    if type(first) in (int, float) and type(second) in (int, float):
        return bool(first == second)
    return type(first) is type(second) and type(first) in (str, type(None)) and bool(first == second)


# --- Candidates, and which counts -------------------------------------------------------------------------------------
class Candidate(NamedTuple):
    """Answer inside a value of a text, from start to end."""

    start: int
    end: int
    answer: dict[str, Any]
    is_double: bool


def read_plainly(text: str | Mapping[str, Any], shape: PlainShape) -> tuple[dict[str, Any] | None, str]:
    """Return the answer of a text, or why a text with answers has none."""
    if not isinstance(text, str):
        return _chosen("", [*_inside(text, shape.match, 0, 0, 0)])
    candidates = [*_candidates(text, shape.match)]
    if candidates:
        return _chosen(text, candidates)
    plain = re.sub(r'\\([{}\[\]_"])', r"\1", text)
    candidates = [*_candidates(plain, shape.match, escaped=True)] if plain != text else []
    if candidates:
        return _chosen(plain, candidates)
    return (None if "{" in text else shape.read_lines(text)), ""


def _candidates(text: str, match: Match, *, escaped: bool = False) -> Iterator[Candidate]:
    start = 0
    while start < len(text):
        is_string = text[start] == '"' and text[start + 1 : start + 2] in ("{", "[")
        try:
            if text[start] not in "{[" and not is_string:
                raise ValueError("no bracket")
            value, rest = _value(text[start:])
        except (ValueError, RecursionError):
            start += 1
            continue
        end = len(text) - len(rest)
        answers = [*_inside(value, match, start, end, 0)]
        if escaped and "\\" in text[start:end]:
            answers = []
        yield from answers
        start = start + 1 if is_string and not answers else end


def _inside(value: Any, match: Match, start: int, end: int, depth: int) -> Iterator[Candidate]:
    if isinstance(value, Mapping):
        answer = match(value)
        if answer is not None:
            yield Candidate(start, end, answer, _is_double(value))
            return
    if depth == WRAPPERS:
        return
    parts: Sequence[Any] = ()
    if isinstance(value, Mapping):
        parts = [part for key, part in value.items() if plain(key) not in NOTES]
    elif isinstance(value, list):
        parts = value
    elif isinstance(value, str) and value.strip()[:1] in ("{", "["):
        try:
            inner, rest = _value(value.strip())
        except (ValueError, RecursionError):
            return
        parts = [] if rest else [inner]
    for part in parts:
        yield from _inside(part, match, start, end, depth + 1)


def _is_double(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_double, value))
    return isinstance(value, Members) and (value.is_double or any(map(_is_double, value.values())))


def _chosen(text: str, candidates: Sequence[Candidate]) -> tuple[dict[str, Any] | None, str]:
    if not candidates:
        return None, ""
    if any(candidate.is_double for candidate in candidates):
        return None, "duplicate keys"
    for start, end in ((0, len(text)), *_regions(text)):
        inner = [candidate.answer for candidate in candidates if start <= candidate.start and candidate.end <= end]
        if inner and all(same(inner[0], answer) for answer in inner):
            return inner[0], ""
        if inner and (start, end) != (0, len(text)):
            break
    return None, "several answers"


def _regions(text: str) -> Iterator[tuple[int, int]]:
    last, tag = max((text.rfind(tag), tag) for tag in ANSWER_TAGS)
    if last >= 0:
        end = text.find(ANSWER_TAGS[tag], last)
        yield last + len(tag), len(text) if end < 0 else end
    if "\\boxed{" in text:
        yield text.rindex("\\boxed{") + 7, len(text)
    behind, position = -1, 0
    for line in text.split("\n"):
        bare = line.lstrip("#*_>-` \t")
        for words in ("final answer", "answer"):
            if bare[: len(words)].lower() == words:
                rest = bare[len(words) :].lstrip("#*_>-` \t")
                if rest[:1] == ":" or not rest.strip():
                    behind = position + len(line) - len(rest) + (rest[:1] == ":")
        position += len(line) + 1
    if behind >= 0:
        yield behind, len(text)


# --- Shapes -----------------------------------------------------------------------------------------------------------
def plain(key: str) -> str:
    """Return a key without case, spaces, `_` and `-`."""
    return re.sub("[ _-]", "", key).lower()


def _by_names(stated: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any] | None:
    members = [(names[plain(key)], value) for key, value in stated.items() if plain(key) in names]
    return dict(members) if len({name for name, _ in members}) == len(members) else None


def rule_shape() -> PlainShape:
    """Return the shape of answers to blicket items."""
    names = {"rule": "rule", "ruletype": "rule", "blickets": "blickets"}

    def check(answer: dict[str, Any] | None) -> dict[str, Any] | None:
        has_both = answer and isinstance(answer.get("rule"), str) and isinstance(answer.get("blickets"), str | list)
        return answer if has_both else None

    return PlainShape(
        lambda stated: check(_by_names(stated, names)),
        lambda text: check(_lines(text, lambda key: names.get(plain(key)))),
    )


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def frequency_shape() -> PlainShape:
    """Return the shape of answers to CausaLab items."""
    names = {"frequency": "frequency", "reactor": "reactor", "hypothesis": "hypothesis", "edges": "edges"}
    names |= {"freqequation": "freq_equation", "coefficients": "coefficients", "weights": "weights", "submit": "submit"}

    def match(stated: Mapping[str, Any]) -> dict[str, Any] | None:
        outer = _by_names(stated, names)
        submitted = outer.pop("submit", None) if outer is not None else None
        inner = _by_names(submitted, names) if isinstance(submitted, Mapping) else {}
        if outer is None or inner is None:
            return None
        members = outer | inner
        answer: dict[str, Any] = {}
        numbers = [members[key] for key in ("frequency", "reactor") if members.get(key) is not None]
        if numbers and all(map(_is_finite, numbers)) and same(numbers[0], numbers[-1]):
            answer["frequency"] = numbers[0]
        if isinstance(members.get("hypothesis"), Mapping):
            answer["hypothesis"] = dict(members["hypothesis"])
        elif isinstance(members.get("edges"), list):
            parts = ("edges", "freq_equation", "coefficients", "weights")
            answer["hypothesis"] = {key: members[key] for key in parts if key in members}
        return answer or None

    def read_lines(text: str) -> dict[str, Any] | None:
        answer = _lines(text, lambda key: "frequency" if plain(key) in ("frequency", "reactor") else None)
        return answer if answer and _is_finite(answer["frequency"]) else None

    return PlainShape(match, read_lines)


def exact_keys_shape(required: Sequence[str]) -> PlainShape:
    """Return the shape of answers to CauSim items."""

    def name_of(key: str) -> str | None:
        alike = [key] if key in required else [name for name in required if name.lower() == key.lower()]
        return alike[0] if len(alike) == 1 else None

    def match(stated: Mapping[str, Any]) -> dict[str, Any] | None:
        members = [(name_of(key), value) for key, value in stated.items() if name_of(key) is not None]
        answer = {name: value for name, value in members if name is not None}
        return answer if len(members) == len(answer) == len(required) and answer else None

    def read_lines(text: str) -> dict[str, Any] | None:
        answer = _lines(text, lambda key: key if key in required else None)
        return answer if answer and len(answer) == len(required) else None

    return PlainShape(match, read_lines)


def list_shape() -> PlainShape:
    """Return the shape of answers to logic models."""
    names = {"model": "model", "probabilities": "probabilities"}

    def check(answer: dict[str, Any] | None) -> dict[str, Any] | None:
        return answer if answer and len(answer) == 1 and isinstance(next(iter(answer.values())), list) else None

    def read_lines(text: str) -> dict[str, Any] | None:
        answer = check(_lines(text, lambda key: names.get(plain(key))))
        return answer if answer and next(iter(answer.values())) else None

    return PlainShape(lambda stated: check(_by_names(stated, names)), read_lines)


def alternative_shape() -> PlainShape:
    """Return the shape of answers to Alternative-SCM."""

    def match(stated: Mapping[str, Any]) -> dict[str, Any] | None:
        answer = _by_names(stated, {"alternative": "alternative", "experiment": "experiment", "witness": "witness"})
        inner = answer.get("alternative") if answer else None
        if not answer or not isinstance(inner, Mapping) or len(answer) < 3:
            return None
        spelled = _by_names(inner, {"mechanisms": "mechanisms"})
        if not spelled or not isinstance(spelled["mechanisms"], Mapping):
            return None
        is_whole = isinstance(answer["experiment"], Mapping) and isinstance(answer["witness"], Mapping)
        return answer | {"alternative": dict(inner) | spelled} if is_whole else None

    return PlainShape(match, lambda text: None)


def mechanisms_shape(variables: Sequence[str], *, with_roots: bool) -> PlainShape:
    """Return the shape of answers to ReplaySCM's items, but of Alternative-SCM."""
    names = {"mechanisms": "mechanisms"} | ({"roots": "roots"} if with_roots else {})

    def match(stated: Mapping[str, Any]) -> dict[str, Any] | None:
        answer = _by_names({key: value for key, value in stated.items() if plain(key) in names}, names)
        if not answer or not isinstance(answer.get("mechanisms"), Mapping):
            return None
        return answer if not with_roots or isinstance(answer.get("roots"), list) else None

    def read_lines(text: str) -> dict[str, Any] | None:
        lines = [_key_and_value(line) for line in text.splitlines()]
        start = next((k for k, pair in enumerate(lines) if pair and plain(pair[0]) == "mechanisms" and not pair[1]), -1)
        mechanisms: dict[str, str] = {}
        for pair in lines[start + 1 :] if start >= 0 else ():
            if pair is not None and pair[0] in variables:
                value = _line_value(pair[1])
                text_value = value if isinstance(value, str) else pair[1]
                if mechanisms.setdefault(pair[0], text_value) != text_value:
                    return None
        if not mechanisms or not with_roots:
            return {"mechanisms": mechanisms} if mechanisms else None
        roots = (_lines(text, lambda key: "roots" if plain(key) == "roots" else None) or {}).get("roots")
        roots = [name.strip() for name in roots.split(",")] if isinstance(roots, str) else roots
        return {"roots": roots, "mechanisms": mechanisms} if roots and isinstance(roots, list) else None

    return PlainShape(match, read_lines)


# --- Lines ------------------------------------------------------------------------------------------------------------
def _key_and_value(line: str) -> tuple[str, str] | None:
    bare = line.strip(" \t")
    if bare[:1] in ("-", "*", "+", "\u2022") and bare[:1] and bare[1:2] in (" ", "\t"):
        bare = bare[1:].lstrip(" \t")
    key, colon, value = bare.partition(":")
    mark = key[: len(key) - len(key.lstrip("*_'\"`"))]
    key = key.rstrip(" \t")
    if not colon or len(mark) > 3:
        return None
    key = key[len(mark) :]
    tail = len(key) - len(key.rstrip("*'\"`_" if mark[:1] == "_" else "*'\"`"))
    if tail > 3:
        return None
    key, value = key[: len(key) - tail], value
    if mark and not tail and value.startswith(mark):
        value = value[len(mark) :]
    is_key = key and key == key.strip() and not set(key) & set("*'\"`") and len(key) <= 82
    return (key, value.strip()) if is_key else None


def _line_value(text: str) -> Any:
    stripped = text.strip()
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        pass
    if stripped in ("True", "False", "None"):
        return WORDS[stripped]
    pairs = {"'": "'", '"': '"', "`": "`", "\u201c": "\u201d", "\u2018": "\u2019"}
    is_quoted = len(stripped) > 1 and pairs.get(stripped[0]) == stripped[-1]
    return stripped[1:-1] if is_quoted else stripped


def _lines(text: str, name_of: Callable[[str], str | None]) -> dict[str, Any] | None:
    lines = text.splitlines()
    answer: dict[str, Any] = {}
    for index, line in enumerate(lines):
        pair = _key_and_value(line)
        name = name_of(pair[0]) if pair else None
        if pair is None or name is None:
            continue
        value = _line_value(pair[1]) if pair[1] else _bullets(lines[index + 1 :])
        if name in answer and not same(answer[name], value):
            return None
        answer[name] = value
    return answer


def _bullets(lines: Sequence[str]) -> list[Any]:
    values = []
    for line in lines:
        bare = line.strip()
        if bare[:1] in ("-", "*", "+", "\u2022") and bare[1:2] in (" ", "\t") and bare:
            values.append(_line_value(bare[1:]))
        elif bare:
            break
    return values
