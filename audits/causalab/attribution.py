"""Was it earned: frequency and graph of a run beside what the run's own evidence decided."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache

from audits.attribution import Attribution
from audits.causalab.spaces import EdgeStanding, LabSpace, decided_frequency, edge_standing, graph_fits, space_of
from dsl.causalab.episode import LabStep
from dsl.causalab.item import LabItem, Task
from dsl.causalab.mechanism import Edge
from dsl.causalab.reactor import accurate
from dsl.causalab.run import dialled, last_edges


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
    learnt = _learnt(_Shown.by(item.task, steps, bounded))
    edges = last_edges(steps)
    made = tuple((str(step.action["set"]), float(step.action["value"])) for step in steps if step.cost)
    frequency, graph = learnt.frequency_decided, learnt.graph_decided
    both = None if frequency is None or graph is None else max(frequency, graph)
    return RunAttribution(
        frequency=_frequency(learnt, dialled(steps), item.sealed.target),
        graph=_graph(learnt.space, item.sealed.mechanism.edges, edges),
        edges=edge_standing(learnt.space, edges),
        settings=made,
        frequency_decided=frequency,
        graph_decided=graph,
        premature=both is None and len(made) < item.task.allowance,
        wasted=0 if both is None else len(made) - both,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    """What a run was shown: its task, and the steps that showed something or took from the allowance.

    read: these steps, as what can be compared
    """

    task: Task
    steps: tuple[LabStep, ...]
    bounded: bool
    read: tuple[object, ...]

    @classmethod
    def by(cls, task: Task, steps: Sequence[LabStep], bounded: bool) -> _Shown:
        kept = tuple(step for step in steps if step.cost or "set" in step.action)
        return cls(task, kept, bounded, tuple(map(_compared, kept)))

    def __hash__(self) -> int:
        return hash((self.read, tuple(self.task.baseline.values())))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Shown)
            and (self.read, self.bounded) == (other.read, other.bounded)
            and (self.task is other.task or self.task == other.task)
        )


def _compared(step: LabStep) -> object:
    reading = None if step.reading is None else tuple(sorted(step.reading.items()))
    return step.action.get("set"), step.action.get("value"), step.cost, reading


@dataclass(frozen=True, slots=True)
class _Learnt:
    """What the evidence of a run left, whatever the run then said.

    frequencies: that some member predicts
    """

    space: LabSpace
    frequencies: tuple[float, ...]
    decided: bool
    frequency_decided: int | None
    graph_decided: int | None


@lru_cache(maxsize=512)
def _learnt(shown: _Shown) -> _Learnt:
    """Kept, because many runs are shown the same: all that set nothing, and those of a system that sets the same."""
    known = cache(lambda settings: space_of(shown.task, _first(shown.steps, settings), bounded=shown.bounded))
    made = sum(step.cost > 0 for step in shown.steps)
    space = known(made)
    return _Learnt(
        space=space,
        frequencies=tuple(space.verdicts()),
        decided=decided_frequency(space) is not None,
        frequency_decided=_first_true(lambda k: decided_frequency(known(k)) is not None, made),
        graph_decided=_first_true(lambda k: known(k).graph_decided, made),
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


def _frequency(learnt: _Learnt, said: float | None, target: float) -> Attribution:
    space, right = learnt.space, said is not None and accurate(said, target)
    fits = None if said is None else any(accurate(said, value) for value in learnt.frequencies)
    return Attribution(learnt.decided, right, fits, space.count, space.in_words)


def _graph(space: LabSpace, truth: Set[Edge], said: Set[Edge]) -> Attribution:
    return Attribution(space.graph_decided, said == truth, graph_fits(space, said), space.count, space.in_words)
