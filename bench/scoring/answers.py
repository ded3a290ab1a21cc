"""Fields of a prediction: item, model and answer by the names of tools, its steps, and counts of unread responses.

An answer is an object of the task's shape, or a text. It may stand in what a chat interface gives back: a list of
choices (a sample each), a conversation (what the assistant said last), content in parts, an object around any of these.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from calibrant.bench.core.verdict import LazyVerdict
from calibrant.bench.scoring.files import answer_object
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr

# --- Which fields of a prediction hold its item, its model and its answer, by the names that tools write --------------
MODEL_FIELD = "model"
PROTOCOL_FIELD = "protocol"  # of a record of `run` or `play`, which is a prediction too
MODEL_PATHS = ("response.body.model", "response.model", "body.model", "model_name")  # where a line has no MODEL_FIELD
OBJECT_FIELDS = ("extractedAnswer", "answer")  # an object in them is the answer, whatever is in it
ANSWER_FIELDS = (
    "extractedAnswer",
    "rawResponse",
    "response",
    "text",
    "completion",
    "output",
    "answer",
    "choices",
    "messages",
)
SAMPLE_FIELDS = ("sample", "epoch")
_PARTS = frozenset({"mechanisms", "roots", "alternative", "experiment", "witness"})  # of an answer object
_AROUND = ("choices", "completion", "message", "messages", "content", "text", "output", "body", "response", "answer")
_DEEPEST = 8
_SILENT_PARTS = ("reasoning", "function_call")  # items of an output without a message
_TEXT_PARTS = ("text", "output_text")

Answer: TypeAlias = str | dict[str, Any]


class FieldNames(NamedTuple):
    """Fields that the user has named; None where the usual names are looked for."""

    id: str | None = None
    text: str | None = None
    model: str | None = None


@dataclass
class Recognised:
    """Fields in which the parts of the predictions were recognised, and how often.

    failed: samples of a log that ended with an error
    """

    lines: int = 0
    failed: int = 0
    fields: dict[str, Counter[str]] = field(default_factory=lambda: {"item": Counter(), "model": Counter()})
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __str__(self) -> str:
        parts = [f"{self.lines} predictions"]
        for part, names in self.fields.items():
            parts.append(f"{part} from {_list_names(names) or 'no field'}")
        parts.append(
            "answer from " + _list_names(Counter({f"{n} ({form})": k for (n, form), k in self.answers.items()}))
        )
        empty = sum(number for (_, form), number in self.answers.items() if form == "null")
        if empty:
            parts.append(f"{empty} null answers are scored as empty responses")
        if self.failed:
            parts.append(f"{self.failed} samples ended with an error, have no answer and are left out")
        return "; ".join(parts)


def _list_names(names: Counter[str]) -> str:
    return (names and ", ".join(f"{name} {number}" if len(names) > 1 else name for name, number in names.items())) or ""


class AnswerField(NamedTuple):
    """Field of a line that has the answers.

    form: text | object | null (the field is there, and empty)
    """

    name: str
    form: str
    answers: tuple[Answer, ...]


def answer_field(line: Mapping[str, Any], named: str | None = None) -> AnswerField:
    """Return the answers of a line, one a sample; `CalibrantError` with its keys if it has no field for them."""
    null: str | None = None
    for name in (named,) if named else ANSWER_FIELDS:
        present, value = _value(line, name)
        if not present:
            continue
        answers = _of_field(name, value, named=named is not None)
        if answers:
            form = "object" if isinstance(answers[0], dict) else "text"
            return AnswerField(name, form, tuple(answers))
        if answers is not None and null is None:
            null = name
    if null is not None:
        return AnswerField(null, "null", ("",))
    if named:
        raise CalibrantError(f"no answer in the field {short_repr(named)}; its keys are {keys_of(line)}")
    if {"valid", "correct"} <= line.keys():
        raise CalibrantError("no answer in it, but a verdict of `calibrant score`: give the predictions that it scored")
    raise CalibrantError(f"no answer in it; its keys are {keys_of(line)}; --text-field names the one that holds it")


def model_field(line: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the field that names a line's model, and what is in it; None in it where there is none."""
    if MODEL_FIELD not in line:
        for path in MODEL_PATHS:
            present, value = _value(line, path)
            if present and isinstance(value, str):
                return path, value
        if line.get("provenance") is not None and isinstance(line.get(PROTOCOL_FIELD), str):
            return PROTOCOL_FIELD, line[PROTOCOL_FIELD]
    return MODEL_FIELD, line.get(MODEL_FIELD)


def keys_of(line: Mapping[str, Any]) -> str:
    return short_repr(", ".join(line)).strip("'\"") or "none"


def _value(line: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    """Return whether the line has a field, and what is in it; dots lead into objects."""
    if name in line:
        return True, line[name]
    value: Any = line
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return False, None
        value = value[part]
    return True, value


def named_value(line: Mapping[str, Any], name: str) -> Any:
    """Return what is in a field that the user has named; `CalibrantError` with the keys if it is not there."""
    present, value = _value(line, name)
    if not present:
        raise CalibrantError(f"no field {short_repr(name)}; its keys are {keys_of(line)}")
    return value


def _of_field(name: str, value: Any, *, named: bool) -> list[Answer] | None:
    """Answers of a field; none in a field that is null; None where the field holds something else."""
    if isinstance(value, str) and name in OBJECT_FIELDS:
        answer = answer_object(value.encode("utf-8", "replace"))
        return [value if answer is None else answer]
    if isinstance(value, dict) and name == OBJECT_FIELDS[0]:
        return [value]
    answers = _answers_in(value)
    is_answer = isinstance(value, dict) and (named or name in OBJECT_FIELDS)
    return [value] if answers is None and is_answer else answers


def _answers_in(value: Any, depth: int = 0) -> list[Answer] | None:
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if depth > _DEEPEST:
        return None
    if isinstance(value, dict):
        if not _PARTS.isdisjoint(value):
            return [value]
        around = (_answers_in(value[key], depth + 1) for key in _AROUND if key in value)
        return next((answers for answers in around if answers is not None), None)
    if isinstance(value, list):
        return _of_list(value, depth)
    return None


def _of_list(values: list[Any], depth: int) -> list[Answer] | None:
    if all(isinstance(value, str) for value in values):
        return list(values)
    if not all(isinstance(value, dict) for value in values):
        return None
    if any("role" in value for value in values):
        turns = [value for value in values if value.get("role") in ("assistant", "user")]
        last = turns[-1] if turns else {}
        return _answers_in(last.get("content"), depth + 1) if last.get("role") == "assistant" else None
    texts = [value.get("text") for value in values if value.get("type") in _TEXT_PARTS]
    if texts:
        return ["".join(text for text in texts if isinstance(text, str))]
    if any(value.get("type") in _SILENT_PARTS for value in values):
        return []
    answers: list[Answer] = []
    for value in values:
        parts = _answers_in(value, depth + 1)
        if parts is None:
            return None
        answers += parts or [""]
    return answers


# --- Answers of systems as the public functions take them -------------------------------------------------------------


def parse_answer(answer: object) -> str | dict[str, Any] | None:
    """Return a text, or an answer object as it would be after a file; None for other values that JSON has.

    `CalibrantError` for what JSON cannot say: that is no answer at all.
    """
    if isinstance(answer, str):
        return answer
    if isinstance(answer, Mapping):
        return _json_object(answer)
    if answer is None or isinstance(answer, bool | int | float | list | tuple):
        return None
    raise CalibrantError(f"an answer is a text or an object, not {short_repr(type(answer).__name__)}")


def invalid_answer_message(answer: object) -> str:
    """Return why a value that is neither a text nor an object is no valid answer."""
    return f"the answer is {short_repr(answer)}, neither a text nor an object"


def _json_object(answer: Mapping[Any, Any]) -> dict[str, Any]:
    """Return an answer as it would be after a file."""
    try:
        copied: dict[str, Any] = json.loads(json.dumps(dict(answer)))
    except (TypeError, ValueError, RecursionError) as error:
        raise CalibrantError(f"the answer is no JSON object: {in_one_line(str(error))[:200]}") from None
    return copied


# --- Responses without an answer, or with one that is incomplete or misplaced, counted: nothing is scored 0 in silence
UNREAD_STAGES = (
    "extracted",
    "schema",
)  # of ReplaySCM's funnel: what is rejected there is no object of the task's shape


class UnreadAnswers:
    """Numbers of such responses, each with the first one's item and reason."""

    def __init__(self) -> None:
        self._without = _Tally()
        self._partial = _Tally()

    def add(self, instance: str, reason: str) -> None:
        """Count a response without an answer; an empty reason is none."""
        self._without.add(instance, reason)

    def add_partial(self, instance: str, reason: str) -> None:
        """Count a response whose answer has a missing, misplaced or unreadable part; an empty reason is none."""
        self._partial.add(instance, reason)

    def lines(self) -> Iterator[str]:
        """Yield one line for each of the two, where there are any."""
        for tally, problem in (
            (self._without, "no answer that can be read"),
            (self._partial, "an answer that is incomplete or misplaced"),
        ):
            if tally.number:
                subject = "1 response holds" if tally.number == 1 else f"{tally.number} responses hold"
                yield f"{subject} {problem} {tally.first}"


class _Tally:
    def __init__(self) -> None:
        self.number = 0
        self.first = ""

    def add(self, instance: str, reason: str) -> None:
        if not reason:
            return
        if not self.number:
            self.first = f"(first: {short_repr(instance)[1:-1]}: {in_one_line(reason)[:200]})"
        self.number += 1


def unread_reason(line: Mapping[str, Any]) -> str:
    """Why a response to ReplaySCM has no answer, from its verdict; empty if it has one."""
    if isinstance(line, LazyVerdict):
        return line.unread
    if "benchmark" in line:  # other benchmarks' answers are read before they are scored
        return ""
    return str(line.get("failureExplanation")) if line.get("stage") in UNREAD_STAGES else ""


# --- Lines with an episode: its steps as records have them or in a benchmark's trace format, or the system's replies
STEPS_FIELD = "steps"
REPLIES_FIELD = "replies"  # texts or objects, one a turn
DIALOGUE_FIELD = "dialogue"  # options under which they were given
ITEM_FIELD, AGENT_FIELD = "item", "agent"  # of a trace


def is_trace(line: Mapping[str, Any]) -> bool:
    """Return whether a line is one in a benchmark's own trace format."""
    return isinstance(line.get(ITEM_FIELD), str) and isinstance(line.get(AGENT_FIELD), str) and STEPS_FIELD in line
