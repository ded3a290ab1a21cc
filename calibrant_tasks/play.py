"""Play of an item by a model: one reply where it is answered at once, else reply by reply."""

from __future__ import annotations

import verifiers.v1 as vf
from verifiers.v1.harnesses.null import NullHarness

from calibrant.bench.training import conversation
from calibrant_tasks.taskset import ItemTask


class ChatHarness(NullHarness):
    """A chat without tools, so that a run which names no harness does not get an agent with a shell."""


class ItemEnvConfig(vf.EnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig()


class ItemEnv(vf.Env[ItemEnvConfig]):
    async def run(self, task: ItemTask, agents: vf.Agents) -> None:
        lesson = task.lesson
        if not lesson.of.is_interactive(lesson.item):
            await agents.agent.run(task)
            return
        chat = conversation(lesson.of, lesson.item, thoughts=task.config.thoughts)
        async with agents.agent.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated:
                chat.hear(segment.last_reply)
                if chat.closed:
                    break
                segment = await interaction.turn(chat.messages[-1]["content"])
