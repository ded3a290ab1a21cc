"""Games in a terminal: a line in words or in JSON, what came of it, and the verdict."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from calibrant.bench.core.words import Verb, WordsError
from calibrant.bench.play.folder import Player
from calibrant.bench.play.game import AID
from calibrant.bench.report.remaining import MAX_EXPORTED, RemainingLists
from calibrant.dsl.answer_text import read_reply_text
from calibrant.dsl.episode import ActionError, Step, action_of_text

GENERAL = (
    Verb("show", "print the answer that you are writing"),
    Verb("undo", "take back the last change of that answer"),
    Verb("give up", "end the item without an answer"),
    Verb("help", "print this list"),
    Verb("quit", "stop here"),
)
Echo = Callable[[str], None]


class TerminalGame:
    """One item in a terminal.

    is_stored: moves are on disk, so that `quit` and the end of the input leave the item open
    aid: what is shown before the first move and after each reading
    """

    def __init__(self, player: Player, echo: Echo, *, is_stored: bool, aid: Path | None = None) -> None:
        self.player = player
        self.game = player.game
        self.is_stored = is_stored
        self._aid = aid
        self._echo = echo
        self._pool = player.game.pool

    def play(self, lines: Iterable[str]) -> bool:
        """Play the item by lines in words; False if it was left open."""
        self._echo(self._pool.words.opening(self.game.shown))
        forms = [verb.form for verb in self._pool.words.verbs(self.game.shown)]
        self._echo(f"\nType one line at a time: {' | '.join([*forms, 'help', 'quit'])}")
        for step in self.game.steps:
            self._echo(self.game.step_text(step))
        if self._aid is not None:
            self._echo(self.game.aid_text(self._aid))
        for line in self._pool.words.draft_lines(self.game.shown, self.game.draft):
            self._echo(line)
        for line in () if self.game.closed else lines:
            if line.strip().lower() == "quit":
                return not self.is_stored
            if self.player.close_if_late():
                self._echo("The time is up; the item has ended without an answer.")
                return True
            try:
                self._echo(self._answer_line(read_reply_text(line).strip()))
            except (ActionError, WordsError) as error:
                self._echo(str(error))
            if self.game.closed:
                return True
        return self.game.closed or not self.is_stored

    def _answer_line(self, line: str) -> str:
        words, item = self._pool.words, self.game.shown
        match line.lower():
            case "help":
                return help_text([*words.verbs(item), *GENERAL])
            case "undo":
                self.player.undo()
            case "give up":
                self.player.give_up()
                return "You gave no answer."
            case "show":
                pass
            case _:
                before = self.game.draft
                step = self.player.do(words.read(item, self.game.position, line))
                if step is not None:
                    return "\n".join([self.game.step_text(step), *self._aid_texts(step)])
                if self.game.closed:
                    return "Your answer was submitted."
                if self.game.draft == before:
                    return "The answer is as it was."
        return "\n".join(words.draft_lines(item, self.game.draft)) or "No answer is written yet."

    def play_json(self, lines: Iterable[str]) -> bool:
        """Play the item by lines of JSON, an object for each thing that happens; False if it was left open."""
        prompt = self._pool.benchmark.items.prompt(self.game.shown)
        aid = {} if self._aid is None else {AID: self.game.aid_text(self._aid)}
        self._event(
            {"event": "task", "instance": self.game.shown.id, "text": prompt, "left": self.game.num_left, **aid}
        )
        for step in self.game.steps:
            self._event(self._observation(step))
        for line in () if self.game.closed else lines:
            try:
                done = self.player.act(action_of_text(read_reply_text(line)))
            except (ActionError, WordsError) as error:
                self._event({"event": "unreadable", "text": str(error), "left": self.game.num_left})
                continue
            if done is not None:
                texts = self._aid_texts(done)
                self._event(self._observation(done) | ({AID: texts[0]} if texts else {}))
            if self.game.closed:
                return True
        return self.game.closed or not self.is_stored

    def verdict(self, *, as_json: bool) -> bool:
        """Print what the game is worth; whether the answer was right."""
        verdict = self.player.verdict()
        is_right: bool = verdict["right"] is not False  # null where nothing is held out
        if as_json:
            lists = RemainingLists(self._pool.benchmark, MAX_EXPORTED)
            remaining = lists.get(self._pool.digest, self.game.item, self.game.steps)
            listed = None if remaining is None else remaining.to_dict()
            self._event({"event": "verdict", **verdict, "open": listed})
        else:
            self._echo(verdict["text"])
        return is_right

    def _aid_texts(self, step: Step[Any]) -> list[str]:
        """Return the text of the aid after a step that has a reading; none without an aid."""
        return [] if self._aid is None or not step.cost else [self.game.aid_text(self._aid)]

    def _observation(self, step: Step[Any]) -> dict[str, Any]:
        return {
            "event": "step",
            "action": dict(step.action),
            "reading": step.reading,
            "refused": step.refused,
            "cost": step.cost,
            "left": self.game.num_left,
            "closed": self.game.closed,
            "text": self._pool.benchmark.play.describe(self.game.episode, step),  # type: ignore[arg-type]  # it has steps
        }

    def _event(self, event: dict[str, Any]) -> None:
        self._echo(json.dumps(event))


def help_text(verbs: Iterable[Verb]) -> str:
    """Return forms and meanings as two columns."""
    listed = list(verbs)
    width = max(len(verb.form) for verb in listed)
    return "\n".join(f"{verb.form.ljust(width)}  {verb.meaning}" for verb in listed)


def input_lines(echo: Echo | None) -> Iterator[str]:
    """Yield lines of standard input that are not blank; echo: prints the prompt of a terminal."""
    while True:
        if echo is not None and sys.stdin.isatty():
            echo("> ")
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line
