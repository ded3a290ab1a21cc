"""The text protocol in use: greedy's actions as replies, read back, with their score and the size of the messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from calibrant.bench.core.registry import benchmark
from calibrant.bench.pools.bundled import bundled_sample
from calibrant.bench.protocols.registry import protocols_of
from calibrant.bench.replayscm.extended.text_episode import text_episode
from calibrant.bench.runs.workers import timed_answer
from calibrant.dsl.replayscm.pools.files import read_pool


def text_lines(number: int) -> Iterator[str]:
    """Yield a line for each of the first bundled episodes: replies, refusals, whether scores agree, characters."""
    of = benchmark("replayscm")
    greedy = protocols_of(of)["greedy"]()
    yield "setting                            replies  refused  scores agree  characters of prompt, of all messages"
    for item in read_pool(bundled_sample("replayscm_episodes")).problems[:number]:
        steps = timed_answer(greedy, of.handout(item)).steps or ()
        played = of.scoring.score(item, {}, steps)
        episode = text_episode(item)
        opening = episode.reset()
        done, info = False, dict[str, Any]()
        for step in steps[1:]:
            action = json.dumps(dict(step.action))
            _, _, done, info = episode.reply(f"Two variables are alike so far, so I set one.\nACTION: {action}")
        is_equal = done and all(info["score"].get(key) == value for key, value in played.items() if key != "strictJson")
        sizes = [sum(len(message["content"]) for message in listed) for listed in (opening, episode.messages)]
        refusals = info["score"].get("refusals") if done else "open"
        yield f"{item.setting:33}  {len(steps) - 1:7}  {refusals!s:7}  {is_equal!s:12}  {sizes[0]:,}, {sizes[1]:,}"
