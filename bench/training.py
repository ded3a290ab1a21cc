"""Training: rewards of completions, conversations with an item, and the order of a curriculum.

Items are cached by record, with whether their evidence decides the question: trainers score the same ones repeatedly.
A curriculum yields equal items in the same order for equal arguments, however many are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, cycle, islice
from typing import Any, NamedTuple, TypeAlias

from calibrant.bench.core.attribution import POSTERIOR
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.responses import ReadingOptions, Response
from calibrant.bench.episodes import Chat
from calibrant.bench.scoring.providers import is_assistant, message_response
from calibrant.bench.scoring.reading import item_rules, read_response, score_response
from calibrant.dsl.answer_text import Thoughts
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, PoolError, short_repr
from calibrant.dsl.parse_limits import load_json

# --- Items as conversations with a model, and verdicts on its replies -------------------------------------------------


class ConversationResult(NamedTuple):
    """Result of a conversation.

    verdict: the benchmark's verdict; steps: all steps of the replies, empty for an item that is answered at once
    answered: whether an answer was read and accepted
    """

    verdict: Any
    steps: Sequence[Step[Any]]
    answered: bool


def conversation(bench: Benchmark[Any], item: Any, instructions: str = "", thoughts: Thoughts = "strip") -> Chat:
    """Open a conversation about an interactive item with one action per reply."""
    return bench.play.chat(item, instructions, thoughts)


def score_replies(
    bench: Benchmark[Any], item: Any, replies: Sequence[str | Response], thoughts: Thoughts = "strip"
) -> ConversationResult:
    """Score the replies to an item, in their order; the result depends on nothing else.

    If the item is answered at once, the answer is that of the last reply. If it is interactive, the replies are played
    as its conversation, and an answer that the last reply states is submitted if the conversation is open until then.

    thoughts: what of a reply is thoughts, in which neither an answer nor an action is read
    """
    options = ReadingOptions(thoughts=thoughts)
    responses = [Response(reply) if isinstance(reply, str) else reply for reply in replies]
    if not bench.is_interactive(item):
        last = responses[-1] if responses else None
        verdict = score_response(bench, item, last, options, lambda answer: bench.functions.score(item, answer))
        return ConversationResult(verdict, (), verdict.valid)
    chat = conversation(bench, item, thoughts=thoughts)
    for reply in responses[:-1]:
        if not chat.closed:
            chat.take_text(reply.text or "")
    if responses and not chat.closed:
        _close(bench, item, chat, responses[-1], options, is_alone=len(responses) == 1)
    steps = tuple(chat.episode.steps)
    verdict = bench.functions.score(item, None, steps=steps)
    return ConversationResult(verdict, steps, bench.play.submitted(steps) is not None)


def _close(
    bench: Benchmark[Any], item: Any, chat: Chat, reply: Response, options: ReadingOptions, *, is_alone: bool
) -> None:
    """Submit the answer that the last reply states, even if not worded as a submission; else take it as an action.

    is_alone: whether the reply is the whole completion; then, as `score` reads no answer in it, its action is not
        taken if it would submit one
    """
    reading = read_response(item_rules(bench, item), reply, options)
    if not reading.reason and isinstance(reading.answer, dict) and reading.answer:
        for action in bench.play.submission(reading.answer, tuple(chat.episode.steps)):
            chat.episode.act(action)
        return
    trial = conversation(bench, item, thoughts=options.thoughts) if is_alone else chat
    trial.take_text(reply.text or "")
    if is_alone and bench.play.submitted(trial.episode.steps) is None:
        chat.take_text(reply.text or "")


# --- Completions of trainers ------------------------------------------------------------------------------------------
Completion: TypeAlias = str | Sequence[Mapping[str, Any]]
"""A text, or the messages that follow a prompt."""


def replies(completion: object) -> list[Response] | None:
    """Return the model's responses, one per message; None for an object that is no completion.

    completion: a text, or messages with `role` and `content` as in chat interfaces. Messages of other roles than the
        assistant's are left out, since the model did not write them. Of content in parts, texts and tool calls count.
    """
    if isinstance(completion, str):
        return [Response(completion)]
    if not isinstance(completion, Sequence) or not all(isinstance(message, Mapping) for message in completion):
        return None
    return [message_response(message) for message in completion if is_assistant(message)]


# --- Rewards: pure functions of an item's record and of a model's completion. No clock, no visible state --------------
UNDECIDED = 0.5
"""Reward of an answer that fits the evidence while other answers fit it too."""

MAX_CACHED_ITEMS = 4096

Worth = Callable[["Lesson", ConversationResult], float | None]
"""A reward: of an item and what a completion did on it; None if no reward is defined."""


class Lesson:
    """An item whose answers are rewarded.

    record: its native record, as JSON
    """

    def __init__(self, name: str, record: str) -> None:
        self.bench: Benchmark[Any] = benchmark(name)
        try:
            value = load_json(record)
        except (ValueError, RecursionError):
            raise CalibrantError(f"record is {short_repr(record)}, not JSON") from None
        if not isinstance(value, dict):
            raise CalibrantError(f"record is {short_repr(value)}, not an object")
        try:
            self.item = self.bench.items.item_of_record(value)
        except PoolError as error:
            where = f"record of {short_repr(value['id'])}" if "id" in value else "a record without an id"
            raise CalibrantError(f"{where}: {error}") from None
        self._decided: tuple[bool | None] | None = None

    def score_completion(self, completion: object, thoughts: Thoughts = "strip") -> ConversationResult | None:
        """Score a completion; None if it is no completion."""
        responses = replies(completion)
        return None if responses is None else score_replies(self.bench, self.item, responses, thoughts)

    @property
    def decided(self) -> bool | None:
        """Return whether the item's evidence decides the question, None if that is not computed; cached."""
        if self._decided is None:
            nothing = self.bench.scoring.no_answer(self.item)
            attribution = self.bench.attribution(
                self.item, nothing, (), self.bench.scoring.score(self.item, nothing, ())
            )
            self._decided = (None if attribution is None else bool(attribution["decided"]),)
        return self._decided[0]


@lru_cache(maxsize=MAX_CACHED_ITEMS)
def lesson(name: str, record: str) -> Lesson:
    """Return the item of a record; `CalibrantError` for an invalid record."""
    return Lesson(name, record)


def verdict(task: Lesson, answer: ConversationResult) -> float | None:
    """Return 1 if the benchmark counts the answer as correct, else 0; None for an item with nothing held out."""
    is_defined = task.bench.metrics.success.is_defined(answer.verdict.to_dict(), task.item.setting)
    return float(answer.verdict.correct) if is_defined else None


def shaped(task: Lesson, answer: ConversationResult) -> float:
    """Return the share of the answer that is right (`Training.share` of its benchmark), 0 to 1."""
    return task.bench.training.share(task.item, answer.verdict)


def attributed(task: Lesson, answer: ConversationResult) -> float | None:
    """Return 1 for an earned answer, UNDECIDED for one that fits evidence which leaves other answers, 0 for any other.

    So a lucky answer and a short one that fits get the same: the evidence cannot distinguish them. None for an item of
    which it is not computed what the evidence decides.
    """
    if not answer.answered:
        return 0.0
    if task.bench.is_interactive(task.item):
        attribution = task.bench.attribution(task.item, {}, answer.steps, answer.verdict.to_dict())
        if attribution is None:
            return None
        decided, fits, right = (
            attribution["decided"],
            # with a posterior, readings are noisy and exclude no answer of the class: `fits` is None
            attribution["fits"] is True or (attribution["fits"] is None and POSTERIOR in attribution),
            attribution["kind"] in ("earned", "lucky"),
        )
    else:
        if task.decided is None:
            return None
        decided, training = task.decided, task.bench.training
        fits, right = training.fits(answer.verdict), training.agrees(answer.verdict)
    if decided:
        return float(right)
    return UNDECIDED if fits else 0.0


# --- Endless items by seed, in the order of a curriculum, with labels of difficulty -----------------------------------
FIRST_DRAWN = 4
"""Number of items of the first draw from a suite; each later draw doubles the number of items drawn so far."""


@dataclass(frozen=True)
class Drawn:
    """An item of a curriculum.

    stage: index of its suite in the curriculum; place: index of the item in that suite
    """

    item: Any
    suite: str
    stage: int
    place: int


def endless(bench: Benchmark[Any], suite: str, seed: int) -> Iterator[Any]:
    """Yield the items of a suite without end; item i does not depend on the number of items drawn."""
    num_items = 0
    for doubling in count():
        items = bench.suites.draw_part(bench.suites.check_name(suite), seed, range(num_items, FIRST_DRAWN << doubling))
        yield from items
        num_items += len(items)


def in_turns(bench: Benchmark[Any], suites: Sequence[str], seed: int) -> Iterator[Drawn]:
    """Yield one item of each suite, then the next of each, without end."""
    streams = [_items_of_stage(bench, suite, stage, seed) for stage, suite in enumerate(_suites(bench, suites))]
    for stream in cycle(streams):
        yield next(stream)


def in_stages(bench: Benchmark[Any], suites: Sequence[str], seed: int, per_stage: int) -> Iterator[Drawn]:
    """Yield `per_stage` items of each suite in turn; the last suite continues without end."""
    if per_stage < 1:
        raise CalibrantError(f"{per_stage} items a stage; at least 1 is meant")
    *earlier, last = enumerate(_suites(bench, suites))
    for stage, suite in earlier:
        yield from islice(_items_of_stage(bench, suite, stage, seed), per_stage)
    last_stage, last_suite = last
    yield from _items_of_stage(bench, last_suite, last_stage, seed)


def _items_of_stage(bench: Benchmark[Any], suite: str, stage: int, seed: int) -> Iterator[Drawn]:
    return (Drawn(item, suite, stage, index) for index, item in enumerate(endless(bench, suite, seed)))


def _suites(bench: Benchmark[Any], suites: Sequence[str]) -> list[str]:
    """Return the suites of a curriculum, by default those that the benchmark orders by difficulty."""
    return [bench.suites.check_name(suite) for suite in suites or bench.training.stages]


# --- Meanings of the difficulty labels of items, computed by `training.difficulty` of a benchmark ---------------------
LABELS: Mapping[str, str] = dict(  # noqa: C408  # a literal would spell the name of a benchmark, `blickets`
    answers="right answers to the question (CauSim)",
    blickets="objects that the first rule mentions (blickets)",
    edges="edges of the graph",
    experiments="experiments whose values are shown (logic models)",
    moves="moves that the episode allows (blickets)",
    nodes="nodes of the graph",
    objects="objects beside the detector (blickets)",
    parents="parents of the variable that has most of them (ReplaySCM)",
    rules="rules that are in force one after another (blickets)",
    settings="settings that the episode allows (CausaLab)",
    variables="variables, roots too (ReplaySCM)",
    worlds="training worlds (ReplaySCM)",
)
