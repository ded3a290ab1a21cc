"""Predictions, the interface of a benchmark that scores them, and evaluators, which score predictions for one item."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from calibrant.bench.core.responses import Answer, ReadAnswer, Reading, ReadingOptions, Response
from calibrant.dsl.episode import ActionError, Step
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.item import Item
from calibrant.dsl.json_objects import last_object, without_think_pairs
from calibrant.dsl.lenient_json import Shape

# --- Context of an answer: its system, item and pool, and how it was obtained -----------------------------------------
ID_FIELDS = ("instanceId", "custom_id", "id", "item_id", "task_id", "sample_id", "instance")  # may hold an item's id
NO_MODEL = "(no model)"  # system of predictions that name no model
PEOPLE = "human:"  # prefix of a participant's id in the name of a system
PEOPLE_SYSTEM = "people"  # system of a group of participants in tables
GROUP = "group"  # a participant's group: key in the options of records, and of a column of tables


def refuse_entries(line: Mapping[str, Any], is_item: Callable[[str], bool]) -> None:
    """Raise `CalibrantError` for one object that holds many answers, as a list or by item id.

    The message has a jq query that turns them into lines.
    """
    queries = ["to_entries[] | {id: .key, response: .value}"] if any(map(is_item, line)) else []
    for key, value in line.items():
        first = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else {}
        if any(isinstance(first.get(name), str) and is_item(first[name]) for name in ID_FIELDS):
            queries.append(f".{json.dumps(key)}[]")
    if queries:
        raise CalibrantError(f"one object around many answers; give each as a line: jq -c '{queries[0]}' FILE")


def participant_of(system: str) -> str:
    """Return the participant's id in a system's name; empty for a system that is no person."""
    return system.removeprefix(PEOPLE) if system.startswith(PEOPLE) else ""


class AnswerContext(NamedTuple):
    """All fields of a scored answer that tables read besides its score.

    config: options of a protocol; for a model {"template": ...} if the answer states one
    outcome: how a protocol's run ended (bench.core.metrics.OUTCOMES); None for models
    seconds: time of the answer, None if unknown; sample: its index among the system's answers to the item
    benchmark: name of the pool's benchmark
    reason: why a protocol has no result: the exhausted budget, or how far it came
    is_tied: whether the score is a mean over equally good answers (bench.core.verdict.MeanScore)
    is_chosen: whether it is the score of the answer that the tie rule chose; such scores have a table row of their own
    """

    system: str
    pool: str
    pool_digest: str
    pool_size: int
    instance: str
    setting: str
    stratum: str
    config: Mapping[str, Any] = {}
    outcome: str | None = None
    seconds: float | None = None
    sample: int = 0
    benchmark: str = ""
    reason: str = ""
    is_tied: bool = False
    is_chosen: bool = False

    @property
    def options(self) -> str:
        """The options as text, equal for equal options."""
        return options_text(self.config)


def options_text(config: Mapping[str, Any]) -> str:
    """Return the options of a protocol as text, equal for equal options in any order; never empty."""
    return repr(sorted(config.items())) if config else "[]"  # most have none


I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


class Prediction(NamedTuple):
    """One answer of a model to an item.

    pool: digest of the item's pool
    sample: index among the model's answers to the item; None if the response is excluded from rates
    answer: the scored answer; if `reading` is None, a text or object that is still to be read
    seconds: time that it took, if the line states it
    steps: all steps of an episode, with the submission; problem: why nothing was submitted
    gap: the part that a submitted answer lacks, and why
    dialogue: totals of the replies that caused the steps; None if the line has none
    response: the line's response; reading: result of reading it; where: file and line number, for messages
    num_stated: number of steps that the line states or its replies caused, before its answer is submitted
    template: digest of the prompt's template, as the line states it; empty for none
    """

    pool: str
    instance: str
    model: str | None
    sample: int | None
    answer: Answer
    seconds: float | None = None
    steps: tuple[Step[Any], ...] = ()
    problem: str = ""
    gap: str = ""
    dialogue: Mapping[str, Any] | None = None
    response: Response = Response()
    reading: Reading | None = None
    where: str = ""
    num_stated: int = 0
    template: str = ""

    @property
    def place(self) -> str:
        """Return line and item, for messages."""
        return f"{self.where}, {shown_id(self.instance)}" if self.where else shown_id(self.instance)


@lru_cache(maxsize=1 << 12)  # called for each prediction: many answers to few items
def shown_id(item_id: str) -> str:
    """Return an untrusted id in one short, printable line."""
    return short_repr(item_id)[1:-1]


class Scorable(ABC, Generic[I]):
    """Reading and scoring of answers to a benchmark's items.

    report_options: options of `calibrant score` with which a report scores predictions; None for the defaults
    """

    report_options: Any = None

    @property
    @abstractmethod
    def verdict_record(self) -> type[msgspec.Struct]:
        """The Struct of a line of `calibrant score`."""

    @abstractmethod
    def no_answer(self, item: I) -> dict[str, Any]:
        """Return a wrong answer of the item's schema, scored where a protocol gives none."""

    @abstractmethod
    def score(self, item: I, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Return the score of an answer, ready for JSON; the steps of an episode are replayed first."""

    def score_ties(
        self, item: I, answers: Sequence[Mapping[str, Any]], steps: Sequence[Step[Any]]
    ) -> list[dict[str, Any]]:
        """Return the scores of equally good answers; fields that only explain a single answer may be missing.

        steps: steps of an episode; each of the answers replaces their submission in turn
        """
        return [self.score(item, answer, steps) for answer in answers]

    @abstractmethod
    def extract(self, item: I, response: str | Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of the item's schema in a response; `ActionError` states why there is none."""

    def read_answer(self, item: I, response: str | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return (answer of `extract`, text on a part that could not be read; empty if all was read)."""
        return self.extract(item, response), ""

    @abstractmethod
    def shape(self, item: I) -> Shape:
        """Return the shape of an answer to an item, for the lenient reader."""

    def holds_answer(self, item: I, answer: Mapping[str, Any]) -> bool:
        """Return whether an object has the form of an answer, legal or not."""
        return True

    def read(self, item: I, response: str | Mapping[str, Any]) -> ReadAnswer:
        """Return the answer that the paper's rule reads in a text or object."""
        try:
            answer, gap = self.read_answer(item, response)
        except ActionError as error:
            return ReadAnswer(None, str(error))
        return ReadAnswer(answer, "" if self.holds_answer(item, answer) else gap or "another shape", gap)

    def read_published(self, item: I, text: str) -> ReadAnswer:
        """Return the answer that the published reader reads in a whole text; it removes only closed <think> pairs."""
        return self.read(item, without_think_pairs(text))

    def same_answer(self, item: I, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
        """Return whether two answers of the item's schema are equal in content."""
        return dict(first) == dict(second)


class Evaluator(Protocol):
    """Scorer of answers to one item; expensive to make, so cached (EvaluatorCache)."""

    def evaluate(self, prediction: Prediction, context: AnswerContext) -> Mapping[str, Any]:
        """Return the line of the verdict; a `LazyVerdict` if tables can count it before the line is made."""


class EvaluatorMaker(Protocol):
    """Maker of an item's evaluator, for benchmarks that read a response and score it in one step.

    options: Struct of options of `calibrant score`; reading: options of reading responses
    """

    def __call__(self, item: Any, options: Any, reading: ReadingOptions) -> Evaluator: ...


class Attribute(Protocol):
    """Function that returns the attribution of an answer: whether the evidence decided it (bench.core.attribution)."""

    def __call__(
        self, item: Any, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return the attribution as records have it; None where it is not known."""
        ...


def last_answer(response: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return the last outermost JSON object of a text, or the object itself; `ActionError` if there is none."""
    answer = last_object(response) if isinstance(response, str) else dict(response)
    if answer is None:
        raise ActionError("no JSON object in the response")
    return answer


def line_head(prediction: Prediction) -> dict[str, Any]:
    """Return the first fields of a line: item, model, sample and template."""
    head = {"instanceId": prediction.instance, "model": prediction.model, "sample": prediction.sample}
    return head | {"template": prediction.template} if prediction.template else head


def template_option(digest: str) -> dict[str, str]:
    """Return a prompt's template as an option, so that answers to two templates are two systems; {} for none."""
    return {"template": digest[:12]} if digest else {}


def line_place(context: AnswerContext) -> dict[str, Any]:
    """Return the fields of a line on the pool and group of its item."""
    return {
        "pool": context.pool,
        "poolDigest": context.pool_digest,
        "poolSize": context.pool_size,
        "setting": context.setting,
        "stratum": context.stratum,
    }


# --- Cache of expensive values of items: evaluators, judges, exact counts ---------------------------------------------
V = TypeVar("V")

MAX_EVALUATORS = 2_000  # entries; a pool of at most so many items has each evaluator made once


class EvaluatorCache(Generic[V]):
    """Least-recently-used cache of values by key.

    LRU: k samples of an item arrive one after another, as does a trainer's batch. The key of an item is the digest of
    its pool and its id or, without a pool, the id() of the object. A copy in another process starts empty, because the
    memory limits of that process would not count values made elsewhere.
    """

    def __init__(self, max_entries: int | None = None) -> None:
        self._max_entries = MAX_EVALUATORS if max_entries is None else max_entries
        self._entries: OrderedDict[Hashable, tuple[object, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[object, ...]:
        return EvaluatorCache, (self._max_entries,)

    def get(self, key: Hashable, make: Callable[[], V], owner: object = None) -> V:
        """Return the value of a key, made if it is not cached.

        owner: an object that stays alive as long as the entry
        """
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = owner, make()
            if len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)
        try:  # noqa: SIM105  # `suppress` doubles the time of a hit
            self._entries.move_to_end(key)
        except KeyError:  # another thread has dropped it
            pass
        return entry[1]

    def get_for(self, item: object, make: Callable[[], V], options: Hashable = None) -> V:
        """Return the value of this object and options; the entry keeps the object alive, so its id() stays unique."""
        return self.get((id(item), options), make, item)

    def clear(self) -> None:
        """Drop all values."""
        self._entries.clear()
