"""Items as conversations with a model, and verdicts on its replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.episodes import Chat
from calibrant.dsl.episode import ActionError, Step


class ConversationResult(NamedTuple):
    """Result of a conversation.

    verdict: that of the benchmark; steps: of an interactive item, all that the replies caused
    answered: whether an answer was read and accepted
    """

    verdict: Any
    steps: Sequence[Step[Any]]
    answered: bool


def conversation(of: Benchmark[Any], item: Any, instructions: str = "") -> Chat:
    """Open a conversation about an interactive item, with one action a reply."""
    return of.play.chat(item, instructions)


def score_replies(of: Benchmark[Any], item: Any, replies: Sequence[str]) -> ConversationResult:
    """Score the replies to an item, in their order; the result depends on nothing else.

    An item that is answered at once has its answer in the last reply. The replies to an interactive one are its
    conversation again; if that is still open at the end, an answer that the last reply states is handed in.
    """
    if not of.is_interactive(item):
        verdict = of.functions.score(item, replies[-1] if replies else None)
        return ConversationResult(verdict, (), verdict.valid)
    chat = conversation(of, item)
    for reply in replies[:-1]:
        if not chat.closed:
            chat.hear(reply)
    if replies and not chat.closed:
        _close(of, item, chat, replies[-1])
    steps = tuple(chat.episode.steps)
    verdict = of.functions.score(item, None, steps=steps)
    return ConversationResult(verdict, steps, of.play.submitted(steps) is not None)


def _close(of: Benchmark[Any], item: Any, chat: Chat, reply: str) -> None:
    """Submit the answer that the last reply states, with or without a submission; else treat it as an action."""
    try:
        answer = of.scoring.extract(item, reply)
    except ActionError:
        chat.hear(reply)
        return
    for action in of.play.submission(answer, tuple(chat.episode.steps)):
        chat.episode.act(action)
