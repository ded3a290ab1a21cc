"""Recorded replies of a system, played again: in the paper's format, or by verbs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from calibrant.bench.causalab.dialogues.chat import DialogueOptions, LabChat, Schema, Verify
from calibrant.bench.core.play import PlayedReplies
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.errors import CalibrantError, in_one_line


class ReplyOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a dialogue that decide what a reply does; what is shown beside the answers decides nothing."""

    schema: Schema = "free"
    verify: Verify = "never"


def play_replies(item: LabItem, replies: Sequence[Any], stated: Mapping[str, Any]) -> PlayedReplies:
    """Play replies, texts or objects, one a turn; `CalibrantError` for one after the end and for unknown options."""
    try:
        options = msgspec.convert(stated, ReplyOptions)
    except msgspec.ValidationError as error:
        choices = "known: schema free or paper, verify never or once"
        raise CalibrantError(f"dialogue: {in_one_line(str(error))}; {choices}") from None
    chat = LabChat(item, DialogueOptions(options.schema, options.verify))
    for number, reply in enumerate(replies):
        if chat.closed:
            raise CalibrantError(f"reply {number} of {len(replies)} comes after the end of the episode")
        chat.hear(json.dumps(reply) if isinstance(reply, Mapping) else reply)
    return PlayedReplies(chat.episode.steps, chat.totals.as_json())
