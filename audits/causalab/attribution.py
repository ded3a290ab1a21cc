"""Was it earned: frequency and graph of a run beside what the run's own evidence decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from audits.attribution import Attribution
from audits.causalab.spaces import LabSpace, decided_frequency, graph_fits, space_of
from dsl.causalab.episode import LabStep
from dsl.causalab.hypothesis import EMPTY, Hypothesis
from dsl.causalab.item import LabItem
from dsl.causalab.reactor import accurate
from dsl.causalab.run import RunScore, run_score, stated_with


@dataclass(frozen=True, slots=True)
class RunAttribution:
    """The two scored questions of a run. Correct are a frequency within 5, and a graph without a wrong edge."""

    frequency: Attribution
    graph: Attribution


def attributed_run(item: LabItem, steps: Sequence[LabStep], *, bounded: bool = False) -> RunAttribution:
    """Attribution from the space that the run's readings left; `BudgetSpent` where it is not enumerated.

    bounded: whether bases are taken to be drawn as the benchmark draws them
    """
    space = space_of(item.task, steps, bounded=bounded)
    score = run_score(item, steps)
    return RunAttribution(_frequency(space, score), _graph(space, score, last_hypothesis(steps)))


def last_hypothesis(steps: Sequence[LabStep]) -> Hypothesis:
    """The hypothesis that stands at the end of a run."""
    return next((said for step in reversed(steps) if (said := stated_with(step)) is not None), EMPTY)


def _frequency(space: LabSpace, score: RunScore) -> Attribution:
    said = score.frequency
    fits = None if said is None else any(accurate(said, value) for value in space.verdicts())
    return Attribution(decided_frequency(space) is not None, score.accurate, fits, space.count, space.in_words)


def _graph(space: LabSpace, score: RunScore, said: Hypothesis) -> Attribution:
    correct = score.hypothesis.distance.shd == 0
    return Attribution(space.graph_decided, correct, graph_fits(space, said.edges), space.count, space.in_words)
