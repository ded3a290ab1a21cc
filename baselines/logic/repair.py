"""Sets of clauses made into models: redundant clauses, cycles and dangling clauses are taken away."""

from __future__ import annotations

from collections.abc import Iterable

from calibrant.dsl.logic.item import Clause, Model, Task, reachable
from calibrant.dsl.logic.reference import contains


def repair(clauses: Iterable[Clause], task: Task) -> Model:
    """Return a model of the class within a set of its clauses; earlier clauses are preferred where one has to go."""
    remaining: list[Clause] = []
    sources: dict[str, set[str]] = {}
    for clause in clauses:
        redundant = any(
            clause.target == earlier.target and (contains(earlier, clause) or contains(clause, earlier))
            for earlier in remaining
        )
        if redundant or clause.target in reachable(clause.sources, sources):
            continue
        remaining.append(clause)
        sources.setdefault(clause.target, set()).update(clause.sources)
    return drop_dangling(remaining, task)


def drop_dangling(clauses: Iterable[Clause], task: Task) -> Model:
    """Return the clauses whose sources are all reached from a stimulus and that lead to a readout."""
    model = set(clauses)
    stimuli, readouts = set(task.setup.stimuli), set(task.setup.readouts)
    while True:
        targets = {clause.target for clause in model} | stimuli
        occurring = {source for clause in model for source in clause.sources} | readouts
        remaining = {clause for clause in model if targets.issuperset(clause.sources) and clause.target in occurring}
        if remaining == model:
            return frozenset(model)
        model = remaining
