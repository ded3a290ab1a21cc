"""Trajectory of a run: its hypothesis after each step, beside what its evidence proves or contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.audits.causalab.spaces import EdgeClaims, classify_edge_claims, decided_frequency, run_space
from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.hypothesis import EMPTY, Hypothesis, number
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.run import stated_with
from calibrant.dsl.causalab.score import HypothesisScore, Scorer
from calibrant.solvers.causalab.evidence import Evidence

WITHIN = 0.01


@dataclass(frozen=True, slots=True)
class Moment:
    """After one step.

    settings: carried out so far; members: left by the evidence so far
    score: of the hypothesis that stands; equation_fits: whether its equation gives every frequency that was read within
        0.01; contradicted: whether it claims an edge that no member has
    """

    settings: int
    members: int
    score: HypothesisScore
    equation_fits: bool
    contradicted: bool

    @property
    def reproduces(self) -> bool:
        """Return whether the hypothesis agrees with all data so far."""
        return self.equation_fits and not self.contradicted


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A whole run. Steps count from 0 for what was known before any; None where nothing was decided.

    edges: the last claims beside the members that were left
    frequency_decided, graph_decided: settings after which the evidence decided the question
    premature: whether the run ended with a question undecided and settings left
    wasted: settings made after both questions were decided
    """

    moments: tuple[Moment, ...]
    settings: int
    edges: EdgeClaims
    frequency_decided: int | None
    graph_decided: int | None
    premature: bool
    wasted: int


def trajectory(item: LabItem, steps: Sequence[LabStep], *, bounded: bool = False) -> Trajectory:
    """Return the trajectory of a run; `BudgetSpent` where its space is not enumerated.

    bounded: whether bases are taken to be drawn as the benchmark draws them
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
    """Return whether base and weights c_p give every frequency that was read without noise, within 0.01."""
    base = number(hypothesis.coefficients.get("base"))
    if base is None:
        return False
    linear = [number(hypothesis.coefficients.get(f"c_{node}")) or 0.0 for node in evidence.task.properties]
    square = [number(hypothesis.coefficients.get(f"c2_{node}")) or 0.0 for node in evidence.task.properties]
    for observation in evidence.observations:
        *values, frequency = observation.values
        predicted = base + sum(w * x + s * x * x for w, s, x in zip(linear, square, values, strict=True))
        if not observation.noisy and not abs(predicted - frequency) <= WITHIN + 1e-9:
            return False
    return True
