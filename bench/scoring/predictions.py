"""Prediction files: checked predictions, read one at a time.

A prediction names its item and usually its model, and has an answer in one of the fields that bench.scoring.answers
recognises. Several answers of one model to one item are samples, numbered in the order of the file unless the lines
state sample numbers.

For pools of episodes a line may have `steps` as in records, or `replies`, or be a trace in the benchmark's own format
(`item`, `agent`, `steps`). Steps and traces are replayed, and every outcome that they state is checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from calibrant.bench.core.benchmark import PublicIds
from calibrant.bench.core.responses import EXCLUDED, Reading, Response
from calibrant.bench.core.scoring import ID_FIELDS, Prediction, refuse_entries, shown_id
from calibrant.bench.scoring.answers import (
    AGENT_FIELD,
    DEFAULT_RULES,
    ITEM_FIELD,
    REPLIES_FIELD,
    STEPS_FIELD,
    AnswerField,
    FieldNames,
    PromptIndex,
    Recognised,
    ResponseCounts,
    answer_field,
    capital_fields,
    inner_object,
    is_trace,
    keys_of,
    model_field,
    named_value,
    prompt_texts,
    stated_sample,
    stated_seconds,
    stated_template,
)
from calibrant.bench.scoring.files import BROKEN, NO_OBJECT, FileEntry, PredictionFile, prediction_object, shown_name
from calibrant.bench.terminal import HintedError, without_options
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.text import plural

# --- Sample numbers: indices of the answers of one model to one item --------------------------------------------------
SampleKey: TypeAlias = tuple[str, str, str | None]  # digest of the pool, item, model


class LineError(CalibrantError):
    """An error of one line. kind: key of WARNINGS under which the line is counted if it is skipped."""

    def __init__(self, reason: str, kind: str) -> None:
        super().__init__(reason)
        self.kind = kind


class SampleNumbers:
    """Assignment of sample numbers in the order of the file, unless lines state them; recognises duplicates."""

    def __init__(self) -> None:
        self._counts: dict[SampleKey, int] = {}
        self._stated: dict[tuple[SampleKey, int], int] = {}  # stated number -> digest of the answer
        self._ids: set[tuple[SampleKey, str]] = set()

    def is_known(self, key: SampleKey, response: Response, stated: int | None) -> bool:
        """Return whether a response repeats an earlier one: by its id, or by answer and stated sample number."""
        if response.id:
            if (key, response.id) in self._ids:
                return True
            self._ids.add((key, response.id))
        if stated is None or (digest := self._stated.get((key, stated))) is None:
            return False
        return digest == _digest(response)

    def number(self, key: SampleKey, stated: int | None, response: Response = Response()) -> int:  # noqa: B008  # frozen
        """Return the sample number of the next answer; `LineError` for a stated number that is taken."""
        if stated is None:
            number = self._counts.get(key, 0)
            while (key, number) in self._stated:
                number += 1
            self._counts[key] = number + 1
            return number
        if (key, stated) in self._stated or stated < self._counts.get(key, 0):
            _, instance, model = key
            reason = f"a second sample {stated} of model {short_repr(model)} for {short_repr(instance)}"
            raise LineError(reason, "second_sample")
        self._stated[key, stated] = _digest(response)
        return stated


def _digest(response: Response) -> int:
    parts = repr((response.answer, response.calls)) if response.answer or response.calls else ""
    return hash((response.text, parts, response.reason))


# --- The items of a pool, by the pool's or public ids, with the digests of their prompts ------------------------------
PROMPT_DIGEST = "promptDigest"  # field of a line: `prompt_digest` of the prompt that it answers


def prompt_digest(prompt: str) -> str:
    """Return the SHA-256 of a prompt in hexadecimal."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()


class PoolItems(NamedTuple):
    """The items of one pool that predictions may be about.

    digest: digest of the pool file; names: values of a line's field `pool` that name it; instances: ids of the items
    public: the public ids of the items, None if they have none
    prompt: the pool's id of an item -> its prompt, as `calibrant prompts` writes it; None if there are no prompts
    """

    digest: str
    names: tuple[str, ...]
    instances: Collection[str]
    public: PublicIds | None = None
    prompt: Callable[[str], str] | None = None

    def item_id(self, name: str) -> str | None:
        """Return the pool's id of an item by its own or public id; None if the pool has no such item."""
        if name in self.instances:
            return name
        return None if self.public is None else self.public.item_id(name)

    def check_prompt(self, item_id: str, line: Mapping[str, Any]) -> None:
        """Raise `CalibrantError` for a line that answers another prompt: items of two pools may have equal ids."""
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
    """Reader of the responses of predictions.

    items: items of the pools that predictions may be about; has_episodes: whether lines may have steps
    has_traces: whether lines may be traces; has_replies: whether lines may have replies of a system, one per turn
    """

    has_episodes: bool
    has_traces: bool
    has_replies: bool

    @property
    def items(self) -> Sequence[PoolItems]: ...

    def read_answer(self, prediction: Prediction, line: Mapping[str, Any]) -> Prediction:
        """Return the prediction with its answer; without one, with an empty answer and the reason."""


MAX_SKIPPED_SHOWN = 20  # skipped lines that are listed


class Predictions:
    """Iterator of the checked predictions of a file; `CalibrantError` names file and line of the first bad one.

    reader: reads answers and replays steps (`CalibrantError` names the first step with a false outcome)
    skip_unknown: whether lines about items that no pool has are skipped and counted in `num_unknown`; else they raise
    hint: returns the end of the message on such a line; with_excluded: whether responses in no rate are yielded too
    recognised: fields recognised so far; num_unread: number of predictions without a submitted answer
    counts: numbers of responses by reason and by warning; skipped: (number, reason) of skipped lines
    """

    def __init__(
        self,
        path: Path,
        reader: AnswerReader,
        *,
        skip_unknown: bool = False,
        hint: Callable[[], str] = str,
        fields: FieldNames | None = None,
        with_excluded: bool = False,
    ) -> None:
        self._source = PredictionFile(path, has_replies=reader.has_replies)
        self._file = shown_name(path)
        self._reader = reader
        self._pools = reader.items
        self._skip_unknown = skip_unknown
        self._hint = hint
        self._fields = fields or FieldNames()
        self._rules = self._fields.rules
        self._with_excluded = with_excluded
        self._has_options = fields is not None  # messages suggest options only to commands that have them, as `score`
        self._prompts: PromptIndex | None = None
        self._known_prompts: dict[tuple[str, str], str] = {}
        self._known_holders: dict[str, Sequence[PoolItems]] = {}  # id of an item -> pools that have it
        self._only_model: tuple[str | None] | None = None  # result of `_sole_model`; None until it is computed
        self._line_digests: set[int] = set()
        self._unfiltered_digests: set[int] = set()  # digests of lm-eval lines without their filter
        self._where = ""
        self.num_unknown = 0
        self.num_unread = 0
        self.num_scored = 0
        self.counts = ResponseCounts()
        self.skipped: list[tuple[int, str]] = []
        self.recognised = Recognised()

    def __iter__(self) -> Iterator[Prediction]:
        samples = SampleNumbers()
        num_rated = 0
        for entry in self._entries():
            self.recognised.lines += 1
            self._where = entry.where
            try:
                if entry.line is None:
                    raise LineError(entry.problem, entry.kind)
                for prediction in self._read_line(entry.line, samples, entry):
                    is_excluded = prediction.sample is None
                    num_rated += not is_excluded
                    self.num_scored += 1
                    if not is_excluded or self._with_excluded:
                        yield prediction
                    else:
                        reading = prediction.reading or Reading(None, prediction.response.stated_reason)
                        self.counts.add(prediction.place, reading)
            except CalibrantError as error:
                self._refuse(entry, error)
        if self.skipped and len(self.skipped) == self.recognised.lines:
            raise CalibrantError(
                f"{self._file}: all {len(self.skipped)} lines are left out; first: {self.skipped[0][1]}"
            )
        if self.recognised.lines == self.num_unknown:
            none = f"none of its {self.num_unknown} lines is about an item of these pools"
            raise CalibrantError(f"{self._file}: {none if self.num_unknown else 'no predictions in it'}")
        if not num_rated and self.num_scored:
            raise NothingRunError(self._file, self.counts)

    def skipped_lines(self, verb: str = "scored") -> Iterator[str]:
        """Yield a text for each of the first skipped lines, then one with the numbers; nothing if none was skipped."""
        for number, problem in self.skipped[:MAX_SKIPPED_SHOWN]:
            yield f"skipped line {number}: {in_one_line(problem)}"
        if self.skipped:
            more = len(self.skipped) - MAX_SKIPPED_SHOWN
            listed = f" ({more} more are not listed)" if more > 0 else ""
            read, answers = plural(self.recognised.lines, "lines"), plural(self.num_scored, "answers")
            yield f"{read} read, {len(self.skipped)} skipped{listed}, {answers} {verb}"

    def _refuse(self, entry: FileEntry, error: CalibrantError) -> None:
        """Raise the error of a line, or skip the line."""
        kind = getattr(error, "kind", BROKEN)
        self.counts.warn(kind, entry.where)
        if self._rules.on_error == "skip":
            self.skipped.append((entry.number, str(error)))
            return
        message = f"{self._file}: {entry.where}: {error if self._has_options else without_options(error)}"
        if num_good := self.recognised.lines - 1:
            message += f"; {'the line before it is' if num_good == 1 else f'the {num_good} before it are'} good"
        may_skip = self._rules == DEFAULT_RULES and self._with_excluded and self._has_options
        option = error.option if isinstance(error, HintedError) and self._has_options else ()
        if option and self.recognised.answers:  # lines before it were read without this option
            option = ("--on-error", "skip") if may_skip else ()
        message += "; --on-error skip leaves such lines out" if may_skip else ""
        raise HintedError(message, option=option) from None

    def _entries(self) -> Iterator[FileEntry]:
        """Yield the lines of the file."""
        yield from self._source.entries()

    def _read_line(self, line: Mapping[str, Any], samples: SampleNumbers, entry: FileEntry) -> Iterator[Prediction]:
        field, fault = AnswerField("", "", ()), None
        try:
            field = self._answer_field(line)
        except CalibrantError as error:
            fault = error
        pool_and_item = self._locate(line, field)  # before `fault` is raised: a line about no item needs no answer
        if pool_and_item is None:
            self.num_unknown += 1
            return
        pool, instance, name = pool_and_item
        place = f"{entry.where}, {shown_id(instance)}"
        notes: list[str] = []
        pool.check_prompt(instance, line)
        if line.get("pool_digest", line.get("poolDigest", pool.digest)) != pool.digest:
            notes.append("other_pool")
        if name == _PROMPT:
            notes.append("item_from_prompt")
        model = self._line_model(line, field, notes)
        if fault is not None:
            raise fault
        if not self.recognised.answers:
            self.recognised.unread = self._source.list_unread(line, field.form, (name, field.name, self._fields.model))
        self.recognised.fields["item"][name] += 1
        self.recognised.answers[field.name, field.form] += 1
        seconds = stated_seconds(line)
        stated = stated_sample(line)
        is_repeated = self._is_repeated(line, field, entry, place, notes)
        for kind in notes:
            self.counts.warn(kind, place)
        if is_repeated:
            return
        if line.get("sample") is None and len(field.responses) == 1 and field.responses[0].sample is not None:
            stated = field.responses[0].sample  # from an epoch of Inspect, which counts from 1
        if stated is not None and len(field.responses) > 1:
            raise CalibrantError(f"sample {stated}, but {plural(len(field.responses), 'answers')}")
        key = (pool.digest, instance, model)
        for stated_response in field.responses:
            response = self._without_prompt(stated_response, field, pool, instance, place)
            if notes:  # warnings on the line go to its first response alone
                response, notes = response._replace(notes=(*response.notes, *notes)), []
            sample: int | None = None
            if response.stated_reason not in EXCLUDED:
                if samples.is_known(key, response, stated):
                    self.counts.warn("duplicate", place)
                    continue
                sample = samples.number(key, stated, response)
            answer = (response.text or "") if response.answer is None else dict(response.answer)
            prediction = Prediction(
                pool.digest,
                instance,
                model,
                sample,
                answer,
                seconds,
                response=response,
                where=entry.where,
                template=stated_template(line),
            )
            yield self._read_prediction(prediction, line)

    def _is_repeated(
        self, line: Mapping[str, Any], field: AnswerField, entry: FileEntry, place: str, notes: list[str]
    ) -> bool:
        """Return whether a line repeats an earlier one and is not counted."""
        if field.name == "lm-eval samples" and "filter" in line:
            shared_fields = {
                key: value for key, value in line.items() if key in ("doc_id", "doc", "doc_hash", "resps", "arguments")
            }
            digest = hash(json.dumps(shared_fields, sort_keys=True, default=str))
            if digest in self._unfiltered_digests:
                self.counts.warn("filters", place)
                return True
            self._unfiltered_digests.add(digest)
        if not entry.digest or stated_sample(line) is not None:
            return False
        if any(response.id or response.sample is not None for response in field.responses):
            return False
        if entry.digest not in self._line_digests:
            self._line_digests.add(entry.digest)
        elif self._rules.duplicates == "drop":
            self.counts.warn("duplicate", place)
            return True
        else:
            notes.append("equal_lines")
        return False

    def _without_prompt(
        self, response: Response, field: AnswerField, pool: PoolItems, instance: str, place: str
    ) -> Response:
        """Remove the prompt from the text of a response that repeats it."""
        text = response.text
        may_repeat = field.parsed is not None and field.parsed.may_repeat
        # prompts begin with a letter, so a text that begins with a bracket or mark does not repeat one
        if not text or pool.prompt is None or not (may_repeat or text[:1].isalpha()):
            return response
        key = pool.digest, instance
        prompt = self._known_prompts.get(key)
        if prompt is None:
            prompt = self._known_prompts[key] = pool.prompt(instance)
        start = text.find(prompt) if may_repeat else 0 if text.startswith(prompt) else -1
        if start < 0 or not prompt:
            return response
        self.counts.warn("prompt_removed", place)
        return response._replace(text=text[start + len(prompt) :], notes=("prompt_removed",))

    def _read_prediction(self, prediction: Prediction, line: Mapping[str, Any]) -> Prediction:
        checked = self._reader.read_answer(prediction, line)
        self.num_unread += bool(checked.problem) and checked.reading is not None and not checked.reading.is_excluded
        return checked

    def _locate(self, line: Mapping[str, Any], field: AnswerField) -> tuple[PoolItems, str, str] | None:
        """Return (pool, item, name of the field that names it) of a line; None for a line to skip."""
        objects = field.parsed.objects if field.parsed is not None else ()
        has_fixed_field = bool(self._fields.id) or self._is_trace(line)
        named = None if has_fixed_field else self._named_item((line, *objects)) or self._prompted_item(line, field)
        name, instance = named or self._instance(line)
        pool = self._pool(line, instance)
        return None if pool is None else (pool, pool.item_id(instance) or instance, name)

    def _named_item(self, objects: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
        """Return the first (field, value) that names an item of the pools, in the objects, then in inner objects."""
        for holder in objects:
            for name in _ITEM_FIELDS:
                value = holder.get(name)
                if isinstance(value, str) and self._holders(value):
                    return name, value
        for holder in objects:
            for outer in _INNER_FIELDS:
                inner = inner_object(holder.get(outer))
                for name in _ITEM_FIELDS if inner else ():
                    value = inner.get(name)
                    if isinstance(value, str) and self._holders(value):
                        return f"{outer}.{name}", value
        return None

    def _holders(self, name: str) -> Sequence[PoolItems]:
        """Return the pools that have an item of this id."""
        holders = self._known_holders.get(name)
        if holders is None:
            holders = tuple(pool for pool in self._pools if pool.item_id(name) is not None)
            if holders:  # names of no item are not cached, because they may be many
                self._known_holders[name] = holders
        return holders

    def _prompted_item(self, line: Mapping[str, Any], field: AnswerField) -> tuple[str, str] | None:
        """Return the one item whose prompt the line has; None if there is none, `LineError` if there are several."""
        prompts = field.parsed.prompts if field.parsed is not None else ()
        texts = prompt_texts((line, *prompts))
        answers = [response.text for response in field.responses if response.text]
        if not texts and not (answers and not any(name in line for name in _ITEM_FIELDS)):
            return None
        if self._prompts is None:
            self._prompts = PromptIndex(self._pools)
        items = self._prompts.find(texts) or self._prompts.find(answers)
        if len(items) > 1:
            raise LineError(
                f"its prompt is that of {len(items)} items; a field such as instanceId has to name one",
                "unknown_item",
            )
        return next(((_PROMPT, instance) for _, instance in items), None)

    def _is_trace(self, line: Mapping[str, Any]) -> bool:
        return self._reader.has_traces and is_trace(line)

    def _answer_field(self, line: Mapping[str, Any]) -> AnswerField:
        if self._is_trace(line):
            return AnswerField(STEPS_FIELD, "trace", (Response(),))
        try:
            return answer_field(line, self._fields.text)
        except CalibrantError:
            if self._reader.has_replies and line.get(REPLIES_FIELD) is not None and not self._fields.text:
                return AnswerField(REPLIES_FIELD, "dialogue", (Response(),))
            if not self._reader.has_episodes or line.get(STEPS_FIELD) is None or self._fields.text:
                raise
            return AnswerField(STEPS_FIELD, "transcript", (Response(),))

    def _instance(self, line: Mapping[str, Any]) -> tuple[str, str]:
        """Return (field, value) of the first usual field that names an item of the pools, else of the first one."""
        if self._is_trace(line) and not self._fields.id:
            return ITEM_FIELD, str(line[ITEM_FIELD])
        if self._fields.id:
            ids = {self._fields.id: named_value(line, self._fields.id)}
        else:
            ids = {name: line[name] for name in ID_FIELDS if name in line}
        texts = [(name, value) for name, value in ids.items() if isinstance(value, str)]
        if texts:
            return next((text for text in texts if self._holders(text[1])), texts[0])
        for name, value in ids.items():
            raise CalibrantError(f"{name} is {short_repr(value)}, not a text")
        refuse_entries(line, lambda name: bool(self._holders(name)))
        prompted = ", and holds no prompt of the pools" if prompt_texts((line,)) else ""
        message = f"it names no item{prompted}; its keys are {keys_of(line)}; --id-field names the one that does"
        raise UnnamedItemError(message, option=self._id_option(line))

    def _id_option(self, line: Mapping[str, Any]) -> tuple[str, ...]:
        """Return options that name the fields of a line for its item and, if needed, for its model and answer.

        () if no field names an item of the pools.
        """
        inner = {
            f"{key}.{name}": text for key, part in line.items() if isinstance(part, dict) for name, text in part.items()
        }
        for name, text in (dict(line) | inner).items():
            if isinstance(text, str) and self._holders(text):
                return "--id-field", name, *chain.from_iterable(capital_fields(line).items())
        return ()

    def _line_model(self, line: Mapping[str, Any], field: AnswerField, notes: list[str]) -> str | None:
        """Return the model of a line; a failed request that names none is assigned to the file's only model."""
        model = self._model(line, field)
        if self._rules.model is not None:
            if model is not None and model != self._rules.model:
                notes.append("model_overridden")
            return self._rules.model
        if model is not None:
            return model
        if all(response.stated_reason in EXCLUDED or response.reason for response in field.responses):
            return self._sole_model()
        notes.append("no_model")
        return None

    def _model(self, line: Mapping[str, Any], field: AnswerField) -> str | None:
        name, model = self._fields.model or "", None
        if self._is_trace(line) and not name:
            name, model = AGENT_FIELD, line[AGENT_FIELD]
        elif name:
            model = named_value(line, name)
        else:
            name, model = model_field(line)
            if model is None and field.parsed is not None:
                name, model = "model", field.parsed.model
        if not isinstance(model, str | None):
            raise CalibrantError(f"{name} is {short_repr(model)}, not a text")
        if model is not None:
            self.recognised.fields["model"][name] += 1
        return model or None

    def _sole_model(self) -> str | None:
        """Return the only model that the lines of the file name; None if there are several or none."""
        if self._only_model is None:
            models: set[str] = set()
            if self._source.path.is_file():
                for entry in self._source.entries():
                    try:
                        model = None if entry.line is None else self._model(entry.line, self._answer_field(entry.line))
                    except CalibrantError:
                        continue
                    models.update((model,) if model else ())
            self._only_model = (next(iter(models)) if len(models) == 1 else None,)
        return self._only_model[0]

    def _pool(self, line: Mapping[str, Any], instance: str) -> PoolItems | None:
        """Return the pool that has the item; if several have it, the one that the line names. None: skip the line."""
        holders = self._holders(instance)
        if len(holders) > 1:
            matching = [pool for pool in holders if line.get("pool") in (*pool.names, pool.digest)]
            if len(matching) != 1:
                names = ", ".join(pool.names[0] for pool in holders)
                raise CalibrantError(
                    f"{len(holders)} pools have {short_repr(instance)}: {names}; a field 'pool' names one"
                )
            return matching[0]
        if not holders and not self._skip_unknown:
            pools = ", ".join(pool.names[0] for pool in self._pools)
            lacking = "have" if len(self._pools) > 1 else "has"
            message = f"{pools} {lacking} no instance {short_repr(instance)}"
            if option := self._id_option(line):
                raise UnnamedItemError(f"{message}; its field {short_repr(option[1])} names one", option=option)
            raise LineError(f"{message}{self._hint()}", "unknown_item")
        return holders[0] if holders else None


_PROMPT = "prompt"  # name of the field in counts if the item was found by its prompt
_ITEM_FIELDS = (*ID_FIELDS, "key")
_INNER_FIELDS = ("doc", "instance", "metadata", "info", "data", "input", "item", "record")


class UnnamedItemError(HintedError):
    """A line names no item of the pools. kind: kind of warning under which it is counted."""

    kind = "unknown_item"


class NothingRunError(CalibrantError):
    """Every response of a file is excluded from the rates. counts: counts of its responses by reason."""

    def __init__(self, file: str, counts: ResponseCounts) -> None:
        reasons = ", ".join(f"{reason} {count}" for reason, count in counts.as_json()["reasons"].items())
        super().__init__(f"{file}: nothing was run: {reasons}")


class _UnreadAnswers:
    """Reader that leaves answers unread."""

    has_episodes = has_traces = has_replies = False

    def __init__(self, pool: PoolItems) -> None:
        self.items = [pool]

    def read_answer(self, prediction: Prediction, line: Mapping[str, Any]) -> Prediction:
        return prediction


class PredictionLines(Predictions):
    """The predictions of lines in memory, read as those of a file; blank lines are skipped.

    `CalibrantError` also for a line with the steps of an episode, which only `calibrant score` replays.
    """

    def __init__(self, lines: Iterable[str | bytes], pool: PoolItems) -> None:
        super().__init__(Path("lines"), _UnreadAnswers(pool))
        self._lines = lines

    def _entries(self) -> Iterator[FileEntry]:
        for number, line in enumerate(self._lines, 1):
            if not isinstance(line, str | bytes):
                raise CalibrantError(f"line {number} is {short_repr(type(line).__name__)}, neither text nor bytes")
            if line.strip():
                raw = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
                try:
                    fields = prediction_object(raw)
                except CalibrantError as error:
                    raise CalibrantError(f"line {number}: {error}") from None
                problem = "" if fields is not None else NO_OBJECT
                yield FileEntry(f"line {number}", number, fields, problem)

    def _read_line(self, line: Mapping[str, Any], samples: SampleNumbers, entry: FileEntry) -> Iterator[Prediction]:
        if line.get("steps") is not None:
            raise CalibrantError("it has steps of an episode; `calibrant score` replays those")
        return super()._read_line(line, samples, entry)
