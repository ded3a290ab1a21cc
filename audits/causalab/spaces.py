"""The version space of a run: what its own evidence left, whatever the family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from math import isnan
from typing import TypeAlias

from dsl.causalab.episode import LabStep
from dsl.causalab.item import Family, Task
from dsl.causalab.mechanism import Edge
from solvers.causalab.evidence import evidence_of
from solvers.causalab.noise.worlds import NoisyDags, noisy_dags
from solvers.causalab.quadratic.space import QuadraticDags, quadratic_dags
from solvers.causalab.space import WeightedDags, weighted_dags

LabSpace: TypeAlias = WeightedDags | NoisyDags | QuadraticDags


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


def decided_frequency(space: LabSpace) -> float | None:
    """The reactor crystal's frequency, if all members predict the same from what is shown of it."""
    if isinstance(space, WeightedDags) and not space.predicts:
        return None
    verdicts: Mapping[float, int] = space.verdicts()
    if len(verdicts) != 1:
        return None
    (frequency,) = verdicts
    return None if isnan(frequency) else frequency


def graph_fits(space: LabSpace, edges: Set[Edge]) -> bool:
    """Whether some member has exactly these edges."""
    if not edges <= space.possible_edges or not space.certain_edges <= edges:
        return False
    return space.having_graph(edges) > 0


def edge_standing(space: LabSpace, claimed: frozenset[Edge]) -> EdgeStanding:
    """What the evidence of a space says about claimed edges."""
    possible, certain = space.possible_edges, space.certain_edges
    return EdgeStanding(claimed & certain, claimed & possible - certain, claimed - possible, certain - claimed)
