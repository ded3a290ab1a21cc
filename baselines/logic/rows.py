"""Methods that are not exact: of logic models, and of items of trajectories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, TypeAlias

import numpy as np

from calibrant.dsl.logic import reference
from calibrant.dsl.logic.files.networks import ListedModel
from calibrant.dsl.logic.item import Clause, Edge, Model, Task, clause, edges_by_target, model_size, reachable
from calibrant.dsl.logic.reference import clauses_into, contains
from calibrant.dsl.logic.score import Table
from calibrant.dsl.logic.trajectories import states_json
from calibrant.dsl.networks.network import TrajectoryTask, clamp_state
from calibrant.solvers.logic.family import solve_class
from calibrant.solvers.logic.network import ModelCosts
from calibrant.solvers.logic.search import USUAL_LIMITS, Limits
from calibrant.solvers.networks.trajectories import FittingNetworks, fit_networks
from calibrant.solvers.outcome import Found, Impossible, OutOfBudget

# --- Methods that are not exact: greedy and genetic search, and the repair of clauses to models -----------------------
# Each returns a model, a table of probabilities for the questions, or `OutOfBudget` with the reason.
#
# Saez-Rodriguez et al., Mol. Syst. Biol. 5:331 (2009): ranking selection, uniform crossover, one bit mutated.
# --- Repair of sets of clauses to models: redundant clauses, cycles and dangling clauses are dropped ------------------


def repair(clauses: Iterable[Clause], task: Task) -> Model:
    """Return a model of the class made of some of these clauses; of two that conflict the earlier one stays."""
    remaining: list[Clause] = []
    sources: dict[str, set[str]] = {}
    for candidate in clauses:
        redundant = any(
            candidate.target == earlier.target and (contains(earlier, candidate) or contains(candidate, earlier))
            for earlier in remaining
        )
        if redundant or candidate.target in reachable(candidate.sources, sources):
            continue
        remaining.append(candidate)
        sources.setdefault(candidate.target, set()).update(candidate.sources)
    return drop_dangling(remaining, task)


def drop_dangling(clauses: Iterable[Clause], task: Task) -> Model:
    """Return the clauses whose sources are all reachable from stimuli and whose target reaches a readout."""
    model = set(clauses)
    stimuli, readouts = set(task.setup.stimuli), set(task.setup.readouts)
    while True:
        targets = {clause.target for clause in model} | stimuli
        occurring = {source for clause in model for source in clause.sources} | readouts
        remaining = {clause for clause in model if targets.issuperset(clause.sources) and clause.target in occurring}
        if remaining == model:
            return frozenset(model)
        model = remaining


# --- Local search over models: the best step (whole path, literal or clause) until none improves ----------------------
MAX_PATHS = 400  # paths of one step, shortest first
MAX_STEPS = 1_000


def greedy_model(task: Task) -> Model:
    """Return a local optimum; steps add whole paths, because single clauses would never leave the empty model."""
    search = _Search(task)
    model: Model = frozenset()
    best = search.rate(model)
    for _ in range(MAX_STEPS):
        candidates = ((search.rate(step), sorted(step)) for step in search.steps(model))
        rating, clauses = min(candidates, default=(best, []))
        if rating >= best:
            break
        best, model = rating, frozenset(clauses)
    return model


class _Search:
    def __init__(self, task: Task) -> None:
        self.task = task
        self.costs = ModelCosts(task)
        self.edges = edges_by_target(task.edges)
        self.longest = task.options.max_clause or len(task.edges)
        self._ratings: dict[Model, tuple[int, int]] = {}

    def rate(self, model: Model) -> tuple[int, int]:
        """Return misfit and size."""
        if model not in self._ratings:
            self._ratings[model] = (self.costs.misfit(model), model_size(model))
        return self._ratings[model]

    def steps(self, model: Model) -> Iterator[Model]:
        """Yield the models that are one step away: a path, a clause or a literal more or less."""
        for member in sorted(model):
            remaining = model - {member}
            yield drop_dangling(remaining, self.task)
            if len(member.literals) > 1:
                for literal in member.literals:
                    shorter = clause(member.target, [entry for entry in member.literals if entry != literal])
                    yield repair([shorter, *sorted(remaining)], self.task)
            yield from self._longer(member, remaining)
        for path in self._paths(model):
            yield repair([*sorted(model), *(Clause(e.target, ((e.source, e.sign),)) for e in path)], self.task)

    def _longer(self, member: Clause, remaining: Model) -> Iterator[Model]:
        if len(member.literals) >= self.longest:
            return
        active = set(self.task.setup.stimuli) | {entry.target for entry in remaining}
        for edge in self.edges.get(member.target, ()):
            if edge.source in active and edge.source not in member.sources:
                longer = clause(member.target, [*member.literals, (edge.source, edge.sign)])
                yield repair([longer, *sorted(remaining)], self.task)

    def _paths(self, model: Model) -> Iterator[tuple[Edge, ...]]:
        """Yield paths of edges from a stimulus or active node to a readout or a node in use, shortest first."""
        starts = set(self.task.setup.stimuli) | {member.target for member in model}
        ends = set(self.task.setup.readouts) | {source for member in model for source in member.sources}
        outgoing: dict[str, list[Edge]] = {}
        for edge in self.task.edges:
            outgoing.setdefault(edge.source, []).append(edge)
        leading = reachable(ends, {v: [e.source for e in edges] for v, edges in self.edges.items()})
        paths: list[tuple[Edge, ...]] = [(edge,) for start in sorted(starts) for edge in outgoing.get(start, ())]
        num_paths = 0
        while paths and num_paths < MAX_PATHS:
            longer = []
            for path in paths[:MAX_PATHS]:
                last = path[-1].target
                if last in ends:
                    num_paths += 1
                    yield path
                visited = {edge.source for edge in path} | {last}
                if last not in starts:
                    longer += [
                        (*path, e) for e in outgoing.get(last, ()) if e.target not in visited and e.target in leading
                    ]
            paths = longer


# --- Genetic algorithm over sets of clauses, with the published defaults of CellNOptR's `gaBinaryT1` ------------------
MAX_CLAUSES = 20_000  # bits of an individual, one for each clause
MAX_LITERALS = 14  # edges into one node, which has up to 2**14 clauses


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
    population_size = len(ranked)
    weights = [
        2 - plan.pressure + 2 * (plan.pressure - 1) * (population_size - 1 - rank) / max(1, population_size - 1)
        for rank in range(population_size)
    ]
    following = ranked[: plan.elitism]
    while len(following) < population_size:
        mother, father = rng.choices(ranked, weights, k=2)
        mask = rng.getrandbits(width) if width else 0
        child = (mother & mask) | (father & ~mask)
        if width and rng.random() < plan.mutation:
            child ^= 1 << rng.randrange(width)
        following.append(child)
    return following


# --- Methods that are not exact: no answer, a random model of the class, local search, a genetic algorithm, a list ----


def abstain(task: Task) -> Found[Table]:
    """Return 0.5 for every cell of the questions."""
    return Found(tuple(tuple(0.5 for _ in task.setup.readouts) for _ in task.questions))


def random_model(task: Task, seed: int, limits: Limits = USUAL_LIMITS) -> Found[Model] | OutOfBudget:
    """Return a model sampled uniformly from the class, whatever the data."""
    outcome = solve_class(task, limits)
    if not isinstance(outcome, Found):
        return outcome
    return Found(outcome.value.draw(np.random.default_rng(seed), 1)[0])


def greedy(task: Task) -> Found[Model]:
    """Return the local optimum of `greedy_model`."""
    return Found(greedy_model(task))


def genetic(task: Task, seed: int, plan: GeneticPlan = USUAL_PLAN) -> Found[Model] | OutOfBudget:
    """Return the best model of a genetic algorithm."""
    model = genetic_model(task, seed, plan)
    return OutOfBudget("the class has too many clauses for a string of bits") if model is None else Found(model)


def listed(task: Task, models: Sequence[ListedModel]) -> Found[Table] | OutOfBudget:
    """Return the weighted share of a list's acyclic models that answer 1, cell by cell."""
    usable = [entry for entry in models if entry.weight and reference.is_acyclic(entry.model)]
    if not usable:
        return OutOfBudget("the list has no acyclic model")
    total = sum(entry.weight for entry in usable)
    rows = []
    for question in task.questions:
        ones = [0] * len(task.setup.readouts)
        for entry in usable:
            for r, answer in enumerate(reference.predict(entry.model, task.setup, question)):
                ones[r] += entry.weight * int(answer)
        rows.append(tuple(float(Fraction(number, total)) for number in ones))
    return Found(tuple(rows))


# --- Methods for items of trajectories. Each returns an answer as a JSON object, or `OutOfBudget` with the reason -----
Answer: TypeAlias = Found[Mapping[str, Any]] | Impossible | OutOfBudget


def _fitting(task: TrajectoryTask) -> Found[FittingNetworks] | Impossible | OutOfBudget:
    fitting = fit_networks(task)
    if isinstance(fitting, Found) and fitting.value.count == 0:
        return Impossible("no network of the class gives the states of the trajectories")
    return fitting


def fitting_network(task: TrajectoryTask) -> Answer:
    """Return a network that fits: each gene has the function that is 1 only where a reading requires it."""
    fitting = _fitting(task)
    return Found({"model": fitting.value.witness()}) if isinstance(fitting, Found) else fitting


def likeliest(task: TrajectoryTask) -> Answer:
    """Return the most frequent answer among the networks that fit."""
    fitting = _fitting(task)
    if not isinstance(fitting, Found):
        return fitting
    best = fitting.value.likeliest_answer()
    return Found(states_json(best.value[0], task)) if isinstance(best, Found) else best


def majority(task: TrajectoryTask) -> Answer:
    """Return the states in which each gene takes, step by step, the value of most of its fitting functions."""
    fitting = _fitting(task)
    return Found(states_json(fitting.value.majority_answer(), task)) if isinstance(fitting, Found) else fitting


def copy_start(task: TrajectoryTask) -> Answer:
    """Return the start, the last known state, for every requested state."""
    question = task.question
    start = clamp_state(question.start, task.genes, question.clamps)
    return Found(states_json([start] * (question.steps or 1), task))


def random_network(task: TrajectoryTask, seed: int) -> Answer:
    """Return a network sampled uniformly from the class, whatever the evidence."""
    fitting = fit_networks(task)
    return Found({"model": fitting.value.draw(Random(seed))}) if isinstance(fitting, Found) else fitting
