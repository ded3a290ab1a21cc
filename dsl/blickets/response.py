"""From a response to the answer that it gives: a rule and its objects.

An answer is an object with the keys `rule` and `blickets`, alone, anywhere in a text or inside another object, or the
same in words (dsl.blickets.wording). A response that states two different rules has no answer: which of them is meant
is not ours to choose. What stands in a closed <think> block is not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.dsl.action import ActionError
from calibrant.dsl.blickets.rule import rule_from_json
from calibrant.dsl.blickets.wording import stated_rules
from calibrant.dsl.errors import short_repr
from calibrant.dsl.json_objects import without_thoughts


def answer_of(response: str | Mapping[str, Any], objects: Sequence[str]) -> dict[str, Any]:
    """{"rule": ..., "blickets": [names]} as the response states it; `ActionError` says why it states none."""
    rules = stated_rules(without_thoughts(response) if isinstance(response, str) else response, objects)
    if len(rules) > 1:
        listed = " and ".join(short_repr(rule.in_words(objects)) for rule in list(rules)[:2])
        raise ActionError(f"{len(rules)} different rules in the text: {listed}")
    if rules:
        return next(iter(rules.values()))
    if isinstance(response, str):
        raise ActionError(
            "no JSON object with the keys rule and blickets in the text, no lines `RULE_TYPE:` and `BLICKETS:`, and no"
            " line such as `conjunctive A, B`"
        )
    rule_from_json(response, objects)  # states why
    return dict(response)
