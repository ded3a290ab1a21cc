"""Extraction of the answer from the text of a response: two rules, and a fast path for plain answers.

`paper` is the rule of the published protocol (paper, Table A.3): the JSON objects of the text are candidates, ranked by
how much of the task's answer shape they have, then number of keys, length of their text, and earliest start. The caller
takes the first candidate that is executable and valid, else the first.

`published` is the rule of the released scorer. `paper` goes further:
- it knows all three answer shapes. The released score knows `mechanisms`, `parents` and `mechanism` only, so a fenced
  Alternative-SCM answer loses to the mechanism map inside it;
- it unwraps answers: `{"answer": {...}}` and `[{...}]` hold one even if they are the whole text;
- it has further candidates: a longer draft that is not valid gives way to the final answer;
- if no object has the full shape, an object that breaks off after all parts of the answer counts as those parts
  (`Extraction.broken`). The protocol does not state this; its official sample needs it: 4 of the 18 stored responses
  break in the reasoning that follows the answer inside the same object, and were counted.

Both rules accept a text that is only an answer without further selection, and neither repairs anything. JSON and its
limit of nesting are defined in `dsl.json_objects`.

A plain answer has no backslash, no braces but its own and those of its mechanism map, strings as mechanisms, and no
other keys. Then both rules select it, as no other object has the shape of the task. For every other text the functions
of the fast path return None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, assert_never

import msgspec

from calibrant.dsl.json_objects import JsonObject, decode, json_fragments, json_objects
from calibrant.dsl.lenient_json import Shape, Shaped, StatedLines, shaped_keys

# --- The two rules, chosen by name ------------------------------------------------------------------------------------
Kind: TypeAlias = Literal["scm", "roots", "alternative"]
"""The answer that a task asks for: a mechanism map, roots and mechanisms, or an alternative SCM with its witness."""

Failure: TypeAlias = Literal["empty", "top_level_not_object", "no_json", "could_not_parse"]
"""Reason for no candidate: white space only; JSON that is no object; no `{ ... }`; no `{ ... }` that is JSON."""

_Rank: TypeAlias = tuple[int, int, int, int]
_Ranked: TypeAlias = tuple[_Rank, dict[str, Any]]

_FULL_SHAPE: Final[Mapping[Kind, int]] = {"scm": 1, "roots": 3, "alternative": 7}
_SHAPE_KEYS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "scm": ("mechanisms",),
    "roots": ("roots", "mechanisms"),
    "alternative": ("alternative", "experiment", "witness"),
}
_NOT_JSON: Final = object()


@dataclass(frozen=True, slots=True)
class Extraction:
    """The candidate answers of one response, best first; none iff there is a failure.

    strict_json: the response is one JSON object on one line; only a line break may follow it
    broken: the best candidate is an answer inside an object that breaks or ends after it
    """

    candidates: tuple[Mapping[str, Any], ...]
    strict_json: bool
    failure: Failure | None
    broken: bool = field(default=False, kw_only=True)


Extractor: TypeAlias = Callable[[str, Kind], Extraction]


def paper(text: str, kind: Kind) -> Extraction:
    """Return the candidates of a text in the protocol's order.

    A text that is one object of the full shape is the only candidate. Otherwise all objects with a part of the shape
    are. Without any, the best other object is the candidate: it is invalid, but gives a reason for the rejection.
    """
    stripped = text.strip()
    whole_value = _decode_whole(stripped) if stripped.startswith("{") else _NOT_JSON
    strict = _is_strict(text, stripped, whole_value)
    if isinstance(whole_value, dict) and _shape(whole_value, kind) == _FULL_SHAPE[kind]:
        return Extraction((whole_value,), strict, None)
    alone = _lone_answer(stripped, kind)
    if alone is not None:
        return Extraction((alone,), strict, None)
    shaped: list[_Ranked] = []
    shapeless: _Ranked | None = None
    for match in json_objects(stripped):
        shape = _shape(match.value, kind) if match.value else 0
        if shape:
            shaped.append((_rank(shape, match), match.value))
        elif shapeless is None or _rank(0, match) > shapeless[0]:
            shapeless = _rank(0, match), match.value
    broken = [] if any(rank[0] == _FULL_SHAPE[kind] for rank, _ in shaped) else _broken_answers(stripped, kind)
    ranked = _best_first(broken) + _best_first(shaped) or ([shapeless[1]] if shapeless else [])
    return Extraction(tuple(ranked), strict, None if ranked else _failure(stripped), broken=bool(broken))


def extract_published(text: str, kind: Kind) -> Extraction:
    """Return the object that the released scorer selects, whatever the kind of task."""
    stripped = text.strip()
    whole_value = _decode_whole(stripped)
    strict = _is_strict(text, stripped, whole_value)
    if isinstance(whole_value, dict):
        return Extraction((whole_value,), strict, None)
    if whole_value is not _NOT_JSON:
        return Extraction((), strict, "top_level_not_object")
    objects = json_objects(stripped)
    best = max(objects, key=lambda match: _rank(_published_score(match.value), match), default=None)
    # The released scorer then tries the text from the first `{` to the last `}`, which cannot decode where `{` did not.
    return Extraction((best.value,), strict, None) if best else Extraction((), strict, _failure(stripped))


EXTRACTORS: Final[Mapping[str, Extractor]] = MappingProxyType({"paper": paper, "published": extract_published})


def _decode_whole(stripped: str) -> Any:
    try:
        return decode(stripped)
    except ValueError:
        return _NOT_JSON


def _is_strict(text: str, stripped: str, whole: object) -> bool:
    if not isinstance(whole, dict) or "\n" in stripped or "\r" in stripped:
        return False
    return len(stripped) == len(text) or stripped == text.rstrip("\r\n")


def _shape(answer: Mapping[str, Any], kind: Kind) -> int:
    """Return the parts of the shape that are present, as bits; the mechanism map is the highest bit."""
    match kind:
        case "scm":
            return int(isinstance(answer.get("mechanisms"), dict))
        case "roots":
            return 2 * isinstance(answer.get("mechanisms"), dict) + isinstance(answer.get("roots"), list)
        case "alternative":
            alternative = answer.get("alternative")
            has_mechanisms = isinstance(alternative, dict) and isinstance(alternative.get("mechanisms"), dict)
            has_experiment = isinstance(answer.get("experiment"), dict)
            return 4 * has_mechanisms + 2 * has_experiment + isinstance(answer.get("witness"), dict)
        case _:
            assert_never(kind)


def _lone_answer(text: str, kind: Kind) -> dict[str, Any] | None:
    """Return the answer if it spans the first `{` to the last `}` and no object inside has a part of the shape.

    Most responses are one answer in a fence or a few words, and this finds it in a third of the time. If the number of
    decoded objects is that of `{`, there is no other object: none in a string, under a repeated key, or broken off.
    """
    start, end = text.find("{"), text.rfind("}") + 1
    answer = _decode_whole(text[start:end]) if 0 <= start < end else None
    if not isinstance(answer, dict) or _shape(answer, kind) != _FULL_SHAPE[kind] or "{" in text[end:]:
        return None
    num_objects, unseen = 1, list(answer.values())
    while unseen:
        value = unseen.pop()
        if isinstance(value, dict):
            if _shape(value, kind):
                return None
            num_objects += 1
            unseen.extend(value.values())
        elif isinstance(value, list):
            unseen.extend(value)
    return answer if num_objects == text.count("{") else None


def _broken_answers(text: str, kind: Kind) -> list[_Ranked]:
    """Return answers that were complete before the object around them broke off, without its other keys."""
    answers: list[_Ranked] = []
    if "mechanisms" not in text and "\\" not in text:  # every full shape has this key, plain or escaped
        return answers
    for match in json_fragments(text):
        if _shape(match.value, kind) == _FULL_SHAPE[kind]:
            parts = {key: value for key, value in match.value.items() if key in _SHAPE_KEYS[kind]}
            answers.append((_rank(_FULL_SHAPE[kind], match), parts))
    return answers


def _published_score(answer: Mapping[str, Any]) -> int:
    if not answer:
        return 0
    has_mechanisms = isinstance(answer.get("mechanisms"), dict)
    has_parents, has_mechanism = isinstance(answer.get("parents"), list), isinstance(answer.get("mechanism"), str)
    return 100 * has_mechanisms + 50 * has_parents + 50 * has_mechanism


def _rank(score: int, match: JsonObject) -> _Rank:
    """Return a sort key, greater is better; no two objects of a text have equal keys."""
    return score, len(match.value), match.end - match.start, -match.start


def _best_first(ranked: list[_Ranked]) -> list[dict[str, Any]]:
    return [value for _, value in sorted(ranked, key=itemgetter(0), reverse=True)]


def _failure(stripped: str) -> Failure:
    if not stripped:
        return "empty"
    opening = stripped.find("{")
    return "could_not_parse" if 0 <= opening < stripped.rfind("}") else "no_json"


# --- Fast path for plain answers, bare or with text or a fence around: a fifth of the time ----------------------------
PlainReader: TypeAlias = Callable[[str, Kind], tuple[dict[str, Any], bool] | None]
"""Function from a response to (answer, `Extraction.strict_json`); None if the response is not plain."""


class _Map(msgspec.Struct, forbid_unknown_fields=True):
    mechanisms: dict[str, str]


class _MapAndRoots(msgspec.Struct, forbid_unknown_fields=True):
    roots: list[str]
    mechanisms: dict[str, str]


_map: Final = msgspec.json.Decoder(_Map).decode
_map_and_roots: Final = msgspec.json.Decoder(_MapAndRoots).decode


def read_plain(text: str, kind: Kind) -> tuple[dict[str, Any], bool] | None:
    """Return the answer of a plain response, as `paper` would; None if it is not plain."""
    start, end = text.find("{"), text.rfind("}") + 1
    return _read_answer(text, start, end, kind)


def read_bare(text: str, kind: Kind) -> tuple[dict[str, Any], bool] | None:
    """Return the answer of a plain response without other text, as `published` would; None for all others."""
    start, end = text.find("{"), text.rfind("}") + 1
    return None if text[:start].strip() or text[end:].strip() else _read_answer(text, start, end, kind)


def _read_answer(text: str, start: int, end: int, kind: Kind) -> tuple[dict[str, Any], bool] | None:
    if kind == "alternative" or text.count("{") != 2 or "\\" in text:
        return None
    answer: dict[str, Any]
    try:
        if kind == "scm":
            answer = {"mechanisms": _map(text[start:end]).mechanisms}
        else:
            stated_roots = _map_and_roots(text[start:end])
            answer = {"roots": stated_roots.roots, "mechanisms": stated_roots.mechanisms}
    except (msgspec.DecodeError, UnicodeEncodeError):  # a lone surrogate has no bytes
        return None
    return answer, _is_one_line(text, start, end)


def _is_one_line(text: str, start: int, end: int) -> bool:
    """Return whether the text is one line with the answer, followed by line breaks at most."""
    if start or (end != len(text) and text[end:].strip("\r\n")):
        return False
    inside = text[:end]
    return "\n" not in inside and "\r" not in inside


PLAIN: Final[Mapping[str, PlainReader]] = MappingProxyType({"paper": read_plain, "published": read_bare})


# --- Shape of an answer for the lenient reader ------------------------------------------------------------------------
_LENIENT_KEYS: Final[Mapping[Kind, tuple[str, ...]]] = {
    **_SHAPE_KEYS,
    "scm": ("mechanisms", "noise", "forecast"),
}


def answer_shape(kind: Kind, variables: Sequence[str], *, with_forecast: bool = False) -> Shape:
    """Return the shape for the lenient reader; variables: names that may have a mechanism."""
    names = {key: key for key in _LENIENT_KEYS[kind]}

    def match(stated: Mapping[str, Any]) -> Shaped | None:
        shaped = shaped_keys(stated, names)
        if shaped is None:
            return None
        answer, repairs = shaped.answer, shaped.repairs
        if kind == "alternative" and isinstance(inner := answer.get("alternative"), Mapping):
            spelled = shaped_keys(inner, {"mechanisms": "mechanisms"})
            if spelled is None:
                return None
            answer, repairs = answer | {"alternative": dict(inner) | spelled.answer}, repairs | spelled.repairs
        has_forecast = with_forecast and isinstance(answer.get("forecast"), list)
        return Shaped(answer, repairs) if has_forecast or _shape(answer, kind) == _FULL_SHAPE[kind] else None

    def read_lines(lines: StatedLines) -> dict[str, Any] | None:
        mechanisms = None if kind == "alternative" else lines.values_below("mechanisms", variables)
        if not mechanisms:
            return None
        if kind == "scm":
            return {"mechanisms": mechanisms}
        roots = (lines.values({"roots": "roots"}) or {}).get("roots")
        if isinstance(roots, str):
            roots = [name.strip() for name in roots.split(",")]
        return {"roots": roots, "mechanisms": mechanisms} if isinstance(roots, list) and roots else None

    return Shape(match, read_lines)
