"""One item as one person plays it: an episode move by move, or a question with one answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.bench.core.capabilities import AIDS
from calibrant.bench.core.words import Draft, Position, WordsError
from calibrant.bench.play.pool import PlayPool
from calibrant.dsl.episode import Action, ActionError, Episode, Step
from calibrant.dsl.errors import CalibrantError

_OBJECT = re.compile(r"\{[^{}]*\}")
SUBMIT = "submit"  # of a question, the verb of its one action


class Game:
    """The state of an item after some events. Equal events give equal states.

    item: under the pool's own id; shown: under its public id
    answer: what was submitted; None if nothing was
    seconds: before each step, drafts and refused lines included
    gave_up: the person stated that they cannot tell; num_moves: actions so far, refused ones too
    """

    def __init__(self, pool: PlayPool, instance: str) -> None:
        self.pool = pool
        self.item = pool.item(instance)
        self.shown = pool.public.shown(self.item)
        of = pool.benchmark
        self.episode: Episode[Any, Any] | None = of.play.open(self.item) if of.is_interactive(self.item) else None
        self.draft: Draft = {}
        self.answer: dict[str, Any] | None = None
        self.gave_up = False
        self.num_moves = 0
        self.seconds: list[float] = [0.0 for _ in self.steps]
        self._waiting = 0.0
        self._earlier_drafts: list[Draft] = []

    @property
    def steps(self) -> Sequence[Step[Any]]:
        """Steps of the episode so far; none of a question."""
        return () if self.episode is None else self.episode.steps

    @property
    def num_left(self) -> int:
        """Rest of the allowance; 0 of a question."""
        return 0 if self.episode is None else self.episode.left

    @property
    def closed(self) -> bool:
        """Whether nothing can be done any more."""
        if self.gave_up:
            return True
        return self.answer is not None if self.episode is None else self.episode.closed

    @property
    def position(self) -> Position:
        """Public state, against which words are read."""
        return Position(self.steps, self.num_left, self.draft)

    def step_text(self, step: Step[Any]) -> str:
        """Return what came of a step of the episode in words, its readings without JSON: ph = 3.0, density = 1.5."""
        assert self.episode is not None
        return _OBJECT.sub(_plain_object, self.pool.benchmark.play.describe(self.episode, step))

    def aid_text(self, aid: Path) -> str:
        """Return what an aid shows now."""
        text: str = self.pool.benchmark.require(AIDS)(self.shown, self.steps, aid)
        return text

    def check(self, action: Action) -> None:
        """Refuse what is no move at all; `WordsError` costs nothing. An episode judges its own actions."""
        if self.closed:
            raise WordsError("the item is closed")
        if self.episode is None:
            self._stated_answer(action)

    def act(self, action: Action, seconds: float = 0.0) -> Step[Any] | None:
        """Carry out an action; the step of an episode, None for the answer to a question."""
        self.check(action)
        self._waiting += seconds
        self.num_moves += 1
        if self.episode is None:
            self.answer = self._stated_answer(action)
            self.seconds.append(self._waiting)
            return None
        step: Step[Any] = self.episode.act(action)
        self.seconds.append(self._waiting)
        self._waiting = 0.0
        if self.episode.closed:
            self.answer = self.pool.benchmark.play.submitted(self.episode.steps)
        return step

    def write(self, draft: Draft, seconds: float = 0.0) -> None:
        """Replace the draft; the earlier one can be taken back."""
        self._waiting += seconds
        self._earlier_drafts.append(self.draft)
        self.draft = draft

    @property
    def earlier_draft(self) -> Draft | None:
        """The draft before the last change; None if there is none."""
        return self._earlier_drafts[-1] if self._earlier_drafts else None

    def take_back(self, seconds: float = 0.0) -> None:
        """Return to the draft before the last change."""
        self._waiting += seconds
        self.draft = self._earlier_drafts.pop()

    def give_up(self, seconds: float = 0.0) -> None:
        """Close the item without an answer."""
        self._waiting += seconds
        self.seconds.append(self._waiting)
        self.gave_up = True

    def wait(self, seconds: float) -> None:
        """Count time that went by without an event."""
        self._waiting += seconds

    def _stated_answer(self, action: Action) -> dict[str, Any]:
        if action.keys() != {SUBMIT} or not isinstance(action[SUBMIT], Mapping):
            raise WordsError(f'a question takes one action, {{"{SUBMIT}": {{...}}}} with the answer')
        try:
            answer = self.pool.benchmark.scoring.extract(self.item, action[SUBMIT])
            self.pool.words.check_answer(self.item, answer)
        except ActionError as error:
            raise WordsError(str(error)) from None
        except WordsError:
            raise
        except CalibrantError as error:
            raise WordsError(str(error)) from None
        return answer


def _plain_object(match: re.Match[str]) -> str:
    try:
        values = json.loads(match[0])
    except ValueError:
        return match[0]
    end = "." if match.string[match.end() :].startswith(" ") else ""
    return ", ".join(f"{name} = {value}" for name, value in values.items()) + end
