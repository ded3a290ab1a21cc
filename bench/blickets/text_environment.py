"""Blicket items as text environments: replies of a model are played as moves, one a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from calibrant.baselines.blickets.context import Scorer, deterministic
from calibrant.baselines.blickets.dialogue import BASE, Actions, Dialogue, Prompting
from calibrant.bench.blickets.scoring import is_right
from calibrant.bench.core.capabilities import PlayedReplies
from calibrant.bench.episodes import TextEpisode
from calibrant.dsl.answer_text import Thoughts
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.blickets.score import grade
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, in_one_line


def text_episode(
    item: BlicketItem,
    prompting: Prompting = BASE,
    scorer: Scorer = deterministic,
    actions: Actions = "named",
    thoughts: Thoughts = "strip",
) -> TextEpisode:
    """Return an item as an environment: reward 1 for a correct answer, else 0.

    actions: numbered lists the moves, and a reply may give the number of one
    The score has, as `unread`, the share of replies without an action.

    An episode may also end open, when its turns were spent on replies without an action: the score then has `closed`
    false, and `correct` is null.
    """
    opened: list[Dialogue] = []

    def open_dialogue() -> Dialogue:
        opened[:] = [Dialogue(BlicketEpisode(item), prompting, scorer, actions, thoughts)]
        return opened[0]

    def score(steps: Sequence[Step[Any]]) -> dict[str, Any]:
        return grade(item, steps).as_json(item.task.objects) | {"unread": opened[0].unread_share}

    return TextEpisode(open_dialogue, score, reward_of_answer)


def reward_of_answer(score: Mapping[str, Any]) -> float:
    """1 for a correct answer, 0 for a wrong one, a timeout and none."""
    return float(is_right(score))


class ReplyOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a dialogue that decide what a reply does; the way of prompting decides nothing."""

    actions: Actions = "named"


def play_replies(
    item: BlicketItem, replies: Sequence[Any], stated: Mapping[str, Any], thoughts: Thoughts = "strip"
) -> PlayedReplies:
    """Play replies, one a turn; `CalibrantError` for one after the end and for unknown options."""
    try:
        options = msgspec.convert(stated, ReplyOptions)
    except msgspec.ValidationError as error:
        raise CalibrantError(f"dialogue: {in_one_line(str(error))}; known: actions named or numbered") from None
    dialogue = Dialogue(BlicketEpisode(item), BASE, actions=options.actions, thoughts=thoughts)
    for number, reply in enumerate(replies):
        if dialogue.closed:
            raise CalibrantError(f"reply {number} of {len(replies)} comes after the end of the episode")
        dialogue.hear(reply)
    unread = sum(turn.step is None for turn in dialogue.turns)
    totals = {"replies": len(replies), "unread": unread, "unread_share": dialogue.unread_share}
    return PlayedReplies(dialogue.episode.steps, totals)
