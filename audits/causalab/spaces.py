"""Version space of a run: the mechanisms that fit its own evidence, for every family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from math import isnan
from typing import TypeAlias

from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.item import Family, LabItem, Task
from calibrant.dsl.causalab.mechanism import Draw, Edge
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.evidence import evidence_of
from calibrant.solvers.causalab.noisy import RELEASED_LAWS, Law, NoisyDags, noisy_dags
from calibrant.solvers.causalab.quadratic import QuadraticDags, quadratic_dags
from calibrant.solvers.causalab.replayed import ReplayedDags, law_of, replayed_dags
from calibrant.solvers.causalab.space import WeightedDags, reason_not_enumerable, weighted_dags

LabSpace: TypeAlias = WeightedDags | NoisyDags | QuadraticDags
RunSpace: TypeAlias = LabSpace | ReplayedDags


@dataclass(frozen=True, slots=True)
class EdgeClaims:
    """Claimed edges that are in all members, in some, in none; and edges of all members that were not claimed."""

    proven: frozenset[Edge]
    unproven: frozenset[Edge]
    contradicted: frozenset[Edge]
    missed: frozenset[Edge]


def space_of(task: Task, steps: Iterable[LabStep] = (), *, bounded: bool = False) -> LabSpace:
    """Return the members after these steps; `BudgetSpent` for families whose members are not enumerated.

    bounded: whether bases are taken to be drawn as the benchmark draws them; quadratic spaces do not use that. A noisy
        task is given no such bounds once something was set; before that its evidence, and so the space, has no noise.
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

    Laws of the released suites are all admitted for an item that has one of them. `BudgetSpent` where members are not
    enumerated, for draws that nodes do not share, and where no member explains the readings. Solvers do not see the
    law: `space_of` is what they may assume. bounded: as in `space_of`
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
    """Return the laws that the item's hidden draws may follow: those of the released suites, or its own."""
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
    counts = [number for value, number in space.verdicts().items() if not isnan(value)]
    return max(counts, default=0) / space.count


def graph_posterior(space: RunSpace) -> float | None:
    """Return the posterior of the most probable graph; 0 where no graph exceeds 1/2, None where readings are exact."""
    if not isinstance(space, NoisyDags | ReplayedDags):
        return None
    likely = {edge for edge, number in space.edge_counts.items() if 2 * number > space.count}
    share = space.having_graph(likely) / space.count  # a graph with more than half has these edges and no other
    return share if share > 0.5 else 0.0


def decided_frequency(space: RunSpace) -> float | None:
    """Return the reactor crystal's frequency, if all members predict the same from what is shown of it."""
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
    """Divide claimed and certain edges by what the evidence of a space proves of them."""
    possible, certain = space.possible_edges, space.certain_edges
    return EdgeClaims(claimed & certain, claimed & possible - certain, claimed - possible, certain - claimed)
