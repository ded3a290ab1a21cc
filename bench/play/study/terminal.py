"""Studies in a terminal: the stops of one participant, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

from calibrant.bench.core.words import WordsError
from calibrant.bench.play.folder import Player, PlayFolder
from calibrant.bench.play.game import ItemStop, Practice, QuestionsStop, Stop, aid_config
from calibrant.bench.play.study.config import Study
from calibrant.bench.play.study.pages import (
    PRIVACY,
    answers_event,
    check_answers,
    consent_text,
    local_place,
    start_text,
    value_text,
)
from calibrant.bench.play.terminal import TerminalGame, input_lines
from calibrant.dsl.text import plural


def play_study(study: Study, participant: str, echo: Callable[[str], None]) -> int:
    """Play what a participant has not done yet; 0 if all is done, 1 if something is left open."""
    name = study.member(participant)
    with PlayFolder(study.out, study.pools, study.config) as folder:
        return TerminalStudy(study, folder, name, input_lines(None), echo).play()


class TerminalStudy:
    """A study as one participant plays it in a terminal."""

    def __init__(
        self, study: Study, folder: PlayFolder, name: str, lines: Iterator[str], echo: Callable[[str], None]
    ) -> None:
        self._study = study
        self._folder = folder
        self._name = name
        self._lines = lines
        self._echo = echo

    def play(self) -> int:
        """Play what is not done yet; the exit code."""
        if not self._folder.has_begun(self._name):
            refusal = self._start()
            if refusal:
                again = f"calibrant play --study {quote(str(self._study.path))} --participant {self._name}"
                self._echo(f"{refusal} Nothing is recorded; to start again: {again}")
                return 1
            terms = self._study.terms
            self._folder.begin(self._name, agreed=bool(terms.consent), groups=terms.groups, seed=terms.seed)
        stops = self._stops
        items = [stop for stop in stops if isinstance(stop, ItemStop)]
        for stop in stops:
            if isinstance(stop, QuestionsStop):
                is_done = self._folder.is_passed(self._name, stop) or self._answer_page(stop)
                if not is_done and self._is_screened_out(stop):
                    self._folder.finish(self._name, is_screened_out=True)
                    self._echo("The study ends here: the questions about the instructions were not answered rightly.")
                    return 0
            else:
                progress = f"item {items.index(stop) + 1} of {len(items)}" if len(items) > 1 else ""
                is_done = self._folder.is_closed(self._name, stop.key) or self._play_item(stop, progress)
            if not is_done:
                self._echo(f"Left open; what you did is in {self._study.out}, and the same command goes on from here.")
                return 1
        self._folder.finish(self._name, is_screened_out=False)
        self._echo("Done. Thank you.")
        completion = self._study.terms.completion
        for name, value in {} if completion is None else completion.stated(self._name).items():
            self._echo(f"Your completion code: {value}" if name == "code" else f"To finish, open {value}")
        return 0

    @property
    def _stops(self) -> Sequence[Stop]:
        return self._study.plan(self._name, self._folder.assignment(self._name))

    def _is_screened_out(self, stop: QuestionsStop) -> bool:
        return 0 < stop.tries <= len(self._folder.events(self._name, stop.key))

    def _start(self) -> str:
        """Show what stands on a start page, and offer practice; why the participant does not begin, else empty."""
        study = self._study
        task = start_text(study.plan, self._name, study.terms, self._folder.pools)
        self._echo(f"{study.terms.title}\n\n{task}\n{PRIVACY} {local_place(study.out)}")
        self._echo("You can stop at any time by `quit` and go on later.\n")
        if study.terms.consent:
            self._echo(f"{consent_text(study.terms.consent)}\n")
            agreed = self._choose("Have you read this, and do you agree?", ("yes", "no"))
            if agreed != "yes":
                return "You did not agree." if agreed else "There was no answer about consent."
        while study.practice is not None:
            chosen = self._choose("Try an item first that is not recorded, or begin?", ("practice", "begin"))
            if chosen != "practice":
                return "" if chosen else "There was no answer about practice."
            self._practise(study.practice)
        return ""

    def _choose(self, question: str, words: Sequence[str]) -> str:
        """Return the word that is typed, in any case, or its beginning; empty at `quit` and the end of the input."""
        self._echo(f"{question} Type {' or '.join(words)}.")
        for line in self._lines:
            typed = line.strip().lower()
            if typed == "quit":
                break
            for word in words:
                if word.startswith(typed):
                    return word
            self._echo(f"Please type {' or '.join(words)}.")
        return ""

    def _practise(self, practice: Practice) -> None:
        """Play the items of practice in memory; `quit` ends it."""
        aid = self._study.terms.aid
        with PlayFolder(None, practice.pools, aid_config(aid)) as folder:
            for key in (stop.key for stop in practice.stops if isinstance(stop, ItemStop)):
                game = TerminalGame(Player(folder, self._name, key), self._echo, is_stored=False, aid=aid)
                game.play(self._lines)
                if not game.game.closed:
                    break
                game.verdict(as_json=False)
        self._echo("That was practice; nothing of it is recorded.\n")

    def _play_item(self, stop: ItemStop, progress: str) -> bool:
        """Play an item; False if it is left open."""
        study = self._study
        player = Player(self._folder, self._name, stop.key, limit=stop.limit)
        game = TerminalGame(player, self._echo, is_stored=True, aid=study.terms.aid)
        kind = game.game.pool.words.kind[0].capitalize()
        limit = f"{plural(stop.limit, 'seconds')} at most" if stop.limit else ""
        self._echo("\n" + ", ".join(filter(None, (kind, progress, limit))))
        if not game.play(self._lines):
            return False
        if study.terms.reveal:
            game.verdict(as_json=False)
        else:
            game.player.verdict()
        return True

    def _answer_page(self, stop: QuestionsStop) -> bool:
        """Ask the questions of a page, of instructions until all are right, and record the answers.

        False if the input ends before, or no tries are left.
        """
        while not self._is_screened_out(stop):
            self._echo(f"\n{stop.title}")
            if stop.instructions:
                self._echo(f"\n{consent_text(stop.instructions)}\n")
            start = time.monotonic()
            answers = _ask_all(stop, self._lines, self._echo)
            if answers is None:
                return False
            self._folder.add(self._name, stop.key, answers_event(stop, answers), time.monotonic() - start)
            if self._folder.is_passed(self._name, stop):
                return True
            self._echo("Not all answers are right. Please read the page again, and correct them.")
        return False


def _ask_all(stop: QuestionsStop, lines: Iterator[str], echo: Callable[[str], None]) -> dict[str, Any] | None:
    """Return the answers to a page of questions; None if the input ends before."""
    answers: dict[str, Any] = {}
    for question in stop.questions:
        while question["id"] not in answers:
            echo(_question_text(question))
            line = next(lines, None)
            if line is None:
                return None
            value = line.strip()
            if value == "-" and question.get("optional"):
                break
            try:
                answers |= check_answers([question], {question["id"]: _typed_value(question, value)})
            except WordsError as error:
                echo(str(error))
    return answers


def _question_text(question: Mapping[str, Any]) -> str:
    values = " | ".join(question["options"]) if "options" in question else value_text(question)
    return f"{question['text']} ({values}){' (- for none)' if question.get('optional') else ''}"


def _typed_value(question: Mapping[str, Any], text: str) -> Any:
    if question["kind"] in ("likert", "number"):
        try:
            number = float(text)
        except ValueError:
            return text
        return int(number) if number.is_integer() else number
    return text
