"""Studies in a terminal: the stops of one participant, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from calibrant.bench.core.words import WordsError
from calibrant.bench.play.folder import PlayFolder
from calibrant.bench.play.plan import QuestionsStop
from calibrant.bench.play.player import Player
from calibrant.bench.play.questions import check_answers
from calibrant.bench.play.study.config import Study
from calibrant.bench.play.terminal import TerminalGame, input_lines


def play_study(study: Study, participant: str, echo: Callable[[str], None]) -> int:
    """Play what a participant has not done yet; 0 if all is done, 1 if something is left open."""
    name = study.member(participant)
    lines = input_lines(None)
    with PlayFolder(study.out, study.pools, study.config) as folder:
        if not folder.has_begun(name):
            if study.terms.consent:
                echo(f"{study.terms.consent.strip()}\n\nType yes if you have read this and agree.")
                if next(lines, "").strip().lower() != "yes":
                    return 1
            folder.begin(name, agreed=bool(study.terms.consent))
        for stop in study.plan(name):
            if isinstance(stop, QuestionsStop):
                if folder.events(name, stop.key):
                    continue
                answers = _ask_all(stop, lines, echo)
                if answers is None:
                    return 1
                folder.add(name, stop.key, {"answers": answers}, 0.0)
            elif not folder.is_closed(name, stop.key):
                game = TerminalGame(Player(folder, name, stop.key), echo, is_stored=True, aid=study.terms.aid)
                if not game.play(lines):
                    echo(f"Left open; your moves are in {study.out}, and the same command goes on from here.")
                    return 1
                if study.terms.reveal:
                    game.verdict(as_json=False)
                else:
                    game.player.verdict()
    echo("Done. Thank you.")
    return 0


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
