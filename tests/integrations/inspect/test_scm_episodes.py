"""Episodes of ReplaySCM beside items that are answered at once: an agent plays the former, one log has both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.packages import needs

needs("inspect_ai")

from inspect_ai.model import ModelOutput

from calibrant import inspect as adapter
from calibrant.bench.core.registry import benchmark
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import write_pool
from tests.integrations.inspect.logs import called, evaluated, metrics, said, samples
from tests.support.replayscm.extensions.problems import gold_submission, small_problem


def test_an_agent_plays_episodes_and_answers_other_items_at_once(tmp_path: Path) -> None:
    episode, passive = small_problem(1), small_problem(2, is_episode=False)
    pool = tmp_path / "replayscm.jsonl"
    write_pool(Pool("pool", (episode, passive)), pool)
    start = benchmark("replayscm").items.messages(episode)[-1]["content"]

    def reply(messages: list[Any]) -> ModelOutput:
        prompt = next(message.text for message in messages if message.role == "user")
        if not prompt.startswith(start):
            return said(json.dumps(gold_submission(passive)))
        turn = sum(message.role == "assistant" for message in messages)
        actions = [{"do": {"X1": 1}}, {"submit": gold_submission(episode)}]
        return called("run_experiment", action=json.dumps(actions[min(turn, 1)]))

    log = evaluated(adapter.replayscm(str(pool)), tmp_path / "logs", reply=reply)
    assert metrics(log)["correct"] == {"mean": 1.0, "stderr": 0.0}
    played = [sample.store["Transcript:steps"] for sample in samples(log) if "Transcript:steps" in sample.store]
    assert [[sorted(step["action"]) for step in steps] for steps in played] == [[["start"], ["do"], ["submit"]]]
