"""Prediction files: JSON lines or a log of Inspect in, checked, one at a time.

A prediction names its item, usually its model, and gives an answer, in one of the fields that
`bench.scoring.answers` knows. Several answers of one model to one item are samples, numbered in the order
of the file unless it numbers them itself.

On pools of episodes a line may have `steps`, as records have them, or `replies`, or be a trace in the benchmark's own
format (`item`, `agent`, `steps`), in which everything stated has to be true.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from calibrant.bench.core.scoring import ID_FIELDS, Prediction
from calibrant.bench.scoring.answers import (
    AGENT_FIELD,
    ITEM_FIELD,
    REPLIES_FIELD,
    SAMPLE_FIELDS,
    STEPS_FIELD,
    AnswerField,
    FieldNames,
    Recognised,
    UnreadAnswers,
    answer_field,
    is_trace,
    keys_of,
    model_field,
    named_value,
)
from calibrant.bench.scoring.files import PredictionFile, prediction_object, shown_name
from calibrant.bench.scoring.ids import PublicIds
from calibrant.bench.terminal import HintedError
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.text import plural

# --- Numbers of the answers of one model to one item ------------------------------------------------------------------
SampleKey: TypeAlias = tuple[str, str, str | None]  # digest of the pool, item, model


class SampleNumbers:
    """Numbers answers in the order of the file, unless a line states its own number."""

    def __init__(self) -> None:
        self._counts: dict[SampleKey, int] = {}
        self._stated: set[tuple[SampleKey, int]] = set()

    def number(self, key: SampleKey, stated: int | None) -> int:
        """Return the number of the next answer; `CalibrantError` for one that was used."""
        if stated is None:
            number = self._counts.get(key, 0)
            while (key, number) in self._stated:
                number += 1
            self._counts[key] = number + 1
            return number
        if (key, stated) in self._stated or stated < self._counts.get(key, 0):
            _, instance, model = key
            raise CalibrantError(f"a second sample {stated} of model {short_repr(model)} for {short_repr(instance)}")
        self._stated.add((key, stated))
        return stated


# --- The items of a pool that predictions may be about, by either id, with the digests of their prompts ---------------
PROMPT_DIGEST = "promptDigest"  # of a line: `prompt_digest` of the prompt that it answers


def prompt_digest(prompt: str) -> str:
    """Return the SHA-256 of a prompt in hexadecimal."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()


class PoolItems(NamedTuple):
    """The items of one pool that predictions may be about.

    names: what a line's `pool` may call it; public: the public ids of its items
    prompt: from the pool's id of an item to its prompt, as `calibrant prompts` writes it
    """

    digest: str
    names: tuple[str, ...]
    instances: Collection[str]
    public: PublicIds | None = None
    prompt: Callable[[str], str] | None = None

    def item_id(self, name: str) -> str | None:
        """Return the pool's id of an item by either id; None if it has no such item."""
        if name in self.instances:
            return name
        return None if self.public is None else self.public.item_id(name)

    def check_prompt(self, item_id: str, line: Mapping[str, Any]) -> None:
        """Refuse a line that was made from another prompt: ids may be equal where items are not."""
        stated = line.get(PROMPT_DIGEST)
        if stated is None or self.prompt is None:
            return
        digest = prompt_digest(self.prompt(item_id))
        if stated != digest:
            raise CalibrantError(
                f"{PROMPT_DIGEST} of {short_repr(item_id)} is {short_repr(stated)}, and that of the pool's item "
                f"{digest}: the line answers another item of that id; give the pool that it was made from"
            )


class AnswerReader(Protocol):
    """Turns the response of a prediction into an answer, before it is scored.

    items: the pools that predictions may be about; has_episodes: lines may have steps; has_traces: or be traces
    has_replies: or have replies of a system, one a turn
    """

    has_episodes: bool
    has_traces: bool
    has_replies: bool

    @property
    def items(self) -> Sequence[PoolItems]: ...

    def read_answer(self, prediction: Prediction, line: Mapping[str, Any]) -> Prediction:
        """Return the prediction of a line with its answer; if it has none, with a stand-in and the reason."""


class Predictions:
    """The predictions of a file, checked: `CalibrantError` names file and line of the first that cannot be scored.

    reader: also replays steps; `CalibrantError` names the first step that is false
    skip_unknown: pass over items that no pool has (their number is `num_skipped`) instead of refusing
    hint: the end of the refusal of such an item
    recognised: the fields that were recognised so far; num_unread: predictions for which nothing was submitted
    unread: the responses without an answer, as far as they are read here
    """

    def __init__(
        self,
        path: Path,
        reader: AnswerReader,
        *,
        skip_unknown: bool = False,
        hint: str = "",
        fields: FieldNames | None = None,
    ) -> None:
        self._path = path
        self._file = shown_name(path)
        self._reader = reader
        self._pools = reader.items
        self._skip_unknown = skip_unknown
        self._hint = hint
        self._fields = fields or FieldNames()
        self.num_skipped = 0
        self.num_unread = 0
        self.unread = UnreadAnswers()
        self.recognised = Recognised()

    def __iter__(self) -> Iterator[Prediction]:
        samples = SampleNumbers()
        for where, line in self._objects():
            self.recognised.lines += 1
            try:
                if line is None:
                    raise CalibrantError("not a JSON object in UTF-8")
                yield from self._of_line(line, samples)
            except CalibrantError as error:
                message = f"{self._file}: {where}: {error}"
                raise HintedError(message, option=error.option if isinstance(error, HintedError) else ()) from None
        if self.recognised.lines == self.num_skipped:
            problem = (
                f"none of its {self.num_skipped} lines is about an item of these pools" if self.num_skipped else ""
            )
            raise CalibrantError(f"{self._file}: {problem or 'no predictions in it'}")

    def _objects(self) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """Yield the position of each line, and its object; None for a line that is no object."""
        file = PredictionFile(self._path)
        yield from file.objects()
        self.recognised.failed = file.num_failed

    def _of_line(self, line: Mapping[str, Any], samples: SampleNumbers) -> Iterator[Prediction]:
        name, instance = self._instance(line)
        model = self._model(line)
        pool = self._pool(line, instance)
        if pool is None:
            self.num_skipped += 1
            return
        instance = pool.item_id(instance) or instance
        pool.check_prompt(instance, line)
        field = self._answer_field(line)
        self.recognised.fields["item"][name] += 1
        self.recognised.answers[field.name, field.form] += 1
        seconds = _seconds(line)
        stated = _sample(line)
        if stated is not None and len(field.answers) > 1:
            raise CalibrantError(f"sample {stated}, but {plural(len(field.answers), 'answers')}")
        for answer in field.answers:
            sample = samples.number((pool.digest, instance, model), stated)
            yield self._read_prediction(Prediction(pool.digest, instance, model, sample, answer, seconds), line)

    def _read_prediction(self, prediction: Prediction, line: Mapping[str, Any]) -> Prediction:
        checked = self._reader.read_answer(prediction, line)
        if checked is not prediction:
            self.num_unread += bool(checked.problem)
            self.unread.add(checked.instance, checked.unread)
            self.unread.add_partial(checked.instance, "" if checked.problem else checked.gap)
        return checked

    def _is_trace(self, line: Mapping[str, Any]) -> bool:
        return self._reader.has_traces and is_trace(line)

    def _answer_field(self, line: Mapping[str, Any]) -> AnswerField:
        if self._is_trace(line):
            return AnswerField(STEPS_FIELD, "trace", ("",))
        try:
            return answer_field(line, self._fields.text)
        except CalibrantError:
            if self._reader.has_replies and line.get(REPLIES_FIELD) is not None and not self._fields.text:
                return AnswerField(REPLIES_FIELD, "dialogue", ("",))
            if not self._reader.has_episodes or line.get(STEPS_FIELD) is None or self._fields.text:
                raise
            return AnswerField(STEPS_FIELD, "transcript", ("",))

    def _instance(self, line: Mapping[str, Any]) -> tuple[str, str]:
        """Return the field that names the item, and the item: the first usual field that names one of the pools."""
        if self._is_trace(line) and not self._fields.id:
            return ITEM_FIELD, str(line[ITEM_FIELD])
        if self._fields.id:
            ids = {self._fields.id: named_value(line, self._fields.id)}
        else:
            ids = {name: line[name] for name in ID_FIELDS if name in line}
        texts = [(name, value) for name, value in ids.items() if isinstance(value, str)]
        for name, value in texts:
            if any(pool.item_id(value) is not None for pool in self._pools):
                return name, value
        if texts:
            return texts[0]
        for name, value in ids.items():
            raise CalibrantError(f"{name} is {short_repr(value)}, not a text")
        message = f"it names no item; its keys are {keys_of(line)}; --id-field names the one that does"
        raise HintedError(message, option=self._id_option(line))

    def _id_option(self, line: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the option that names the field of a line in which an item of the pools is; empty if none is."""
        inner = {
            f"{key}.{name}": text for key, part in line.items() if isinstance(part, dict) for name, text in part.items()
        }
        for name, text in (dict(line) | inner).items():
            if isinstance(text, str) and any(pool.item_id(text) is not None for pool in self._pools):
                return ("--id-field", name)
        return ()

    def _model(self, line: Mapping[str, Any]) -> str | None:
        name, model = self._fields.model or "", None
        if self._is_trace(line) and not name:
            name, model = AGENT_FIELD, line[AGENT_FIELD]
        elif name:
            model = named_value(line, name)
        else:
            name, model = model_field(line)
        if not isinstance(model, str | None):
            raise CalibrantError(f"{name} is {short_repr(model)}, not a text")
        if model is not None:
            self.recognised.fields["model"][name] += 1
        return model

    def _pool(self, line: Mapping[str, Any], instance: str) -> PoolItems | None:
        """Return the pool that has the item; where several have it, the one that the line names."""
        having = [pool for pool in self._pools if pool.item_id(instance) is not None]
        if len(having) > 1:
            matching = [pool for pool in having if line.get("pool") in (*pool.names, pool.digest)]
            if len(matching) != 1:
                names = ", ".join(pool.names[0] for pool in having)
                raise CalibrantError(
                    f"{len(having)} pools have {short_repr(instance)}: {names}; a field 'pool' names one"
                )
            return matching[0]
        if not having and not self._skip_unknown:
            pools = ", ".join(pool.names[0] for pool in self._pools)
            lacking = "have" if len(self._pools) > 1 else "has"
            message = f"{pools} {lacking} no instance {short_repr(instance)}"
            if option := self._id_option(line):
                raise HintedError(f"{message}; its field {short_repr(option[1])} names one", option=option)
            raise CalibrantError(f"{message}{self._hint}")
        return having[0] if having else None


class _ItemsOnly:
    """Leaves responses as they are."""

    has_episodes = has_traces = has_replies = False

    def __init__(self, pool: PoolItems) -> None:
        self.items = [pool]

    def read_answer(self, prediction: Prediction, line: Mapping[str, Any]) -> Prediction:
        return prediction


class PredictionLines(Predictions):
    """The predictions of lines in memory, as `Predictions` reads those of a file; blank lines are passed over.

    `CalibrantError` too for a line with the steps of an episode: a file of those is replayed by `calibrant score`.
    """

    def __init__(self, lines: Iterable[str | bytes], pool: PoolItems) -> None:
        super().__init__(Path("lines"), _ItemsOnly(pool))
        self._lines = lines

    def _objects(self) -> Iterator[tuple[str, dict[str, Any] | None]]:
        for number, line in enumerate(self._lines, 1):
            if not isinstance(line, str | bytes):
                raise CalibrantError(f"line {number} is {short_repr(type(line).__name__)}, neither text nor bytes")
            if line.strip():
                raw = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
                try:
                    fields = prediction_object(raw)
                except CalibrantError as error:
                    raise CalibrantError(f"line {number}: {error}") from None
                yield f"line {number}", fields

    def _of_line(self, line: Mapping[str, Any], samples: SampleNumbers) -> Iterator[Prediction]:
        if line.get("steps") is not None:
            raise CalibrantError("it has steps of an episode; `calibrant score` replays those")
        return super()._of_line(line, samples)


def _sample(line: Mapping[str, Any]) -> int | None:
    for name in SAMPLE_FIELDS:
        if name in line and line[name] is not None:
            if type(line[name]) is not int or line[name] < 0:
                raise CalibrantError(f"{name} is {short_repr(line[name])}, not a number of a sample")
            return int(line[name])
    return None


def _seconds(line: Mapping[str, Any]) -> float | None:
    seconds = line.get("seconds")
    if seconds is None:
        return None
    if type(seconds) not in (int, float) or not math.isfinite(seconds) or seconds < 0:
        raise CalibrantError(f"seconds is {short_repr(seconds)}, not a duration")
    return float(seconds)
