"""Games and studies in a terminal, by typed lines or JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from time import monotonic
from typing import Any

from msgspec.structs import replace

from calibrant.bench.core.typed_moves import Verb, WordsError
from calibrant.bench.play.clocks import Elapsed, ticking
from calibrant.bench.play.folder import Player, PlayFolder, Visit
from calibrant.bench.play.game import AID, Completion, ItemStop, Practice, QuestionsStop, Stop, aid_config
from calibrant.bench.play.study import pages
from calibrant.bench.play.study.config import Study
from calibrant.bench.report.capabilities import MAX_EXPORTED, RemainingLists
from calibrant.bench.terminal import json_text
from calibrant.dsl.answer_text import read_reply_text
from calibrant.dsl.episode import ActionError, Step, action_of_text
from calibrant.dsl.text import plural

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

    is_stored: whether moves are stored on disk, so that `quit` and the end of the input leave the item open
    aid: aid shown before the first move and after each reading, None for none
    """

    def __init__(self, player: Player, echo: Echo, *, is_stored: bool, aid: Path | None = None) -> None:
        self.player = player
        self.game = player.game
        self.is_stored = is_stored
        self._aid = aid
        self._echo = echo
        self._pool = player.game.pool

    def play(self, lines: Iterable[str]) -> bool:
        """Play the item by typed lines; return False if it was left open."""
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
        """Play the item by lines of JSON, printing an object for each event; return False if it was left open."""
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
        """Print the verdict; return whether the answer was right."""
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
        """Return the text of the aid after a step with a reading; [] without an aid."""
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
        self._echo(json_text(event, indent=None))


def help_text(verbs: Iterable[Verb]) -> str:
    """Return forms and meanings as two columns."""
    listed = list(verbs)
    width = max(len(verb.form) for verb in listed)
    return "\n".join(f"{verb.form.ljust(width)}  {verb.meaning}" for verb in listed)


def input_lines(echo: Echo | None) -> Iterator[str]:
    """Yield lines of standard input that are not blank. echo: prints the prompt; None if there is no terminal."""
    while True:
        if echo is not None and sys.stdin.isatty():
            echo("> ")
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line


# --- Studies in a terminal: the stops of one participant --------------------------------------------------------------
def play_study(study: Study, participant: str, echo: Callable[[str], None]) -> int:
    """Play the remaining stops of a participant; return 0 if all are completed, 1 if not."""
    name = study.require_participant(participant)
    with PlayFolder(study.out, study.pools, study.config) as folder:
        game = TerminalStudy(study, folder, name, input_lines(None), echo)
        with ticking(game.store_elapsed):
            return game.play()


class TerminalStudy:
    """A study of one participant in a terminal. clock: returns the seconds of a monotonic clock."""

    def __init__(
        self,
        study: Study,
        folder: PlayFolder,
        name: str,
        lines: Iterator[str],
        echo: Callable[[str], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._study = study
        self._folder = folder
        self._name = name
        self._lines = lines
        self._echo = echo
        self._clock = clock
        self._time = folder.time_study(name, study.terms.limit, clock)
        self._visit: Visit | None = None

    def store_elapsed(self) -> None:
        """Store the seconds since the last event, so that `quit` and a kill do not reset the limit."""
        if self._folder.has_begun(self._name) and not self._folder.has_finished(self._name):
            entry = Elapsed("", "", 0, 0.0) if self._visit is None else self._visit.elapsed
            used = round(min(self._time.seconds, self._study.terms.limit), 3)
            self._folder.store_elapsed({self._name: replace(entry, study_seconds=used)})

    def play(self) -> int:
        """Play the remaining stops; return the exit code."""
        if not self._folder.has_begun(self._name):
            refusal = self._start()
            if refusal:
                again = f"calibrant play --study {quote(str(self._study.path))} --participant {self._name}"
                self._echo(f"{refusal} Nothing is recorded; to start again: {again}")
                return 1
            terms = self._study.terms
            self._time.start()
            self._folder.begin(self._name, agreed=bool(terms.consent), groups=terms.groups, seed=terms.seed)
        stops = self._stops
        items = [stop for stop in stops if isinstance(stop, ItemStop)]
        for stop in stops:
            if isinstance(stop, QuestionsStop):
                is_done = self._folder.is_passed(self._name, stop) or self._answer_page(stop)
                is_unchecked = stop.checks_instructions and self._time.balance <= 0
                if not is_done and (is_unchecked or self._is_screened_out(stop)):
                    return self._end_unchecked()
            else:
                progress = f"item {items.index(stop) + 1} of {len(items)}" if len(items) > 1 else ""
                is_done = self._folder.is_closed(self._name, stop.key) or self._play_item(stop, progress)
            if not is_done and self._time.balance > 0:
                self._echo(f"Left open; what you did is in {self._study.out}, and the same command goes on from here.")
                return 1
            if not is_done:
                break
        is_late = self._time.balance <= 0 and not all(self._folder.is_done(self._name, stop) for stop in stops)
        self._folder.finish(self._name, is_screened_out=False, is_late=is_late)
        self._echo("The time of the study is up. Thank you." if is_late else "Done. Thank you.")
        self._echo_proof(self._study.terms.completion)
        return 0

    def _end_unchecked(self) -> int:
        """End the study of a participant who failed the questions about instructions; return the exit code."""
        self._folder.finish(self._name, is_screened_out=True, is_late=self._time.balance <= 0)
        self._echo("The study ends here: the questions about the instructions were not answered rightly.")
        self._echo_proof(self._study.terms.screen_out)
        return 0

    def _echo_proof(self, proof: Completion | None) -> None:
        for name, value in {} if proof is None else proof.stated(self._name).items():
            self._echo(f"Your completion code: {value}" if name == "code" else f"To finish, open {value}")

    @property
    def _stops(self) -> Sequence[Stop]:
        return self._study.plan(self._name, self._folder.assignment(self._name))

    def _is_screened_out(self, stop: QuestionsStop) -> bool:
        return 0 < stop.tries <= self._folder.num_tries(self._name, stop)

    def _start(self) -> str:
        """Show the start and offer practice; return why the participant does not begin, empty if they begin."""
        study = self._study
        task = pages.start_text(study.plan, self._name, study.terms, self._folder.pools)
        limit = pages.limit_text(study.terms.limit)
        self._echo(f"{study.terms.title}\n\n{task}\n{pages.PRIVACY} {pages.local_place(study.out)}")
        pause = "go on until the time is up." if limit else "go on later."
        self._echo("\n".join(filter(None, (limit, f"You can stop at any time by `quit` and {pause}\n"))))
        if study.terms.consent:
            self._echo(f"{pages.consent_text(study.terms.consent)}\n")
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
        """Return the one of `words` that is typed, in any case or abbreviated; empty at `quit` and the end of input."""
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
        """Play an item; return False if it is left open or the study's time is up before it."""
        study = self._study
        if self._time.balance <= 0 and not self._folder.events(self._name, stop.key):
            return False
        player = Player(self._folder, self._name, stop.key, self._clock, limit=stop.limit, study=self._time)
        self._visit = player
        player.close_if_late()
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
        """Ask the questions of a page, those on instructions until all answers are correct, and record the answers.

        Return False if the input ends before, or no attempts are left.
        """
        while not self._is_screened_out(stop) and self._time.balance > 0:
            limit = f" ({plural(stop.limit, 'seconds')} at most)" if stop.limit else ""
            self._echo(f"\n{stop.title}{limit}")
            if stop.instructions:
                self._echo(f"\n{pages.consent_text(stop.instructions)}\n")
            self._visit = player = pages.PagePlayer(self._folder, self._name, stop, self._time, self._clock)
            answers = _ask_all(player, self._lines, self._echo)
            if answers is None:
                return self._folder.is_passed(self._name, stop)
            player.submit(answers)
            if self._folder.is_passed(self._name, stop):
                return True
            self._echo("Not all answers are right. Please read the page again, and correct them.")
        return False


def _ask_all(player: pages.PagePlayer, lines: Iterator[str], echo: Callable[[str], None]) -> dict[str, Any] | None:
    """Return the typed answers to a page of questions; None if the input or the time ends before."""
    answers = player.draft
    for question in player.stop.questions:
        while question["id"] not in answers:
            echo(_question_text(question))
            line = next(lines, None)
            if line is None:
                return None
            if player.close_if_late():
                echo("The time is up; what you had answered until then is recorded.")
                return None
            value = line.strip()
            if value == "-" and question.get("optional"):
                break
            try:
                answers |= pages.check_answers([question], {question["id"]: _typed_value(question, value)})
            except WordsError as error:
                echo(str(error))
            player.write(answers)
    return answers


def _question_text(question: Mapping[str, Any]) -> str:
    values = " | ".join(question["options"]) if "options" in question else pages.value_text(question)
    return f"{question['text']} ({values}){' (- for none)' if question.get('optional') else ''}"


def _typed_value(question: Mapping[str, Any], text: str) -> Any:
    if question["kind"] in ("likert", "number"):
        try:
            number = float(text)
        except ValueError:
            return text
        return int(number) if number.is_integer() else number
    return text
