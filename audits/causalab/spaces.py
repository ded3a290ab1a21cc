"""The version space of a run: what its own evidence left, whatever the family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from math import isnan
from typing import TypeAlias

from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.item import Family, LabItem, Task
from calibrant.dsl.causalab.mechanism import Edge
from calibrant.dsl.causalab.noise import Draw
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.evidence import evidence_of
from calibrant.solvers.causalab.noise.replayed import ReplayedDags, law_of, replayed_dags
from calibrant.solvers.causalab.noise.worlds import RELEASED_LAWS, Law, NoisyDags, noisy_dags
from calibrant.solvers.causalab.quadratic.space import QuadraticDags, quadratic_dags
from calibrant.solvers.causalab.space import WeightedDags, not_enumerated, weighted_dags

LabSpace: TypeAlias = WeightedDags | NoisyDags | QuadraticDags
RunSpace: TypeAlias = LabSpace | ReplayedDags


@dataclass(frozen=True, slots=True)
class EdgeStanding:
    """Claimed edges beside the members: in all of them, in some, in none; and edges of all that were not claimed."""

    proven: frozenset[Edge]
    unproven: frozenset[Edge]
    contradicted: frozenset[Edge]
    missed: frozenset[Edge]


def space_of(task: Task, steps: Iterable[LabStep] = (), *, bounded: bool = False) -> LabSpace:
    """The members after these steps; `BudgetSpent` for families whose members are not enumerated.

    bounded: whether bases are taken to be drawn as the benchmark draws them; quadratic spaces do not use that. A noisy
        task is given no such bounds once something was set; before that its evidence, and so the space, has no noise.
    """
    evidence = evidence_of(task, steps)
    if task.family is Family.QUADRATIC:
        return quadratic_dags(evidence)
    if not task.noise:
        return weighted_dags(evidence, bounded=bounded)
    if any(seen.noisy for seen in evidence.seen):
        return noisy_dags(evidence)
    return weighted_dags(evidence_of(replace(task, noise=False)), bounded=bounded)


def run_space(item: LabItem, steps: Iterable[LabStep] = (), *, bounded: bool = False) -> RunSpace:
    """The members after the steps of a run under the item's own rules; `BudgetSpent` where they are not enumerated.

    Of noise that is the law of its draws, unless it is one of those that the released suites have; what settings leave
    is used. `BudgetSpent` too for draws that nodes do not share, and where no member explains the readings. Solvers are
    not told the law: `space_of` is what they may assume. bounded: as in `space_of`
    """
    steps = tuple(steps)
    evidence = evidence_of(item.task, steps)
    if item.task.family is Family.LINEAR and any(seen.noisy for seen in evidence.seen):
        if (why := not_enumerated(replace(item.task, noise=False))) is not None:
            raise BudgetSpent(why)
        space: RunSpace = replayed_dags(evidence, laws_of(item))
    else:
        space = space_of(item.task, steps, bounded=bounded)
    if not space.count:
        raise BudgetSpent(f"no member of the class explains the readings: {space.in_words}")
    return space


def laws_of(item: LabItem) -> tuple[Law, ...]:
    """Return what the item's hidden draws may be like: as in the released suites, or what its noise says."""
    noise = item.sealed.noise
    if noise is None or noise.draw is not Draw.SHARED:
        raise BudgetSpent("only noise with one draw for all affected nodes has a space")
    law = law_of(noise.values, noise.weight)
    if law is None:
        raise BudgetSpent("draws that are no multiples of 0.01 have no space")
    return RELEASED_LAWS if law in RELEASED_LAWS else (law,)


def frequency_posterior(space: RunSpace) -> float | None:
    """The posterior of the most probable frequency; None where readings are exact."""
    if not isinstance(space, NoisyDags | ReplayedDags):
        return None
    known = [number for value, number in space.verdicts().items() if not isnan(value)]
    return max(known, default=0) / space.count


def graph_posterior(space: RunSpace) -> float | None:
    """The same of the graph; 0 where no graph has more than half, which is all that is asked of it."""
    if not isinstance(space, NoisyDags | ReplayedDags):
        return None
    likely = {edge for edge, number in space.edge_counts.items() if 2 * number > space.count}
    share = space.having_graph(likely) / space.count  # a graph with more than half has these edges and no other
    return share if share > 0.5 else 0.0


def decided_frequency(space: RunSpace) -> float | None:
    """The reactor crystal's frequency, if all members predict the same from what is shown of it."""
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


def edge_standing(space: RunSpace, claimed: frozenset[Edge]) -> EdgeStanding:
    """Return what the evidence of a space says about claimed edges."""
    possible, certain = space.possible_edges, space.certain_edges
    return EdgeStanding(claimed & certain, claimed & possible - certain, claimed - possible, certain - claimed)
