"""Was it earned: frequency and graph of a run beside what the run's own evidence decided."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache

from calibrant.audits.attribution import Attribution, is_decided
from calibrant.audits.causalab.spaces import (
    EdgeStanding,
    RunSpace,
    decided_frequency,
    edge_standing,
    frequency_posterior,
    graph_fits,
    graph_posterior,
    run_space,
)
from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.item import LabItem, Task
from calibrant.dsl.causalab.mechanism import Edge
from calibrant.dsl.causalab.noise import Noise
from calibrant.dsl.causalab.reactor import accurate
from calibrant.dsl.causalab.run import last_dialled_frequency, last_edges


@dataclass(frozen=True, slots=True)
class RunAttribution:
    """The two scored questions of a run. Correct are a frequency within 5, and a graph without a wrong edge.

    edges: the last claims beside the members that were left
    settings: that were carried out, as (property, value)
    frequency_decided, graph_decided: settings after which the evidence decided the question, and went on to; None if it
        did not at the end
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
    """Attribution from the space that the run's readings left; `BudgetSpent` where it is not enumerated, or empty.

    bounded: whether bases are taken to be drawn as the benchmark draws them
    """
    learnt = _learnt(_Shown.by(item, steps, bounded))
    edges = last_edges(steps)
    made = tuple((str(step.action["set"]), float(step.action["value"])) for step in steps if step.cost)
    frequency, graph = learnt.frequency_decided, learnt.graph_decided
    both = None if frequency is None or graph is None else max(frequency, graph)
    return RunAttribution(
        frequency=_frequency(learnt, last_dialled_frequency(steps), item.sealed.target),
        graph=_graph(learnt, item.sealed.mechanism.edges, edges),
        edges=edge_standing(learnt.space, edges),
        settings=made,
        frequency_decided=frequency,
        graph_decided=graph,
        premature=both is None and len(made) < item.task.allowance,
        wasted=0 if both is None else len(made) - both,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    """What a run was shown: its item, and the steps that showed something or took from the allowance.

    read: these steps, as what can be compared
    """

    item: LabItem
    steps: tuple[LabStep, ...]
    bounded: bool
    read: tuple[object, ...]

    @classmethod
    def by(cls, item: LabItem, steps: Sequence[LabStep], bounded: bool) -> _Shown:
        kept = tuple(step for step in steps if step.cost or "set" in step.action)
        return cls(item, kept, bounded, tuple(map(_compared, kept)))

    @property
    def _known(self) -> tuple[Task, Noise | None]:
        return self.item.task, self.item.sealed.noise

    def __hash__(self) -> int:
        return hash((self.read, tuple(self.item.task.baseline.values())))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Shown)
            and (self.read, self.bounded) == (other.read, other.bounded)
            and (self.item is other.item or self._known == other._known)
        )


def _compared(step: LabStep) -> object:
    reading = None if step.reading is None else tuple(sorted(step.reading.items()))
    return step.action.get("set"), step.action.get("value"), step.cost, reading


@dataclass(frozen=True, slots=True)
class _Learnt:
    """What the evidence of a run left, whatever the run then said.

    frequencies: that some member predicts
    posteriors: of the most probable frequency and graph, where readings are noisy
    """

    space: RunSpace
    frequencies: tuple[float, ...]
    posteriors: tuple[float | None, float | None]
    decided: tuple[bool, bool]
    frequency_decided: int | None
    graph_decided: int | None


@lru_cache(maxsize=128)
def _learnt(shown: _Shown) -> _Learnt:
    """Kept, because many runs are shown the same: all that set nothing, and those of a system that sets the same."""
    known = cache(lambda settings: run_space(shown.item, _first(shown.steps, settings), bounded=shown.bounded))
    made = sum(step.cost > 0 for step in shown.steps)
    space = known(made)
    first = _first_lasting if shown.item.task.noise else _first_true  # a posterior may fall again
    return _Learnt(
        space=space,
        frequencies=tuple(space.verdicts()),
        posteriors=(frequency_posterior(space), graph_posterior(space)),
        decided=(_decides_frequency(space), _decides_graph(space)),
        frequency_decided=first(lambda k: _decides_frequency(known(k)), made),
        graph_decided=first(lambda k: _decides_graph(known(k)), made),
    )


def _decides_frequency(space: RunSpace) -> bool:
    return is_decided(int(decided_frequency(space) is not None), frequency_posterior(space))


def _decides_graph(space: RunSpace) -> bool:
    return is_decided(int(space.graph_decided), graph_posterior(space))


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


def _first_lasting(holds: Callable[[int], bool], last: int) -> int | None:
    """The least number from which on it holds up to `last`; None if it does not hold there."""
    first = None
    for k in range(last, -1, -1):
        if not holds(k):
            break
        first = k
    return first


def _frequency(learnt: _Learnt, said: float | None, target: float) -> Attribution:
    space, right = learnt.space, said is not None and accurate(said, target)
    fits = None if said is None else any(accurate(said, value) for value in learnt.frequencies)
    return Attribution(learnt.decided[0], right, fits, space.count, space.in_words, learnt.posteriors[0])


def _graph(learnt: _Learnt, truth: Set[Edge], said: Set[Edge]) -> Attribution:
    space, fits = learnt.space, graph_fits(learnt.space, said)
    return Attribution(learnt.decided[1], said == truth, fits, space.count, space.in_words, learnt.posteriors[1])
