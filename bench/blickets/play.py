"""Episodes of extended blickets: how they are opened, acted in and submitted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.bench.core.play import Playable
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.blickets.prompt import observation
from calibrant.dsl.blickets.replies import stated_action
from calibrant.dsl.blickets.trace import checked_steps, trace_from_object
from calibrant.dsl.episode import Action, Episode, Step, sole_action


class BlicketPlay(Playable[BlicketItem]):
    """Implements Playable (bench.core.play)."""

    def open(self, item: BlicketItem) -> BlicketEpisode:
        return BlicketEpisode(item)

    def describe(self, episode: Episode[Any, Any], step: Step[Any]) -> str:
        assert isinstance(episode, BlicketEpisode)
        return observation(step, [episode.task.objects[index] for index in episode.placed], episode.left)

    def submission(self, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> Sequence[Action]:
        return ({"check": dict(answer)},)

    def parse_action(self, item: BlicketItem, text: str) -> Action:
        action = stated_action(text, item.task.objects)
        if action is not None:
            return action
        stated = sole_action(text)
        return stated_action(json.dumps(stated), item.task.objects) or stated


def parse_trace(item: BlicketItem, line: Mapping[str, Any]) -> Sequence[Step[Any]]:
    """Return the steps of a line in the benchmark's own trace format; `CalibrantError` names the invalid step."""
    return checked_steps(trace_from_object(line), item)


PLAY = BlicketPlay()
