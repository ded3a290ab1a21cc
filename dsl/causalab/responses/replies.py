"""JSON in replies, found as the released code finds it: one way for actions, another for the text that is scored."""

from __future__ import annotations

from typing import Any

from calibrant.dsl.json_objects import decode, json_objects, without_thoughts

FENCE = "```"


def controller_json(text: str) -> str | None:
    """Return the JSON text of a reply, or None.

    Closed <think> blocks are dropped. Then the first ```json fence counts, to its end or that of the text, whatever is
    in it; else the whole text if it is JSON; else the last balanced object if that is JSON.
    """
    text = without_thoughts(text).strip()
    opening = text.find(f"{FENCE}json")
    if opening >= 0:
        return text[opening + len(FENCE) + 4 :].partition(FENCE)[0].strip()
    if _is_json(text):
        return text
    balanced = _last_balanced(text)
    return balanced if balanced is not None and _is_json(balanced) else None


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the scored object of a text, or None: the whole text, else from the first { to the last }, else the last.

    A fence around the text is stripped. NaN is a number; of equal keys the last counts.
    """
    text = text.strip()
    if text.startswith(FENCE):
        text = text.strip("`").removeprefix("json").strip()
    for candidate in (text, text[text.find("{") : text.rfind("}") + 1] if "{" in text else ""):
        try:
            decoded = decode(candidate)
        except ValueError:
            continue
        if isinstance(decoded, dict):
            return decoded
    last, end = None, 0
    for match in json_objects(text):
        if match.start >= end:
            last, end = match.value, match.end
    return last


def _is_json(text: str) -> bool:
    try:
        decode(text)
    except ValueError:
        return False
    return True


def _last_balanced(text: str) -> str | None:
    """Return the text between the last pair of matching braces that no other pair encloses.

    Quotes are not looked at.
    """
    opened: list[int] = []
    outermost: list[tuple[int, int]] = []
    for position, letter in enumerate(text):
        if letter == "{":
            opened.append(position)
        elif letter == "}" and opened:
            start = opened.pop()
            while outermost and outermost[-1][0] > start:
                outermost.pop()
            outermost.append((start, position + 1))
    return text[slice(*outermost[-1])] if outermost else None
