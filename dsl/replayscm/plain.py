"""Responses that are one plain answer, bare or with words or a fence around it: read in a fifth of the time.

Plain means: no backslash, no brace but those of the answer and of its mechanism map, every mechanism a text, no other
keys. There is one object of the shape of the task then and nothing that could be taken for another, so that both rules
of dsl.replayscm.extraction come to it. For every other text the functions here give None, and those rules decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from calibrant.dsl.replayscm.extraction import Kind

PlainReader: TypeAlias = Callable[[str, Kind], tuple[dict[str, Any], bool] | None]
"""From a response to its answer, and whether that is `Extraction.strict_json`."""


class _Map(msgspec.Struct, forbid_unknown_fields=True):
    mechanisms: dict[str, str]


class _MapAndRoots(msgspec.Struct, forbid_unknown_fields=True):
    roots: list[str]
    mechanisms: dict[str, str]


_map: Final = msgspec.json.Decoder(_Map).decode
_map_and_roots: Final = msgspec.json.Decoder(_MapAndRoots).decode


def paper(text: str, kind: Kind) -> tuple[dict[str, Any], bool] | None:
    """Return the answer of a plain response as `extraction.paper` finds it."""
    start, end = text.find("{"), text.rfind("}") + 1
    return _read_answer(text, start, end, kind)


def read_published(text: str, kind: Kind) -> tuple[dict[str, Any], bool] | None:
    """Read the answer of a bare plain response; with something around it the released rule looks at what that is."""
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
    return answer, _is_strict(text, start, end)


def _is_strict(text: str, start: int, end: int) -> bool:
    """One line with the answer, and at most line breaks behind it."""
    if start or (end != len(text) and text[end:].strip("\r\n")):
        return False
    inside = text[:end]
    return "\n" not in inside and "\r" not in inside


PLAIN: Final[Mapping[str, PlainReader]] = MappingProxyType({"paper": paper, "published": read_published})
