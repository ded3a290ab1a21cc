"""Interactive items for agents of any framework: messages in, text out, a reward that no clock decides.

`TextEpisode` is the shape that training and evaluation environments wrap in a few lines; docs/episodes.md shows how.
What is said to the agent is the benchmark's: a `Chat`. `JsonChat` is one that every interactive benchmark can use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from calibrant.dsl.answer_text import Thoughts, read_reply_text
from calibrant.dsl.episode import Action, ActionError, Episode, Step, sole_action
from calibrant.dsl.errors import short_repr
from calibrant.dsl.item import Message


class Chat(Protocol):
    """An episode in messages.

    messages: all so far, the last one addressed to the agent
    closed: whether no further reply is taken
    """

    @property
    def messages(self) -> Sequence[Message]: ...
    @property
    def episode(self) -> Episode[Any, Any]: ...
    @property
    def closed(self) -> bool: ...

    def hear(self, text: object) -> object:
        """Take a reply, whatever it is; afterwards `messages` ends with what the agent is told. Never raises."""
        ...


class Reaction(NamedTuple):
    """Result of a reply.

    text: message to the agent
    reward: 0 until the episode is over, then that of its score; None where nothing is held out to judge it
    done: whether it is over
    info: `left` of the allowance; `steps` that the reply caused (action, reading, refused, cost); `score` once done
    """

    text: str
    reward: float | None
    done: bool
    info: dict[str, Any]


class TextEpisode:
    """One item as an environment: `reset`, then `reply` until `done`. The same replies give the same reactions.

    opened: a fresh episode in messages
    score: the benchmark's verdict on its steps, ready for JSON
    reward: what a score is worth
    """

    def __init__(
        self,
        opened: Callable[[], Chat],
        score: Callable[[Sequence[Step[Any]]], dict[str, Any]],
        reward: Callable[[Mapping[str, Any]], float | None],
    ) -> None:
        self._opened = opened
        self._score = score
        self._reward = reward
        self._chat: Chat | None = None

    def __repr__(self) -> str:
        return f"<TextEpisode: {f'{len(self.messages)} messages' if self._chat else 'not begun'}>"

    def reset(self) -> list[Message]:
        """Begin anew; the messages that the agent starts from."""
        self._chat = self._opened()
        return list(self._chat.messages)

    @property
    def messages(self) -> list[Message]:
        """All messages so far; none before `reset`."""
        return list(self._chat.messages) if self._chat else []

    def reply(self, text: object) -> Reaction:
        """Return what comes of a reply, whatever it is. `ValueError` if there is no episode that goes on."""
        chat = self._going_on()
        before = len(chat.episode.steps)
        chat.hear(text)
        steps = chat.episode.steps[before:]
        info: dict[str, Any] = {
            "left": chat.episode.left,
            "steps": [
                {"action": dict(s.action), "reading": s.reading, "refused": s.refused, "cost": s.cost} for s in steps
            ],
        }
        if chat.closed:
            info["score"] = self._score(chat.episode.steps)
        reward = self._reward(info["score"]) if chat.closed else 0.0
        return Reaction(chat.messages[-1]["content"], reward, chat.closed, info)

    def _going_on(self) -> Chat:
        if self._chat is None or self._chat.closed:
            raise ValueError("no episode goes on; call reset() first")
        return self._chat


class JsonChat:
    """An episode in which every reply holds one action as a JSON object, with or without words around it.

    told: what the agent is told after a step, of the step and the allowance that is left
    max_turns: replies that are taken at most, since one without an action may cost nothing
    reply_action: the action that a reply states, by default its one JSON object; `ActionError` if it states none
    thoughts: which part of a reply is thoughts, in which no action is read
    """

    def __init__(
        self,
        episode: Episode[Any, Any],
        instructions: str,
        told: Callable[[Step[Any], int], str],
        *,
        max_turns: int,
        reply_action: Callable[[str], Action] | None = None,
        thoughts: Thoughts = "strip",
    ) -> None:
        self.episode = episode
        self.messages: list[Message] = [{"role": "user", "content": instructions}]
        self._told = told
        self._turns_left = max_turns
        self._reply_action = reply_action or sole_action
        self._thoughts = thoughts

    @property
    def closed(self) -> bool:
        return self.episode.closed or self._turns_left <= 0

    def hear(self, text: object) -> None:
        self._turns_left -= 1
        try:
            if not isinstance(text, str):
                raise ActionError(f"expected text, found {short_repr(text)}")
            answer = self._told(
                self.episode.act(self._reply_action(read_reply_text(text, self._thoughts))), self.episode.left
            )
        except ActionError as error:
            answer = f"Not understood: {error}."
        self.messages.append({"role": "assistant", "content": text if isinstance(text, str) else ""})
        self.messages.append({"role": "user", "content": answer})


TURNS_PER_ACTION = 2  # of the allowance: a reply without an action costs nothing, but there is an end to them
TURNS_BESIDE = 8  # to try the reactor, to submit, and to be refused


class Conversable(Protocol):
    """The parts of a benchmark's episodes that a conversation needs."""

    def open(self, item: Any) -> Episode[Any, Any]: ...
    def describe(self, episode: Episode[Any, Any], step: Step[Any]) -> str: ...
    def parse_action(self, item: Any, text: str) -> Action: ...


def json_chat(of: Conversable, item: Any, instructions: str, thoughts: Thoughts = "strip") -> JsonChat:
    """Open a conversation about an interactive item, with one action a reply."""
    episode = of.open(item)
    return JsonChat(
        episode,
        instructions,
        lambda step, _: of.describe(episode, step),
        max_turns=TURNS_PER_ACTION * episode.left + TURNS_BESIDE,
        reply_action=lambda text: of.parse_action(item, text),
        thoughts=thoughts,
    )
