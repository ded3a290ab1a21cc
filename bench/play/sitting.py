"""A participant on a plan: which stop they are at, what is shown there, and what they do. One thread at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from calibrant.bench.core.words import WordsError
from calibrant.bench.play.folder import Player, PlayFolder
from calibrant.bench.play.game import ItemStop, QuestionsStop, Stop, Terms, item_state
from calibrant.bench.play.review import ReviewedItem, review_page
from calibrant.bench.play.study.pages import PRIVACY, check_answers, consent_html, served_place, task_text
from calibrant.dsl.episode import Action

STALE_SECONDS = 15.0  # after which a tab that is silent loses its place to another one


class Sitting:
    """One participant.

    lock: held while anything here is read or changed
    """

    def __init__(
        self,
        folder: PlayFolder,
        participant: str,
        stops: Sequence[Stop],
        terms: Terms,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lock = threading.RLock()
        self.participant = participant
        self.terms = terms
        self._folder = folder
        self._stops = stops
        self._clock = clock
        self._player: Player | None = None
        self._verdicts: list[dict[str, Any]] | None = None
        self._tab = ""
        self._tab_seen = 0.0

    # --- tabs -------------------------------------------------------------------------------------------------------

    def claim(self, tab: str, *, force: bool = False) -> bool:
        """Return whether a tab may act: the one that does, or another one when that is silent or on request."""
        now = self._clock()
        if tab and (force or not self._tab or tab == self._tab or now - self._tab_seen > STALE_SECONDS):
            self._tab, self._tab_seen = tab, now
        return bool(tab) and tab == self._tab

    # --- state ------------------------------------------------------------------------------------------------------

    @property
    def has_begun(self) -> bool:
        """Return whether the start page is behind them."""
        return self._folder.has_begun(self.participant)

    def is_done(self, stop: Stop) -> bool:
        """Return whether a stop is behind them."""
        if isinstance(stop, QuestionsStop):
            return bool(self._folder.events(self.participant, stop.key))
        return self._folder.is_closed(self.participant, stop.key)

    @property
    def place(self) -> int:
        """Index of the first stop that is not done; the number of stops at the end."""
        return next((k for k, stop in enumerate(self._stops) if not self.is_done(stop)), len(self._stops))

    def state(self, *, stay_at: ItemStop | None = None) -> dict[str, Any]:
        """Return what the page shows, ready for JSON. stay_at: an item that was closed by the last move."""
        place = self._stops.index(stay_at) if stay_at is not None else self.place
        items = [stop for stop in self._stops if isinstance(stop, ItemStop)]
        state: dict[str, Any] = {
            "title": self.terms.title,
            "participant": self.participant,
            "feedback": self.terms.feedback,
            "items": len(items),
        }
        if not self.has_begun:
            return state | {
                "phase": "start",
                "task": task_text(self._stops, self._folder.pools, self.terms.minutes),
                "privacy": [PRIVACY, served_place(self._folder.folder)],
                "consent": consent_html(self.terms.consent),
            }
        if place == len(self._stops):
            return state | {
                "phase": "end",
                "verdicts": [item.row() for item in self._reviewed()] if self.terms.reveal else [],
            }
        stop = self._stops[place]
        if isinstance(stop, QuestionsStop):
            questions = [dict(question) for question in stop.questions]
            return state | {"phase": "questions", "name": stop.name, "heading": stop.title, "questions": questions}
        player = self._player_at(stop)
        item = item_state(player.game, with_cells=self.terms.feedback == "cells", aid=self.terms.aid)
        state |= {"phase": "item", "number": items.index(stop) + 1, "item": item}
        if player.game.closed:
            self._folder.record(self.participant, player.game)
            if self.terms.reveal:
                state["verdict"] = self._folder.verdict(self.participant, player.game)
                # the end page has them: found out meanwhile
                threading.Thread(target=self._folder.review, args=(self.participant, stop.key), daemon=True).start()
        return state | {"done": sum(map(self.is_done, items))}

    # --- moves ------------------------------------------------------------------------------------------------------

    def begin(self, agreed: bool) -> None:
        """Leave the start page."""
        if self.terms.consent and not agreed:
            raise WordsError("please read the text and agree to it first")
        self._folder.begin(self.participant, agreed=agreed)

    def act(self, item: str, num_moves: int, action: Action) -> ItemStop:
        """Carry out a move on the current item; the stop.

        num_moves: moves before it, as the page knows them; a move that is there already is not made twice
        """
        stop, player = self._current(item)
        done = player.moves
        if num_moves == len(done) - 1 and done[-1] == dict(action):
            return stop
        if num_moves != len(done):
            raise StaleError
        player.act(action)
        return stop

    def say(self, item: str, num_moves: int, line: str) -> ItemStop:
        """Do what a line in words states."""
        stop, player = self._current(item)
        if num_moves != len(player.moves):
            raise StaleError
        player.do(player.game.pool.words.read(player.game.shown, player.game.position, line))
        return stop

    def write(self, item: str, draft: object) -> ItemStop:
        """Replace the draft."""
        stop, player = self._current(item)
        checked = player.game.pool.words.check_draft(player.game.shown, draft)
        if checked != player.game.draft:
            player.write(checked)
        return stop

    def undo(self, item: str) -> ItemStop:
        """Take back the last change of the draft."""
        stop, player = self._current(item)
        player.undo()
        return stop

    def submit_draft(self, item: str, num_moves: int) -> ItemStop:
        """Send the answer that the draft states, as the word `submit` does."""
        return self.say(item, num_moves, "submit")

    def give_up(self, item: str) -> ItemStop:
        """Close the item without an answer."""
        stop, player = self._current(item)
        if not player.game.closed:
            player.give_up()
        return stop

    def answer_questions(self, name: str, answers: object) -> None:
        """Record the answers to the current page of questions."""
        stop = self._stops[self.place] if self.place < len(self._stops) else None
        if not isinstance(stop, QuestionsStop) or stop.name != name:
            raise StaleError
        self._folder.add(self.participant, stop.key, {"answers": check_answers(stop.questions, answers)}, 0.0)

    def _current(self, item: str) -> tuple[ItemStop, Player]:
        """Return the item in play; `StaleError` if the page shows another one."""
        if self._player is not None and self._player.game.shown.id == item:
            return ItemStop(self._player.item), self._player
        place = self.place
        stop = self._stops[place] if place < len(self._stops) else None
        if not self.has_begun or not isinstance(stop, ItemStop):
            raise StaleError
        player = self._player_at(stop)
        if player.game.shown.id != item:
            raise StaleError
        return stop, player

    def _player_at(self, stop: ItemStop) -> Player:
        if self._player is None or self._player.item != stop.key:
            self._player = Player(self._folder, self.participant, stop.key, self._clock)
        return self._player

    def _reviewed(self) -> list[ReviewedItem]:
        """Return every item, ended as all of them are, beside the ideal learner."""
        return [self._folder.review(self.participant, stop.key) for stop in self._stops if isinstance(stop, ItemStop)]

    def review_page(self) -> str | None:
        """Return the page of all items beside the ideal learner; None before the end, or where nothing is revealed."""
        if not (self.terms.reveal and self.has_begun and self.place == len(self._stops)):
            return None
        return review_page(self.terms.title, self.participant, self._reviewed())


class StaleError(Exception):
    """The page shows another state than there is; it has to load anew."""
