"""From a response to the answer that it gives: a frequency, a hypothesis or both.

A text is read as the released code reads replies (dsl.causalab.replies). What it holds may be an action of an episode,
{"reactor": f} or {"submit": {...}} with the hypothesis it carries; an answer as records of runs have it; or a
hypothesis alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsl.action import ActionError
from dsl.causalab.episode import HYPOTHESIS, finite
from dsl.causalab.replies import controller_json, parsed
from dsl.errors import shown

FREQUENCY_KEYS = ("frequency", "reactor")
_OF_HYPOTHESIS = frozenset({"edges", "freq_equation", "coefficients", "weights"})


def answer_of(response: str | Mapping[str, Any]) -> dict[str, Any]:
    """{"frequency": number, "hypothesis": object}, each as far as it is stated; `ActionError` says why neither is."""
    raw = _object_of(response) if isinstance(response, str) else response
    outer = {**raw, **submitted} if isinstance(submitted := raw.get("submit"), Mapping) else dict(raw)
    answer: dict[str, Any] = {}
    frequencies = {finite(outer[key]) for key in FREQUENCY_KEYS if outer.get(key) is not None}
    if len(frequencies) > 1:
        raise ActionError(f"two frequencies: {' and '.join(map(str, sorted(frequencies)))}")
    for frequency in frequencies:
        answer["frequency"] = frequency
    if outer.get(HYPOTHESIS) is not None:
        if not isinstance(outer[HYPOTHESIS], Mapping):
            raise ActionError(f"hypothesis is {shown(outer[HYPOTHESIS])}, not an object")
        answer[HYPOTHESIS] = dict(outer[HYPOTHESIS])
    elif not _OF_HYPOTHESIS.isdisjoint(outer):
        answer[HYPOTHESIS] = {key: value for key, value in outer.items() if key in _OF_HYPOTHESIS}
    if not answer:
        raise ActionError(
            f"no frequency and no hypothesis in it; its keys are {shown(', '.join(raw)) if raw else 'none'}"
        )
    return answer


def _object_of(text: str) -> dict[str, Any]:
    held = controller_json(text)
    if held is None:
        raise ActionError("no JSON in the text")
    found = parsed(held)
    if found is None:
        raise ActionError(f"not a JSON object: {shown(held)}")
    return found
