"""From a response to the answer that it gives: a frequency, a hypothesis or both.

A text is read as the released code reads replies (`replies` here). What it holds may be an action of an episode,
{"reactor": f} or {"submit": {...}} with the hypothesis it carries; a reply in the paper's own format
(dsl.causalab.notebook.reply); an answer as records of runs have it; or a hypothesis alone. An object around exactly
one of these, such as {"answer": {...}}, is passed through. A frequency that cannot be read leaves the hypothesis as it
is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from calibrant.dsl.action import ActionError
from calibrant.dsl.causalab.episode import HYPOTHESIS, finite
from calibrant.dsl.causalab.notebook.reply import NOTES, VALUE, experiment_target, is_paper_reply, outside_laboratory
from calibrant.dsl.causalab.responses.replies import controller_json, parse_object
from calibrant.dsl.errors import short_repr

FREQUENCY_KEYS = ("frequency", "reactor")
_OF_HYPOTHESIS = frozenset({"edges", "freq_equation", "coefficients", "weights"})
MAX_WRAPPINGS = 4


class ReadAnswer(NamedTuple):
    """Answer of a response, and its problem.

    answer: {"frequency": number, "hypothesis": object}, each as far as it is stated
    problem: what of it could not be read; empty if all was
    """

    answer: dict[str, Any]
    problem: str


def read_answer(response: str | Mapping[str, Any]) -> ReadAnswer:
    """Read the answer that a response gives; `ActionError` says why it gives neither frequency nor hypothesis."""
    raw = _object_of(response) if isinstance(response, str) else response
    inner = _unwrap(raw)
    statement = _read_statement(raw if inner is None else inner)
    if statement.answer:
        return statement
    keys = short_repr(", ".join(map(str, raw))) if raw else "none"
    raise ActionError(statement.problem or f"no frequency and no hypothesis in it; its keys are {keys}")


def answer_of(response: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer alone; `ActionError` as in `read_answer`."""
    return read_answer(response).answer


def _read_statement(raw: Mapping[str, Any]) -> ReadAnswer:
    outer = dict(raw)
    if isinstance(raw.get("submit"), Mapping):
        outer |= outer.pop("submit")
    answer: dict[str, Any] = {}
    problems = []
    try:
        frequency = _frequency(outer)
        if frequency is not None:
            answer["frequency"] = frequency
    except ActionError as error:
        problems.append(str(error))
    if isinstance(outer.get(HYPOTHESIS), Mapping):
        answer[HYPOTHESIS] = dict(outer[HYPOTHESIS])
    elif outer.get(HYPOTHESIS) is not None:
        problems.append(f"hypothesis is {short_repr(outer[HYPOTHESIS])}, not an object")
    elif not _OF_HYPOTHESIS.isdisjoint(outer):
        answer[HYPOTHESIS] = {key: value for key, value in outer.items() if key in _OF_HYPOTHESIS}
    return ReadAnswer(answer, "; ".join(problems))


def _frequency(outer: Mapping[str, Any]) -> float | None:
    """Return the frequency that is stated; `ActionError` for what is none, and for two that differ."""
    stated_values = [outer[key] for key in FREQUENCY_KEYS if outer.get(key) is not None]
    if is_paper_reply(outer):
        if (why := outside_laboratory(outer)) is not None and not stated_values:
            raise ActionError(why)
        if outer.get(VALUE) is not None:
            target = experiment_target(outer)
            if target is None:
                stated_values.append(outer[VALUE])
            elif not stated_values:
                raise ActionError(f"its value is a setting of {short_repr(target)}")
    frequencies = {finite(value) for value in stated_values}
    if len(frequencies) > 1:
        raise ActionError(f"two frequencies: {' and '.join(map(str, sorted(frequencies)))}")
    return next(iter(frequencies), None)


def _unwrap(raw: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the innermost object that states an answer, where each of these states none and holds one such object."""
    for _ in range(MAX_WRAPPINGS):
        if _states_answer(raw):
            return raw
        inner = [value for key, value in raw.items() if isinstance(value, Mapping) and key not in NOTES]
        if len(inner) != 1:
            candidates = [value for value in inner if _states_answer(value)]
            return candidates[0] if len(candidates) == 1 else None
        (raw,) = inner
    return None


def _states_answer(raw: Mapping[str, Any]) -> bool:
    return any(_read_statement(raw))


def _object_of(text: str) -> dict[str, Any]:
    held = controller_json(text)
    if held is None:
        raise ActionError("no JSON in the text")
    parsed_object = parse_object(held)
    if parsed_object is None:
        raise ActionError(f"not a JSON object: {short_repr(held)}")
    return parsed_object
