"""Attribution of runs: frequency and graph beside what the run's own evidence decided."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache

from calibrant.audits.attribution import Attribution, is_decided
from calibrant.audits.causalab.spaces import (
    EdgeClaims,
    RunSpace,
    classify_edge_claims,
    decided_frequency,
    frequency_posterior,
    graph_fits,
    graph_posterior,
    run_space,
)
from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.item import LabItem, Task
from calibrant.dsl.causalab.mechanism import Edge, Noise, accurate
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
    edges: EdgeClaims
    settings: tuple[tuple[str, float], ...]
    frequency_decided: int | None
    graph_decided: int | None
    premature: bool
    wasted: int


def attribute_run(item: LabItem, steps: Sequence[LabStep], *, bounded: bool = False) -> RunAttribution:
    """Attribute a run from the space that fits its readings; `BudgetSpent` where it is not enumerated, or empty.

    bounded: whether bases are taken to be drawn as the benchmark draws them
    """
    knowledge = _learn_from(_RunEvidence.from_steps(item, steps, bounded))
    edges = last_edges(steps)
    settings = tuple((str(step.action["set"]), float(step.action["value"])) for step in steps if step.cost)
    frequency, graph = knowledge.frequency_decided, knowledge.graph_decided
    decided_at = None if frequency is None or graph is None else max(frequency, graph)
    return RunAttribution(
        frequency=_frequency(knowledge, last_dialled_frequency(steps), item.sealed.target),
        graph=_graph(knowledge, item.sealed.mechanism.edges, edges),
        edges=classify_edge_claims(knowledge.space, edges),
        settings=settings,
        frequency_decided=frequency,
        graph_decided=graph,
        premature=decided_at is None and len(settings) < item.task.allowance,
        wasted=0 if decided_at is None else len(settings) - decided_at,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _RunEvidence:
    """Evidence of a run: its item, and the steps with a reading or a cost.

    key: these steps in a comparable form
    """

    item: LabItem
    steps: tuple[LabStep, ...]
    bounded: bool
    key: tuple[object, ...]

    @classmethod
    def from_steps(cls, item: LabItem, steps: Sequence[LabStep], bounded: bool) -> _RunEvidence:
        informative = tuple(step for step in steps if step.cost or "set" in step.action)
        return cls(item, informative, bounded, tuple(map(_comparable_step, informative)))

    @property
    def _context(self) -> tuple[Task, Noise | None]:
        return self.item.task, self.item.sealed.noise

    def __hash__(self) -> int:
        return hash((self.key, tuple(self.item.task.baseline.values())))

    def __eq__(self, value: object) -> bool:
        return (
            isinstance(value, _RunEvidence)
            and (self.key, self.bounded) == (value.key, value.bounded)
            and (self.item is value.item or self._context == value._context)
        )


def _comparable_step(step: LabStep) -> object:
    reading = None if step.reading is None else tuple(sorted(step.reading.items()))
    stated = step.action.get("set"), step.action.get("value")
    # a refused setting may name anything, a list too
    return (*(part if isinstance(part, Hashable) else repr(part) for part in stated), step.cost, reading)


@dataclass(frozen=True, slots=True)
class _RunKnowledge:
    """Hypotheses that fit the evidence of a run, whatever the run then answered.

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
def _learn_from(evidence: _RunEvidence) -> _RunKnowledge:
    """Return what the evidence decides.

    Cached: runs often share their evidence, as all that set nothing do.
    """
    space_after = cache(
        lambda settings: run_space(evidence.item, _first(evidence.steps, settings), bounded=evidence.bounded)
    )
    num_settings = sum(step.cost > 0 for step in evidence.steps)
    space = space_after(num_settings)
    first = _first_lasting if evidence.item.task.noise else _first_true  # a posterior may fall again
    return _RunKnowledge(
        space=space,
        frequencies=tuple(space.verdicts()),
        posteriors=(frequency_posterior(space), graph_posterior(space)),
        decided=(_decides_frequency(space), _decides_graph(space)),
        frequency_decided=first(lambda k: _decides_frequency(space_after(k)), num_settings),
        graph_decided=first(lambda k: _decides_graph(space_after(k)), num_settings),
    )


def _decides_frequency(space: RunSpace) -> bool:
    return is_decided(int(decided_frequency(space) is not None), frequency_posterior(space))


def _decides_graph(space: RunSpace) -> bool:
    return is_decided(int(space.graph_decided), graph_posterior(space))


def _first(steps: Sequence[LabStep], settings: int) -> Iterator[LabStep]:
    """Yield the steps up to and with the last of so many settings."""
    for step in steps:
        if step.cost:
            if not settings:
                return
            settings -= 1
        yield step


def _first_true(holds: Callable[[int], bool], last: int) -> int | None:
    """Return the least number up to `last` for which a monotone predicate holds, by bisection; None without one."""
    if not holds(last):
        return None
    return bisect_left(range(last), True, key=holds)


def _first_lasting(holds: Callable[[int], bool], last: int) -> int | None:
    """Return the least number from which on it holds up to `last`; None if it does not hold there."""
    first = None
    for k in range(last, -1, -1):
        if not holds(k):
            break
        first = k
    return first


def _frequency(knowledge: _RunKnowledge, answer: float | None, target: float) -> Attribution:
    space, right = knowledge.space, answer is not None and accurate(answer, target)
    fits = None if answer is None else any(accurate(answer, value) for value in knowledge.frequencies)
    return Attribution(knowledge.decided[0], right, fits, space.count, space.in_words, knowledge.posteriors[0])


def _graph(knowledge: _RunKnowledge, truth: Set[Edge], claimed: Set[Edge]) -> Attribution:
    space, fits = knowledge.space, graph_fits(knowledge.space, claimed)
    return Attribution(
        knowledge.decided[1], claimed == truth, fits, space.count, space.in_words, knowledge.posteriors[1]
    )
