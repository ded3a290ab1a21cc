"""A participant on a plan: which stop they are at, what is shown there, and what they do. One thread at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from calibrant.bench.core.words import WordsError
from calibrant.bench.play.folder import Clock, Player, PlayFolder
from calibrant.bench.play.game import ItemStop, Plan, QuestionsStop, Stop, Terms, item_state
from calibrant.bench.play.review import ReviewedItem, Reviews, review_page
from calibrant.bench.play.study.pages import (
    OF_INSTRUCTIONS,
    PRIVACY,
    answers_event,
    consent_html,
    served_place,
    start_text,
    value_text,
)
from calibrant.dsl.episode import Action
from calibrant.dsl.text import plural

STALE_SECONDS = 15.0  # after which a tab that is silent loses its place to another one


class Sitting:
    """One participant.

    lock: held while anything here is read or changed; reviews: of the folder, shared by its sittings
    page_clock: of the participant's page, of the next move
    """

    def __init__(
        self,
        folder: PlayFolder,
        participant: str,
        plan: Plan,
        terms: Terms,
        clock: Callable[[], float] = time.monotonic,
        reviews: Reviews | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.participant = participant
        self.terms = terms
        self._folder = folder
        self._plan = plan
        self._reviews = Reviews(folder) if reviews is None else reviews
        self._clock = clock
        self._shown: tuple[Stop | None, float] = None, 0.0
        self.page_clock: Clock = msgspec.UNSET
        self._asked_lang = terms.langs[0].code
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

    # --- language ---------------------------------------------------------------------------------------------------

    @property
    def lang(self) -> str:
        """Return the language of the page: that of the start, before it the one that was asked for last."""
        return self._folder.language(self.participant) or self._asked_lang

    def ask_language(self, lang: object) -> None:
        """Show the start in a language, if the study has it."""
        if lang in [entry.code for entry in self.terms.langs]:
            self._asked_lang = str(lang)

    # --- state ------------------------------------------------------------------------------------------------------

    @property
    def has_begun(self) -> bool:
        """Return whether the start page is behind them."""
        return self._folder.has_begun(self.participant)

    def is_done(self, stop: Stop) -> bool:
        """Return whether a stop is behind them."""
        if isinstance(stop, QuestionsStop):
            return self._folder.is_passed(self.participant, stop)
        return self._folder.is_closed(self.participant, stop.key)

    @property
    def _stops(self) -> Sequence[Stop]:
        return self._plan(self.participant, self._folder.assignment(self.participant))

    @property
    def place(self) -> int:
        """Index of the first stop that is not done; the number of stops at the end."""
        stops = self._stops
        return next((k for k, stop in enumerate(stops) if not self.is_done(stop)), len(stops))

    def num_tries(self, stop: Stop) -> int:
        """Return how often a page of questions was answered."""
        return len(self._folder.events(self.participant, stop.key)) if isinstance(stop, QuestionsStop) else 0

    @property
    def tries(self) -> int:
        """Answers to the page of questions that is shown, so far."""
        stop = self._stop_at(self.place)
        return 0 if stop is None else self.num_tries(stop)

    @property
    def is_screened_out(self) -> bool:
        """Whether the questions about instructions were answered wrongly too often."""
        stop = self._stop_at(self.place)
        return isinstance(stop, QuestionsStop) and 0 < stop.tries <= self.num_tries(stop)

    def _stop_at(self, place: int) -> Stop | None:
        stops = self._stops
        return stops[place] if place < len(stops) else None

    def state(self, *, stay_at: ItemStop | None = None) -> dict[str, Any]:
        """Return what the page shows, ready for JSON. stay_at: an item that was closed by the last move."""
        items = [stop for stop in self._stops if isinstance(stop, ItemStop)]
        state: dict[str, Any] = {
            "title": self.terms.title,
            "participant": self.participant,
            "feedback": self.terms.feedback,
            "items": len(items),
            "lang": self.lang,
        }
        if not self.has_begun:
            return state | {
                "phase": "start",
                "task": start_text(self._plan, self.participant, self.terms, self._folder.pools),
                "privacy": [PRIVACY, served_place(self._folder.folder)],
                "consent": consent_html(self.terms.consent_in(self.lang)),
            }
        place = self._stops.index(stay_at) if stay_at is not None else self.place
        state |= {"steps": len(self._stops), "step": place + 1}
        stop = self._stop_at(place)
        if stop is None or (stay_at is None and self.is_screened_out):
            return state | self._end(is_screened_out=stop is not None)
        if self._shown[0] != stop:
            self._shown = stop, self._clock()
        if isinstance(stop, QuestionsStop):
            return state | self._questions(stop)
        player = self._player_at(stop)
        player.close_if_late()
        item = item_state(player.game, with_cells=self.terms.feedback == "cells", aid=self.terms.aid)
        state |= {"phase": "item", "number": items.index(stop) + 1, "item": item}
        if stop.limit:
            item["seconds_left"] = round(player.seconds_left, 1)
        if player.game.closed:
            self._folder.record(self.participant, player.game)
            if self.terms.reveal:
                state["verdict"] = self._folder.verdict(self.participant, player.game)
                # the end page has them: found out meanwhile
                threading.Thread(target=self._reviews.get, args=(self.participant, stop.key), daemon=True).start()
        return state | {"done": sum(map(self.is_done, items))}

    def _questions(self, stop: QuestionsStop) -> dict[str, Any]:
        """Return what a page of questions shows: no right answers."""
        texts = stop.texts(self.lang)
        return {
            "phase": "questions",
            "name": stop.name,
            "heading": texts.title,
            "instructions": consent_html(texts.instructions, OF_INSTRUCTIONS),
            "tries": self.num_tries(stop),
            "questions": [{**q, "values": value_text(q)} for q in texts.questions],
        }

    def _end(self, *, is_screened_out: bool) -> dict[str, Any]:
        """Record that the end was reached, and return what it shows: proof of it to those who finished alone."""
        self._folder.finish(self.participant, is_screened_out=is_screened_out)
        if is_screened_out:
            return {"phase": "end", "screened_out": True, "verdicts": []}
        verdicts = [item.row() for item in self._reviewed()] if self.terms.reveal else []
        completion = self.terms.completion
        proof = {} if completion is None else {"completion": completion.stated(self.participant)}
        return {"phase": "end", "verdicts": verdicts} | proof

    # --- moves ------------------------------------------------------------------------------------------------------

    def begin(self, agreed: bool) -> None:
        """Leave the start page."""
        if self.terms.consent and not agreed:
            raise WordsError("please read the text and agree to it first")
        groups, seed, lang = self.terms.groups, self.terms.seed, self.lang if len(self.terms.langs) > 1 else ""
        clock = self.page_clock
        self._folder.begin(self.participant, agreed=agreed, groups=groups, seed=seed, lang=lang, clock=clock)

    def act(self, item: str, num_moves: int, action: Action) -> ItemStop:
        """Carry out a move on the current item; the stop.

        num_moves: moves before it, as the page knows them; a move that is there already is not made twice
        """
        stop, player = self._current(item)
        if player.close_if_late():
            return stop
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
        if player.close_if_late():
            return stop
        if num_moves != len(player.moves):
            raise StaleError
        player.do(player.game.pool.words.read(player.game.shown, player.game.position, line))
        return stop

    def write(self, item: str, draft: object) -> ItemStop:
        """Replace the draft."""
        stop, player = self._current(item)
        if player.close_if_late():
            return stop
        checked = player.game.pool.words.check_draft(player.game.shown, draft)
        if checked != player.game.draft:
            player.write(checked)
        return stop

    def undo(self, item: str) -> ItemStop:
        """Take back the last change of the draft."""
        stop, player = self._current(item)
        if not player.close_if_late():
            player.undo()
        return stop

    def submit_draft(self, item: str, num_moves: int) -> ItemStop:
        """Send the answer that the draft states, as the word `submit` does."""
        return self.say(item, num_moves, "submit")

    def expire(self, item: str) -> ItemStop:
        """End the item if its time is up."""
        stop, player = self._current(item)
        player.close_if_late()
        return stop

    def give_up(self, item: str) -> ItemStop:
        """Close the item without an answer."""
        stop, player = self._current(item)
        if not player.close_if_late() and not player.game.closed:
            player.give_up()
        return stop

    def answer_questions(self, name: str, answers: object, tries: int | None = None) -> None:
        """Record the answers to the current page; `WordsError` if they are none, or about instructions and not right.

        tries: answers to it before, as the page knows them; one that was judged already is not judged again
        """
        stop = self._stop_at(self.place)
        if not isinstance(stop, QuestionsStop) or stop.name != name or self.is_screened_out:
            raise StaleError
        if tries is None or tries == self.num_tries(stop):
            event = answers_event(stop, answers)
            seconds = self._clock() - self._shown[1] if self._shown[0] == stop else 0.0
            self._folder.add(self.participant, stop.key, event, seconds, self.page_clock)
        if not self.is_done(stop) and not self.is_screened_out:
            remaining = f" {plural(stop.tries - self.num_tries(stop), 'tries')} left." if stop.tries else ""
            raise WordsError(f"Not all answers are right. Please read the page again, and correct them.{remaining}")

    def _current(self, item: str) -> tuple[ItemStop, Player]:
        """Return the item in play; `StaleError` if the page shows another one."""
        if self._player is not None and self._player.game.shown.id == item:
            key = self._player.item
            stops = (stop for stop in self._stops if isinstance(stop, ItemStop) and stop.key == key)
            self._player.page_clock = self.page_clock
            return next(stops), self._player
        stop = self._stop_at(self.place)
        if not self.has_begun or not isinstance(stop, ItemStop):
            raise StaleError
        player = self._player_at(stop)
        if player.game.shown.id != item:
            raise StaleError
        player.page_clock = self.page_clock
        return stop, player

    def _player_at(self, stop: ItemStop) -> Player:
        if self._player is None or self._player.item != stop.key:
            self._player = Player(self._folder, self.participant, stop.key, self._clock, limit=stop.limit)
        return self._player

    def _reviewed(self) -> list[ReviewedItem]:
        """Return every item, ended as all of them are, beside the ideal learner."""
        return [self._reviews.get(self.participant, stop.key) for stop in self._stops if isinstance(stop, ItemStop)]

    def review_page(self) -> str | None:
        """Return the page of all items beside the ideal learner; None before the end, or where nothing is revealed."""
        if not (self.terms.reveal and self.has_begun and self._stop_at(self.place) is None):
            return None
        return review_page(self.terms.title, self.participant, self._reviewed())


class StaleError(Exception):
    """The page shows another state than there is; it has to load anew."""
