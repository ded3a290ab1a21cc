"""Answer text of a response by its marks of thoughts, character by character: the meaning of dsl.answer_text."""

from __future__ import annotations

import json
from typing import NamedTuple

WORDS = ("think", "thinking", "thought", "thoughts", "reasoning", "scratchpad", "seed:think")
LITERALS = {
    "[THINK]": ("THINK", True),
    "[/THINK]": ("THINK", False),
    "<|START_THINKING|>": ("cohere", True),
    "<|END_THINKING|>": ("cohere", False),
    "<|begin_of_thought|>": ("of_thought", True),
    "<|end_of_thought|>": ("of_thought", False),
    "◁think▷": ("kimi", True),
    "◁/think▷": ("kimi", False),
    "<|channel>thought": ("gemma", True),
    "<channel|>": ("gemma", False),
}
MAX_ATTRIBUTE_CHARS = 4_096


class PlainMark(NamedTuple):
    """A mark: its family, whether it opens, and where it ends."""

    family: str
    opens: bool
    end: int


def outside_thoughts(text: str, *, opened: bool = False) -> tuple[str, bool]:
    """Return what stands outside of thoughts, and whether the text ends inside them; Harmony's tokens are plain text.

    opened: the text begins inside those of any family
    """
    if not opened and _is_container(text):
        return text, False
    outside: list[str] = []
    inside = "any" if opened else ""
    position = 0
    while position < len(text):
        mark = _mark_at(text, position)
        if mark is None:
            outside += [] if inside else [text[position]]
            position += 1
            continue
        if not inside and mark.opens:
            inside = mark.family
        elif not inside:
            outside = []
        elif not mark.opens and inside in ("any", mark.family):
            inside = ""
        position = mark.end
    return "".join(outside), bool(inside)


def _is_container(text: str) -> bool:
    try:
        return isinstance(json.loads(text.strip()), dict | list)
    except (ValueError, RecursionError):
        return False


def _mark_at(text: str, start: int) -> PlainMark | None:
    mark = _literal_at(text, start) or _tag_at(text, start)
    if mark is None:
        return None
    before, behind = text[:start], text[mark.end :]
    ticks = len(before) - len(before.rstrip("`")), len(behind) - len(behind.lstrip("`"))
    return None if ticks == (1, 1) else mark


def _literal_at(text: str, start: int) -> PlainMark | None:
    for literal, (family, opens) in LITERALS.items():
        if text.startswith(literal, start):
            return PlainMark(family, opens, start + len(literal))
    return None


def _tag_at(text: str, start: int) -> PlainMark | None:
    if text[start] != "<":
        return None
    end = text.find(">", start)
    if end < 0:
        return None
    inner = text[start + 1 : end].lstrip(" \t")
    is_closing = inner.startswith("/")
    inner = inner[1:].lstrip(" \t") if is_closing else inner
    for word in WORDS:
        name, rest = inner[: len(word)], inner[len(word) :]
        if not name.isascii() or name.lower() != word:
            continue
        if not rest.strip(" \t"):
            return PlainMark(word, not is_closing, end + 1)
        has_attributes = rest[:1].isspace() and "<" not in rest and len(rest) <= MAX_ATTRIBUTE_CHARS + 1
        if has_attributes and not is_closing:
            return PlainMark(word, True, end + 1)
    return None
