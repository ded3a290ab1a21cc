"""Reference semantics of logic models: formulas, models, predictions, misfit, and the family by enumeration.

Faster code that counts or searches is tested against this. Edges of the class, discretisation and limits are in
`calibrant.dsl.logic.item`. Models follow Saez-Rodriguez et al., Mol. Syst. Biol. 5:331 (2009); families of near-optimal
models follow Guziolowski et al., Bioinformatics 29:2320 (2013).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, permutations

from calibrant.dsl.logic.item import (
    Clause,
    Edge,
    Experiment,
    Model,
    Setup,
    Task,
    clause,
    edges_by_target,
    fit_limit,
    model_size,
)

UNKNOWN, REDUNDANT, CYCLE = "unknown clause", "redundant clause", "cycle"
NO_STIMULUS, NO_READOUT = "source without stimulus", "leads to no readout"
CONSTANT = "constant formula"  # 1 for all stimuli, after substitution of merged nodes


def clauses_into(edges: Sequence[Edge], max_clause: int) -> list[Clause]:
    """Return the clauses over edges into one node: no source twice, at most `max_clause` literals (0: any number)."""
    max_literals = max_clause or len(edges)
    clauses = []
    for size in range(1, min(max_literals, len(edges)) + 1):
        for chosen in combinations(sorted(edges), size):
            if len({edge.source for edge in chosen}) == size:
                clauses.append(clause(chosen[0].target, [(edge.source, edge.sign) for edge in chosen]))
    return clauses


def contains(larger: Clause, smaller: Clause) -> bool:
    """Return whether a clause has all literals of another one."""
    return set(smaller.literals) <= set(larger.literals)


def formulas_over(clauses: Sequence[Clause]) -> Iterator[frozenset[Clause]]:
    """Yield every antichain of clauses (none contains another one), the empty set first."""
    yield from _extensions(clauses, 0, ())


def _extensions(clauses: Sequence[Clause], first: int, chosen: tuple[Clause, ...]) -> Iterator[frozenset[Clause]]:
    """Yield the antichains that consist of `chosen` and of clauses from index `first` on."""
    yield frozenset(chosen)
    for index in range(first, len(clauses)):
        candidate = clauses[index]
        if not any(contains(candidate, earlier) or contains(earlier, candidate) for earlier in chosen):
            yield from _extensions(clauses, index + 1, (*chosen, candidate))


def class_violation(model: Iterable[Clause], task: Task) -> str:
    """Return the first rule of the class that a set of clauses violates; empty for a model of the class."""
    clauses = set(model)
    edges = set(task.edges)
    max_clause = task.options.max_clause  # 0: any number of literals
    for member in clauses:
        if not edges.issuperset(member.edges) or (max_clause and len(member.literals) > max_clause):
            return UNKNOWN
    formulas: dict[str, list[Clause]] = {}
    for member in clauses:
        formulas.setdefault(member.target, []).append(member)
    if any(contains(a, b) for formula in formulas.values() for a, b in permutations(formula, 2)):
        return REDUNDANT
    occurring = {source for member in clauses for source in member.sources}
    targets = {member.target for member in clauses}
    if not is_acyclic(clauses):
        return CYCLE
    if not occurring <= targets | set(task.setup.stimuli):
        return NO_STIMULUS
    if not targets <= occurring | set(task.setup.readouts):
        return NO_READOUT
    return ""


def is_acyclic(model: Iterable[Clause]) -> bool:
    """Return whether the edges of the clauses have no directed cycle."""
    sources: dict[str, set[str]] = {}
    for member in model:
        sources.setdefault(member.target, set()).update(member.sources)
    try:
        TopologicalSorter(sources).prepare()
    except CycleError:
        return False
    return True


def node_values(model: Iterable[Clause], setup: Setup, experiment: Experiment) -> Mapping[str, bool]:
    """Return the value of every node of an acyclic model under the clamps of an experiment."""
    formulas: dict[str, list[Clause]] = {}
    for member in model:
        formulas.setdefault(member.target, []).append(member)
    sources = {
        target: {source for member in members for source in member.sources} for target, members in formulas.items()
    }
    values = {name: name in experiment.on for name in setup.stimuli}
    for name in TopologicalSorter(sources).static_order():
        if name not in values:
            values[name] = name not in experiment.inhibited and any(
                all(values[source] == (sign == 1) for source, sign in member.literals)
                for member in formulas.get(name, [])
            )
    return values


def predict(model: Iterable[Clause], setup: Setup, experiment: Experiment) -> str:
    """Return the predicted readouts as a text of 0 and 1, in their order; 0 for a readout that the model lacks."""
    values = node_values(model, setup, experiment)
    return "".join("1" if values.get(name, False) else "0" for name in setup.readouts)


def misfit(model: Iterable[Clause], task: Task) -> int:
    """Return the sum over measured values of (factor * prediction - discretised value) squared."""
    clauses = list(model)
    total = 0
    for experiment, row in zip(task.experiments, task.discretised, strict=True):
        answers = predict(clauses, task.setup, experiment)
        total += sum(
            (task.options.factor * int(answer) - value) ** 2
            for answer, value in zip(answers, row, strict=True)
            if value is not None
        )
    return total


def all_models(task: Task) -> Iterator[Model]:
    """Yield every model of the class; data are ignored."""
    by_target = edges_by_target(task.edges)
    formulas = [list(formulas_over(clauses_into(edges, task.options.max_clause))) for edges in by_target.values()]
    for candidate in _combinations(formulas, 0, frozenset()):
        if not class_violation(candidate, task):
            yield candidate


def _combinations(formulas: Sequence[Sequence[Model]], index: int, chosen: Model) -> Iterator[Model]:
    """Yield `chosen` extended by one formula of each list from `index` on, if the union is acyclic."""
    if index == len(formulas):
        yield chosen
        return
    for formula in formulas[index]:
        if is_acyclic(chosen | formula):
            yield from _combinations(formulas, index + 1, chosen | formula)


def family(task: Task) -> list[tuple[int, int, Model]]:
    """Return (misfit, size, clauses) of every model of the family, by enumeration of all models.

    The family has the models within the tolerances `task.tolerance` of the least misfit and of the least size among
    the models of least misfit; a tolerance of None admits all.
    """
    models = [(misfit(model, task), model_size(model), model) for model in all_models(task)]
    least_misfit, least_size = min((cost, size) for cost, size, _ in models)
    limit = fit_limit(least_misfit, task.tolerance.fit)
    extra = task.tolerance.size
    return [
        member
        for member in models
        if (limit is None or member[0] <= limit) and (extra is None or member[1] <= least_size + extra)
    ]
