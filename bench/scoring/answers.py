"""Plain lines of prediction files: item, model, answer and steps, by the field names of common tools; and counts.

An answer is an object of the task's shape, or a text. It may stand in a provider's response (bench.scoring.providers),
in the last message of the assistant, in a content list, or around any of these. A line may name its item by its prompt.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol

from calibrant.bench.core.responses import (
    DEFAULT_READING,
    EXCLUDED,
    REASONS,
    REFUSED,
    Reading,
    ReadingOptions,
    Response,
)
from calibrant.bench.core.scoring import ID_FIELDS
from calibrant.bench.scoring import providers
from calibrant.bench.scoring.files import answer_object, prediction_object
from calibrant.bench.scoring.formats import SAMPLE_FIELDS, parse_line
from calibrant.bench.terminal import HintedError
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.text import plural

# --- Items of lines that name none, found by the line's prompt --------------------------------------------------------
MIN_PROMPT_LINES = 3  # inner lines (all but first and last) of an indexed prompt; text around a prompt never joins them
PROMPT_FIELDS = (
    *("prompt", "input", "inputs", "question", "messages", "arguments", "request", "body", "contents", "query"),
)
MAX_PROMPT_DEPTH = 12  # levels of objects and lists that are searched for texts


class PromptedItems(Protocol):
    """Items of a pool. prompt: id -> prompt as `calibrant prompts` writes it; None if the pool has no prompts."""

    @property
    def digest(self) -> str: ...
    @property
    def instances(self) -> Collection[str]: ...
    @property
    def prompt(self) -> Callable[[str], str] | None: ...


class PromptIndex:
    """Index of items by their user prompts.

    Each prompt is indexed by its rarest inner line, and compared only with texts that have this line: comparing every
    prompt with every text would take minutes for 10,000 lines and 1,000 items.
    """

    def __init__(self, pools: Sequence[PromptedItems]) -> None:
        self._items: dict[str, set[tuple[str, str]]] = {}
        self._prompts: dict[tuple[str, str], str] = {}
        prompts_by_line: dict[str, set[str]] = {}
        for pool in pools:
            for instance in pool.instances if pool.prompt is not None else ():
                assert pool.prompt is not None
                prompt = pool.prompt(instance).strip()
                self._prompts[pool.digest, instance] = prompt
                self._items.setdefault(prompt, set()).add((pool.digest, instance))
        for prompt in self._items:
            for line in set(prompt.splitlines()[1:-1]):
                prompts_by_line.setdefault(line, set()).add(prompt)
        self._by_rarest_line: dict[str, list[str]] = {}
        self._short: list[str] = []  # prompts that no line indexes
        for prompt in self._items:
            inner = prompt.splitlines()[1:-1]
            if len(inner) < MIN_PROMPT_LINES:
                self._short.append(prompt)
            else:
                rarest = min(inner, key=lambda line: (len(prompts_by_line[line]), -len(line)))
                self._by_rarest_line.setdefault(rarest, []).append(prompt)

    def find(self, texts: Sequence[str]) -> set[tuple[str, str]]:
        """Return the items whose prompt equals a text, else those with the longest prompts that a text contains."""
        texts = [text.replace("\r\n", "\n") for text in texts]  # as spreadsheets write them
        for text in texts:
            if items := self._items.get(text.strip()):
                return items
        contained: set[str] = set()
        for text in texts:
            for line in set(text.splitlines()):
                contained.update(prompt for prompt in self._by_rarest_line.get(line, ()) if prompt in text)
            contained.update(prompt for prompt in self._short if prompt in text)
        longest = {
            prompt for prompt in contained if not any(prompt != longer and prompt in longer for longer in contained)
        }
        return {item for prompt in longest for item in self._items[prompt]}


def prompt_texts(values: Iterable[Any]) -> list[str]:
    """Return all texts in PROMPT_FIELDS of these objects, except messages of the assistant."""
    texts: list[str] = []
    for value in values:
        if isinstance(value, Mapping):
            for name in PROMPT_FIELDS:
                _add_texts(value.get(name), texts, 0)
    return texts


def _add_texts(value: Any, texts: list[str], depth: int) -> None:
    if isinstance(value, str):
        texts.append(value)
        with suppress(CalibrantError):  # messages that break off
            value = providers.messages_in_text(value)
    if depth < MAX_PROMPT_DEPTH and isinstance(value, Mapping):
        if not providers.is_assistant(value):
            for part in value.values():
                _add_texts(part, texts, depth + 1)
    elif depth < MAX_PROMPT_DEPTH and isinstance(value, list):
        for part in value:
            _add_texts(part, texts, depth + 1)


def inner_object(value: Any) -> Mapping[str, Any]:
    """Return an object, or the object in a JSON text; {} for anything else."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, str) and value.startswith("{"):
        return _object_or_none(value) or {}
    return {}


def _object_or_none(text: str) -> Mapping[str, Any] | None:
    """Parse a JSON object; None for anything else."""
    try:
        return prediction_object(text.encode("utf-8", "surrogatepass"))
    except CalibrantError:
        return None


# --- Fields of a prediction for its item, model and answer, by the names that tools write -----------------------------
MODEL_FIELD = "model"
PROTOCOL_FIELD = "protocol"  # names the system in records of `run` and `play`, which are read as predictions too
# used if a line has no MODEL_FIELD
MODEL_PATHS = ("response.body.model", "response.model", "body.model", "model_name", "model_id")
OBJECT_FIELDS = ("extractedAnswer", "answer")  # an object in these fields is the answer, whatever its keys
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
TEXT_OPTION = "--text-field"
_NO_ANSWER_FIELDS = frozenset(
    {*ID_FIELDS, "key", *PROMPT_FIELDS, *SAMPLE_FIELDS, MODEL_FIELD, *MODEL_PATHS, "system", "promptDigest", "pool"}
)
_ANSWER_KEYS = frozenset({"mechanisms", "roots", "alternative", "experiment", "witness"})  # keys of answer objects
_STOP_FIELDS = ("finish_reason", "stop_reason", "done_reason")
# fields on stop, thoughts and failure; of a line without any of them, only the answer is read
_STATUS_FIELDS = frozenset({*_STOP_FIELDS, *providers.THOUGHT_FIELDS, *providers.FAILURE_FIELDS, "refusal"})
_AROUND = ("choices", "completion", "message", "messages", "content", "text", "output", "body", "response", "answer")
_MAX_DEPTH = 8  # levels of objects and lists around an answer
_SILENT_PARTS = ("reasoning", "function_call")  # types of output items that hold no message


class LineRules(NamedTuple):
    """Rules for lines: what an error does, whether equal lines count once, and the model of all lines if given."""

    on_error: Literal["stop", "skip"] = "stop"
    duplicates: Literal["keep", "drop"] = "keep"
    model: str | None = None


DEFAULT_RULES: Final = LineRules()


class FieldNames(NamedTuple):
    """Field names that the user gave, None for the usual ones; and options of reading."""

    id: str | None = None
    text: str | None = None
    model: str | None = None
    reading: ReadingOptions = DEFAULT_READING
    rules: LineRules = DEFAULT_RULES


@dataclass
class Recognised:
    """Counts of the fields that held item and model, and of the (field, form) of answers. unread: unused columns."""

    lines: int = 0
    fields: dict[str, Counter[str]] = field(default_factory=lambda: {"item": Counter(), "model": Counter()})
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    unread: str = ""

    def __str__(self) -> str:
        parts = [plural(self.lines, "predictions")]
        for part, names in self.fields.items():
            parts.append(f"{part} from {_list_names(names) or 'no field'}")
        parts.append(
            "answer from " + _list_names(Counter({f"{n} ({form})": k for (n, form), k in self.answers.items()}))
        )
        return "; ".join(parts) + (f"; not read: {in_one_line(self.unread)}" if self.unread else "")


def _list_names(names: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" if len(names) > 1 else name for name, count in names.items())


class AnswerField(NamedTuple):
    """Field of a line that has the responses.

    form: text; object; null (the field is empty); error (only an error is stated); format (`parsed` states which)
    """

    name: str
    form: str
    responses: tuple[Response, ...]
    parsed: providers.ParsedLine | None = None


def answer_field(line: Mapping[str, Any], named: str | None = None) -> AnswerField:
    """Return the responses of a line, one per sample; `CalibrantError` with the line's keys if it has no such field."""
    if named is None and (parsed := parse_line(line)) is not None:
        return AnswerField(parsed.format, "format", providers.add_status(parsed.responses, line), parsed)
    field = _plain_field(line, named)
    if response_id := providers.line_id(line):
        field = field._replace(responses=providers.add_ids(field.responses, response_id))
    holders = [name for name in providers.FAILURE_HOLDERS if name in line and not isinstance(line[name], str)]
    if not holders and _STATUS_FIELDS.isdisjoint(line):
        return field
    reason = providers.failed_line(line) or providers.refused_line(line)
    stop = next((line[key] for key in _STOP_FIELDS if isinstance(line.get(key), str)), None)
    has_thoughts = any(line.get(name) for name in providers.THOUGHT_FIELDS)
    if not reason and stop is None and not has_thoughts:
        return field
    responses = tuple(
        providers.add_stop(response, response.stop or stop)._replace(
            reason=reason or response.reason, has_thoughts=response.has_thoughts or has_thoughts
        )
        for response in field.responses
    )
    return field._replace(responses=responses)


def _plain_field(line: Mapping[str, Any], named: str | None) -> AnswerField:
    null_field: str | None = None
    for name in (named,) if named else ANSWER_FIELDS:
        present, value = _value(line, name)
        if not present:
            continue
        if isinstance(value, str) and name != OBJECT_FIELDS[0]:
            messages = providers.messages_in_text(value)
            if messages is None:
                return AnswerField(name, "text", (Response(value),))
            value = messages
        parsed = providers.provider_responses(value) if name not in OBJECT_FIELDS else None
        if parsed is not None:
            return AnswerField(name, parsed.format, parsed.responses, parsed)
        answers = _responses_of_field(name, value, named=named is not None)
        if answers:
            form = "object" if answers[0].answer is not None else "text"
            return AnswerField(name, form, tuple(answers))
        if answers is not None and null_field is None:
            null_field = name
    if null_field is not None:
        return AnswerField(null_field, "null", (Response(),))
    if providers.failed_line(line):
        return AnswerField("error", "error", (Response(),))
    if named:
        raise CalibrantError(f"no answer in the field {short_repr(named)}; its keys are {keys_of(line)}")
    if {"correct", "poolDigest"} <= line.keys():
        raise CalibrantError("no answer in it, but a verdict of `calibrant score`: give the predictions that it scored")
    message = f"no answer in it; its keys are {keys_of(line)}; --text-field names the one that holds it"
    raise HintedError(message, option=_text_option(line))


def model_field(line: Mapping[str, Any]) -> tuple[str, Any]:
    """Return (name of a line's model field, its value; None if there is none)."""
    if MODEL_FIELD not in line:
        for path in MODEL_PATHS:
            present, value = _value(line, path)
            if present and isinstance(value, str):
                return path, value
        if line.get("provenance") is not None and isinstance(line.get(PROTOCOL_FIELD), str):
            return PROTOCOL_FIELD, line[PROTOCOL_FIELD]
    return MODEL_FIELD, line.get(MODEL_FIELD)


def keys_of(line: Mapping[str, Any]) -> str:
    """Return the keys of a line, shortened for messages."""
    return short_repr(", ".join(line)).strip("'\"") or "none"


def _value(line: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    """Return (whether the line has a field, its value); dots in the name lead into objects."""
    if name in line:
        return True, line[name]
    if "." not in name:
        return False, None
    value: Any = line
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return False, None
        value = value[part]
    return True, value


def named_value(line: Mapping[str, Any], name: str) -> Any:
    """Return the value of a field that the user named; `CalibrantError` with the line's keys if it is missing."""
    present, value = _value(line, name)
    if not present:
        raise CalibrantError(f"no field {short_repr(name)}; its keys are {keys_of(line)}")
    return value


def _responses_of_field(name: str, value: Any, *, named: bool) -> list[Response] | None:
    """Return the responses in a field; [] if it is null, None if it holds something else."""
    if isinstance(value, str) and name == OBJECT_FIELDS[0]:
        answer = answer_object(value.encode("utf-8", "replace"))
        return [Response(value) if answer is None else Response(answer=answer)]
    if isinstance(value, dict) and name == OBJECT_FIELDS[0]:
        return [Response(answer=value)]
    answers = _responses_in(value)
    is_answer = isinstance(value, dict) and (named or name in OBJECT_FIELDS)
    return [Response(answer=value)] if answers is None and is_answer else answers


def _responses_in(value: Any, depth: int = 0) -> list[Response] | None:
    """Return the responses in a JSON value; [] if it is null, None if it holds no response."""
    if value is None:
        return []
    if isinstance(value, str):
        return [Response(value)]
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, dict):
        if not _ANSWER_KEYS.isdisjoint(value):
            return [Response(answer=value)]
        if providers.is_assistant(value) and providers.has_content(value):
            return [providers.message_response(value)]
        around = (_responses_in(value[key], depth + 1) for key in _AROUND if key in value)
        return next((answers for answers in around if answers is not None), None)
    if isinstance(value, list):
        return _responses_of_list(value, depth)
    return None


def _responses_of_list(values: list[Any], depth: int) -> list[Response] | None:
    if all(isinstance(value, str | None) for value in values):
        return [Response(value) for value in values]
    if not all(isinstance(value, dict) for value in values):
        return None
    if any("role" in value or providers.is_assistant(value) for value in values):
        turns = [v for v in values if providers.is_assistant(v) or v.get("role", v.get("type")) in ("user", "human")]
        return [providers.last_assistant(values)] if turns and providers.is_assistant(turns[-1]) else None
    content = providers.read_content(values)
    if content.text is not None or content.has_thoughts or content.is_refusal:
        reason = REFUSED if content.is_refusal else ""
        return [Response(content.text, has_thoughts=content.has_thoughts, reason=reason)]
    if any(value.get("type") in _SILENT_PARTS for value in values):
        return []
    answers: list[Response] = []
    for value in values:
        parts = _responses_in(value, depth + 1)
        if parts is None:
            return None
        answers += parts or [Response()]
    return answers


def capital_fields(line: Mapping[str, Any]) -> dict[str, str]:
    """Return option -> field, for fields of model and answer that differ from usual names only in capital letters."""
    fields = {}
    for option, names in (("--model-field", (MODEL_FIELD, *MODEL_PATHS)), (TEXT_OPTION, ANSWER_FIELDS)):
        lowered = {name.lower() for name in names}
        if line.keys().isdisjoint(names) and (field := next((key for key in line if key.lower() in lowered), "")):
            fields[option] = field
    return fields


def _text_option(line: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the option that names the likely answer field, by capital letters or as the only text; () if unclear."""
    name = capital_fields(line).get(TEXT_OPTION)
    texts = [key for key, value in line.items() if key not in _NO_ANSWER_FIELDS and _is_text(value)]
    name = name or (texts[0] if len(texts) == 1 else None)
    return (TEXT_OPTION, name) if name else ()


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and bool(value) and all(isinstance(part, str) for part in value)
    )


def stated_sample(line: Mapping[str, Any]) -> int | None:
    """Return the sample index that a line states, None without one; `CalibrantError` unless it is an integer >= 0."""
    for name in SAMPLE_FIELDS:
        if name in line and line[name] is not None:
            if type(line[name]) is not int or line[name] < 0:
                raise CalibrantError(f"{name} is {short_repr(line[name])}, not a number of a sample")
            return int(line[name])
    return None


def stated_seconds(line: Mapping[str, Any]) -> float | None:
    """Return the seconds that a line states, None without any; `CalibrantError` for anything but a duration."""
    seconds = line.get("seconds")
    if seconds is None:
        return None
    if type(seconds) not in (int, float) or not math.isfinite(seconds) or seconds < 0:
        point = "; write a decimal point, and no mark of thousands" if "," in str(seconds) else ""
        raise CalibrantError(f"seconds is {short_repr(seconds)}, not a duration{point}")
    return float(seconds)


# --- Answers as arguments of the public functions ---------------------------------------------------------------------


def parse_answer(answer: object) -> str | dict[str, Any] | None:
    """Return a text, or an object as if read back from a JSON file; None for other JSON values.

    `CalibrantError` for values that JSON cannot represent.
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
    """Return an answer as if read back from a JSON file; `CalibrantError` if it cannot be written."""
    try:
        copied: dict[str, Any] = json.loads(json.dumps(dict(answer)))
    except (TypeError, ValueError, RecursionError) as error:
        raise CalibrantError(f"the answer is no JSON object: {in_one_line(str(error))[:200]}") from None
    return copied


# --- Counts of how responses were read, so that a notice reports whatever is scored 0 for its form --------------------
UNREAD_STAGES = ("extracted", "schema")  # ReplaySCM's validity stages that reject a response without an answer object


class _CountWithFirst:
    """Number of responses, with the line and item of the first."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def add(self, location: str) -> None:
        self.first = self.first if self.count else location
        self.count += 1


class ResponseCounts:
    """Numbers of responses by reason and by kind of warning, each with line and item of the first.

    num_rated: responses in the rates
    only: rule -> answers on which the rules differ: right by the published or the lenient rule and wrong by the chosen
        one, or right by the chosen rule and not by all
    nameless: excluded responses without a model, in a file that names none or several
    """

    def __init__(self) -> None:
        self.num_rated = 0
        self.reasons: dict[str, _CountWithFirst] = {}
        self.warnings: dict[str, _CountWithFirst] = {}
        self.only = {name: _CountWithFirst() for name in ("published", "chosen", "lenient")}
        self.nameless = _CountWithFirst()
        self._partial = _CountWithFirst()
        self._first_unanswered = {True: "", False: ""}  # whether it is excluded -> first response without an answer

    def add(self, location: str, reading: Reading) -> None:
        """Count a response. location: its line and item, separated by a comma."""
        if not reading.is_excluded:
            self.num_rated += 1
        for kind in reading.warnings:
            self.warn(kind, location)
        if not reading.reason and not reading.gap:
            return
        where, _, instance = location.rpartition(", ")
        at = f" at {where}" if where else ""
        if reading.reason:
            first = f"(first: {instance}: {in_one_line(reading.problem)[:200]}){at}"
            self.reasons.setdefault(reading.reason, _CountWithFirst()).add(first)
            self._first_unanswered[reading.is_excluded] = self._first_unanswered[reading.is_excluded] or first
        else:
            self._partial.add(f"(first: {instance}: {in_one_line(reading.gap)[:200]}){at}")

    def warn(self, kind: str, location: str) -> None:
        """Count a warning. kind: a key of WARNINGS."""
        self.warnings.setdefault(kind, _CountWithFirst()).add(location)

    def compare(self, location: str, correct: bool | None, published: bool | None, lenient: bool | None) -> None:
        """Count an answer if the rules differ on it. correct: whether it is right by the chosen rule."""
        if published and not correct:
            self.only["published"].add(location)
        if lenient and not correct:
            self.only["lenient"].add(location)
        if correct and not (published and lenient):
            self.only["chosen"].add(location)

    @property
    def num_excluded(self) -> int:
        return sum(counted.count for reason, counted in self.reasons.items() if reason in EXCLUDED)

    def lines(self) -> Iterator[str]:
        """Yield lines on excluded responses, on those without an answer, on differing rules, and on each warning."""
        for is_excluded, words in ((True, "left out of all rates"), (False, "no answer that can be read")):
            counts = {r: self.reasons[r] for r in REASONS if r in self.reasons and (r in EXCLUDED) == is_excluded}
            total = sum(counted.count for counted in counts.values())
            if not total:
                continue
            subject = "1 response" if total == 1 else f"{total} responses"
            verb = ("is" if total == 1 else "are") if is_excluded else ("holds" if total == 1 else "hold")
            reasons = ", ".join(f"{reason} {counted.count}" for reason, counted in counts.items())
            rated = f"; {plural(self.num_rated, 'responses')} in the rates" if is_excluded else ""
            yield f"{subject} {verb} {words} {self._first_unanswered[is_excluded]}: {reasons}{rated}"
        if self._partial.count:
            subject = "1 response holds" if self._partial.count == 1 else f"{self._partial.count} responses hold"
            yield f"{subject} an answer that is incomplete or misplaced {self._partial.first}"
        if differing := {name: counted for name, counted in self.only.items() if counted.count}:
            names = {"published": "the published rule", "chosen": "the chosen rule", "lenient": "the lenient reader"}
            rules = "; ".join(f"{names[name]} {c.count} (first: {c.first})" for name, c in differing.items())
            yield f"answers that are right by one rule and not by all: {rules}"
        if self.nameless.count and "no_model" not in self.warnings:  # that warning already states the remedy
            subject = (
                "1 failed request names" if self.nameless.count == 1 else f"{self.nameless.count} failed requests name"
            )
            yield (
                f"{subject} no model, and the file names none or several: under `(no model)` (first: "
                f"{self.nameless.first}); --model NAME names it, with a file for each model"
            )
        for kind, counted in self.warnings.items():
            yield f"{kind} {counted.count} (first: {counted.first}): {WARNINGS[kind]}"

    def as_json(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        return {
            "rated": self.num_rated,
            "reasons": {reason: self.reasons[reason].count for reason in REASONS if reason in self.reasons},
            "warnings": {kind: counted.count for kind, counted in self.warnings.items()},
        }


WARNINGS = {
    "cut_off_read": "a limit stopped the response behind its answer, which counts",
    "tool_call_read": "the answer stands in the arguments of a tool call",
    "unknown_stop": "the stop reason is none of the known ones and not used",
    "filters": "lines that differ in `filter` alone are one",
    "no_model": "the lines name no model; --model NAME names it",
    "model_overridden": "--model stands in place of the line's model",
    "item_from_prompt": "the item was found by its prompt",
    "duplicate": "the same response again, counted once",
    "equal_lines": "the whole line stands there again, and is a sample of its own; --duplicates drop counts it once",
    "prompt_removed": "the response repeats the prompt, which was removed",
    "skipped_line": "the line is left out",
    "partial_last_line": "the last line breaks off, as of a run that was killed or still writes",
    "other_pool": "the line states the digest of another pool, whose items may differ under equal ids; give that pool",
    "unknown_item": "the line names no item of the pools",
    "second_sample": "the sample number is stated twice, with different answers",
}


# --- Lines with an episode: steps as in records, a benchmark's trace format, or the system's replies
STEPS_FIELD = "steps"
REPLIES_FIELD = "replies"  # texts or objects, one per turn
DIALOGUE_FIELD = "dialogue"  # options of the dialogue in which the replies were given
ITEM_FIELD, AGENT_FIELD = "item", "agent"  # fields of a trace


def is_trace(line: Mapping[str, Any]) -> bool:
    """Return whether a line is in a benchmark's own trace format."""
    return isinstance(line.get(ITEM_FIELD), str) and isinstance(line.get(AGENT_FIELD), str) and STEPS_FIELD in line


def stated_template(line: Mapping[str, Any]) -> str:
    """Return the digest of the prompt's template that a line of `prompts --template` states; empty for none."""
    template = line.get("template")
    if isinstance(template, str) and re.fullmatch(r"[0-9a-f]{64}", template):
        return template
    return ""  # none, or a field of another tool
