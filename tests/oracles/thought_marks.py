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
FIRST_LETTERS = frozenset(literal[0] for literal in LITERALS)  # and of tags
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


# --- Harmony ----------------------------------------------------------------------------------------------------------
ENDS = ("<|end|>", "<|return|>", "<|call|>")
BEGINNINGS = ("<|start|>", "<|channel|>", "<|message|>")
TOKENS = (*BEGINNINGS, *ENDS, "<|constrain|>")


class PlainAnswerText(NamedTuple):
    """Answer text, whether it ends inside its thoughts, and what its tool calls hold."""

    text: str
    is_unclosed: bool
    calls: tuple[str, ...] = ()


def plain_answer_text(text: str, policy: str = "strip") -> PlainAnswerText:
    """Return the answer text of a response: by its channels, where it has any, else by its marks."""
    if policy == "keep" or (policy == "strip" and _is_container(text)):
        return PlainAnswerText(text, False)
    if any(token in text for token in BEGINNINGS):
        return _of_messages(text)
    if "assistantfinal" in text:
        return PlainAnswerText(*outside_thoughts(text.split("assistantfinal")[-1]))
    bare = text.lstrip()
    if bare.startswith("analysis") and "A" <= bare[8:9] <= "Z":
        return PlainAnswerText("", True)
    return PlainAnswerText(*outside_thoughts(text, opened=policy == "opened"))


def has_marks(text: str) -> bool:
    """Return whether a text holds a mark of thoughts, or of Harmony's channels."""
    if any(token in text for token in (*TOKENS, "assistantfinal")) or text.lstrip().startswith("analysis"):
        return True
    return any(_mark_at(text, index) for index, letter in enumerate(text) if letter in FIRST_LETTERS)


def _split(text: str) -> list[tuple[str, str]]:
    """Return the tokens of a text, each with the text behind it; the first pair has no token."""
    parts, token, start, position = [], "", 0, 0
    while position < len(text):
        following = next((name for name in TOKENS if text.startswith(name, position)), "")
        if following:
            parts.append((token, text[start:position]))
            token, start = following, position + len(following)
        position += len(following) or 1
    return [*parts, (token, text[start:])]


def _of_messages(text: str) -> PlainAnswerText:
    messages: list[tuple[str, str, str]] = []  # header as it stands, content, token behind it
    parts = _split(text)
    place = 1
    while place < len(parts):
        token, behind = parts[place]
        if token in ENDS and behind.strip():
            messages.append(("", behind, parts[place + 1][0] if place + 1 < len(parts) else ""))
        header, has_header = "", token in ("<|start|>", "<|channel|>")
        if has_header:
            header = ("\0" if token == "<|channel|>" else "") + behind
            while place + 1 < len(parts) and parts[place + 1][0] in ("<|channel|>", "<|constrain|>"):
                place += 1
                header += ("\0" if parts[place][0] == "<|channel|>" else " ") + parts[place][1]
            if place + 1 == len(parts) or parts[place + 1][0] != "<|message|>":
                place += 1
                continue
            place += 1
            token, behind = parts[place]
        if token == "<|message|>":
            content = behind
            while place + 1 < len(parts) and parts[place + 1][0] in ("<|message|>", "<|constrain|>"):
                place += 1
                content += parts[place][0] + parts[place][1]
            messages.append((header, content, parts[place + 1][0] if place + 1 < len(parts) else ""))
        place += 1
    calls, finals, is_closed = [], [], False
    for header, content, end in messages:
        is_call = any(word.startswith("to=") and len(word) > 3 for word in header.replace("\0", " ").split())
        channel = (header.rpartition("\0")[2].split() or ["final"])[0] if "\0" in header else "final"
        is_closed = is_call or end in ENDS
        if is_call:
            calls.append(content)
        elif channel == "final":
            finals.append(content)
    outside, is_open = outside_thoughts(finals[-1]) if finals else ("", False)
    return PlainAnswerText(outside, is_open or not is_closed, tuple(calls))
