"""Actions: JSON objects with one verb, such as {"place": "A"}, {"set": "density", "value": 20}, {"submit": {...}}.

They are plain JSON from the terminal to the record, so that every benchmark's transcripts, players and replays look
alike; the one place that reads an action is the episode it is given to. An action is untrusted until then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.json_objects import decode, json_objects

Action: TypeAlias = Mapping[str, Any]


class ActionError(CalibrantError):
    """An invalid action; the message states in one line what is expected."""


def verb_of(action: object, verbs: Mapping[str, frozenset[str]]) -> str:
    """Return the verb of an action, one of `verbs`.

    `ActionError` if it has none, several, or keys that are not its own.

    verbs: for each verb the further keys that its object has to have, e.g. {"set": frozenset({"value"})}
    """
    if not isinstance(action, Mapping):
        raise ActionError(f"expected a JSON object with one of {_quote_verbs(verbs)}, found {short_repr(action)}")
    present_verbs = [key for key in action if key in verbs]
    if len(present_verbs) != 1:
        problem = "no verb" if not present_verbs else "several verbs"
        raise ActionError(f"{problem} in {short_repr(dict(action))}; expected exactly one of {_quote_verbs(verbs)}")
    (verb,) = present_verbs
    if action.keys() != {verb} | verbs[verb]:
        keys = ", ".join(sorted({verb} | verbs[verb]))
        raise ActionError(f"'{verb}' takes the keys {keys}; found {short_repr(dict(action))}")
    return str(verb)


def action_of_text(text: str) -> dict[str, Any]:
    """Return the JSON object that a line spells.

    `ActionError` if it spells anything else. Linear time, bounded nesting.
    """
    try:
        value = decode(text.strip())
    except ValueError as error:
        raise ActionError(f"expected a JSON object, found {short_repr(text.strip())}: {error}") from None
    if not isinstance(value, dict):
        raise ActionError(f"expected a JSON object, found {short_repr(value)}")
    return value


def sole_action(text: str) -> Action:
    """Return the one JSON object in a reply; `ActionError` if there is none, or several that differ."""
    actions: list[dict[str, Any]] = []
    end = 0
    for json_object in json_objects(text):
        if json_object.start >= end:
            actions.append(json_object.value)
            end = json_object.end
    if not actions:
        raise ActionError(f"expected a JSON object, found {short_repr(text)}")
    if any(action != actions[0] for action in actions):
        raise ActionError("several actions; a reply carries one")
    return actions[0]


def _quote_verbs(verbs: Mapping[str, frozenset[str]]) -> str:
    return ", ".join(f"'{verb}'" for verb in verbs)
