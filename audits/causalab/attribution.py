"""Was it earned: frequency and graph of a run beside what the run's own evidence decided."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from audits.attribution import Attribution
from audits.causalab.spaces import EdgeStanding, LabSpace, decided_frequency, edge_standing, graph_fits, space_of
from dsl.causalab.episode import LabStep
from dsl.causalab.hypothesis import EMPTY, Hypothesis
from dsl.causalab.item import LabItem
from dsl.causalab.reactor import accurate
from dsl.causalab.run import RunScore, run_score, stated_with


@dataclass(frozen=True, slots=True)
class RunAttribution:
    """The two scored questions of a run. Correct are a frequency within 5, and a graph without a wrong edge.

    edges: the last claims beside the members that were left
    settings: that were carried out, as (property, value)
    frequency_decided, graph_decided: settings after which the evidence decided the question; None if it never did
    premature: whether the run ended with a question undecided and settings left
    wasted: settings made after both questions were decided
    """

    frequency: Attribution
    graph: Attribution
    edges: EdgeStanding
    settings: tuple[tuple[str, float], ...]
    frequency_decided: int | None
    graph_decided: int | None
    premature: bool
    wasted: int


def attributed_run(item: LabItem, steps: Sequence[LabStep], *, bounded: bool = False) -> RunAttribution:
    """Attribution from the space that the run's readings left; `BudgetSpent` where it is not enumerated.

    bounded: whether bases are taken to be drawn as the benchmark draws them
    """
    known = cache(lambda settings: space_of(item.task, _first(steps, settings), bounded=bounded))
    made = tuple((str(step.action["set"]), float(step.action["value"])) for step in steps if step.cost)
    space, score, said = known(len(made)), run_score(item, steps), last_hypothesis(steps)
    frequency = _first_true(lambda k: decided_frequency(known(k)) is not None, len(made))
    graph = _first_true(lambda k: known(k).graph_decided, len(made))
    both = None if frequency is None or graph is None else max(frequency, graph)
    return RunAttribution(
        frequency=_frequency(space, score),
        graph=_graph(space, score, said),
        edges=edge_standing(space, said.edges),
        settings=made,
        frequency_decided=frequency,
        graph_decided=graph,
        premature=both is None and len(made) < item.task.allowance,
        wasted=0 if both is None else len(made) - both,
    )


def _first(steps: Sequence[LabStep], settings: int) -> Iterator[LabStep]:
    """The steps up to and with the last of so many settings."""
    for step in steps:
        if step.cost:
            if not settings:
                return
            settings -= 1
        yield step


def _first_true(holds: Callable[[int], bool], last: int) -> int | None:
    """The least number up to `last` for which it holds, of what goes on holding once it does; None if there is none."""
    if not holds(last):
        return None
    return bisect_left(range(last), True, key=holds)


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
