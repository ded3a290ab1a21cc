"""Participants on their plans: the state that pages show, and their moves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from calibrant.bench.core.typed_moves import WordsError
from calibrant.bench.play.clocks import Elapsed
from calibrant.bench.play.folder import Clock, Player, PlayFolder, Visit
from calibrant.bench.play.game import ItemStop, Plan, QuestionsStop, Stop, Terms, item_state
from calibrant.bench.play.review import ReviewedItem, Reviews, review_page
from calibrant.bench.play.study import pages
from calibrant.dsl.episode import Action
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.text import plural

# --- A participant on a plan, used by one thread at a time ------------------------------------------------------------
STALE_SECONDS = 15.0  # of silence after which another tab may take over


class Sitting:
    """Session of one participant.

    lock: held while the session is read or changed; reviews: of the folder, shared by its sessions
    page_clock: time of the next move by the participant's page
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
        self._study = folder.time_study(participant, terms.limit, clock)
        self._page: pages.PagePlayer | None = None
        self._was_late = False  # whether the last page of questions ended by its limit, which the page states once
        self.page_clock: Clock = msgspec.UNSET
        self._asked_lang = terms.langs[0].code
        self._player: Player | None = None
        self._verdicts: list[dict[str, Any]] | None = None
        self._tab = ""
        self._tab_seen = 0.0

    # --- tabs -------------------------------------------------------------------------------------------------------

    def claim(self, tab: str, *, force: bool = False) -> bool:
        """Return whether a tab may act: the active one, or another if that is silent, or with `force`."""
        now = self._clock()
        if tab and (force or not self._tab or tab == self._tab or now - self._tab_seen > STALE_SECONDS):
            self._tab, self._tab_seen = tab, now
        return bool(tab) and tab == self._tab

    # --- language ---------------------------------------------------------------------------------------------------

    @property
    def lang(self) -> str:
        """The language of the page: that of the start, before it the one requested last."""
        return self._folder.language(self.participant) or self._asked_lang

    def ask_language(self, lang: object) -> None:
        """Set the language of the start page, if the study has it."""
        if lang in [entry.code for entry in self.terms.langs]:
            self._asked_lang = str(lang)

    # --- state ------------------------------------------------------------------------------------------------------

    @property
    def has_begun(self) -> bool:
        """Whether the participant has left the start page."""
        return self._folder.has_begun(self.participant)

    def is_done(self, stop: Stop) -> bool:
        """Return whether the participant has completed a stop."""
        return self._folder.is_done(self.participant, stop)

    @property
    def _stops(self) -> Sequence[Stop]:
        return self._plan(self.participant, self._folder.assignment(self.participant))

    @property
    def place(self) -> int:
        """Index of the first stop that is not done; the number of stops at the end."""
        stops = self._stops
        return next((k for k, stop in enumerate(stops) if not self.is_done(stop)), len(stops))

    def num_tries(self, stop: Stop) -> int:
        """Return the number of times that a page of questions was answered."""
        return self._folder.num_tries(self.participant, stop) if isinstance(stop, QuestionsStop) else 0

    @property
    def tries(self) -> int:
        """Number of times that the current page of questions was answered."""
        stop = self._stop_at(self.place)
        return 0 if stop is None else self.num_tries(stop)

    @property
    def is_screened_out(self) -> bool:
        """Whether the questions about instructions were answered wrongly too often."""
        stop = self._stop_at(self.place)
        return isinstance(stop, QuestionsStop) and 0 < stop.tries <= self.num_tries(stop)

    def _stop_at(self, index: int) -> Stop | None:
        stops = self._stops
        return stops[index] if index < len(stops) else None

    def state(self, *, stay_at: ItemStop | None = None) -> dict[str, Any]:
        """Return the state for the page. stay_at: item closed by the last move, which stays shown; None for none."""
        stay_at = stay_at if self._study.balance > 0 else None  # the end takes the place of an ended item
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
                "limit": pages.limit_text(self.terms.limit),
                "task": pages.start_text(self._plan, self.participant, self.terms, self._folder.pools),
                "privacy": [pages.PRIVACY, pages.served_place(self._folder.folder)],
                "consent": pages.consent_html(self.terms.consent_in(self.lang)),
            }
        stop_index = self._stops.index(stay_at) if stay_at is not None else self.place
        state |= {"steps": len(self._stops), "step": stop_index + 1}
        stop = self._stop_at(stop_index)
        if stop is None or (stay_at is None and self.is_screened_out):
            return state | self._end(is_screened_out=stop is not None)
        if self._study.balance <= 0:
            return state | self._end_late(stop)
        if self.terms.limit:
            state["study_seconds_left"] = round(max(0.0, self._study.balance), 1)
        if isinstance(stop, QuestionsStop):
            return self.state() if self._close_late_page(self._page_at(stop)) else state | self._questions(stop)
        return state | self._item(stop, items)

    def _item(self, stop: ItemStop, items: Sequence[ItemStop]) -> dict[str, Any]:
        """Return the state of an item. items: all items of the participant."""
        player = self._player_at(stop)
        player.close_if_late()
        item = item_state(player.game, with_cells=self.terms.feedback == "cells", aid=self.terms.aid)
        state: dict[str, Any] = {"phase": "item", "number": items.index(stop) + 1, "item": item}
        if stop.limit:
            item["seconds_left"] = round(player.seconds_left, 1)
        if player.game.closed:
            self._folder.record(self.participant, player.game)
            if self.terms.reveal:
                state["verdict"] = self._folder.verdict(self.participant, player.game)
                # computed already for the end page
                threading.Thread(target=self._reviews.get, args=(self.participant, stop.key), daemon=True).start()
        return state | {"done": sum(map(self.is_done, items))} | self._late_note()

    def _questions(self, stop: QuestionsStop) -> dict[str, Any]:
        """Return the state of a page of questions, without right answers."""
        texts, player = stop.texts(self.lang), self._page_at(stop)
        return {
            **({"seconds_left": round(player.seconds_left, 1)} if stop.limit else {}),
            **({"answers": player.draft} if player.is_timed else {}),
            **self._late_note(),
            "phase": "questions",
            "name": stop.name,
            "heading": texts.title,
            "instructions": pages.consent_html(texts.instructions, pages.PAGE_HEADING),
            "tries": self.num_tries(stop),
            "questions": [{**q, "values": pages.value_text(q)} for q in texts.questions],
        }

    def _late_note(self) -> dict[str, bool]:
        """Return the note that the last page ended by its limit, once."""
        was_late, self._was_late = self._was_late, False
        return {"was_late": True} if was_late else {}

    def _end_late(self, stop: Stop) -> dict[str, Any]:
        """End the current stop and the study because its time is up; return the state of the end page."""
        return self._end(is_screened_out=self._finish_late(stop), is_late=True)

    def _finish_late(self, stop: Stop) -> bool:
        """Record that the time is up; return whether the participant gets no proof of having finished.

        There is no proof without correct answers to the questions about instructions.
        """
        if self._folder.events(self.participant, stop.key):
            self._close_late(stop)
        is_unchecked = isinstance(stop, QuestionsStop) and stop.checks_instructions
        self._folder.finish(self.participant, is_screened_out=is_unchecked, is_late=True)
        return is_unchecked

    def _close_late(self, stop: Stop) -> None:
        """End a stop if its time is up."""
        if isinstance(stop, QuestionsStop):
            self._close_late_page(self._page_at(stop))
            return
        player = self._player_at(stop)
        if player.close_if_late():
            self._folder.record(self.participant, player.game)

    # --- without an open page: calls of this server, and of the next one ----------------------------------------------

    def close_if_over(self, grace: float = pages.GRACE_SECONDS) -> None:
        """End stops and study whose limits are over. grace: seconds after a limit in which answers are accepted."""
        if not self.has_begun or self._folder.has_finished(self.participant):
            return
        stop = self._stop_at(self.place)
        visit = None if stop is None else self._visit_of(stop)
        if stop is None:
            self._folder.finish(self.participant, is_screened_out=False)
        elif self._study.balance <= -grace:
            self._finish_late(stop)
        elif visit is not None and visit.balance <= -grace:
            self._close_late(stop)

    def resume(self) -> None:
        """Continue the limit of a stop that was open when the program before ended."""
        stop = self._stop_at(self.place) if self.has_begun else None
        is_open = stop is not None and bool(self._folder.events(self.participant, stop.key))
        if stop is None or not is_open or self._folder.has_finished(self.participant):
            return
        if stop.limit or self.terms.limit:
            with suppress(CalibrantError):  # the item has another aid now; opening it raises the error again
                _ = self._page_at(stop) if isinstance(stop, QuestionsStop) else self._player_at(stop)

    @property
    def elapsed(self) -> Elapsed | None:
        """Seconds since the last event; None if no stop is open."""
        if not self.has_begun or self._folder.has_finished(self.participant):
            return None
        stop = self._stop_at(self.place)
        visit = None if stop is None else self._visit_of(stop)
        entry = Elapsed("", "", 0, 0.0) if visit is None else visit.elapsed
        return msgspec.structs.replace(entry, study_seconds=round(min(self._study.seconds, self.terms.limit), 3))

    def _visit_of(self, stop: Stop) -> Visit | None:
        """Return the visit of a stop if it is open."""
        visit: Visit | None = self._page if isinstance(stop, QuestionsStop) else self._player
        return visit if visit is not None and visit.item == stop.key else None

    def _end(self, *, is_screened_out: bool, is_late: bool = False) -> dict[str, Any]:
        """Record that the end was reached; return the state of the end page, with the proof for those who finished."""
        self._folder.finish(self.participant, is_screened_out=is_screened_out, is_late=is_late)
        state: dict[str, Any] = {"phase": "end", "verdicts": [], "late": is_late, **self._late_note()}
        if is_screened_out:
            state["screened_out"] = True
        elif self.terms.reveal:
            state["verdicts"] = [item.row() for item in self._reviewed()]
        proof = self.terms.screen_out if is_screened_out else self.terms.completion
        return state if proof is None else state | {"completion": proof.stated(self.participant)}

    # --- moves ------------------------------------------------------------------------------------------------------

    def begin(self, agreed: bool) -> None:
        """Leave the start page."""
        if self.terms.consent and not agreed:
            raise WordsError("please read the text and agree to it first")
        groups, seed, lang = self.terms.groups, self.terms.seed, self.lang if len(self.terms.langs) > 1 else ""
        clock = self.page_clock
        self._study.start()
        self._folder.begin(self.participant, agreed=agreed, groups=groups, seed=seed, lang=lang, clock=clock)

    def act(self, item: str, num_moves: int, action: Action) -> ItemStop:
        """Carry out a move on the current item; return the stop.

        num_moves: number of moves before it by the page, so that a repeated request does not repeat the move
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
        """Carry out a typed line."""
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
        """Undo the last change of the draft."""
        stop, player = self._current(item)
        if not player.close_if_late():
            player.undo()
        return stop

    def submit_draft(self, item: str, num_moves: int) -> ItemStop:
        """Submit the answer of the draft."""
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
        """Record answers to the current page; `WordsError` for malformed answers, and for wrong ones on instructions.

        tries: number of earlier attempts by the page, so that a repeated request does not count twice
        """
        player = self._current_page(name)
        stop = player.stop
        if self._close_late_page(player, answers):
            return
        if tries is None or tries == self.num_tries(stop):
            player.submit(answers)
        if not self.is_done(stop) and not self.is_screened_out:
            remaining = f" {plural(stop.tries - self.num_tries(stop), 'tries')} left." if stop.tries else ""
            raise WordsError(f"Not all answers are right. Please read the page again, and correct them.{remaining}")

    def write_answers(self, name: str, answers: object) -> None:
        """Store the answers so far on a page of questions with a limit."""
        player = self._current_page(name)
        if not self._close_late_page(player, answers):
            player.write(answers)

    def expire_page(self, name: str, answers: object) -> None:
        """End a page of questions if its time is up."""
        self._close_late_page(self._current_page(name), answers)

    def _close_late_page(self, player: pages.PagePlayer, answers: object = None) -> bool:
        is_late = player.close_if_late(answers)
        self._was_late = is_late and self._study.balance > 0
        return is_late

    def _current_page(self, name: str) -> pages.PagePlayer:
        """Return the current page of questions; `StaleError` if the browser shows another stop."""
        stop = self._stop_at(self.place)
        if not self.has_begun or not isinstance(stop, QuestionsStop) or stop.name != name or self.is_screened_out:
            raise StaleError
        player = self._page_at(stop)
        player.page_clock = self.page_clock
        return player

    def _page_at(self, stop: QuestionsStop) -> pages.PagePlayer:
        if self._page is None or self._page.stop != stop:
            self._page = pages.PagePlayer(self._folder, self.participant, stop, self._study, self._clock)
        return self._page

    def _current(self, item: str) -> tuple[ItemStop, Player]:
        """Return the current item; `StaleError` if the browser shows another stop."""
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
            limit, study = stop.limit, self._study
            self._player = Player(self._folder, self.participant, stop.key, self._clock, limit=limit, study=study)
        return self._player

    def _reviewed(self) -> list[ReviewedItem]:
        """Return the reviews of all ended items."""
        ended = (stop for stop in self._stops if isinstance(stop, ItemStop) and self.is_done(stop))
        return [self._reviews.get(self.participant, stop.key) for stop in ended]

    def review_page(self) -> str | None:
        """Return the review page of all items; None before the end, or if nothing is revealed."""
        is_over = self._stop_at(self.place) is None or self._study.balance <= 0
        if not (self.terms.reveal and self.has_begun and is_over):
            return None
        return review_page(self.terms.title, self.participant, self._reviewed())


class StaleError(Exception):
    """The browser shows an outdated state and has to reload."""
