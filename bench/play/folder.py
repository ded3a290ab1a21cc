"""Folders of play: the journal of all games and their records, with one writer; and a participant on one item.

A folder of play has `moves.jsonl` (the journal) and `records.jsonl` (bench.runs.records), one line per closed item.
The journal has no readings, because equal moves give equal readings. A killed process loses nothing that it answered;
the next one continues from the journal.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from math import fsum, inf
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeAlias

import msgspec
from msgspec import Meta

from calibrant.bench.core.typed_moves import Act, Draft, Edit, WordsError
from calibrant.bench.play.clocks import Elapsed, StudyTime, read_elapsed, write_elapsed
from calibrant.bench.play.game import (
    AID,
    FINISH,
    START,
    Assignment,
    Game,
    ItemKey,
    PlayPool,
    QuestionsStop,
    Stop,
    balanced_assignment,
    game_record,
    game_verdict,
    protocol_of,
)
from calibrant.bench.runs import records
from calibrant.dsl.atomic_write import PRIVATE
from calibrant.dsl.episode import Action, Step
from calibrant.dsl.errors import CalibrantError, short_repr

# --- The journal: every event of every item, written to disk before it is answered ------------------------------------
JOURNAL_VERSION = 1
# keys of events
LANG = "lang"  # language, in the event of the start
ANSWERS = "answers"  # answers to a page of questions
PASSED = "passed"  # whether the questions about instructions were answered correctly
TIME_UP = "time_up"  # whether a limit ended the item or page
RESTART = "restart"  # whether the page was opened again after a restart of its server
_PARTICIPANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)


class EventKey(NamedTuple):
    """Key of an event. number: index among the participant's events on the item."""

    participant: str
    pool_digest: str
    instance: str
    number: int


class PageClock(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Seconds of an event by the clock of a participant's page."""

    seconds: Annotated[float, Meta(ge=0, le=1e7, description="since the event before it, or since the page was loaded")]
    interruptions: Annotated[
        list[Literal["reload", "sleep", "hidden", "resent"]],
        Meta(max_length=4, description="what interrupted these seconds"),
    ] = []


Clock: TypeAlias = PageClock | msgspec.UnsetType


class EventRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One event of a game."""

    participant: Annotated[str, Meta(description="id of the participant; no name")]
    pool_digest: Annotated[str, Meta(description="SHA-256 of the pool; empty for what belongs to no item")]
    instance: Annotated[str, Meta(description="the pool's id of the item; or a page of questions")]
    number: Annotated[int, Meta(description="events of this participant on this item before it")]
    event: Annotated[
        dict[str, Any],
        Meta(
            description="open, act, draft, undo, give_up, time_up, answers, finished or screened_out, with what "
            "belongs to it as JSON; time_up in it: a limit ended the page or the study"
        ),
    ]
    seconds: Annotated[
        float, Meta(description="since the event before it; opened again: until the program before was ended")
    ]
    at: Annotated[str, Meta(description="UTC, ISO 8601")]
    version: Annotated[int, Meta(description="version of the format")] = JOURNAL_VERSION
    clock: Annotated[Clock, Meta(description="by the participant's page; absent in a terminal")] = msgspec.UNSET
    study_seconds: Annotated[
        float | msgspec.UnsetType, Meta(description="of the study until then; absent where it has no limit")
    ] = msgspec.UNSET

    @property
    def key(self) -> EventKey:
        return EventKey(self.participant, self.pool_digest, self.instance, self.number)

    @property
    def item(self) -> ItemKey:
        """The item of the event."""
        return ItemKey(self.pool_digest, self.instance)


# private: events hold texts that participants typed
EVENTS = records.RecordKind("moves", "a game", EventRecord, JOURNAL_VERSION, lambda event: tuple(event.key), PRIVATE)


class Journal(records.JsonlFile[EventRecord]):
    """The journal of a folder, open for appending by this process alone."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, EVENTS)

    def append(self, record: EventRecord) -> None:
        """Write one event to disk before returning."""
        super().append(record)
        os.fsync(self._descriptor)


def check_participant(name: str) -> str:
    """Return a participant's id; `CalibrantError` for a malformed one."""
    if not _PARTICIPANT.fullmatch(name):
        allowed = "1 to 64 letters, digits, `_`, `.` and `-`, of which the first is a letter or a digit"
        raise CalibrantError(f"{short_repr(name)} is no participant id; it has {allowed}")
    return name


# --- A folder of play: journal and records of all games, with one writer ----------------------------------------------
MAX_IDLE_SECONDS = 3_600.0  # longer moves are recorded as this long, for the person was probably away


class PlayFolder:
    """Journal and records of a folder, or in memory alone if there is no folder.

    config: conditions that every record states (feedback, study)
    """

    def __init__(self, folder: Path | None, pools: Sequence[PlayPool], config: Mapping[str, Any]) -> None:
        self.folder = folder
        self.pools = {pool.digest: pool for pool in pools}
        self.config = dict(config)
        self._study_times: dict[str, StudyTime] = {}  # by participant; empty in studies without a limit
        self._events: dict[tuple[str, ItemKey], list[EventRecord]] = {}
        self._study_seconds: dict[str, float] = {}
        self._elapsed: dict[str, Elapsed] = {}  # by participant, as the program before or this one stored it
        self._stack = ExitStack()
        self._closed: set[tuple[str, ItemKey]] = set()
        self._recorded: set[tuple[str, ItemKey]] = set()  # protocol and item: a game has one record, whatever its terms
        self._computed: dict[tuple[str, ItemKey], records.Record] = {}
        self._verdicts: dict[tuple[str, ItemKey], dict[str, Any]] = {}
        self._lacks_groups = False
        self._lock = threading.RLock()  # of journal, records and pools
        self._scoring = threading.Lock()  # of the shared evaluators; separate, so that moves need not wait for a score
        self._journal: Journal | None = None
        self._records: records.RunFile | None = None

    def __enter__(self) -> Self:
        if self.folder is None:
            return self
        with ExitStack() as stack:
            try:
                self._records = stack.enter_context(records.RunFile(self.folder))
            except records.FolderInUseError:
                text = "another program is writing there, such as the server of the study; stop it by Ctrl-C first"
                raise CalibrantError(f"{self.folder}: {text}") from None
            self._journal = stack.enter_context(Journal(self.folder))
            for event in self._journal:
                self._events.setdefault((event.participant, event.item), []).append(event)
                if event.study_seconds is not msgspec.UNSET:
                    self._study_seconds[event.participant] = event.study_seconds
            self._elapsed = read_elapsed(self.folder)
            self._stack = stack.pop_all()
        keys = (key for key in self._records.keys if isinstance(key, records.Key))
        self._recorded = {(key.protocol, ItemKey(key.pool_digest, key.instance)) for key in keys}
        digest = records.config_digest(self.config)
        self._lacks_groups = any(
            records.Key(*item, protocol_of(name), digest) in self._records.keys
            for name, item in self._events
            if self.assignment(name) is not None
        )
        self._write_missing_records()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def events(self, participant: str, item: ItemKey) -> Sequence[EventRecord]:
        """Return the events of a participant on an item, oldest first."""
        return self._events.get((participant, item), ())

    @property
    def participants(self) -> list[str]:
        """Participants with an event, in the order of their first one."""
        return list(dict.fromkeys(participant for participant, _ in self._events))

    def add(
        self,
        participant: str,
        item: ItemKey,
        event: Mapping[str, Any],
        seconds: float,
        clock: Clock = msgspec.UNSET,
        *,
        overtime: float = 0.0,
    ) -> EventRecord:
        """Append an event and write it to disk before returning.

        clock: time by the participant's page; overtime: seconds since the limit that caused the event
        """
        seconds = round(min(seconds, MAX_IDLE_SECONDS), 3)
        at = (datetime.now(UTC) - timedelta(seconds=overtime)).isoformat(timespec="milliseconds")
        with self._lock:
            events = self._events.setdefault((participant, item), [])
            number = len(events)
            study = self._study_times.get(participant)
            study_seconds = msgspec.UNSET if study is None else round(min(study.seconds - overtime, study.limit), 3)
            record = EventRecord(
                participant,
                item.pool_digest,
                item.instance,
                number,
                dict(event),
                seconds,
                at,
                clock=clock,
                study_seconds=study_seconds,
            )
            if self._journal is not None:
                self._journal.append(record)
            events.append(record)
        return record

    def time_study(self, participant: str, limit: float, clock: Callable[[], float] = time.monotonic) -> StudyTime:
        """Return the clock of a participant's study; with a limit, further events record its seconds."""
        seconds_before = self._study_seconds.get(participant, 0.0)
        if participant in self._elapsed:
            seconds_before = max(seconds_before, self._elapsed[participant].study_seconds)
        study = StudyTime(limit, seconds_before, clock, has_begun=self.has_begun(participant))
        if limit:
            self._study_times[participant] = study
        return study

    def elapsed_seconds(self, participant: str, item: ItemKey) -> float:
        """Return the seconds that the program before counted at a stop since its last event; 0 if unknown."""
        entry = self._elapsed.get(participant)
        is_current = entry is not None and (entry.pool_digest, entry.instance) == item
        if entry is None or not is_current or entry.number != len(self.events(participant, item)):
            return 0.0
        return entry.seconds

    def store_elapsed(self, elapsed: Mapping[str, Elapsed]) -> None:
        """Store the seconds of participants since their last events."""
        before, self._elapsed = self._elapsed, {**self._elapsed, **elapsed}
        if self.folder is not None and before != self._elapsed:
            write_elapsed(self.folder, self._elapsed)

    def has_finished(self, participant: str) -> bool:
        """Return whether a participant reached the end or was screened out."""
        return bool(self.events(participant, FINISH))

    def has_begun(self, participant: str) -> bool:
        """Return whether a participant has left the start page."""
        return bool(self.events(participant, START))

    def begin(
        self,
        participant: str,
        *,
        agreed: bool,
        groups: Sequence[str] = (),
        seed: str = "",
        lang: str = "",
        clock: Clock = msgspec.UNSET,
    ) -> None:
        """Record once that a participant began, whether they agreed to the consent text, their group and language."""
        with self._lock:
            if not self.has_begun(participant):
                event: dict[str, Any] = {"answers": {"agreed": agreed}} | ({LANG: lang} if lang else {})
                if groups:
                    number = sum(self.assignment(name) is not None for name in self.participants)
                    event |= balanced_assignment(groups, seed, number)._asdict()
                self.add(participant, START, event, 0.0, clock)

    def language(self, participant: str) -> str:
        """Return the language in which a participant began; empty before, and in studies with one language."""
        return next((str(record.event.get(LANG, "")) for record in self.events(participant, START)), "")

    def assignment(self, participant: str) -> Assignment | None:
        """Return the group of a participant; None before they began, and in studies without groups."""
        for record in self.events(participant, START):
            if "group" in record.event:
                return Assignment(record.event["group"], record.event["rank"])
        return None

    def finish(self, participant: str, *, is_screened_out: bool, is_late: bool = False) -> None:
        """Record once that a participant reached the end, or failed the questions about the instructions.

        is_late: the time of the study was up
        """
        with self._lock:
            if not self.has_finished(participant):
                kind = "screened_out" if is_screened_out else "finished"
                study = self._study_times.get(participant)
                overtime = study.overtime if is_late and study is not None else 0.0
                self.add(participant, FINISH, {kind: {TIME_UP: True} if is_late else {}}, 0.0, overtime=overtime)

    def is_passed(self, participant: str, stop: QuestionsStop) -> bool:
        """Return whether a participant has completed a page of questions."""
        events = (record.event for record in self.events(participant, stop.key) if ANSWERS in record.event)
        return any(event.get(PASSED, True) for event in events)

    def is_done(self, participant: str, stop: Stop) -> bool:
        """Return whether a participant has completed an item or a page of questions."""
        if isinstance(stop, QuestionsStop):
            return self.is_passed(participant, stop)
        return self.is_closed(participant, stop.key)

    def num_tries(self, participant: str, stop: QuestionsStop) -> int:
        """Return the number of times that a page of questions was answered."""
        return sum(ANSWERS in record.event for record in self.events(participant, stop.key))

    def game(self, participant: str, item: ItemKey) -> Game:
        """Return the game of a participant on an item after all its events."""
        with self._lock:  # access to an item may read the pool's file
            game = Game(self.pools[item.pool_digest], item.instance)
        for record in self.events(participant, item):
            apply_event(game, record)
        return game

    def is_closed(self, participant: str, item: ItemKey) -> bool:
        """Return whether a participant has closed an item."""
        return (participant, item) in self._closed

    def _conditions(self, participant: str) -> dict[str, Any]:
        """Return the conditions in the records of a participant, with the group in studies with groups.

        Records before 0.1.0 lack the group, which is part of their key: folders with such records continue without it.
        """
        assignment = None if self._lacks_groups else self.assignment(participant)
        return self.config if assignment is None else {**self.config, "group": assignment.group}

    def is_recorded(self, participant: str, item: ItemKey) -> bool:
        """Return whether an item has a record, under any conditions."""
        return (protocol_of(participant), item) in self._recorded

    def verdict(self, participant: str, game: Game) -> dict[str, Any]:
        """Write the record of a closed game unless it exists; return the verdict for JSON."""
        record, key = self.record(participant, game), (participant, ItemKey(game.pool.digest, game.item.id))
        with self._scoring:
            if key not in self._verdicts:
                self._verdicts[key] = game_verdict(game.pool.benchmark, game.shown, record)
            return self._verdicts[key]

    def record(self, participant: str, game: Game) -> records.Record:
        """Return the record of a game, computed once and written once."""
        item = ItemKey(game.pool.digest, game.item.id)
        events = self.events(participant, item)
        started = events[0].at if events else datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._scoring:
            cached = self._computed.get((participant, item))
            if cached is not None:
                return cached
            record = game_record(game, participant, self._conditions(participant), started)
            with self._lock:
                if self._records is not None and not self.is_recorded(participant, item):
                    self._records.append(record)
                    self._recorded.add((record.protocol, item))
            if game.closed:
                self._closed.add((participant, item))
                self._computed[participant, item] = record
        return record

    def warm_up(self) -> None:
        """Score an empty answer for each pool, so that the first participant need not wait for compilation."""
        for pool in self.pools.values():
            with suppress(CalibrantError):
                game = Game(pool, next(iter(pool.indices)))
                game.give_up()
                with self._scoring:
                    game_verdict(pool.benchmark, game.shown, game_record(game, "warm-up", self.config, ""))

    def _write_missing_records(self) -> None:
        """Write records of games that were closed when a process was killed before it wrote them."""
        for participant, item in list(self._events):
            if item.pool_digest not in self.pools:
                continue
            if self.is_recorded(participant, item):
                self._closed.add((participant, item))
                continue
            game = self.game(participant, item)
            if game.closed:
                self.record(participant, game)


def apply_event(game: Game, record: EventRecord) -> None:
    """Replay an event of the journal; `CalibrantError` if the item refuses it."""
    event, seconds = record.event, record.seconds
    if "act" in event:
        game.act(event["act"], seconds)
    elif "draft" in event:
        game.write(event["draft"], seconds)
    elif "undo" in event:
        game.take_back(seconds)
    elif "give_up" in event:
        game.give_up(seconds)
    elif TIME_UP in event:
        game.run_out(seconds)
    elif "open" in event:
        game.wait(seconds)
    else:
        key = EventKey(*record.key)
        raise CalibrantError(f"moves.jsonl: event {key.number} of {key.participant} is of no known kind")


# --- A participant at one stop (item or page), with a clock; moves are written to disk before they are carried out ----


class Visit:
    """One participant at one stop.

    clock: returns the seconds of a monotonic clock; limit: seconds until the stop ends, 0 for none
    study: clock of the study, None if it has no limit; page_clock: time of the next event by the participant's page
    """

    def __init__(
        self,
        folder: PlayFolder,
        participant: str,
        item: ItemKey,
        clock: Callable[[], float] = time.monotonic,
        *,
        limit: float = 0,
        study: StudyTime | None = None,
    ) -> None:
        self.folder = folder
        self.participant = participant
        self.item = item
        self.limit = limit
        self.page_clock: Clock = msgspec.UNSET
        self._clock = clock
        self.elapsed_before = folder.elapsed_seconds(participant, item)  # counted by an ended program
        self._since = clock() - self.elapsed_before
        self._study = study

    @property
    def balance(self) -> float:
        """Seconds until a limit ends the stop, negative after it; time in which no server ran does not count."""
        remaining = inf if self._study is None else self._study.balance
        if not self.limit:
            return remaining
        seconds_used = fsum(record.seconds for record in self.folder.events(self.participant, self.item))
        return min(remaining, self.limit - seconds_used - (self._clock() - self._since))

    @property
    def seconds_left(self) -> float:
        """Seconds until a limit ends the stop; infinite without one."""
        return max(0.0, self.balance)

    @property
    def overtime(self) -> float:
        """Seconds since a limit ended the stop; 0 before."""
        return max(0.0, -self.balance)

    @property
    def elapsed(self) -> Elapsed:
        """Seconds since the last event, capped at a limit."""
        # read first: an event meanwhile makes number and seconds void
        number = len(self.folder.events(self.participant, self.item))
        seconds = min(self._clock() - self._since - self.overtime, MAX_IDLE_SECONDS)
        return Elapsed(*self.item, number, round(seconds, 3))

    def _add(self, event: dict[str, Any], *, is_late: bool = False) -> float:
        """Write an event to disk; return its recorded seconds.

        is_late: whether a limit caused it; the time of the limit is recorded then
        """
        overtime = self.overtime if is_late else 0.0
        now = self._clock() - overtime
        seconds, self._since = max(0.0, now - self._since), now
        clock, self.page_clock = self.page_clock, msgspec.UNSET
        return self.folder.add(self.participant, self.item, event, seconds, clock, overtime=overtime).seconds


class Player(Visit):
    """One participant on one item."""

    def __init__(
        self,
        folder: PlayFolder,
        participant: str,
        item: ItemKey,
        clock: Callable[[], float] = time.monotonic,
        *,
        limit: float = 0,
        study: StudyTime | None = None,
    ) -> None:
        self.game = folder.game(participant, item)  # before the clock starts
        super().__init__(folder, participant, item, clock, limit=limit, study=study)
        if not self.game.closed:
            self._check_aid()
            self.game.wait(self._add({"open": {AID: folder.config[AID]} if AID in folder.config else {}}))

    @property
    def moves(self) -> list[dict[str, Any]]:
        """The actions so far, oldest first."""
        events = self.folder.events(self.participant, self.item)
        return [record.event["act"] for record in events if "act" in record.event]

    def do(self, stated: Act | Edit) -> Step[Any] | None:
        """Carry out a move or an edit; return the step of an episode, else None."""
        if isinstance(stated, Act):
            return self.act(stated.action)
        self.write(stated.draft)
        return None

    def act(self, action: Action) -> Step[Any] | None:
        """Carry out a move; `WordsError` for an invalid one."""
        self.game.check(action)
        seconds = self._add({"act": dict(action)})
        return self.game.act(action, seconds)

    def write(self, draft: Draft) -> None:
        """Replace the draft."""
        self._require_open()
        seconds = self._add({"draft": dict(draft)})
        self.game.write(draft, seconds)

    def undo(self) -> None:
        """Undo the last change of the draft; `WordsError` if there is none."""
        self._require_open()
        if self.game.earlier_draft is None:
            raise WordsError("nothing to take back; moves that were carried out stay, for their reading was seen")
        seconds = self._add({"undo": {}})
        self.game.take_back(seconds)

    def give_up(self) -> None:
        """Close the item without an answer."""
        self._require_open()
        seconds = self._add({"give_up": {}})
        self.game.give_up(seconds)

    def close_if_late(self) -> bool:
        """End the item without an answer if its time is up; return whether it is."""
        if not self.game.closed and not self.seconds_left:
            self.game.run_out(self._add({TIME_UP: {}}, is_late=True))
        return self.game.is_late

    def verdict(self) -> dict[str, Any]:
        """Write the record of the closed game; return the verdict for JSON."""
        return self.folder.verdict(self.participant, self.game)

    def _check_aid(self) -> None:
        """Raise `CalibrantError` for another aid than that of earlier moves, because a record names one."""
        aid = self.folder.config.get(AID)
        events = self.folder.events(self.participant, self.item)
        openings = [record.event["open"] for record in events if "open" in record.event]
        for earlier in (opening.get(AID) for opening in openings):
            if earlier != aid:
                condition = "without an aid" if earlier is None else f"with --aid {earlier}"
                text = f"{self.game.shown.id} was begun {condition} by {self.participant}"
                raise CalibrantError(f"{text}; go on like that, or give another --out")

    def _require_open(self) -> None:
        if self.game.closed:
            raise WordsError("the item is closed")
