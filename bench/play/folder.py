"""A folder of play: the journal of all games, their records, one writer, and what is read from there after a kill."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from calibrant.bench.play.game import Game
from calibrant.bench.play.journal import EventKey, EventRecord, Journal
from calibrant.bench.play.plan import START
from calibrant.bench.play.pool import ItemKey, PlayPool
from calibrant.bench.play.record import game_record, game_verdict, protocol_of
from calibrant.bench.play.review.items import ReviewedItem
from calibrant.bench.runs.jsonl_file import FolderInUseError
from calibrant.bench.runs.records import Key, Record, RunFile, config_digest
from calibrant.bench.runs.workers import ExactEpisode, exact_episode
from calibrant.dsl.errors import CalibrantError

MAX_IDLE_SECONDS = 3_600.0  # a move that took longer is recorded as this: the person was away


class PlayFolder:
    """Journal and records of a folder, or of memory alone where there is no folder.

    config: what every record states of the conditions (feedback, study)
    """

    def __init__(self, folder: Path | None, pools: Sequence[PlayPool], config: Mapping[str, Any]) -> None:
        self.folder = folder
        self.pools = {pool.digest: pool for pool in pools}
        self.config = dict(config)
        self._config_digest = config_digest(self.config)
        self._events: dict[tuple[str, ItemKey], list[EventRecord]] = {}
        self._stack = ExitStack()
        self._closed: set[tuple[str, ItemKey]] = set()
        self._computed: dict[tuple[str, ItemKey], Record] = {}
        self._verdicts: dict[tuple[str, ItemKey], dict[str, Any]] = {}
        self._reviews: dict[tuple[str, ItemKey], ReviewedItem] = {}
        self._ideal: dict[ItemKey, ExactEpisode | None] = {}
        self._lock = threading.RLock()  # of journal, records and pools
        self._scoring = threading.Lock()  # evaluators are shared; a move need not wait for a score
        self._journal: Journal | None = None
        self._records: RunFile | None = None

    def __enter__(self) -> Self:
        if self.folder is None:
            return self
        with ExitStack() as stack:
            try:
                self._records = stack.enter_context(RunFile(self.folder))
            except FolderInUseError:
                text = "another program is writing there, such as the server of the study; stop it by Ctrl-C first"
                raise CalibrantError(f"{self.folder}: {text}") from None
            self._journal = stack.enter_context(Journal(self.folder))
            for event in self._journal:
                self._events.setdefault((event.participant, event.item), []).append(event)
            self._stack = stack.pop_all()
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
        """Everybody who has an event, in the order of their first."""
        return list(dict.fromkeys(participant for participant, _ in self._events))

    def add(self, participant: str, item: ItemKey, event: Mapping[str, Any], seconds: float) -> EventRecord:
        """Append an event; it is on disk when this returns."""
        seconds = round(min(seconds, MAX_IDLE_SECONDS), 3)
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._lock:
            events = self._events.setdefault((participant, item), [])
            record = EventRecord(participant, item.pool_digest, item.instance, len(events), dict(event), seconds, at)
            if self._journal is not None:
                self._journal.append(record)
            events.append(record)
        return record

    def has_begun(self, participant: str) -> bool:
        """Return whether the start page is behind a participant."""
        return bool(self.events(participant, START))

    def begin(self, participant: str, *, agreed: bool) -> None:
        """Record that a participant began, and whether they agreed to a text; once."""
        with self._lock:
            if not self.has_begun(participant):
                self.add(participant, START, {"answers": {"agreed": agreed}}, 0.0)

    def game(self, participant: str, item: ItemKey) -> Game:
        """Return the game of a participant on an item, as its events leave it."""
        with self._lock:  # pools may read their files when an item is asked for
            game = Game(self.pools[item.pool_digest], item.instance)
        for record in self.events(participant, item):
            apply_event(game, record)
        return game

    def is_closed(self, participant: str, item: ItemKey) -> bool:
        """Return whether an item is behind a participant."""
        return (participant, item) in self._closed

    def is_recorded(self, participant: str, item: ItemKey) -> bool:
        """Return whether an item has its record."""
        key = Key(item.pool_digest, item.instance, protocol_of(participant), self._config_digest)
        return self._records is not None and key in self._records.keys

    def verdict(self, participant: str, game: Game) -> dict[str, Any]:
        """Write the record of a closed game unless it is there; return the verdict, ready for JSON."""
        record, key = self.record(participant, game), (participant, ItemKey(game.pool.digest, game.item.id))
        with self._scoring:
            if key not in self._verdicts:
                self._verdicts[key] = game_verdict(game.pool.benchmark, game.shown, record)
            return self._verdicts[key]

    def record(self, participant: str, game: Game) -> Record:
        """Return the record of a game, computed once and written once."""
        item = ItemKey(game.pool.digest, game.item.id)
        events = self.events(participant, item)
        started = events[0].at if events else datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._scoring:
            cached = self._computed.get((participant, item))
            if cached is not None:
                return cached
            record = game_record(game, participant, self.config, started)
            with self._lock:
                if self._records is not None and record.key not in self._records.keys:
                    self._records.append(record)
            if game.closed:
                self._closed.add((participant, item))
                self._computed[participant, item] = record
        return record

    def review(self, participant: str, item: ItemKey) -> ReviewedItem:
        """Return an item that a participant ended, beside the ideal learner."""
        game, key = self.game(participant, item), (participant, item)
        record, verdict = self.record(participant, game), self.verdict(participant, game)
        with self._scoring:
            if item not in self._ideal:
                self._ideal[item] = exact_episode(game.pool.benchmark, game.pool.item(item.instance))
            if key not in self._reviews:
                attribution = verdict["attribution"] or {}
                self._reviews[key] = ReviewedItem(
                    game.pool.benchmark, game.shown, record, self._ideal[item], attribution
                )
            return self._reviews[key]

    def warm_up(self) -> None:
        """Score nothing once for each pool, so that the first participant does not wait for what is compiled."""
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
    """Repeat an event of the journal; `CalibrantError` if the item does not take it."""
    event, seconds = record.event, record.seconds
    if "act" in event:
        game.act(event["act"], seconds)
    elif "draft" in event:
        game.write(event["draft"], seconds)
    elif "undo" in event:
        game.take_back(seconds)
    elif "give_up" in event:
        game.give_up(seconds)
    elif "open" in event:
        game.wait(seconds)
    else:
        key = EventKey(*record.key)
        raise CalibrantError(f"moves.jsonl: event {key.number} of {key.participant} is of no known kind")
