"""Attribution of runs: compares their answers and hypotheses with the mechanisms that fit their own evidence."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import isnan
from typing import TypeAlias

from calibrant.audits.attribution import Attribution, is_decided
from calibrant.dsl.causalab.episode import LabStep, last_dialled_frequency, last_edges, stated_with
from calibrant.dsl.causalab.item import Family, LabItem, Task
from calibrant.dsl.causalab.mechanism import EMPTY, Draw, Edge, Hypothesis, Noise, accurate, as_number
from calibrant.dsl.causalab.score import HypothesisScore, Scorer
from calibrant.solvers.causalab.evidence import Evidence, evidence_of
from calibrant.solvers.causalab.noise_sequences import ReplayedDags, law_of, replayed_dags
from calibrant.solvers.causalab.noisy import RELEASED_LAWS, Law, NoisyDags, noisy_dags
from calibrant.solvers.causalab.quadratic import QuadraticDags, quadratic_dags
from calibrant.solvers.causalab.space import WeightedDags, reason_not_enumerable, weighted_dags
from calibrant.solvers.outcome import BudgetSpent

# --- Version space of a run: the mechanisms that fit its own evidence, for every family -------------------------------
LabSpace: TypeAlias = WeightedDags | NoisyDags | QuadraticDags
RunSpace: TypeAlias = LabSpace | ReplayedDags


@dataclass(frozen=True, slots=True)
class EdgeClaims:
    """Claimed edges by the members (mechanisms that fit) that have them.

    proven, unproven, contradicted: claimed edges of all, of some, of no members; missed: unclaimed edges of all members
    """

    proven: frozenset[Edge]
    unproven: frozenset[Edge]
    contradicted: frozenset[Edge]
    missed: frozenset[Edge]


def space_of(task: Task, steps: Iterable[LabStep] = (), *, bounded: bool = False) -> LabSpace:
    """Return the members after these steps; `BudgetSpent` for families whose members are not enumerated.

    bounded: whether bases are assumed to be in the generator's range. Ignored for quadratic tasks, and for noisy tasks
        once a property was set; before that their evidence has no noise.
    """
    evidence = evidence_of(task, steps)
    if task.family is Family.QUADRATIC:
        return quadratic_dags(evidence)
    if not task.noise:
        return weighted_dags(evidence, bounded=bounded)
    if any(observation.noisy for observation in evidence.observations):
        return noisy_dags(evidence)
    return weighted_dags(evidence_of(replace(task, noise=False)), bounded=bounded)


def run_space(item: LabItem, steps: Iterable[LabStep] = (), *, bounded: bool = False) -> RunSpace:
    """Return the members after the steps of a run, under the item's own law of noise.

    Solvers do not see the law and use `space_of`. For an item with a law of the released suites, all of these laws are
    admitted. `BudgetSpent` if members are not enumerated, nodes do not share draws, or no member explains the readings.

    bounded: as in `space_of`
    """
    steps = tuple(steps)
    evidence = evidence_of(item.task, steps)
    if item.task.family is Family.LINEAR and any(observation.noisy for observation in evidence.observations):
        if (why := reason_not_enumerable(replace(item.task, noise=False))) is not None:
            raise BudgetSpent(why)
        space: RunSpace = replayed_dags(evidence, laws_of(item))
    else:
        space = space_of(item.task, steps, bounded=bounded)
    if not space.count:
        raise BudgetSpent(f"no member of the class explains the readings: {space.in_words}")
    return space


def laws_of(item: LabItem) -> tuple[Law, ...]:
    """Return the laws that the item's noise may follow: those of the released suites, or its own."""
    noise = item.sealed.noise
    if noise is None or noise.draw is not Draw.SHARED:
        raise BudgetSpent("only noise with one draw for all affected nodes has a space")
    law = law_of(noise.values, noise.weight)
    if law is None:
        raise BudgetSpent("draws that are no multiples of 0.01 have no space")
    return RELEASED_LAWS if law in RELEASED_LAWS else (law,)


def frequency_posterior(space: RunSpace) -> float | None:
    """Return the posterior of the most probable frequency; None where readings are exact."""
    if not isinstance(space, NoisyDags | ReplayedDags):
        return None
    counts = [count for value, count in space.verdicts().items() if not isnan(value)]
    return max(counts, default=0) / space.count


def graph_posterior(space: RunSpace) -> float | None:
    """Return the posterior of the most probable graph; 0 if no graph exceeds 1/2, None if readings are exact."""
    if not isinstance(space, NoisyDags | ReplayedDags):
        return None
    likely = {edge for edge, count in space.edge_counts.items() if 2 * count > space.count}
    share = space.having_graph(likely) / space.count  # a graph with over half of the weight has just these edges
    return share if share > 0.5 else 0.0


def decided_frequency(space: RunSpace) -> float | None:
    """Return the reactor's frequency if all members predict the same from its visible values; else None."""
    if isinstance(space, WeightedDags) and not space.predicts:
        return None
    verdicts: Mapping[float, int] = space.verdicts()
    if len(verdicts) != 1:
        return None
    (frequency,) = verdicts
    return None if isnan(frequency) else frequency


def graph_fits(space: RunSpace, edges: Set[Edge]) -> bool:
    """Return whether some member has exactly these edges."""
    if not edges <= space.possible_edges or not space.certain_edges <= edges:
        return False
    return space.having_graph(edges) > 0


def classify_edge_claims(space: RunSpace, claimed: frozenset[Edge]) -> EdgeClaims:
    """Compare claimed edges with those of the members."""
    possible_edges, certain_edges = space.possible_edges, space.certain_edges
    return EdgeClaims(
        claimed & certain_edges,
        claimed & possible_edges - certain_edges,
        claimed - possible_edges,
        certain_edges - claimed,
    )


# --- Attribution of runs: frequency and graph, and whether the run's own evidence decided them ------------------------


@dataclass(frozen=True, slots=True)
class RunAttribution:
    """The two scored questions of a run. A frequency within 5 is correct, and a graph without a wrong edge.

    edges: the edges claimed last, compared with the members at the end
    settings: settings that were carried out, as (property, value)
    frequency_decided, graph_decided: number of settings from which on the evidence decided the question; None if it was
        undecided at the end
    premature: whether the run ended with a question undecided and settings left
    wasted: number of settings made after both questions were decided
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
    """Attribute a run, given the members of `run_space`; `BudgetSpent` if these are not enumerated, or there are none.

    bounded: whether bases are assumed to be in the generator's range
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
    """Evidence of a run, as a key of a cache: its item, and the steps with a reading or a cost.

    bounded: as in `space_of`; key: the steps in a hashable form
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
    """Members that fit the evidence of a run, independent of its answer.

    frequencies: predicted by at least one member
    posteriors: of the most probable frequency and graph; None if readings are exact
    decided: whether the frequency, and the graph, is decided at the end
    frequency_decided, graph_decided: as in `RunAttribution`
    """

    space: RunSpace
    frequencies: tuple[float, ...]
    posteriors: tuple[float | None, float | None]
    decided: tuple[bool, bool]
    frequency_decided: int | None
    graph_decided: int | None


@lru_cache(maxsize=128)
def _learn_from(evidence: _RunEvidence) -> _RunKnowledge:
    """Return the members of a run, and what they decide.

    Cached: runs often share their evidence; all runs without a setting do.
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
    """Yield the steps before setting number `settings` + 1."""
    for step in steps:
        if step.cost:
            if not settings:
                return
            settings -= 1
        yield step


def _first_true(holds: Callable[[int], bool], last: int) -> int | None:
    """Return the least k up to `last` for which a monotone predicate holds, by bisection; None without one."""
    if not holds(last):
        return None
    return bisect_left(range(last), True, key=holds)


def _first_lasting(holds: Callable[[int], bool], last: int) -> int | None:
    """Return the least k such that the predicate holds from k to `last`; None if it does not hold at `last`."""
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


# --- Trajectory of a run: its hypothesis after each step, compared with what its evidence proves or contradicts -------
MAX_ERROR = 0.01  # of a predicted frequency, in the unit of readings


@dataclass(frozen=True, slots=True)
class Moment:
    """State of a run after one step. The hypothesis is the one stated last.

    settings: number of settings so far; members: number of mechanisms that fit the evidence so far
    score: of the hypothesis; equation_fits: whether its equation gives every observed frequency within 0.01
    contradicted: whether it claims an edge that no member has
    """

    settings: int
    members: int
    score: HypothesisScore
    equation_fits: bool
    contradicted: bool


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A whole run.

    moments: one for each step; settings: number of settings
    edges: the edges claimed last, compared with the members at the end
    frequency_decided, graph_decided: number of settings after which the evidence first decided the question, 0 if it
        did before any; None if it never did
    premature: whether the run ended with a question undecided and settings left
    wasted: number of settings made after both questions were decided
    """

    moments: tuple[Moment, ...]
    settings: int
    edges: EdgeClaims
    frequency_decided: int | None
    graph_decided: int | None
    premature: bool
    wasted: int


def trajectory(item: LabItem, steps: Sequence[LabStep], *, bounded: bool = False) -> Trajectory:
    """Return the trajectory of a run; `BudgetSpent` if its members are not enumerated.

    bounded: whether bases are assumed to be in the generator's range
    """
    scorer = Scorer(item.sealed.mechanism)
    space = run_space(item, bounded=bounded)
    frequency_at = 0 if decided_frequency(space) is not None else None
    graph_at = 0 if space.graph_decided else None
    hypothesis, settings, moments = EMPTY, 0, []
    for i, step in enumerate(steps):
        hypothesis = stated_with(step) or hypothesis
        if step.cost and step.reading is not None:
            settings += 1
            space = run_space(item, steps[: i + 1], bounded=bounded)
            if frequency_at is None and decided_frequency(space) is not None:
                frequency_at = settings
            if graph_at is None and space.graph_decided:
                graph_at = settings
        fits = equation_fits(hypothesis, space.evidence)
        moments.append(
            Moment(settings, space.count, scorer.score(hypothesis), fits, bool(hypothesis.edges - space.possible_edges))
        )
    decided = None if frequency_at is None or graph_at is None else max(frequency_at, graph_at)
    return Trajectory(
        moments=tuple(moments),
        settings=settings,
        edges=classify_edge_claims(space, hypothesis.edges),
        frequency_decided=frequency_at,
        graph_decided=graph_at,
        premature=decided is None and settings < item.task.allowance,
        wasted=0 if decided is None else settings - decided,
    )


def equation_fits(hypothesis: Hypothesis, evidence: Evidence) -> bool:
    """Return whether base, weights c_p and square weights c2_p give every noiseless frequency within 0.01."""
    base = as_number(hypothesis.coefficients.get("base"))
    if base is None:
        return False
    linear = [as_number(hypothesis.coefficients.get(f"c_{node}")) or 0.0 for node in evidence.task.properties]
    square = [as_number(hypothesis.coefficients.get(f"c2_{node}")) or 0.0 for node in evidence.task.properties]
    for observation in evidence.observations:
        *values, frequency = observation.values
        predicted = base + sum(w * x + s * x * x for w, s, x in zip(linear, square, values, strict=True))
        if not observation.noisy and not abs(predicted - frequency) <= MAX_ERROR + 1e-9:
            return False
    return True
