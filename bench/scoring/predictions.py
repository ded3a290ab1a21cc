"""Prediction files: JSON lines or a log of Inspect in, checked, one at a time.

A prediction names its item, usually its model, and gives an answer, in one of the fields that
`bench.scoring.input.answer_fields` knows. Several answers of one model to one item are samples, numbered in the order
of the file unless it numbers them itself.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.bench.pools.ids import PublicIds
from calibrant.bench.scoring.input.answer_fields import (
    ID_FIELDS,
    SAMPLE_FIELDS,
    Answer,
    AnswerField,
    FieldNames,
    Recognised,
    answer_field,
    keys_of,
    model_field,
    named_value,
)
from calibrant.bench.scoring.input.json_lines import json_object, shown_name
from calibrant.bench.scoring.input.prediction_file import PredictionFile
from calibrant.bench.scoring.input.unread import UnreadAnswers
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.parse_limits import TooLargeError


class Prediction(NamedTuple):
    """One answer of a model to an item.

    pool: digest of the pool that has the item; sample: number among the model's answers to it
    seconds: what it took, if the line says so
    steps: of an episode, all that was done in it, the submission too; problem: why nothing was submitted
    unread: why the response has no answer; gap: what was submitted without, and why
    """

    pool: str
    instance: str
    model: str | None
    sample: int
    answer: Answer
    seconds: float | None = None
    steps: tuple[Step[Any], ...] = ()
    problem: str = ""
    unread: str = ""
    gap: str = ""


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


class Predictions:
    """The predictions of a file, checked: `CalibrantError` names file and line of the first that cannot be scored.

    skip_unknown: pass over items that no pool has (their number is `num_skipped`) instead of refusing
    hint: what the refusal of such an item ends with
    recognised: what was found where, so far; num_unread: of how many episodes nothing was submitted
    unread: the responses without an answer, as far as they are read here
    """

    def __init__(
        self,
        path: Path,
        pools: Sequence[PoolItems],
        *,
        skip_unknown: bool = False,
        hint: str = "",
        fields: FieldNames | None = None,
    ) -> None:
        self._path = path
        self._file = shown_name(path)
        self._pools = pools
        self._skip_unknown = skip_unknown
        self._hint = hint
        self._fields = fields or FieldNames()
        self.num_skipped = 0
        self.num_unread = 0
        self.unread = UnreadAnswers()
        self.recognised = Recognised()

    def __iter__(self) -> Iterator[Prediction]:
        samples = Samples()
        for where, line in self._objects():
            self.recognised.lines += 1
            try:
                if line is None:
                    raise CalibrantError("not a JSON object in UTF-8")
                yield from self._of_line(line, samples)
            except CalibrantError as error:
                raise CalibrantError(f"{self._file}: {where}: {error}") from None
        if self.recognised.lines == self.num_skipped:
            what = f"none of its {self.num_skipped} lines is about an item of these pools" if self.num_skipped else ""
            raise CalibrantError(f"{self._file}: {what or 'no predictions in it'}")

    def _objects(self) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """Return where each line stands, and what it says; None for what is no object."""
        file = PredictionFile(self._path)
        yield from file.objects()
        self.recognised.failed = file.num_failed

    def _of_line(self, line: Mapping[str, Any], samples: Samples) -> Iterator[Prediction]:
        name, instance = self._instance(line)
        model = self._model(line)
        pool = self._pool(line, instance)
        if pool is None:
            self.num_skipped += 1
            return
        instance = pool.item_id(instance) or instance
        pool.check_prompt(instance, line)
        found = self._answers(line)
        self.recognised.found["item"][name] += 1
        self.recognised.answers[found.name, found.form] += 1
        seconds = _seconds(line)
        explicit = _sample(line)
        if explicit is not None and len(found.answers) > 1:
            raise CalibrantError(f"sample {explicit}, but {len(found.answers)} answers")
        for answer in found.answers:
            sample = samples.place((pool.digest, instance, model), explicit)
            yield Prediction(pool.digest, instance, model, sample, answer, seconds)

    def _answers(self, line: Mapping[str, Any]) -> AnswerField:
        return answer_field(line, self._fields.text)

    def _instance(self, line: Mapping[str, Any]) -> tuple[str, str]:
        """The field that names the item, and the item: of the usual fields the first that names one of the pools."""
        if self._fields.id:
            named = {self._fields.id: named_value(line, self._fields.id)}
        else:
            named = {name: line[name] for name in ID_FIELDS if name in line}
        texts = [(name, value) for name, value in named.items() if isinstance(value, str)]
        for name, value in texts:
            if any(pool.item_id(value) is not None for pool in self._pools):
                return name, value
        if texts:
            return texts[0]
        for name, value in named.items():
            raise CalibrantError(f"{name} is {short_repr(value)}, not a text")
        raise CalibrantError(f"it names no item; its keys are {keys_of(line)}; --id-field names the one that does")

    def _model(self, line: Mapping[str, Any]) -> str | None:
        name, model = self._fields.model or "", None
        if name:
            model = named_value(line, name)
        else:
            name, model = model_field(line)
        if not isinstance(model, str | None):
            raise CalibrantError(f"{name} is {short_repr(model)}, not a text")
        if model is not None:
            self.recognised.found["model"][name] += 1
        return model

    def _pool(self, line: Mapping[str, Any], instance: str) -> PoolItems | None:
        """The pool that has the item; where several have it, the one that the line names."""
        having = [pool for pool in self._pools if pool.item_id(instance) is not None]
        if len(having) > 1:
            named = [pool for pool in having if line.get("pool") in (*pool.names, pool.digest)]
            if len(named) != 1:
                names = ", ".join(pool.names[0] for pool in having)
                raise CalibrantError(
                    f"{len(having)} pools have {short_repr(instance)}: {names}; a field 'pool' names one"
                )
            return named[0]
        if not having and not self._skip_unknown:
            pools = ", ".join(pool.names[0] for pool in self._pools)
            lacking = "have" if len(self._pools) > 1 else "has"
            raise CalibrantError(f"{pools} {lacking} no instance {short_repr(instance)}{self._hint}")
        return having[0] if having else None


class PredictionLines(Predictions):
    """The predictions of lines that are at hand, as `Predictions` reads those of a file; blank lines are passed over.

    `CalibrantError` too for a line with the steps of an episode: a file of those is replayed by `calibrant score`.
    """

    def __init__(self, lines: Iterable[str | bytes], pool: PoolItems) -> None:
        super().__init__(Path("lines"), [pool])
        self._lines = lines

    def _objects(self) -> Iterator[tuple[str, dict[str, Any] | None]]:
        for number, line in enumerate(self._lines, 1):
            if not isinstance(line, str | bytes):
                raise CalibrantError(f"line {number} is {short_repr(type(line).__name__)}, neither text nor bytes")
            if line.strip():
                raw = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
                try:
                    read = json_object(raw)
                except TooLargeError as error:
                    raise CalibrantError(f"line {number}: {error}") from None
                yield f"line {number}", read

    def _of_line(self, line: Mapping[str, Any], samples: Samples) -> Iterator[Prediction]:
        if line.get("steps") is not None:
            raise CalibrantError("it has steps of an episode; `calibrant score` replays those")
        return super()._of_line(line, samples)


class Samples:
    """Numbers the answers of one model to one item."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str | None], int] = {}
        self._given: set[tuple[tuple[str, str, str | None], int]] = set()

    def place(self, key: tuple[str, str, str | None], explicit: int | None) -> int:
        if explicit is None:
            number = self._counts.get(key, 0)
            while (key, number) in self._given:
                number += 1
            self._counts[key] = number + 1
            return number
        if (key, explicit) in self._given or explicit < self._counts.get(key, 0):
            _, instance, model = key
            raise CalibrantError(f"a second sample {explicit} of model {short_repr(model)} for {short_repr(instance)}")
        self._given.add((key, explicit))
        return explicit


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
