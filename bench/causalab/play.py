"""Episodes of CausaLab: how they are opened, acted in and submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.bench.core.play import Playable
from calibrant.dsl.causalab.episode import HYPOTHESIS, LabEpisode
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.prompt import shown_step
from calibrant.dsl.causalab.replies import is_paper_reply, paper_action
from calibrant.dsl.causalab.run import last_dialled_frequency, last_raw
from calibrant.dsl.episode import Action, Episode, Step, sole_action


class LabPlay(Playable[LabItem]):
    """Implements Playable (bench.core.play)."""

    def open(self, item: LabItem) -> LabEpisode:
        return LabEpisode(item)

    def describe(self, episode: Episode[Any, Any], step: Step[Any]) -> str:
        return f"{shown_step(step)} Settings left: {episode.left}.".replace("\n", " ")

    def submission(self, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> Sequence[Action]:
        """Return the actions of a submission: dial the frequency unless it is there, then submit the hypothesis."""
        dial = (
            ()
            if answer.get("frequency") in (None, last_dialled_frequency(steps))
            else ({"reactor": answer["frequency"]},)
        )
        stated = {HYPOTHESIS: answer[HYPOTHESIS]} if HYPOTHESIS in answer else {}
        return (*dial, {"submit": stated})

    def submitted(self, steps: Sequence[Step[Any]]) -> dict[str, Any] | None:
        if not any("submit" in step.action and not step.refused for step in steps):
            return None
        frequency = last_dialled_frequency(steps)
        return ({} if frequency is None else {"frequency": frequency}) | {HYPOTHESIS: dict(last_raw(steps) or {})}

    def omission(self, steps: Sequence[Step[Any]]) -> str:
        return "no frequency" if last_dialled_frequency(steps) is None else ""

    def parse_action(self, item: LabItem, text: str) -> Action:
        stated = sole_action(text)
        return paper_action(stated, item.task.properties) if is_paper_reply(stated) else stated


PLAY = LabPlay()
