"""From a response to the answer that it gives: a rule and its objects.

An answer is an object with the keys `rule` and `blickets`, alone or anywhere in a text. A text that states two
different rules has no answer: which of them is meant is not ours to choose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsl.action import ActionError
from dsl.blickets.rule import Rule, rule_from_json
from dsl.errors import shown
from dsl.json_objects import json_objects

_KEYS = frozenset({"rule", "blickets"})


def answer_of(response: str | Mapping[str, Any], objects: Sequence[str]) -> dict[str, Any]:
    """{"rule": ..., "blickets": [names]} as the response states it; `ActionError` says why it states none.

    response: an answer object, or a text with one in it
    """
    if not isinstance(response, str):
        rule_from_json(response, objects)
        return dict(response)
    stated = [found.value for found in json_objects(response) if found.value.keys() == _KEYS]
    if not stated:
        raise ActionError("no JSON object with the keys rule and blickets in the text")
    found: dict[Rule, dict[str, Any]] = {}
    for one in stated:
        found.setdefault(rule_from_json(one, objects), dict(one))
    if len(found) > 1:
        listed = " and ".join(shown(rule.in_words(objects)) for rule in list(found)[:2])
        raise ActionError(f"{len(found)} different rules in the text: {listed}")
    return next(iter(found.values()))
