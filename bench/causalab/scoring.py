"""Answers of CausaLab: how they are read, scored and attributed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from calibrant.bench.causalab.fields import LabVerdict
from calibrant.bench.causalab.play import PLAY
from calibrant.bench.causalab.verdict import attributions_record
from calibrant.bench.core.scoring import Scorable
from calibrant.dsl.causalab.episode import HYPOTHESIS, LabEpisode
from calibrant.dsl.causalab.hypothesis import hypothesis
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.replies import read_answer
from calibrant.dsl.causalab.run import run_score
from calibrant.dsl.episode import Step, replay_actions
from calibrant.solvers.budget import BudgetSpent


class LabScoring(Scorable[LabItem]):
    """Implements Scorable (bench.core.scoring)."""

    @property
    def verdict_record(self) -> type[msgspec.Struct]:
        return LabVerdict

    def no_answer(self, item: LabItem) -> dict[str, Any]:
        return {"hypothesis": {}}

    def score(self, item: LabItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Score an answer without a transcript, as dialled and submitted before any setting."""
        return run_score(item, steps or _replay_submission(item, answer)).as_json()

    def extract(self, item: LabItem, response: str | Mapping[str, Any]) -> dict[str, Any]:
        return self.read_answer(item, response)[0]

    def read_answer(self, item: LabItem, response: str | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        return read_answer(response)

    def same_answer(self, item: LabItem, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
        """Return whether they agree in all that both state."""
        both = first.keys() & second.keys()
        if "frequency" in both and first["frequency"] != second["frequency"]:
            return False
        return HYPOTHESIS not in both or hypothesis(first[HYPOTHESIS]) == hypothesis(second[HYPOTHESIS])


SCORING = LabScoring()


def attribute(
    item: LabItem, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Attribute frequency and graph; None without a submission, and where the members are not enumerated."""
    from calibrant.audits.causalab.attribution import attribute_run

    if not steps and not answer:
        return None
    try:
        attributions = attribute_run(item, steps or _replay_submission(item, answer))
    except BudgetSpent:
        return None
    return attributions_record(attributions, item.task.nodes)


def _replay_submission(item: LabItem, answer: Mapping[str, Any]) -> Sequence[Step[Any]]:
    """Return the steps of a run that only submits; none if there is no answer."""
    return replay_actions(LabEpisode(item), PLAY.submission(answer, ())).steps if answer else ()
