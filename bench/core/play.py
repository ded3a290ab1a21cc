"""Episodes of a benchmark's items: how they are opened, acted in and submitted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from calibrant.bench.episodes import Chat, json_chat
from calibrant.dsl.episode import Action, Episode, Step, sole_action
from calibrant.dsl.item import Item

I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


class PlayedReplies(NamedTuple):
    """Outcome of the replies of a system.

    steps: of the episode, those that the replies caused
    totals: ready for JSON, a field of the verdict; `unread` is the number of replies without an action
    """

    steps: Sequence[Step[Any]]
    totals: Mapping[str, Any]


class Playable(ABC, Generic[I]):
    """Items that are answered in an episode: `calibrant score` replays the steps of their predictions.

    prompts_show_opening: whether prompts show what an episode begins with
    """

    prompts_show_opening: ClassVar[bool] = False

    def is_played(self, item: I) -> bool:
        """Return whether an item is answered in an episode, and not at once."""
        return True

    @abstractmethod
    def open(self, item: I) -> Episode[Any, Any]:
        """Return a fresh episode."""

    @abstractmethod
    def describe(self, episode: Episode[Any, Any], step: Step[Any]) -> str:
        """Return one line on the outcome of the last step."""

    def chat(self, item: I, instructions: str = "") -> Chat:
        """Open a conversation about an item, with one action a reply."""
        return json_chat(self, item, instructions)

    def submission(self, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> Sequence[Action]:
        """Return the actions that submit an answer after these steps; the last one submits and has one key."""
        return ({"submit": dict(answer)},)

    def submitted(self, steps: Sequence[Step[Any]]) -> dict[str, Any] | None:
        """Return the answer that these steps submit, as `submission` is given it; None if they submit none."""
        (verb,) = self.submission({}, ())[-1]
        return next((dict(step.action[verb]) for step in steps if verb in step.action and not step.refused), None)

    def omission(self, steps: Sequence[Step[Any]]) -> str:
        """Return what counts and a submitted run does not have; empty if it has all."""
        return ""

    def parse_action(self, item: I, text: str) -> Action:
        """Return the action that a reply states; `ActionError` for one that states none, or several."""
        return sole_action(text)
