"""Methods and the scorer of Calibrant as Inspect's solvers and scorer."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, cast

import msgspec
from inspect_ai.agent import AgentPrompt, AgentState, AgentSubmit, as_solver, react
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, mean, metric, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.solver import generate as generate_once
from inspect_ai.tool import Tool, tool
from inspect_ai.util import StoreModel, store_as
from pydantic import Field

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.core.registry import benchmark as benchmark_named
from calibrant.bench.core.responses import EXCLUDED, Response
from calibrant.bench.protocols import Protocol, make_protocol, protocols_of, with_installed
from calibrant.bench.runs.records import StepRecord, step_records
from calibrant.bench.runs.workers import timed_answer
from calibrant.bench.scoring.formats import parse_inspect
from calibrant.dsl.episode import ActionError, Episode, Step, replay_transcript
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.replayscm.pools.official import table_setting
from calibrant.inspect.samples import CLUSTER, SampleItem, item_of
from calibrant.verbs import response_scoring

# --- Episodes for agents: a tool `run_experiment`, an agent that uses it, and the transcript that scoring replays -----
INSTRUCTIONS = """You do experiments with tools. Where the task says to reply with an action, call run_experiment with \
that action, one JSON object, instead; you are then told what came of it. Think before each experiment about what you \
want to learn from it. An action that submits your answer ends the task."""
# in place of Inspect's own prompt, which asks for parallel calls: here each experiment depends on the ones before it
ASSISTANT = """One experiment at a time: call one tool in a message, read what came of it, then decide on the next."""
SUBMIT = "Submit the final answer: the JSON object that the task asks for, and nothing else. This ends the task."


class Transcript(StoreModel):
    """The steps of an episode, as records of runs have them.

    steps: all of it, oldest first; each change is a new list
    handed_in: whether they submit an answer; closed: whether nothing more can be done
    outcome, seconds: of a method of `calibrant run` (found, impossible, out_of_budget or crashed), and the time it took
    """

    steps: list[dict[str, Any]] = Field(default_factory=list)
    handed_in: bool = False
    closed: bool = False
    outcome: str = ""
    seconds: float | None = None

    def as_steps(self) -> tuple[Step[Any], ...]:
        """Return the steps; raise `CalibrantError` for a record that is not one."""
        try:
            records = msgspec.convert(self.steps, list[StepRecord], strict=True)
        except msgspec.ValidationError as error:
            raise CalibrantError(f"transcript: {' '.join(str(error).split())[:300]}") from None
        return tuple(Step(record.action, record.reading, record.refused, record.cost) for record in records)

    def keep(self, sample_item: SampleItem, episode: Episode[Any, Any]) -> None:
        """Store the steps of an episode and whether it is over."""
        self.steps = msgspec.to_builtins(step_records(episode.steps))
        self.handed_in = sample_item.benchmark.play.submitted(episode.steps) is not None
        self.closed = episode.closed


def _experiment(sample_item: SampleItem) -> Tool:
    benchmark, item = sample_item

    @tool
    def run_experiment() -> Tool:
        async def execute(action: str) -> str:
            """Do one action of the task, and be told what came of it.

            Args:
                action: One JSON object, an action as the task describes them.
            """
            transcript = store_as(Transcript)
            episode = replay_transcript(benchmark.play.open(item), transcript.as_steps())
            try:
                step = episode.act(benchmark.play.parse_action(item, action))
            except ActionError as error:
                return f"Not understood: {error}."
            transcript.keep(sample_item, episode)
            return benchmark.play.describe(episode, step) + (" The task is over." if episode.closed else "")

        return execute

    return run_experiment()


@solver
def experiments() -> Solver:
    """Give the sample its tool `run_experiment`; nothing on benchmarks without episodes."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        sample_item = item_of(state.metadata)
        benchmark, item = sample_item
        if benchmark.is_interactive(item):
            state.store_as(Transcript).keep(sample_item, benchmark.play.open(item))
            state.tools.append(_experiment(sample_item))
        return state

    return solve


@solver
def player(turns: int = 100) -> Solver:
    """Run `experimenter` on interactive items, and one completion on others.

    turns: maximum number of replies to an interactive item
    """
    play, answer = experimenter(turns), generate_once()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        benchmark, item = item_of(state.metadata)
        return await (play if benchmark.is_interactive(item) else answer)(state, generate)

    return solve


@solver
def experimenter(turns: int = 100) -> Solver:
    """Make a ReAct agent with the sample's tools. It ends with a submission, by an action or the tool `submit`.

    turns: maximum number of replies
    """

    async def should_continue(state: AgentState) -> bool:
        num_replies = sum(message.role == "assistant" for message in state.messages)
        return num_replies < turns and not store_as(Transcript).closed

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        agent = react(
            prompt=AgentPrompt(instructions=INSTRUCTIONS, assistant_prompt=ASSISTANT),
            tools=state.tools,
            # answer_only: without it Inspect appends the answer to the last message, which is then no JSON
            submit=AgentSubmit(description=SUBMIT, answer_only=True),
            on_continue=should_continue,
        )
        return await as_solver(agent)(state, generate)

    return solve


# --- Methods of `calibrant run` as solvers, so that they stand in the same logs as models -----------------------------


@solver
def protocol(name: str, **options: Any) -> Solver:
    """Answer by a method of `calibrant run`; no model is asked: `--model none/none`.

    name: one of `calibrant protocols`; options: its options
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        sample_item = item_of(state.metadata)
        benchmark, item = sample_item
        method = _method(benchmark.name, name, json.dumps(options, sort_keys=True))
        answer = timed_answer(method, benchmark.handout(item))
        submitted = benchmark.scoring.no_answer(item) if answer.result.answer is None else answer.result.answer
        transcript = state.store_as(Transcript)
        if answer.steps is not None:
            transcript.keep(sample_item, replay_transcript(benchmark.play.open(item), answer.steps))
        transcript.outcome, transcript.seconds = answer.result.outcome, answer.timing.seconds
        text = json.dumps(submitted) if submitted else ""
        state.output = ModelOutput.from_content(f"calibrant/{name}", text)
        state.messages.append(state.output.message)
        return state

    return solve


@lru_cache(maxsize=64)
def _method(benchmark_name: str, name: str, options: str) -> Protocol:
    """Return a method, warmed up: one of Calibrant or of an installed plug-in.

    Unlike `calibrant run` it takes no file of a plug-in: a log states a solver by its name, which has to name it later.

    `CalibrantError` for an unknown name; `MissingExtraError` for a missing dependency.
    """
    methods = with_installed(protocols_of(benchmark_named(benchmark_name)), benchmark_name)
    if name not in methods:
        raise CalibrantError(f"unknown protocol {short_repr(name)}; of {benchmark_name} there are {', '.join(methods)}")
    method = make_protocol(methods, name, json.loads(options))
    method.require()
    method.warm_up()
    return method


# --- The scorer: the verdict on a completion, or on an episode that is replayed, with the metrics of printed tables ---
LOGGER = logging.getLogger(__name__)
FOUND = "found"
REFUSED = "refused"  # why there is no score
STEPS_KEY = "Transcript:steps"  # key of `Transcript.steps` in a sample's store; missing if it has no transcript


@metric(name="stderr")
def clustered_stderr() -> Metric:
    """Return the standard error over clusters; NaN (undefined) for one cluster, whose items are not independent."""
    over_clusters = cast(Callable[[list[SampleScore]], float], stderr(cluster=CLUSTER))

    def compute(scores: list[SampleScore]) -> float:
        clusters = {(score.sample_metadata or {}).get(CLUSTER) for score in scores}
        return over_clusters(scores) if len(clusters) > 1 else math.nan

    return compute


@scorer(metrics={"*": [mean(), clustered_stderr()]})
def verdict(
    extractor: Literal["paper", "published", "lenient"] = "paper",
    thoughts: Literal["strip", "opened", "keep"] = "strip",
) -> Scorer:
    """Return the verdict of `calibrant score`, flat: `correct` and the columns of its tables; undefined ones are NaN.

    The standard errors are clustered: items that are drawn together (one latent SCM, one program) count once. They are
    undefined for a single cluster.

    A sample whose record or transcript is refused, or whose request failed, has no score: metrics leave it out, which
    is not a 0, and its explanation says why.

    extractor: rule that reads the answer in a response: `paper`, the paper's, on the text outside thoughts;
        `published`, that of the released code, on the whole text; `lenient`, which also takes other forms of an answer
    thoughts: `strip` removes marked thoughts; `opened` also those that the chat template opened; `keep` takes the text
        as it is (dsl.answer_text); not used with `published`
    """
    options: dict[str, Any] = (
        {"extractor": extractor} if extractor == "published" else {"extractor": extractor, "thoughts": thoughts}
    )

    async def score(state: TaskState, target: Target) -> Score:
        try:
            bench, item = item_of(state.metadata)
        except CalibrantError as error:
            return unscored(state, error)
        try:
            return score_of(bench, item, state)
        except CalibrantError as error:
            return unscored(state, error)

    def unscored(state: TaskState, error: CalibrantError) -> Score:
        LOGGER.warning("sample %s, epoch %s is not scored: %s", state.sample_id, state.epoch, error)
        return Score.unscored(reason=REFUSED, explanation=str(error))

    def score_of(bench: Benchmark[Any], item: Any, state: TaskState) -> Score:
        transcript = state.store_as(Transcript) if STEPS_KEY in state.store else None
        played = {"steps": transcript.as_steps()} if transcript and bench.is_interactive(item) else {}
        # a submission is the last step: an empty response has the steps judged alone
        response = Response() if transcript and transcript.handed_in else response_of(state)
        if response.stated_reason in EXCLUDED:
            return Score.unscored(
                reason=response.stated_reason, explanation=f"{response.stated_reason}: no answer was made"
            )
        verdict_on_response = response_scoring(bench, options | played)(item, response)
        record = verdict_on_response.to_dict()
        outcomes = [transcript.outcome] if transcript and transcript.outcome not in ("", FOUND) else []
        # official files of ReplaySCM have the published setting in tables; of other pools it is the item's
        setting = table_setting(state.metadata.get("poolDigest", ""), item.setting)
        return Score(
            value=metric_values(bench, record, setting),
            answer=_answer(bench, transcript, response.text or ""),
            explanation="; ".join([*outcomes, *([verdict_on_response.failure] if verdict_on_response.failure else [])])
            or None,
            metadata={"verdict": record, "reason": verdict_on_response.reason},
        )

    return score


def response_of(state: TaskState) -> Response:
    """Return the response of a sample, equal to the one that is read from its log."""
    output = state.output.model_dump(mode="json")
    return parse_inspect({"output": output}).responses[0]


def metric_values(bench: Benchmark[Any], record: Mapping[str, Any], setting: str) -> dict[str, float]:
    """Return `correct`, then the columns of the benchmark's default view; the same keys for every answer.

    An episode that ended without an answer is not correct. `correct` is NaN where nothing is held out.
    """
    fields = bench.metrics.verdict(record, setting, InvalidHandling.PUBLISHED)
    columns = bench.metrics.views[bench.metrics.default_view].metrics
    values = {column.key: column.value(fields) for column in columns}
    is_defined = bench.metrics.success.is_defined(record, setting)
    return {
        "correct": float(record["correct"] is True) if is_defined else math.nan,
        **{key: math.nan if value is None else float(value) for key, value in values.items()},
    }


def _answer(bench: Benchmark[Any], transcript: Transcript | None, response: str) -> str:
    submitted = bench.play.submitted(transcript.as_steps()) if transcript and transcript.handed_in else None
    return response if submitted is None else json.dumps(submitted)
