"""The journal of games: every event of every item, on disk before it is answered.

A folder of play has `moves.jsonl` (this journal) and `records.jsonl` (bench.runs.records), one line for each item that
is closed. What was shown is not in the journal: the same moves give the same readings. A killed process loses nothing
that it answered; whoever reads the journal next goes on from there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from calibrant.bench.play.pool import ItemKey
from calibrant.bench.runs.jsonl_file import JsonlFile, RecordKind
from calibrant.dsl.errors import CalibrantError, short_repr

JOURNAL_VERSION = 1
_PARTICIPANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)


class EventKey(NamedTuple):
    """An event of a game; there is one for each."""

    participant: str
    pool_digest: str
    instance: str
    number: int


class EventRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One event of a game."""

    participant: Annotated[str, Meta(description="id of the participant; no name")]
    pool_digest: Annotated[str, Meta(description="SHA-256 of the pool; empty for what belongs to no item")]
    instance: Annotated[str, Meta(description="the pool's id of the item; or a page of questions")]
    number: Annotated[int, Meta(description="events of this participant on this item before it")]
    event: Annotated[
        dict[str, Any], Meta(description="open, act, draft, give_up or answers, with what belongs to it as JSON")
    ]
    seconds: Annotated[float, Meta(description="since the event before it; 0 where the item was opened again")]
    at: Annotated[str, Meta(description="UTC, ISO 8601")]
    version: Annotated[int, Meta(description="version of the format")] = JOURNAL_VERSION

    @property
    def key(self) -> EventKey:
        return EventKey(self.participant, self.pool_digest, self.instance, self.number)

    @property
    def item(self) -> ItemKey:
        """The item that it is about."""
        return ItemKey(self.pool_digest, self.instance)


EVENTS = RecordKind("moves", "a game", EventRecord, JOURNAL_VERSION, lambda event: tuple(event.key))


class Journal(JsonlFile[EventRecord]):
    """The journal of a folder, open for appending by this process alone."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, EVENTS)

    def append(self, record: EventRecord) -> None:
        """Write one event; it is on disk when this returns."""
        super().append(record)
        os.fsync(self._descriptor)


def check_participant(name: str) -> str:
    """Return a participant id; `CalibrantError` for one that is none."""
    if not _PARTICIPANT.fullmatch(name):
        allowed = "1 to 64 letters, digits, `_`, `.` and `-`, of which the first is a letter or a digit"
        raise CalibrantError(f"{short_repr(name)} is no participant id; it has {allowed}")
    return name
