"""Episodes of ReplaySCM: how they are opened, acted in and submitted."""

from __future__ import annotations

import re
from typing import Any

from calibrant.bench.core.capabilities import Playable
from calibrant.bench.episodes import Chat
from calibrant.dsl.episode import Action, Episode, Step
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.replayscm.episode import ScmEpisode
from calibrant.dsl.replayscm.item import Problem, TaskKind

TYPED_WORLD = re.compile(r"do((?:[\s,]+\w+=\d{1,9})*)", re.ASCII)


class ScmPlay(Playable[Problem]):
    """Implements Playable (bench.core.capabilities); items of other kinds are answered at once."""

    prompts_show_opening = True

    def is_played(self, item: Problem) -> bool:
        return item.task.kind is TaskKind.EPISODE

    def open(self, item: Problem) -> ScmEpisode:
        if not self.is_played(item):
            raise CalibrantError(f"{in_one_line(item.id)} is no episode: it is answered at once")
        return ScmEpisode(item)

    def chat(self, item: Problem, instructions: str = "") -> Chat:
        from calibrant.bench.replayscm.extended.text_episode import ScmChat

        return ScmChat(self.open(item), instructions)

    def parse_action(self, item: Problem, text: str) -> Action:
        from calibrant.bench.replayscm.extended.text_episode import read_action_text

        # by hand: do X1=1 X5=0
        typed = TYPED_WORLD.fullmatch(text.strip())
        if typed is not None:
            pairs = (pair.split("=") for pair in typed[1].replace(",", " ").split())
            return {"do": {name: int(bit) for name, bit in pairs}}
        return read_action_text(text)

    def describe(self, episode: Episode[Any, Any], step: Step[Any]) -> str:
        from calibrant.bench.replayscm.extended.text_episode import describe_step

        return describe_step(episode, step)


PLAY = ScmPlay()
