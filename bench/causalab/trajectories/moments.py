"""A run step by step, ready to be shown: actions, readings, the stated graph, the true one, and the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from calibrant.audits.causalab.attribution import Moment, run_space, trajectory
from calibrant.bench.causalab.plots.picture import run_picture
from calibrant.bench.pages.graphs import GraphPicture
from calibrant.dsl.causalab.episode import HYPOTHESIS, LabEpisode, LabStep
from calibrant.dsl.causalab.hypothesis import EMPTY, state_mechanism
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.prompt import shown_step
from calibrant.dsl.causalab.score import Scorer
from calibrant.dsl.episode import Action, replay_actions
from calibrant.dsl.errors import short_repr

HEADINGS = ("Step", "Action", "Left", "F1", "Root F1", "Weight F1", "Fits", "Contradicted")


@dataclass(frozen=True)
class RunMoment:
    """The state after a step; the first is that before any.

    caption: number and action; reading: what came of it, in words
    stated: the stated graph beside what the readings prove; truth: the true one, None where it is not shown
    moment: the metrics
    """

    caption: str
    reading: str
    stated: GraphPicture
    truth: GraphPicture | None
    moment: Moment

    @property
    def row(self) -> list[str]:
        """The cells under HEADINGS, without the number of the step."""
        score = self.moment.score
        figures = (score.all_edge.f1, score.root.f1, score.freq_weight.f1)
        fits, contradicted = self.moment.equation_fits, self.moment.contradicted
        return [
            self.caption,
            f"{self.moment.members:,}",
            *(f"{figure:.3f}" for figure in figures),
            "yes" if fits else "no",
            "yes" if contradicted else "no",
        ]


def run_moments(item: LabItem, steps: Sequence[LabStep], *, reveal_sealed: bool) -> list[RunMoment]:
    """Return the moments of a run; `BudgetSpent` where the mechanisms left are not counted."""
    course = trajectory(item, steps)
    start = Moment(0, run_space(item).count, Scorer(item.sealed.mechanism).score(EMPTY), False, False)
    moments = []
    for number, moment in enumerate((start, *course.moments)):
        before = steps[:number]
        last = before[-1] if before else None
        moments.append(
            RunMoment(
                "before any action" if last is None else _action_text(last.action),
                "" if last is None else " ".join(shown_step(last).split()),
                run_picture(f"stated after step {number}", item, before),
                _true_picture(item, before) if reveal_sealed else None,
                moment,
            )
        )
    return moments


def _true_picture(item: LabItem, steps: Sequence[LabStep]) -> GraphPicture:
    """Return the true graph beside what the same readings prove."""
    settings: list[Action] = [{k: v for k, v in step.action.items() if k != HYPOTHESIS} for step in steps if step.cost]
    truth = {"submit": {HYPOTHESIS: state_mechanism(item.sealed.mechanism)}}
    picture = run_picture("the true graph", item, replay_actions(LabEpisode(item), [*settings, truth]).steps)
    return replace(picture, remark=f"beside the same readings; {picture.remark.split('; ')[1]}")


def _action_text(action: Action) -> str:
    named: dict[str, Any] = {key: value for key, value in action.items() if key != HYPOTHESIS}
    if "set" in named:
        return f"set {named['set']} to {named.get('value')}"
    if "reactor" in named:
        return f"try {named['reactor']} on the reactor"
    return "submit" if "submit" in named else short_repr(named)
