"""What a model's reply asks for: lines that begin with `REASONING:`, `ACTION:` and `TRANSITION:`.

A reply is untrusted text of any length. It is read in linear time, and nothing in it is executed; what it asks for is
judged by the episode and by the context graph. One reply carries one action: of two that differ neither is chosen.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from dsl.action import Action
from dsl.errors import shown
from dsl.json_objects import json_objects

_MARK = re.compile(
    r"^[ \t*_#>`-]{0,16}(REASONING|ACTION|TRANSITION)[ \t*_`]{0,16}:[*_`]{0,8}", re.MULTILINE | re.IGNORECASE
)
_MOVE = re.compile(r"(place|remove)[ \t]{1,16}(\S{1,64})", re.IGNORECASE)
_CHECK = re.compile(r"check[ \t]{1,16}(conjunctive|disjunctive)[ \t:]{1,16}([\w \t,{}\[\]]{1,400})", re.IGNORECASE)
_NAMES = re.compile(r"\w+")
_DECORATION = " \t\r\n*_`.;:!\"'()"

MAX_NAME = 64  # characters of a state's name that are kept
MAX_BEFORE_NAME = 200  # characters behind `TRANSITION:` in which a name is looked for


@dataclass(frozen=True, slots=True)
class Reply:
    """reasoning: free text; action: None without a readable one; transition: empty without one
    problems: one line for each of action and transition that was meant and could not be read, or was missing
    """

    reasoning: str = ""
    action: Action | None = None
    transition: str = ""
    problems: tuple[str, ...] = ()


def read_reply(text: object) -> Reply:
    """What a reply asks for; never raises. A transition without an action is a reply of its own."""
    if not isinstance(text, str):
        return Reply(problems=(f"expected text, found {shown(text)}",))
    parts = _parts(text)
    problems: list[str] = []
    action = _sole_action(parts["ACTION"], problems)
    transition = _sole_transition(parts["TRANSITION"], problems)
    if not parts["ACTION"] and not parts["TRANSITION"]:
        problems.append("no line `ACTION:`")
    return Reply("\n".join(part.strip() for part in parts["REASONING"]), action, transition, tuple(problems))


def _parts(text: str) -> dict[str, list[str]]:
    """What stands behind each mark, up to the next one."""
    parts: dict[str, list[str]] = {"REASONING": [], "ACTION": [], "TRANSITION": []}
    marks = list(_MARK.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=False):
        parts[mark[1].upper()].append(text[mark.end() : end])
    return parts


def _sole_action(parts: list[str], problems: list[str]) -> Action | None:
    found = [action for part in parts for action in _actions(part)]
    if parts and not found:
        first = next((line.strip() for line in parts[0].splitlines() if line.strip()), "")
        problems.append(f"expected an action after `ACTION:`, found {shown(first)}")
    if any(action != found[0] for action in found):
        problems.append("several actions; a reply carries one")
        return None
    return found[0] if found else None


def _actions(part: str) -> list[Action]:
    """The outermost JSON objects behind a mark, or the action that its first line says in words."""
    objects: list[Action] = []
    end = 0
    for found in json_objects(part):
        if found.start >= end:
            objects.append(found.value)
            end = found.end
    return objects or _in_words(next((line for line in part.splitlines() if line.strip(_DECORATION)), ""))


def _in_words(line: str) -> list[Action]:
    said = line.strip(_DECORATION)
    if move := _MOVE.fullmatch(said):
        return [{move[1].lower(): move[2]}]
    if check := _CHECK.fullmatch(said):
        return [{"check": {"rule": check[1].lower(), "blickets": _NAMES.findall(check[2])}}]
    return []


def _sole_transition(parts: list[str], problems: list[str]) -> str:
    names = {_name(part) for part in parts}
    if len(names) > 1:
        problems.append("several transitions; a reply carries at most one")
        return ""
    name = next(iter(names), "")
    if parts and not name:
        problems.append("expected the name of a state after `TRANSITION:`")
    return name


def _name(part: str) -> str:
    """The first word behind the mark, as states are spelled."""
    word = _NAMES.search(part[:MAX_BEFORE_NAME])
    return word[0].upper()[:MAX_NAME] if word else ""


def written_reply(reply: Reply) -> str:
    """A reply as text, which `read_reply` reads back."""
    lines = [f"REASONING: {reply.reasoning}"]
    if reply.action is not None:
        lines.append(f"ACTION: {json.dumps(reply.action)}")
    if reply.transition:
        lines.append(f"TRANSITION: {reply.transition}")
    return "\n".join(lines)
