"""Genetic algorithm over sets of clauses, with the published defaults of CellNOptR's `gaBinaryT1`.

Saez-Rodriguez et al., Mol. Syst. Biol. 5:331 (2009): ranking selection, uniform crossover, one bit mutated.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from calibrant.baselines.logic.repair import repair
from calibrant.dsl.logic.clause import Clause, Model, model_size
from calibrant.dsl.logic.prior import edges_by_target
from calibrant.dsl.logic.reference import clauses_into
from calibrant.dsl.logic.task import Task
from calibrant.solvers.logic.evaluation import ModelCosts

MAX_CLAUSES = 20_000  # bits of an individual
MAX_LITERALS = 14  # 2**14 clauses of one node


@dataclass(frozen=True, slots=True)
class GeneticPlan:
    """Parameters of a run.

    pressure: expected offspring of the best, 1 to 2; mutation: probability of one flipped bit
    """

    population: int = 50
    elitism: int = 5
    mutation: float = 0.5
    pressure: float = 1.2
    generations: int = 500


USUAL_PLAN = GeneticPlan()


def count_clauses(task: Task) -> list[int] | None:
    """Return the number of clauses of each node with edges; None if an individual would have too many bits."""
    by_target = edges_by_target(task.edges)
    if any(len(edges) > MAX_LITERALS for edges in by_target.values()):
        return None
    counts = [len(clauses_into(edges, task.options.max_clause)) for edges in by_target.values()]
    return None if sum(counts) > MAX_CLAUSES else counts


def genetic_model(task: Task, seed: int, plan: GeneticPlan = USUAL_PLAN) -> Model | None:
    """Return the best model of a run; None if the class has too many clauses."""
    if count_clauses(task) is None:
        return None
    rng, costs = Random(seed), ModelCosts(task)
    clauses = [
        c for edges in edges_by_target(task.edges).values() for c in clauses_into(edges, task.options.max_clause)
    ]
    ratings: dict[Model, tuple[int, int]] = {}

    def rate(bits: int) -> tuple[tuple[int, int], list[Clause], int]:
        model = repair((c for i, c in enumerate(clauses) if bits >> i & 1), task)
        if model not in ratings:
            ratings[model] = (costs.misfit(model), model_size(model))
        return ratings[model], sorted(model), bits

    width = len(clauses)
    population = [rng.getrandbits(width) if width else 0 for _ in range(plan.population)]
    best: tuple[tuple[int, int], Model] | None = None
    for _ in range(plan.generations):
        rated = sorted(map(rate, population), key=lambda entry: entry[:2])  # clauses break ties of misfit and size
        rating, model, _ = rated[0]
        if best is None or rating < best[0]:
            best = (rating, frozenset(model))
        population = _next_generation([bits for _, _, bits in rated], width, rng, plan)
    return best[1] if best is not None else frozenset()


def _next_generation(ranked: list[int], width: int, rng: Random, plan: GeneticPlan) -> list[int]:
    """Return the elite and offspring of parents chosen by linear ranking."""
    number = len(ranked)
    weights = [
        2 - plan.pressure + 2 * (plan.pressure - 1) * (number - 1 - rank) / max(1, number - 1) for rank in range(number)
    ]
    following = ranked[: plan.elitism]
    while len(following) < number:
        mother, father = rng.choices(ranked, weights, k=2)
        mask = rng.getrandbits(width) if width else 0
        child = (mother & mask) | (father & ~mask)
        if width and rng.random() < plan.mutation:
            child ^= 1 << rng.randrange(width)
        following.append(child)
    return following
