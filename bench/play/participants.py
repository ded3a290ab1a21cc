"""Participants on their plans: what is shown and done, and their ended items beside the ideal learner."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from calibrant.audits.why import number_text
from calibrant.bench.core.attribution import KEY, KIND_MEANINGS
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import WORDS
from calibrant.bench.core.typed_moves import WordsError
from calibrant.bench.pages.capabilities import EPISODE_VIEWS, REVEALED_VIEWS, TIMELINES
from calibrant.bench.pages.page import design_page
from calibrant.bench.pages.timeline import Timeline, timeline_content
from calibrant.bench.play.folder import Clock, Player, PlayFolder
from calibrant.bench.play.game import ItemKey, ItemStop, Plan, QuestionsStop, Stop, Terms, item_state
from calibrant.bench.play.study import pages
from calibrant.bench.report.capabilities import Remaining, RemainingLists
from calibrant.bench.report.overview.contract import GUIDE, Explanation, Levels
from calibrant.bench.report.sources import context_of
from calibrant.bench.runs.records import Record
from calibrant.bench.runs.workers import ExactEpisode, exact_episode
from calibrant.bench.scoring.scorer import steps_of
from calibrant.dsl.episode import Action, Step
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.text import plural

# --- One ended item of a participant beside the ideal learner: what the answer was worth, what the evidence left ------
IDEAL = "the ideal learner"


@dataclass(frozen=True)
class ReviewedItem:
    """One ended item. It is computed from the record alone; what is sealed is part of it.

    item: under its public id for participants, under the pool's own for those who run the study
    record: of the participant
    ideal: episode of the ideal learner, None of a question
    attribution: what the evidence had decided; empty where it is not counted
    """

    benchmark: Benchmark[Any]
    item: Any
    record: Record
    ideal: ExactEpisode | None
    attribution: Mapping[str, Any]

    @property
    def steps(self) -> Sequence[Step[Any]]:
        """The participant's steps; none of a question."""
        return () if self.record.steps is msgspec.UNSET else steps_of(self.record.steps)

    @property
    def is_right(self) -> bool | None:
        """Whether the answer is right; None where nothing is held out."""
        return self.benchmark.metrics.success.judge(self.record.score, self.record.setting)

    @property
    def kind(self) -> str:
        """Earned, lucky, short or missed; empty where it is not counted."""
        return str(self.attribution.get("kind", ""))

    @property
    def moves(self) -> int | None:
        return None if self.record.steps is msgspec.UNSET else sum(step.cost for step in self.steps)

    @property
    def ideal_moves(self) -> int | None:
        return None if self.ideal is None else self.ideal.num_moves

    def row(self) -> dict[str, Any]:
        """Return a line of the table, ready for JSON."""
        return {
            "item": self.item.id,
            "kind": self.benchmark.require(WORDS).kind[0].capitalize(),
            "right": self.is_right,
            "class": self.kind,
            "left": str(self.attribution.get("members", "")),
            "moves": self.moves,
            "ideal": self.ideal_moves,
        }

    @property
    def levels(self) -> Levels:
        """Chances of being right with the same evidence."""
        guide = self.benchmark.capability(GUIDE)
        return Levels() if guide is None else guide.levels(self.item, self.steps, self._score)

    @property
    def explanation(self) -> Explanation | None:
        """The answer in words, beside gold; None where the benchmark has no words for it."""
        guide = self.benchmark.capability(GUIDE)
        if guide is None:
            return None
        explained: Explanation = guide.explain(
            self.item, context_of(self.record), self.record.answer, self.steps, self._score
        )
        return explained

    @property
    def remaining(self) -> Remaining | None:
        """Hypotheses that were open when it was answered; None where they are not counted."""
        return RemainingLists(self.benchmark).get(self.record.pool_digest, self.item, self.steps)

    @property
    def _score(self) -> dict[str, Any]:
        return {**self.record.score, KEY: dict(self.attribution)} if self.attribution else dict(self.record.score)

    def timelines(self, name: str) -> list[Timeline]:
        """Return the participant's episode and the ideal learner's, step by step; none of a question."""
        make = self.benchmark.capability(TIMELINES)
        if make is None or self.ideal is None:
            return []
        return [make(self.item, self.steps, name), make(self.item, self.ideal.steps, IDEAL)]

    def texts(self, name: str) -> list[tuple[str, str]]:
        """Return both episodes as text, each with its title, where there are no timelines; none of a question."""
        views = self.benchmark.capability(REVEALED_VIEWS) or self.benchmark.capability(EPISODE_VIEWS)
        if views is None or self.ideal is None:
            return []
        return [
            (title, views.text(self.item, steps, title))
            for title, steps in ((name, self.steps), (IDEAL, self.ideal.steps))
        ]


class Reviews:
    """Reviewed items of a folder, each computed once, and each ideal episode once for all participants."""

    def __init__(self, folder: PlayFolder) -> None:
        self._folder = folder
        self._reviews: dict[tuple[str, ItemKey], ReviewedItem] = {}
        self._ideal: dict[ItemKey, ExactEpisode | None] = {}
        self._lock = threading.Lock()

    def get(self, participant: str, item: ItemKey) -> ReviewedItem:
        """Return an item that a participant ended, beside the ideal learner."""
        game, key = self._folder.game(participant, item), (participant, item)
        record, verdict = self._folder.record(participant, game), self._folder.verdict(participant, game)
        with self._lock:
            if item not in self._ideal:
                self._ideal[item] = exact_episode(game.pool.benchmark, game.pool.item(item.instance))
            if key not in self._reviews:
                attribution = verdict["attribution"] or {}
                self._reviews[key] = ReviewedItem(
                    game.pool.benchmark, game.shown, record, self._ideal[item], attribution
                )
            return self._reviews[key]


# --- The page "this person beside the ideal learner": a bar of classes, a table, and every item step by step ----------
BAR = ("earned", "lucky", "right", "short", "missed", "wrong", "unjudged")  # accuracy is where right ends
GLYPHS = {"earned": "\u2713", "lucky": "\u2248", "right": "\u2713", "short": "\u25cb", "missed": "\u2717"}
GLYPHS |= {"wrong": "\u2717", "unjudged": "\u25cb"}
DASH = "\N{EN DASH}"


def review_page(title: str, participant: str, items: Sequence[ReviewedItem]) -> str:
    """Return the page about a participant's ended items, in the order in which they were begun."""
    counts = Counter(_class_of(item) for item in items)
    content = {
        "title": f"{participant} beside the ideal learner",
        "crumbs": [title, participant],
        "heading": _heading(items, counts),
        "bar": [{"kind": kind, "number": counts[kind]} for kind in BAR if counts[kind]],
        "bar_label": ", ".join(f"{counts[kind]} {kind}" for kind in BAR if counts[kind]),
        "legend": list(_legend(counts)),
        "rows": [_row(number, item) for number, item in enumerate(items, 1)],
        "items": [_item(number, item, participant) for number, item in enumerate(items, 1)],
    }
    return design_page("play/review.html", content)


def _class_of(item: ReviewedItem) -> str:
    return item.kind or {True: "right", False: "wrong", None: "unjudged"}[item.is_right]


def _heading(items: Sequence[ReviewedItem], counts: Counter[str]) -> str:
    right = sum(item.is_right is True for item in items)
    earned = f", {counts['earned']} of them earned" if any(item.kind for item in items) else ""
    return f"{right} of {sum(item.is_right is not None for item in items)} right{earned}"


def _legend(counts: Counter[str]) -> Iterator[dict[str, str]]:
    for kind in ("earned", "lucky", "short", "missed"):
        decided, _, right = KIND_MEANINGS[kind].partition(" and ")
        yield {"kind": kind, "text": f"{GLYPHS[kind]} {kind}: {decided}, {right}"}
    for kind in ("right", "wrong"):
        if counts[kind]:
            yield {"kind": kind, "text": f"{GLYPHS[kind]} {kind}: what the evidence had decided is not counted"}
    if counts["unjudged"]:
        yield {"kind": "unjudged", "text": f"{GLYPHS['unjudged']} unjudged: nothing is held out"}


def _row(number: int, item: ReviewedItem) -> dict[str, Any]:
    kind, row = _class_of(item), item.row()
    return {
        "number": number,
        "anchor": f"item-{number}",
        "benchmark": row["kind"],
        "item": row["item"],
        "kind": kind,
        "worth": f"{GLYPHS[kind]} {kind}",
        "left": f"{number_text(int(row['left']))} left" if row["left"] else DASH,
        "moves": DASH if row["moves"] is None else f"{row['moves']:,}",
        "ideal": DASH if row["ideal"] is None else f"{row['ideal']:,}",
    }


def _item(number: int, item: ReviewedItem, participant: str) -> dict[str, Any]:
    explanation = item.explanation
    content = _row(number, item) | {"timelines": [], "texts": [], "explanation": explanation}
    content["remaining"] = item.remaining
    content["response"] = "no answer" if explanation is None or item.record.outcome != "found" else explanation.response
    content["sentence"] = " ".join(filter(None, (_answer_sentence(item, explanation), _ideal_sentence(item))))
    try:
        timelines = item.timelines(participant)
        content["timelines"] = [timeline_content(t, f"item-{number}-{k}") for k, t in enumerate(timelines)]
        content["texts"] = [] if timelines else item.texts(participant)
    except CalibrantError as error:
        content["sentence"] += f" The steps cannot be shown: {error}."
    return content


def _answer_sentence(item: ReviewedItem, explanation: Explanation | None) -> str:
    """Return what the evidence had decided about the answer."""
    if item.record.outcome == "found":
        return "" if explanation is None else " ".join(explanation.sentences)
    decided = item.attribution.get("decided")
    if decided is None:
        return "No answer was given."
    return f"No answer was given; the evidence had left {'one answer' if decided else 'several answers'}."


def _ideal_sentence(item: ReviewedItem) -> str:
    """Return what the ideal learner could do: with the same evidence, and with moves of its own choice."""
    ceiling, parts = item.levels.ceiling, []
    if ceiling is not None:
        parts.append(f"With the same evidence the best answer is right with probability {ceiling:.3g}.")
    if item.ideal is not None:
        ideal = item.ideal.describe()
        parts.append(f"The ideal learner, run exact, chose its own moves and {ideal}; here there were {item.moves:,}.")
    return " ".join(parts)


# --- A participant on a plan: which stop they are at, what is shown there, and what they do; one thread at a time -----
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
        self._study = folder.time_study(participant, terms.limit, clock)
        self._page: pages.PagePlayer | None = None
        self._was_late = False  # the page of questions before ended by its limit, and nothing was shown since
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
        return self._folder.num_tries(self.participant, stop) if isinstance(stop, QuestionsStop) else 0

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
                "limit": pages.limit_text(self.terms.limit),
                "task": pages.start_text(self._plan, self.participant, self.terms, self._folder.pools),
                "privacy": [pages.PRIVACY, pages.served_place(self._folder.folder)],
                "consent": pages.consent_html(self.terms.consent_in(self.lang)),
            }
        place = self._stops.index(stay_at) if stay_at is not None else self.place
        state |= {"steps": len(self._stops), "step": place + 1}
        stop = self._stop_at(place)
        if stop is None or (stay_at is None and self.is_screened_out):
            return state | self._end(is_screened_out=stop is not None)
        if stay_at is None and self._study.balance <= 0:
            return state | self._end_late(stop)
        if self.terms.limit:
            state["study_seconds_left"] = round(max(0.0, self._study.balance), 1)
        if isinstance(stop, QuestionsStop):
            return self.state() if self._close_late_page(self._page_at(stop)) else state | self._questions(stop)
        return state | self._item(stop, items)

    def _item(self, stop: ItemStop, items: Sequence[ItemStop]) -> dict[str, Any]:
        """Return what an item shows. items: all of the participant."""
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
                # the end page has them: found out meanwhile
                threading.Thread(target=self._reviews.get, args=(self.participant, stop.key), daemon=True).start()
        return state | {"done": sum(map(self.is_done, items))} | self._late_note()

    def _questions(self, stop: QuestionsStop) -> dict[str, Any]:
        """Return what a page of questions shows: no right answers."""
        texts, player = stop.texts(self.lang), self._page_at(stop)
        return {
            **({"seconds_left": round(player.seconds_left, 1)} if stop.limit else {}),
            **({"answers": player.draft} if player.is_timed else {}),
            **self._late_note(),
            "phase": "questions",
            "name": stop.name,
            "heading": texts.title,
            "instructions": pages.consent_html(texts.instructions, pages.OF_INSTRUCTIONS),
            "tries": self.num_tries(stop),
            "questions": [{**q, "values": pages.value_text(q)} for q in texts.questions],
        }

    def _late_note(self) -> dict[str, bool]:
        """Return, once, that the page before ended by its limit."""
        was_late, self._was_late = self._was_late, False
        return {"was_late": True} if was_late else {}

    def _end_late(self, stop: Stop) -> dict[str, Any]:
        """End the study because its time is up, and the stop where the participant was.

        Who had not answered the questions about instructions rightly has no proof of having finished.
        """
        is_open = bool(self._folder.events(self.participant, stop.key))
        if is_open and isinstance(stop, QuestionsStop):
            self._page_at(stop).close_if_late()
        elif is_open and isinstance(stop, ItemStop):
            player = self._player_at(stop)
            player.close_if_late()
            self._folder.record(self.participant, player.game)
        is_unchecked = isinstance(stop, QuestionsStop) and stop.checks_instructions
        return self._end(is_screened_out=is_unchecked, is_late=True)

    def _end(self, *, is_screened_out: bool, is_late: bool = False) -> dict[str, Any]:
        """Record that the end was reached, and return what it shows: proof of having finished to those who did."""
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
        """Keep what is answered so far on a page of questions that a limit may end."""
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
        """Return the page of questions in play; `StaleError` if the page shows another one."""
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
            limit, study = stop.limit, self._study
            self._player = Player(self._folder, self.participant, stop.key, self._clock, limit=limit, study=study)
        return self._player

    def _reviewed(self) -> list[ReviewedItem]:
        """Return every item that was ended, beside the ideal learner."""
        ended = (stop for stop in self._stops if isinstance(stop, ItemStop) and self.is_done(stop))
        return [self._reviews.get(self.participant, stop.key) for stop in ended]

    def review_page(self) -> str | None:
        """Return the page of all items beside the ideal learner; None before the end, or where nothing is revealed."""
        is_over = self._stop_at(self.place) is None or self._study.balance <= 0
        if not (self.terms.reveal and self.has_begun and is_over):
            return None
        return review_page(self.terms.title, self.participant, self._reviewed())


class StaleError(Exception):
    """The page shows another state than there is; it has to load anew."""
