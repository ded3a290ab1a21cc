"""Actions: JSON objects with one verb, such as {"place": "A"}, {"set": "density", "value": 20}, {"submit": {...}}.

They are plain JSON from the terminal to the record, so that every benchmark's transcripts, players and replays look
alike; the one place that reads an action is the episode it is given to. An action is untrusted until then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from calibrant.dsl.errors import CalibrantError, shown
from calibrant.dsl.json_objects import decode

Action: TypeAlias = Mapping[str, Any]


class ActionError(CalibrantError):
    """What was asked for is no action; the message says what is, in one line."""


def verb_of(action: object, verbs: Mapping[str, frozenset[str]]) -> str:
    """The verb of an action, one of `verbs`; `ActionError` if it has none, several, or keys that are not its own.

    verbs: for each verb the further keys that its object has to have, e.g. {"set": frozenset({"value"})}
    """
    if not isinstance(action, Mapping):
        raise ActionError(f"expected a JSON object with one of {_listed(verbs)}, found {shown(action)}")
    found = [key for key in action if key in verbs]
    if len(found) != 1:
        what = "no verb" if not found else "several verbs"
        raise ActionError(f"{what} in {shown(dict(action))}; expected exactly one of {_listed(verbs)}")
    (verb,) = found
    if action.keys() != {verb} | verbs[verb]:
        keys = ", ".join(sorted({verb} | verbs[verb]))
        raise ActionError(f"'{verb}' takes the keys {keys}; found {shown(dict(action))}")
    return str(verb)


def action_of_text(text: str) -> dict[str, Any]:
    """The JSON object that a line spells; `ActionError` if it spells anything else. Linear time, bounded nesting."""
    try:
        value = decode(text.strip())
    except ValueError as error:
        raise ActionError(f"expected a JSON object, found {shown(text.strip())}: {error}") from None
    if not isinstance(value, dict):
        raise ActionError(f"expected a JSON object, found {shown(value)}")
    return value


def _listed(verbs: Mapping[str, frozenset[str]]) -> str:
    return ", ".join(f"'{verb}'" for verb in verbs)
