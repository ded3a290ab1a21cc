"""Studies in a terminal: the stops of one participant, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

from calibrant.bench.core.words import WordsError
from calibrant.bench.play.folder import Player, PlayFolder
from calibrant.bench.play.game import ItemStop, Practice, QuestionsStop, aid_config
from calibrant.bench.play.study.config import Study
from calibrant.bench.play.study.pages import PRIVACY, check_answers, consent_text, local_place, task_text
from calibrant.bench.play.terminal import TerminalGame, input_lines


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
        self._stops = study.plan(name)

    def play(self) -> int:
        """Play what is not done yet; the exit code."""
        if not self._folder.has_begun(self._name):
            refusal = self._start()
            if refusal:
                again = f"calibrant play --study {quote(str(self._study.path))} --participant {self._name}"
                self._echo(f"{refusal} Nothing is recorded; to start again: {again}")
                return 1
            self._folder.begin(self._name, agreed=bool(self._study.terms.consent))
        items = [stop for stop in self._stops if isinstance(stop, ItemStop)]
        for stop in self._stops:
            if isinstance(stop, QuestionsStop):
                is_done = bool(self._folder.events(self._name, stop.key)) or self._answer_page(stop)
            else:
                progress = f"item {items.index(stop) + 1} of {len(items)}" if len(items) > 1 else ""
                is_done = self._folder.is_closed(self._name, stop.key) or self._play_item(stop, progress)
            if not is_done:
                self._echo(f"Left open; what you did is in {self._study.out}, and the same command goes on from here.")
                return 1
        self._echo("Done. Thank you.")
        return 0

    def _start(self) -> str:
        """Show what stands on a start page, and offer practice; why the participant does not begin, else empty."""
        study = self._study
        task = task_text(self._stops, self._folder.pools, study.terms.minutes)
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
        game = TerminalGame(Player(self._folder, self._name, stop.key), self._echo, is_stored=True, aid=study.terms.aid)
        kind = game.game.pool.words.kind[0].capitalize()
        self._echo("\n" + ", ".join(filter(None, (kind, progress))))
        if not game.play(self._lines):
            return False
        if study.terms.reveal:
            game.verdict(as_json=False)
        else:
            game.player.verdict()
        return True

    def _answer_page(self, stop: QuestionsStop) -> bool:
        """Ask the questions of a page, and record the answers; False if the input ends before."""
        self._echo(f"\n{stop.title}")
        answers = _ask_all(stop, self._lines, self._echo)
        if answers is None:
            return False
        self._folder.add(self._name, stop.key, {"answers": answers}, 0.0)
        return True


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
    hints = {
        "likert": f" (1 {question.get('low', '')} to {question.get('points', 0)} {question.get('high', '')})",
        "choice": f" ({' | '.join(question.get('options', ()))})",
    }
    return (
        str(question["text"]) + hints.get(question["kind"], "") + (" (- for none)" if question.get("optional") else "")
    )


def _typed_value(question: Mapping[str, Any], text: str) -> Any:
    if question["kind"] in ("likert", "number"):
        try:
            number = float(text)
        except ValueError:
            return text
        return int(number) if number.is_integer() else number
    return text
