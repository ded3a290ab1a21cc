"""A participant on one item: moves that are on disk before they are carried out, and a clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from calibrant.bench.core.words import Act, Draft, Edit, WordsError
from calibrant.bench.play.folder import PlayFolder
from calibrant.bench.play.plan import AID
from calibrant.bench.play.pool import ItemKey
from calibrant.dsl.episode import Action, Step
from calibrant.dsl.errors import CalibrantError


class Player:
    """One participant on one item.

    clock: seconds on a clock that does not go back
    """

    def __init__(
        self, folder: PlayFolder, participant: str, item: ItemKey, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.folder = folder
        self.participant = participant
        self.item = item
        self.game = folder.game(participant, item)
        self._clock = clock
        self._since = clock()
        if not self.game.closed:
            self._check_aid()
            self._add({"open": {AID: folder.config[AID]} if AID in folder.config else {}})

    @property
    def moves(self) -> list[dict[str, Any]]:
        """The actions so far, oldest first."""
        events = self.folder.events(self.participant, self.item)
        return [record.event["act"] for record in events if "act" in record.event]

    def do(self, stated: Act | Edit) -> Step[Any] | None:
        """Carry out what a line states; the step of an episode."""
        if isinstance(stated, Act):
            return self.act(stated.action)
        self.write(stated.draft)
        return None

    def act(self, action: Action) -> Step[Any] | None:
        """Carry out a move; `WordsError` for what is none."""
        self.game.check(action)
        seconds = self._add({"act": dict(action)})
        return self.game.act(action, seconds)

    def write(self, draft: Draft) -> None:
        """Replace the draft."""
        self._require_open()
        seconds = self._add({"draft": dict(draft)})
        self.game.write(draft, seconds)

    def undo(self) -> None:
        """Take back the last change of the draft; `WordsError` if there is none."""
        self._require_open()
        if self.game.earlier_draft is None:
            raise WordsError("nothing to take back; moves that were carried out stay, for their reading was seen")
        seconds = self._add({"undo": {}})
        self.game.take_back(seconds)

    def give_up(self) -> None:
        """Close the item without an answer."""
        self._require_open()
        seconds = self._add({"give_up": {}})
        self.game.give_up(seconds)

    def verdict(self) -> dict[str, Any]:
        """Write the record of the closed game; return the verdict, ready for JSON."""
        return self.folder.verdict(self.participant, self.game)

    def _check_aid(self) -> None:
        """Refuse another aid than that of the moves that are there: a record names one."""
        aid = self.folder.config.get(AID)
        events = self.folder.events(self.participant, self.item)
        openings = [record.event["open"] for record in events if "open" in record.event]
        for earlier in (opening.get(AID) for opening in openings):
            if earlier != aid:
                condition = "without an aid" if earlier is None else f"with --aid {earlier}"
                text = f"{self.game.shown.id} was begun {condition} by {self.participant}"
                raise CalibrantError(f"{text}; go on like that, or give another --out")

    def _require_open(self) -> None:
        if self.game.closed:
            raise WordsError("the item is closed")

    def _add(self, event: dict[str, Any]) -> float:
        """Put an event on disk; return the seconds that are recorded with it."""
        now = self._clock()
        seconds, self._since = now - self._since, now
        return self.folder.add(self.participant, self.item, event, seconds).seconds
