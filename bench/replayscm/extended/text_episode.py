"""Episodes of ReplaySCM in messages: the text protocol as a chat, an environment, and lines on steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.bench.episodes import TextEpisode
from calibrant.bench.replayscm.extended.scoring import ExtendedVerdicts
from calibrant.dsl.episode import Action, Episode, Step, action_of_text
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.item import Message
from calibrant.dsl.replayscm.dialogue import MARK, TextDialogue, read_reply, world_table
from calibrant.dsl.replayscm.episode import ScmEpisode
from calibrant.dsl.replayscm.item import Problem


class ScmChat:
    """Implements Chat (bench.episodes): one action a reply, by the text protocol.

    instructions: the first message; empty where the agent has the prompt already
    """

    def __init__(self, episode: ScmEpisode, instructions: str = "") -> None:
        self.episode = episode
        self._dialogue = TextDialogue(episode)
        self.messages: list[Message] = [{"role": "user", "content": instructions}]

    @property
    def closed(self) -> bool:
        return self._dialogue.closed

    def hear(self, text: object) -> None:
        reply = text if isinstance(text, str) else ""
        self.messages.append({"role": "assistant", "content": reply})
        self.messages.append({"role": "user", "content": self._dialogue.reply(reply)})


def text_episode(item: Problem) -> TextEpisode:
    """Return an item as an environment: reward 1 for a correct answer, else 0; None where nothing is held out.

    An episode may also end without an answer, when its replies are spent: its score is not valid there.
    """
    verdicts = ExtendedVerdicts(item)

    def open_chat() -> ScmChat:
        return ScmChat(ScmEpisode(item), opening_prompt(item))

    def score(steps: Sequence[Step[Any]]) -> dict[str, Any]:
        return verdicts.record(verdicts.score(None, steps), steps)

    return TextEpisode(open_chat, score, reward_of_answer)


def reward_of_answer(score: Mapping[str, Any]) -> float | None:
    """Return 1 for a correct answer, 0 for a wrong one and none; None where nothing is held out."""
    return None if score["correct"] is None else float(score["correct"])


def opening_prompt(item: Problem) -> str:
    """Return the rules, and the world that is shown at the start."""
    return TextDialogue(ScmEpisode(item)).prompt()


def read_action_text(text: str) -> Action:
    """Return the action of a reply: its last line with the mark, or a text that is one JSON object."""
    is_bare = text.lstrip().startswith("{") and not any(line.startswith(MARK) for line in text.splitlines())
    return action_of_text(text) if is_bare else read_reply(text)


def describe_step(episode: Episode[Any, Any], step: Step[Any]) -> str:
    """Return what came of a step: the world as a table, and how many are left."""
    if step.refused:
        return f"Refused: {in_one_line(step.refused)[:300]}. Worlds left: {episode.left}."
    if step.reading is None:
        return "Submitted."
    return "\n".join([*world_table(episode.task, step), f"Worlds left: {episode.left}."])
