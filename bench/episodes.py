"""Interactive items for agents of any framework: messages in, text out, and a reward that does not depend on time.

Training and evaluation environments wrap `TextEpisode` in a few lines (docs/episodes.md). A `Chat` words the messages
of one benchmark; `JsonChat` is one that every interactive benchmark can use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from calibrant.dsl.answer_text import Thoughts, read_reply_text
from calibrant.dsl.episode import Action, ActionError, Episode, Step, sole_action
from calibrant.dsl.errors import short_repr
from calibrant.dsl.item import Message


class Chat(Protocol):
    """An episode as a conversation with an agent.

    messages: all messages so far, the last one addressed to the agent
    closed: whether no further reply is accepted
    """

    @property
    def messages(self) -> Sequence[Message]: ...
    @property
    def episode(self) -> Episode[Any, Any]: ...
    @property
    def closed(self) -> bool: ...

    def take_text(self, text: object) -> object:
        """Take a reply of the agent, and append the answering message to `messages`; the result is not read.

        It never raises: a reply that is no text or states no action is answered by a message that says so.
        """
        ...


class Reaction(NamedTuple):
    """Result of a reply.

    text: next message to the agent
    reward: 0 until the episode is over, then the reward of its score; None if nothing is held out to judge it
    done: whether the episode is over
    info: `left`, the remaining budget of the item in costs of steps; `steps` that the reply caused (action, reading,
        refused, cost); `score` once done
    """

    text: str
    reward: float | None
    done: bool
    info: dict[str, Any]


class TextEpisode:
    """One item as an environment: `reset`, then `reply` until `done`. The same replies give the same reactions.

    open_chat: begins a new episode of the item
    score: returns the benchmark's verdict on an episode's steps, ready for JSON
    reward: returns the reward of a score, None if nothing is held out to judge it
    """

    def __init__(
        self,
        open_chat: Callable[[], Chat],
        score: Callable[[Sequence[Step[Any]]], dict[str, Any]],
        reward: Callable[[Mapping[str, Any]], float | None],
    ) -> None:
        self._open_chat = open_chat
        self._score = score
        self._reward = reward
        self._chat: Chat | None = None

    def __repr__(self) -> str:
        return f"<TextEpisode: {f'{len(self.messages)} messages' if self._chat else 'not begun'}>"

    def reset(self) -> list[Message]:
        """Begin a new episode; return its first messages to the agent."""
        self._chat = self._open_chat()
        return list(self._chat.messages)

    @property
    def messages(self) -> list[Message]:
        """Return all messages so far; none before `reset`."""
        return list(self._chat.messages) if self._chat else []

    def reply(self, text: object) -> Reaction:
        """Take a reply of any type and return the reaction; `ValueError` before `reset` and after the last reaction."""
        chat = self._open_episode()
        before = len(chat.episode.steps)
        chat.take_text(text)
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

    def _open_episode(self) -> Chat:
        if self._chat is None or self._chat.closed:
            raise ValueError("no episode goes on; call reset() first")
        return self._chat


class JsonChat:
    """A conversation in which every reply holds one action as a JSON object, possibly among other words.

    describe_step: returns the message after a step, from the step and the remaining budget
    max_turns: maximum number of replies, since replies without an action are free
    reply_action: returns the action of a reply, by default its one JSON object; `ActionError` if there is none
    thoughts: rule for parts of a reply that are thoughts, in which no action is read (dsl.answer_text)
    """

    def __init__(
        self,
        episode: Episode[Any, Any],
        instructions: str,
        describe_step: Callable[[Step[Any], int], str],
        *,
        max_turns: int,
        reply_action: Callable[[str], Action] | None = None,
        thoughts: Thoughts = "strip",
    ) -> None:
        self.episode = episode
        self.messages: list[Message] = [{"role": "user", "content": instructions}]
        self._describe_step = describe_step
        self._turns_left = max_turns
        self._reply_action = reply_action or sole_action
        self._thoughts = thoughts

    @property
    def closed(self) -> bool:
        return self.episode.closed or self._turns_left <= 0

    def take_text(self, text: object) -> None:
        self._turns_left -= 1
        try:
            if not isinstance(text, str):
                raise ActionError(f"expected text, found {short_repr(text)}")
            step = self.episode.act(self._reply_action(read_reply_text(text, self._thoughts)))
            message = self._describe_step(step, self.episode.left)
        except ActionError as error:
            message = f"Not understood: {error}."
        self.messages.append({"role": "assistant", "content": text if isinstance(text, str) else ""})
        self.messages.append({"role": "user", "content": message})


TURNS_PER_ACTION = 2  # replies per unit of the budget; they are limited because replies without an action are free
EXTRA_TURNS = 8  # further replies, for free actions (CausaLab's reactor), the submission and refusals


class Conversable(Protocol):
    """The functions of a benchmark's episodes that a conversation needs."""

    def open(self, item: Any) -> Episode[Any, Any]: ...
    def describe(self, episode: Episode[Any, Any], step: Step[Any]) -> str: ...
    def parse_action(self, item: Any, text: str) -> Action: ...


def json_chat(play: Conversable, item: Any, instructions: str, thoughts: Thoughts = "strip") -> JsonChat:
    """Open a conversation about an interactive item with one action per reply."""
    episode = play.open(item)
    return JsonChat(
        episode,
        instructions,
        lambda step, _: play.describe(episode, step),
        max_turns=TURNS_PER_ACTION * episode.left + EXTRA_TURNS,
        reply_action=lambda text: play.parse_action(item, text),
        thoughts=thoughts,
    )
