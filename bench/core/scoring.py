"""Predictions, what scores them, and evaluators that give verdicts on those about one item."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from calibrant.bench.core.responses import Answer, ReadAnswer, Reading, ReadingOptions, Response
from calibrant.dsl.episode import ActionError, Step
from calibrant.dsl.errors import short_repr
from calibrant.dsl.item import Item
from calibrant.dsl.json_objects import last_object, without_think_pairs
from calibrant.dsl.lenient_json import Shape

# --- Context of an answer: whose it is, about which item of which pool, and how it was obtained -----------------------
ID_FIELDS = ("instanceId", "custom_id", "id", "item_id", "task_id", "sample_id", "instance")  # of lines about an item
NO_MODEL = "(no model)"  # the system of predictions that name none
PEOPLE = "human:"  # before a participant's id, as the system of an answer
PEOPLE_SYSTEM = "people"  # the name of a group, before the number of its participants
GROUP = "group"  # of a participant: key of the terms in records, and of a column of tables


def participant_of(system: str) -> str:
    """Return the participant whose answers a system's are; empty for a system that is none."""
    return system.removeprefix(PEOPLE) if system.startswith(PEOPLE) else ""


class AnswerContext(NamedTuple):
    """Everything that a table needs of one scored answer besides its score.

    config: the options of a protocol; of models `template`, where the answer states one; outcome: of a protocol only
    seconds: the time that the answer took, where it is known; sample: its number among a system's answers to the item
    benchmark: of the pool
    reason: of a protocol without a result: what it exhausted, or how far it came
    is_tied: whether the score is a mean over answers that are as good as the chosen one (bench.core.verdict.MeanScore)
    is_chosen: whether the score is that of the chosen one of them, which has a row of its own
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
        """Return the options as text, equal for equal ones."""
        return options_text(self.config)


def options_text(config: Mapping[str, Any]) -> str:
    """Return the options of a protocol as text, equal for equal ones in any order; never empty."""
    return repr(sorted(config.items()))


I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


class Prediction(NamedTuple):
    """One answer of a model to an item.

    pool: digest of the pool that has the item; sample: number among the model's answers to it, None if excluded
    answer: that is scored; a text or object that is still to be read where `reading` is None
    seconds: the time that it took, if the line states it
    steps: of an episode, all of them, the submission too; problem: why nothing was submitted
    gap: the part that a submitted answer lacks, and why
    dialogue: totals of the replies that caused the steps; None where the line has none
    response: as the line gives it; reading: of it; where: place of the line
    num_stated: how many of the steps stand before the submission of the response's answer; 0 without any
    template: digest of the template that wrote the prompt, as the line states it; empty for none
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


@lru_cache(maxsize=1 << 12)  # of each prediction: few items, many answers
def shown_id(item_id: str) -> str:
    """Return an untrusted id in one short, printable line."""
    return short_repr(item_id)[1:-1]


class Scorable(ABC, Generic[I]):
    """Answers of a benchmark: how they are read and scored.

    report_options: of `calibrant score`, with which a report scores predictions; None for the defaults
    """

    report_options: Any = None

    @property
    @abstractmethod
    def verdict_record(self) -> type[msgspec.Struct]:
        """The Struct of a line of `calibrant score`."""

    @abstractmethod
    def no_answer(self, item: I) -> dict[str, Any]:
        """Return the answer that stands in where a protocol gives none; it is of the item's schema and not right."""

    @abstractmethod
    def score(self, item: I, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Return the score of an answer, ready for JSON; a transcript is replayed before it counts."""

    def score_ties(
        self, item: I, answers: Sequence[Mapping[str, Any]], steps: Sequence[Step[Any]]
    ) -> list[dict[str, Any]]:
        """Return the scores of equally good answers; what only explains a single answer may be left out.

        steps: of an episode, whose submission each of the answers replaces
        """
        return [self.score(item, answer, steps) for answer in answers]

    @abstractmethod
    def extract(self, item: I, response: str | Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer that a response gives, of the item's schema; `ActionError` says why there is none."""

    def read_answer(self, item: I, response: str | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return the answer of `extract`, and what of the response could not be read; empty if all was."""
        return self.extract(item, response), ""

    @abstractmethod
    def shape(self, item: I) -> Shape:
        """Return the shape of an answer to an item, for the lenient reader."""

    def holds_answer(self, item: I, answer: Mapping[str, Any]) -> bool:
        """Return whether an object that was read is an answer, legal or not."""
        return True

    def read(self, item: I, response: str | Mapping[str, Any]) -> ReadAnswer:
        """Return what the paper's rule reads in an answer text, or of an object."""
        try:
            answer, gap = self.read_answer(item, response)
        except ActionError as error:
            return ReadAnswer(None, str(error))
        return ReadAnswer(answer, "" if self.holds_answer(item, answer) else gap or "another shape", gap)

    def read_published(self, item: I, text: str) -> ReadAnswer:
        """Return what the published reader reads in a whole text: it drops closed <think> pairs alone."""
        return self.read(item, without_think_pairs(text))

    def same_answer(self, item: I, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
        """Return whether two answers of the item's schema state the same."""
        return dict(first) == dict(second)


class Evaluator(Protocol):
    """Gives verdicts on answers to one item; it may be expensive to make, and is cached while answers arrive."""

    def evaluate(self, prediction: Prediction, context: AnswerContext) -> Mapping[str, Any]:
        """Return the line of the verdict; a `LazyVerdict` where tables can count it before the line is made."""


class EvaluatorMaker(Protocol):
    """Makes the evaluator of an item, for benchmarks whose responses become answers with their verdict.

    options: the Struct of `calibrant score`; reading: way from a response to its answer
    """

    def __call__(self, item: Any, options: Any, reading: ReadingOptions) -> Evaluator: ...


class Attribute(Protocol):
    """Function that says whether the evidence decided what was asked (bench.core.attribution)."""

    def __call__(
        self, item: Any, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return the attribution as records have it; None where it is not known."""
        ...


def last_answer(response: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return the last object of a text that is not inside another, or the object; `ActionError` if there is none."""
    answer = last_object(response) if isinstance(response, str) else dict(response)
    if answer is None:
        raise ActionError("no JSON object in the response")
    return answer


def line_head(prediction: Prediction) -> dict[str, Any]:
    """Return the first fields of a line: who answered what."""
    head = {"instanceId": prediction.instance, "model": prediction.model, "sample": prediction.sample}
    return head | {"template": prediction.template} if prediction.template else head


def template_option(digest: str) -> dict[str, str]:
    """Return the template of a prompt as an option, by the start of its digest: answers to two are two systems."""
    return {"template": digest[:12]} if digest else {}


def line_place(context: AnswerContext) -> dict[str, Any]:
    """Return the fields of a line that place its item."""
    return {
        "pool": context.pool,
        "poolDigest": context.pool_digest,
        "poolSize": context.pool_size,
        "setting": context.setting,
        "stratum": context.stratum,
    }


# --- The cache of values that are expensive to make of an item: evaluators, judges, exact counts ----------------------
V = TypeVar("V")

MAX_EVALUATORS = 2_000  # a pool up to this size has each of its evaluators made once


class EvaluatorCache(Generic[V]):
    """Values by key, in the order of their last use; the least recently used are dropped.

    LRU: k samples of an item arrive one after another, and so does a batch of a trainer. The key of an item is the
    digest of its pool and its id, or, where it comes without a pool, the object itself. A copy in another process
    starts empty: what the values hold fills memory that the limits of that process do not count.
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

        owner: an object that is kept alive with it
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
        """Return the value of this very object with these options; no other object gets its id meanwhile."""
        return self.get((id(item), options), make, item)

    def clear(self) -> None:
        """Drop all values."""
        self._entries.clear()
