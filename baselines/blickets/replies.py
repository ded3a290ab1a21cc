"""Requests of a model's reply: lines that begin with `REASONING:`, `ACTION:` and `TRANSITION:`.

An answer may also stand in the paper's lines `RULE_TYPE:` and `BLICKETS:`; how actions are read is in
dsl.blickets.replies.

A reply is untrusted text of any length. It is read in linear time, and nothing in it is executed; the episode and the
context graph judge its requests. One reply carries one action: of two that differ neither is chosen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.dsl.blickets.replies import marked_parts, stated_action
from calibrant.dsl.episode import Action, ActionError
from calibrant.dsl.errors import short_repr

_NAMES = re.compile(r"\w+")

MAX_NAME = 64  # characters of a state's name that are kept
MAX_BEFORE_NAME = 200  # characters behind `TRANSITION:` in which a name is looked for


@dataclass(frozen=True, slots=True)
class Reply:
    """Parts of a reply.

    reasoning: free text; action: None without a readable one; transition: empty without one
    problems: one line for each of action and transition that was meant and could not be read, or was missing
    """

    reasoning: str = ""
    action: Action | None = None
    transition: str = ""
    problems: tuple[str, ...] = ()


def read_reply(text: object, objects: Sequence[str] = ()) -> Reply:
    """Parse a reply; never raises. A transition without an action is a valid reply.

    objects: of the item; names in another case are read as theirs, and answers in words need no more than them
    """
    if not isinstance(text, str):
        return Reply(problems=(f"expected text, found {short_repr(text)}",))
    parts = marked_parts(text)
    problems: list[str] = []
    action = None
    try:
        action = stated_action(text, objects)
    except ActionError as error:
        problems.append(str(error))
    transition = _sole_transition(parts["TRANSITION"], problems)
    if action is None and not problems and not parts["TRANSITION"]:
        problems.append("no line `ACTION:`")
    return Reply("\n".join(part.strip() for part in parts["REASONING"]), action, transition, tuple(problems))


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
    """Return the first word behind the mark, as states are spelled."""
    word = _NAMES.search(part[:MAX_BEFORE_NAME])
    return word[0].upper()[:MAX_NAME] if word else ""


def written_reply(reply: Reply) -> str:
    """Return a reply as text, which `read_reply` reads back."""
    lines = [f"REASONING: {reply.reasoning}"]
    if reply.action is not None:
        lines.append(f"ACTION: {json.dumps(reply.action)}")
    if reply.transition:
        lines.append(f"TRANSITION: {reply.transition}")
    return "\n".join(lines)
