"""Scoring of predictions for items of pools, for any benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from calibrant.bench.core.attribution import KEY, NOT_ANSWERED
from calibrant.bench.core.benchmark import Benchmark, PublicIds
from calibrant.bench.core.capabilities import EVALUATOR, PLAY, REPLIES, TRACES
from calibrant.bench.core.options import option_struct
from calibrant.bench.core.registry import is_stated, one_benchmark
from calibrant.bench.core.responses import DEFAULT_READING, EXCLUDED, SAME, UNREADABLE, Answer, Reading, ReadingOptions
from calibrant.bench.core.scoring import (
    NO_MODEL,
    AnswerContext,
    Evaluator,
    EvaluatorCache,
    Prediction,
    line_head,
    line_place,
    template_option,
)
from calibrant.bench.runs.records import StepRecord
from calibrant.bench.scoring.answers import DIALOGUE_FIELD, REPLIES_FIELD, STEPS_FIELD, is_trace
from calibrant.bench.scoring.predictions import PoolItems
from calibrant.bench.scoring.providers import spoken_replies
from calibrant.bench.scoring.reading import AnswerRules, item_rules, read_response, verdict_fields
from calibrant.dsl.episode import ActionError, Step, replay_transcript
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.item import Item
from calibrant.dsl.records import items_by_id, pool_digest

# --- Evaluator of answers that are read before they are scored --------------------------------------------------------


class AnswerEvaluator:
    """Evaluator of answers to one item by the benchmark's score and attribution."""

    def __init__(self, benchmark: Benchmark[Any], item: Any) -> None:
        self._benchmark = benchmark
        self._item = item

    def evaluate(self, prediction: Prediction, context: AnswerContext) -> dict[str, Any]:
        """Return the line: score, then reading of the response, problem, replies, attribution, pool and seconds."""
        answer, reading = prediction.answer, prediction.reading
        assert isinstance(answer, dict)
        assert reading is not None
        score = self._benchmark.scoring.score(self._item, answer, prediction.steps)
        if reading.reason or reading.source:
            score = {**score, "correct": self._judge(score)}
        return {
            "benchmark": self._benchmark.name,
            **line_head(prediction),
            **score,
            **verdict_fields(reading, score["correct"], partial(self._is_correct, prediction)),
            "problem": prediction.problem or prediction.gap,
            **({} if prediction.dialogue is None else {"dialogue": prediction.dialogue}),
            KEY: self._benchmark.attribution(self._item, answer, prediction.steps, score),
            **line_place(context),
            "seconds": prediction.seconds,
        }

    def _is_correct(self, prediction: Prediction, answer: Answer) -> bool | None:
        """Return whether the answer that another rule reads is correct, submitted after the same steps."""
        assert isinstance(answer, dict)
        steps = prediction.steps[: prediction.num_stated]
        if steps:
            replayed = _submit_answer(self._benchmark, self._item, (answer, "", ""), steps)
            answer, steps = replayed.answer, replayed.steps
        return self._judge(self._benchmark.scoring.score(self._item, answer, steps))

    def _judge(self, score: Mapping[str, Any]) -> bool | None:
        """Return whether a score is correct; one without a submission is not, and None stands for an unknown truth."""
        correct: bool | None = score["correct"]
        return self._benchmark.metrics.success.judge(score, self._item.setting) if correct is None else correct


def excluded_line(benchmark: Benchmark[Any], prediction: Prediction, context: AnswerContext) -> dict[str, Any]:
    """Return the line of a response that is excluded from every rate, with the reason in place of a verdict."""
    assert prediction.reading is not None
    head = {"benchmark": benchmark.name} if is_stated(benchmark.name) else {}
    return {
        **head,
        **line_head(prediction),
        "correct": None,
        **verdict_fields(prediction.reading, None, lambda _: None),
        "correctPublished": None,
        "correctLenient": None,
        **line_place(context),
        "seconds": prediction.seconds,
    }


# --- Responses to interactive items: the steps are replayed, then the answer is submitted -----------------------------
class ReplayedAnswer(NamedTuple):
    """An answer with the episode in which it was submitted.

    answer: the submitted answer, or the one whose submission was refused; empty if there is none
    steps: all steps of the episode; problem: why nothing was submitted, empty if an answer was
    gap: the part that the submission lacks, and why; empty if the answer is complete
    """

    answer: dict[str, Any]
    steps: tuple[Step[Any], ...]
    problem: str
    gap: str = ""


def replay_answer(
    benchmark: Benchmark[Any], item: Any, response: str | Mapping[str, Any], steps: Sequence[Step[Any]]
) -> ReplayedAnswer:
    """Replay a transcript, then submit the answer of a response unless the steps submit one.

    `TranscriptError` names a step with a false outcome; `CalibrantError` if the steps submit another answer.
    """
    extracted = extract_answer(benchmark, item, response) if response else ({}, NOT_ANSWERED, "")
    return _submit_answer(benchmark, item, extracted, steps)


def _submit_answer(
    benchmark: Benchmark[Any], item: Any, extracted: tuple[dict[str, Any], str, str], steps: Sequence[Step[Any]]
) -> ReplayedAnswer:
    """Replay a transcript, then submit the result of `extract_answer`."""
    answer, problem, gap = extracted
    episode = replay_transcript(benchmark.play.open(item), steps)
    submitted = benchmark.play.submitted(episode.steps)
    if submitted is not None:
        if answer and not benchmark.scoring.same_answer(item, answer, submitted):
            raise CalibrantError(
                f"the answer {short_repr(answer)} is not what the steps submit: {short_repr(submitted)}"
            )
        answer, problem = submitted, ""
    elif answer:
        actions = benchmark.play.submission(answer, tuple(episode.steps))
        problem = next((step.refused for step in map(episode.act, actions) if step.refused), "")
    omission = "" if problem else benchmark.play.omission(episode.steps)
    return ReplayedAnswer(answer, tuple(episode.steps), problem, ": ".join(filter(None, (omission, gap))))


def extract_answer(
    benchmark: Benchmark[Any], item: Any, response: str | Mapping[str, Any]
) -> tuple[dict[str, Any], str, str]:
    """Return (answer of a response, {} if it has none; why it has none; part that could not be read)."""
    try:
        answer, gap = benchmark.scoring.read_answer(item, response)
    except ActionError as error:
        return {}, str(error), ""
    return answer, "", gap


def steps_of(value: object) -> list[Step[Any]]:
    """Return steps given as `Step`, record or JSON object, [] for None; `CalibrantError` names a malformed entry."""
    if value is None:
        return []
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
        raise CalibrantError(f"steps is {short_repr(value)}, not a list of steps")
    return [_step(index, entry) for index, entry in enumerate(value)]


def _step(index: int, entry: object) -> Step[Any]:
    if isinstance(entry, Step):
        return entry
    try:
        step = entry if isinstance(entry, StepRecord) else msgspec.convert(entry, StepRecord, strict=True)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # half a surrogate pair
        raise CalibrantError(f"step {index}: {' '.join(str(error).split())[:300]}") from None
    return Step(step.action, step.reading, step.refused, step.cost)


class ScoredPrediction(NamedTuple):
    """A prediction's context, and its verdict as the line to write."""

    context: AnswerContext
    line: Mapping[str, Any]


class _OpenPool(NamedTuple):
    """A pool whose items are scored."""

    name: str
    file: str
    digest: str
    items: Mapping[str, Item[Any, Any]]
    public: PublicIds

    @classmethod
    def load(cls, benchmark: Benchmark[Any], path: Path) -> _OpenPool:
        pool = benchmark.items.read_pool(path)
        public = PublicIds.of_pool(path, pool.items)
        return cls(pool.name, path.name, pool_digest(path), items_by_id(pool.items), public)


class PoolScorer:
    """Scorer of predictions for one or more pools of one benchmark.

    options: the benchmark's Struct of options of `calibrant score`; None for its defaults
    reading: options of reading responses
    has_episodes: whether lines may have the steps of an episode, which are replayed
    has_traces: whether lines may be traces in the benchmark's own format
    has_replies: whether lines may have the replies of a dialogue, which are played
    """

    def __init__(
        self,
        pools: Sequence[Path],
        options: Any = None,
        reading: ReadingOptions = DEFAULT_READING,
    ) -> None:
        self.benchmark: Benchmark[Any] = one_benchmark(pools)
        self.has_episodes = self.benchmark.has(PLAY)
        self.has_traces = self.benchmark.has(TRACES)
        self.has_replies = self.benchmark.has(REPLIES)
        self._options = option_struct("score", self.benchmark.name)() if options is None else options
        self._reading = reading
        opened = [_OpenPool.load(self.benchmark, path) for path in pools]
        self._pools = {pool.digest: pool for pool in opened}
        self._row_groups: dict[tuple[str, str], str] = {}  # (setting, pool digest) -> row group in tables
        self._evaluators: EvaluatorCache[Evaluator] = EvaluatorCache()
        self._rules: EvaluatorCache[AnswerRules] = EvaluatorCache()

    @property
    def items(self) -> list[PoolItems]:
        """The items that predictions may name, by pool."""
        return [
            PoolItems(
                pool.digest,
                tuple(dict.fromkeys((pool.name, pool.file))),
                pool.items.keys(),
                pool.public,
                partial(self._prompt, pool.digest),
            )
            for pool in self._pools.values()
        ]

    def clear_cache(self) -> None:
        """Drop the evaluators, to free memory while this process does not score."""
        self._evaluators.clear()

    def context(self, prediction: Prediction) -> AnswerContext:
        """Return the context of a prediction."""
        pool, item = self._pools[prediction.pool], self.item(prediction)
        return AnswerContext(
            prediction.model or NO_MODEL,
            pool.name,
            pool.digest,
            len(pool.items),
            prediction.instance,
            self._row_group(item.setting, pool.digest),
            item.stratum,
            template_option(prediction.template),
            seconds=prediction.seconds,
            sample=prediction.sample or 0,
            benchmark=self.benchmark.name,
        )

    def item(self, prediction: Prediction) -> Item[Any, Any]:
        """Return the item that a prediction is about."""
        return self._pools[prediction.pool].items[prediction.instance]

    def read_answer(self, prediction: Prediction, line: Mapping[str, Any]) -> Prediction:
        """Return the prediction with its answer, after replaying its steps, or with the reason why it has none.

        `TranscriptError` names a step with a false outcome; `CalibrantError` if the steps submit another answer.
        For benchmarks with an EVALUATOR, answers without steps are read when they are scored.
        """
        if prediction.response.stated_reason in EXCLUDED:
            return prediction._replace(sample=None, answer={}, reading=self._read(prediction))
        if self.benchmark.has(EVALUATOR):
            return self._replay_episode(prediction, line)
        return self._replay(prediction, line) if self.has_episodes else self._extract(prediction)

    def answer_of(self, prediction: Prediction) -> str | dict[str, Any]:
        """Return the scored answer of a prediction, a text or an object; empty if the response holds no answer."""
        return self.answer_and_reason(prediction)[0]

    def answer_and_reason(self, prediction: Prediction) -> tuple[str | dict[str, Any], str]:
        """Return `answer_of` a prediction, and the reason why its response holds no answer; empty if it holds one."""
        if prediction.reading is not None:
            return prediction.answer, prediction.reading.reason
        if not self.benchmark.has(EVALUATOR):
            return prediction.answer, ""
        reading = self._read(prediction)
        return reading.answer or "", reading.reason

    def _read(self, prediction: Prediction) -> Reading:
        item = self.item(prediction)
        rules = self._rules.get((prediction.pool, prediction.instance), lambda: item_rules(self.benchmark, item))
        return read_response(rules, prediction.response, self._reading)

    def score(self, prediction: Prediction) -> ScoredPrediction:
        """Return the verdict on a prediction of `read_answer`."""
        context = self.context(prediction)
        if prediction.reading is not None and prediction.reading.is_excluded:
            return ScoredPrediction(context, excluded_line(self.benchmark, prediction, context))
        return ScoredPrediction(context, self.evaluator(prediction).evaluate(prediction, context))

    def evaluator(self, prediction: Prediction) -> Evaluator:
        """Return the evaluator of a prediction's item."""
        return self._evaluators.get(
            (prediction.pool, prediction.instance),
            lambda: self._make_evaluator(self.item(prediction)),
        )

    def _make_evaluator(self, item: Item[Any, Any]) -> Evaluator:
        make = self.benchmark.capability(EVALUATOR)
        return AnswerEvaluator(self.benchmark, item) if make is None else make(item, self._options, self._reading)

    def _replay_episode(self, prediction: Prediction, line: Mapping[str, Any]) -> Prediction:
        """Replay the steps of a line about an interactive item; answers without steps are read when they are scored."""
        if not self.has_episodes or line.get(STEPS_FIELD) is None:
            return prediction
        if self.benchmark.is_interactive(self.item(prediction)):
            return self._replay(prediction, line)
        if not _has_response(prediction):
            raise CalibrantError("it has steps of an episode, but the item is not played")
        return prediction

    def _row_group(self, setting: str, digest: str) -> str:
        row_group = self._row_groups.get((setting, digest))
        if row_group is None:
            row_group = self._row_groups[setting, digest] = self.benchmark.metrics.row_group(setting, digest)
        return row_group

    def _prompt(self, digest: str, instance: str) -> str:
        return self.benchmark.items.system_and_prompt(self._pools[digest].items[instance])[1]

    def _extract(self, prediction: Prediction) -> Prediction:
        reading = self._read(prediction)
        # an object that is no legal answer is scored too, so that its verdict states what it lacks
        answer = reading.answer
        if answer is None:
            answer = self.benchmark.scoring.no_answer(self.item(prediction))
        problem = reading.problem if reading.reason else ""
        return prediction._replace(answer=answer, problem=problem, gap=reading.gap, reading=reading)

    def _replay(self, prediction: Prediction, line: Mapping[str, Any]) -> Prediction:
        item = self.item(prediction)
        if self.has_replies and line.get(REPLIES_FIELD) is not None:
            return self._replay_replies(prediction, item, line)
        has_trace = self.has_traces and is_trace(line)
        steps = self.benchmark.require(TRACES)(item, line) if has_trace else steps_of(line.get(STEPS_FIELD))
        return self._submit(prediction, item, steps)

    def _submit(self, prediction: Prediction, item: Any, steps: Sequence[Step[Any]]) -> Prediction:
        """Submit the prediction's answer after these steps; return the prediction with the result."""
        reading = self._read(prediction)
        answer = reading.answer if isinstance(reading.answer, dict) and not reading.reason else {}
        if answer and not reading.gap:  # already extracted by the benchmark's rule
            replayed = _submit_answer(self.benchmark, item, (answer, "", ""), steps)
        else:
            replayed = replay_answer(self.benchmark, item, answer, steps)
        if steps and (not _has_response(prediction) or self.benchmark.play.submitted(steps) is not None):
            reading = reading._replace(
                reason="", published=SAME, lenient=SAME
            )  # the steps fix the answer for every rule
        problem = replayed.problem
        if problem == NOT_ANSWERED:
            problem = reading.problem or reading.gap or problem
        gap = replayed.gap
        if reading.gap and reading.gap not in (gap, problem):
            gap = ": ".join(filter(None, (gap, reading.gap)))
        reading = reading._replace(gap="" if problem else gap)
        return prediction._replace(
            answer=replayed.answer,
            steps=replayed.steps,
            problem=problem,
            gap=gap,
            reading=reading,
            num_stated=len(steps),
        )

    def _replay_replies(self, prediction: Prediction, item: Any, line: Mapping[str, Any]) -> Prediction:
        """Play the replies of a line, then submit its answer if it has one."""
        replies, options = line[REPLIES_FIELD], line.get(DIALOGUE_FIELD)
        if line.get(STEPS_FIELD) is not None:
            raise CalibrantError(f"it has {STEPS_FIELD} and {REPLIES_FIELD}; give one of them")
        if not isinstance(replies, list):
            raise CalibrantError(f"{REPLIES_FIELD} is {short_repr(replies)}, not a list of texts or objects")
        if not isinstance(options, Mapping | None):
            raise CalibrantError(f"{DIALOGUE_FIELD} is {short_repr(options)}, not an object of options")
        replies = spoken_replies(replies)
        played = self.benchmark.require(REPLIES)(item, replies, options or {}, self._reading.thoughts)
        submitted = self._submit(prediction, item, played.steps)._replace(dialogue=played.totals)
        if not _has_response(prediction) and played.totals["unread"] == len(replies):
            assert submitted.reading is not None
            problem = f"none of {len(replies)} replies states an action"
            reading = submitted.reading._replace(reason=UNREADABLE, problem=problem)
            return submitted._replace(problem=problem, reading=reading)
        return submitted


def _has_response(prediction: Prediction) -> bool:
    return prediction.response.text is not None or prediction.response.answer is not None
