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
from calibrant.bench.core.registry import benchmark
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
    outcome: of a row of ours, found, impossible, out_of_budget or crashed; seconds: what it took
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

    def keep(self, of: SampleItem, episode: Episode[Any, Any]) -> None:
        """Store the steps of an episode and whether it is over."""
        self.steps = msgspec.to_builtins(step_records(episode.steps))
        self.handed_in = of.benchmark.play.submitted(episode.steps) is not None
        self.closed = episode.closed


def _experiment(of: SampleItem) -> Tool:
    @tool
    def run_experiment() -> Tool:
        async def execute(action: str) -> str:
            """Do one action of the task, and be told what came of it.

            Args:
                action: One JSON object, an action as the task describes them.
            """
            transcript = store_as(Transcript)
            episode = replay_transcript(of.benchmark.play.open(of.item), transcript.as_steps())
            try:
                step = episode.act(of.benchmark.play.parse_action(of.item, action))
            except ActionError as error:
                return f"Not understood: {error}."
            transcript.keep(of, episode)
            return of.benchmark.play.describe(episode, step) + (" The task is over." if episode.closed else "")

        return execute

    return run_experiment()


@solver
def experiments() -> Solver:
    """Give the sample its tool `run_experiment`; nothing on benchmarks without episodes."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        of = item_of(state.metadata)
        if of.benchmark.is_interactive(of.item):
            state.store_as(Transcript).keep(of, of.benchmark.play.open(of.item))
            state.tools.append(_experiment(of))
        return state

    return solve


@solver
def player(turns: int = 100) -> Solver:
    """Be the agent of `experimenter` on items that are played, and answer others by one completion.

    turns: replies that are taken at most of the former
    """
    play, answer = experimenter(turns), generate_once()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        of = item_of(state.metadata)
        return await (play if of.benchmark.is_interactive(of.item) else answer)(state, generate)

    return solve


@solver
def experimenter(turns: int = 100) -> Solver:
    """Make a ReAct agent with the sample's tools. It ends with a submission, by an action or the tool `submit`.

    turns: replies that are taken at most
    """

    async def going_on(state: AgentState) -> bool:
        num_replies = sum(message.role == "assistant" for message in state.messages)
        return num_replies < turns and not store_as(Transcript).closed

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        agent = react(
            prompt=AgentPrompt(instructions=INSTRUCTIONS, assistant_prompt=ASSISTANT),
            tools=state.tools,
            submit=AgentSubmit(description=SUBMIT, answer_only=True),  # an answer that is strict JSON stays it
            on_continue=going_on,
        )
        return await as_solver(agent)(state, generate)

    return solve


# --- Rows of `calibrant run` as solvers, so that they stand in the same logs as models --------------------------------


@solver
def protocol(name: str, **options: Any) -> Solver:
    """Answer by a row of ours; no model is asked: `--model none/none`.

    name: one of `calibrant protocols`; options: its options
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        of = item_of(state.metadata)
        row = _row(of.benchmark.name, name, json.dumps(options, sort_keys=True))
        answer = timed_answer(row, of.benchmark.handout(of.item))
        submitted = of.benchmark.scoring.no_answer(of.item) if answer.result.answer is None else answer.result.answer
        transcript = state.store_as(Transcript)
        if answer.steps is not None:
            transcript.keep(of, replay_transcript(of.benchmark.play.open(of.item), answer.steps))
        transcript.outcome, transcript.seconds = answer.result.outcome, answer.timing.seconds
        text = json.dumps(submitted) if submitted else ""
        state.output = ModelOutput.from_content(f"calibrant/{name}", text)
        state.messages.append(state.output.message)
        return state

    return solve


@lru_cache(maxsize=64)
def _row(of: str, name: str, options: str) -> Protocol:
    """Return the protocol, warmed up; file names are not accepted: logs hold the names of their solvers."""
    methods = with_installed(protocols_of(benchmark(of)), of)
    if name not in methods:
        raise CalibrantError(f"unknown protocol {short_repr(name)}; of {of} there are {', '.join(methods)}")
    row = make_protocol(methods, name, json.loads(options))
    row.require()
    row.warm_up()
    return row


# --- The scorer: our verdict on a completion, or on an episode that is replayed, with the figures of our tables -------
LOGGER = logging.getLogger(__name__)
FOUND = "found"
REFUSED = "refused"  # why there is no score
KEPT = "Transcript:steps"  # in the store of a sample that has one


@metric(name="stderr")
def clustered_stderr() -> Metric:
    """Return the standard error over clusters; NaN, which is undefined, of one: its items are right and wrong alike."""
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
    """Return the verdict of `calibrant score`, flat: `correct` and the columns of our tables; NaN is what is undefined.

    The standard errors are clustered: items that are drawn together (one latent SCM, one program) count once. Of one
    cluster there is none.

    A sample whose record or transcript is refused, or whose request failed, has no score: metrics leave it out, which
    is not a 0, and its explanation says why.

    extractor: rule that reads a response: the paper's, the published one, or the lenient reader
    thoughts: what of a response is thoughts, and no answer; the published rule has its own way
    """
    options: dict[str, Any] = (
        {"extractor": extractor} if extractor == "published" else {"extractor": extractor, "thoughts": thoughts}
    )

    async def score(state: TaskState, target: Target) -> Score:
        try:
            of, item = item_of(state.metadata)
        except CalibrantError as error:
            return unscored(state, error)
        try:
            return score_of(of, item, state)
        except CalibrantError as error:
            return unscored(state, error)

    def unscored(state: TaskState, error: CalibrantError) -> Score:
        LOGGER.warning("sample %s, epoch %s is not scored: %s", state.sample_id, state.epoch, error)
        return Score.unscored(reason=REFUSED, explanation=str(error))

    def score_of(of: Benchmark[Any], item: Any, state: TaskState) -> Score:
        transcript = state.store_as(Transcript) if KEPT in state.store else None
        played = {"steps": transcript.as_steps()} if transcript and of.is_interactive(item) else {}
        response = Response() if transcript and transcript.handed_in else response_of(state)
        if response.stated_reason in EXCLUDED:
            return Score.unscored(
                reason=response.stated_reason, explanation=f"{response.stated_reason}: no answer was made"
            )
        verdict_on_response = response_scoring(of, options | played)(item, response)
        record = verdict_on_response.to_dict()
        outcomes = [transcript.outcome] if transcript and transcript.outcome not in ("", FOUND) else []
        return Score(
            value=figures(of, record, table_setting(state.metadata.get("poolDigest", ""), item.setting)),
            answer=_answer(of, transcript, response.text or ""),
            explanation="; ".join([*outcomes, *([verdict_on_response.failure] if verdict_on_response.failure else [])])
            or None,
            metadata={"verdict": record, "reason": verdict_on_response.reason},
        )

    return score


def response_of(state: TaskState) -> Response:
    """Return the response of a sample, as it is read from its log."""
    output = state.output.model_dump(mode="json")
    return parse_inspect({"output": output}).responses[0]


def figures(of: Benchmark[Any], record: Mapping[str, Any], setting: str) -> dict[str, float]:
    """Return `correct`, then the columns of the benchmark's default view; the same keys for every answer.

    An episode that ended without an answer is not correct; NaN is `correct` where nothing is held out.
    """
    fields = of.metrics.verdict(record, setting, InvalidHandling.PUBLISHED)
    columns = of.metrics.views[of.metrics.default_view].metrics
    values = {column.key: column.value(fields) for column in columns}
    is_defined = of.metrics.success.is_defined(record, setting)
    return {
        "correct": float(record["correct"] is True) if is_defined else math.nan,
        **{key: math.nan if value is None else float(value) for key, value in values.items()},
    }


def _answer(of: Benchmark[Any], told: Transcript | None, response: str) -> str:
    submitted = of.play.submitted(told.as_steps()) if told and told.handed_in else None
    return response if submitted is None else json.dumps(submitted)
