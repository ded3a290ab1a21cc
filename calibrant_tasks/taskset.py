"""Items as tasks: what verifiers loads, checks and scores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import verifiers.v1 as vf
from verifiers.v1.harnesses.null import NullHarness

from calibrant.bench.core.benchmark import Benchmark, PublicIds
from calibrant.bench.core.registry import benchmark, benchmark_of
from calibrant.bench.scoring.providers import message_response
from calibrant.bench.training import (
    ConversationResult,
    Drawn,
    Lesson,
    Worth,
    attributed,
    conversation,
    in_stages,
    in_turns,
    lesson,
    score_replies,
    shaped,
    verdict,
)

WORTH: dict[str, Worth] = {"verdict": verdict, "shaped": shaped, "attributed": attributed}


class ItemData(vf.TaskData):
    """Part of a task that a trace keeps.

    record: the native record as JSON, gold and all; difficulty: its labels
    """

    benchmark: str
    record: str
    setting: str
    difficulty: dict[str, int]


class ItemTaskConfig(vf.TaskConfig):
    """Options of scoring a task.

    reward: which of calibrant.rewards
    """

    reward: Literal["verdict", "shaped", "attributed"] = "verdict"
    thoughts: Literal["strip", "opened", "keep"] = "strip"


class ItemTask(vf.Task[ItemData, vf.State, ItemTaskConfig]):
    @property
    def lesson(self) -> Lesson:
        return lesson(self.data.benchmark, self.data.record)

    def _conversation(self, trace: vf.Trace) -> ConversationResult:
        task_lesson = self.lesson
        replies = [message_response(message.model_dump(mode="json")) for message in trace.assistant_messages]
        return score_replies(task_lesson.bench, task_lesson.item, replies, self.config.thoughts)

    @vf.reward
    async def reward(self, trace: vf.Trace) -> dict[str, float]:
        """Return the chosen reward under its name; none where it is not defined or not counted."""
        worth = WORTH[self.config.reward](self.lesson, self._conversation(trace))
        return {} if worth is None else {self.config.reward: worth}

    @vf.metric
    async def answered(self, trace: vf.Trace) -> float:
        return float(self._conversation(trace).answered)

    async def validate(self, runtime: vf.Runtime) -> bool | None:
        """Return whether a right answer is scored as right; None for items that take none before something is done."""
        task_lesson = self.lesson
        gold = task_lesson.bench.training.gold(task_lesson.item)
        if gold is None:
            return None
        worth = verdict(task_lesson, score_replies(task_lesson.bench, task_lesson.item, [json.dumps(gold)]))
        return None if worth is None else worth == 1


class ItemConfig(vf.TasksetConfig):
    """Options of a task set.

    pool: a pool file; without one, items are drawn
    benchmark, seed: what is drawn; suites: of these, by default those that the benchmark orders by difficulty
    per_stage: 0 draws of the suites in turns; otherwise so many of each before the next, and the last without end
    """

    task: ItemTaskConfig = ItemTaskConfig()
    pool: Path | None = None
    benchmark: Literal["replayscm", "blickets", "causalab", "causim", "logic"] = "replayscm"
    seed: int = 0
    suites: list[str] = []  # noqa: RUF012  # pydantic copies it
    per_stage: int = 0


class ItemTaskset(vf.Taskset[ItemTask, ItemConfig]):
    def __init__(self, config: ItemConfig) -> None:
        super().__init__(config)
        self.INFINITE = config.pool is None

    def load(self) -> Iterator[ItemTask]:
        config = self.config
        if config.pool is not None:
            bench = benchmark_of(config.pool)
            items = bench.items.read_pool(config.pool).items
            public = PublicIds.of_pool(config.pool, items)
            yield from (self._task(bench, item, item.stratum, public) for item in items)
            return
        bench = benchmark(config.benchmark)
        public = PublicIds.of_seed(bench.name, config.seed)
        yield from (self._task(bench, sample.item, sample.suite, public) for sample in self._draw(bench))

    def _draw(self, bench: Benchmark[Any]) -> Iterator[Drawn]:
        config = self.config
        if config.per_stage:
            return in_stages(bench, config.suites, config.seed, config.per_stage)
        return in_turns(bench, config.suites, config.seed)

    def _task(self, bench: Benchmark[Any], item: Any, group: str, public: PublicIds) -> ItemTask:
        *system, user = bench.items.messages(item)
        return ItemTask(
            ItemData(
                id=public.public(item.id),
                name=group or item.setting,
                prompt=user["content"],
                system_prompt="\n\n".join(message["content"] for message in system) or None,
                benchmark=bench.name,
                record=json.dumps(bench.items.record(item)),
                setting=item.setting,
                difficulty=dict(bench.training.difficulty(item)),
            ),
            self.config.task,
        )


# --- Play of an item by a model: one reply where it is answered at once, else reply by reply --------------------------


class ChatHarness(NullHarness):
    """A chat without tools, so that a run which names no harness does not get an agent with a shell."""


class ItemEnvConfig(vf.EnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig()


class ItemEnv(vf.Env[ItemEnvConfig]):
    async def run(self, task: ItemTask, agents: vf.Agents) -> None:
        lesson = task.lesson
        if not lesson.bench.is_interactive(lesson.item):
            await agents.agent.run(task)
            return
        chat = conversation(lesson.bench, lesson.item, thoughts=task.config.thoughts)
        async with agents.agent.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated:
                chat.take_text(segment.last_reply)
                if chat.closed:
                    break
                segment = await interaction.turn(chat.messages[-1]["content"])
