"""Local search over models: whole paths from a stimulus, literals and clauses, the best step until none improves."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.baselines.logic.repair import drop_dangling, repair
from calibrant.dsl.logic.clause import Clause, Model, clause, model_size
from calibrant.dsl.logic.prior import Edge, edges_by_target, reachable
from calibrant.dsl.logic.task import Task
from calibrant.solvers.logic.evaluation import ModelCosts

MAX_PATHS = 400  # of one step, shortest first
MAX_STEPS = 1_000


def greedy_model(task: Task) -> Model:
    """Return the model that no step makes better; steps of one clause would never leave the empty model."""
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
            rest = model - {member}
            yield drop_dangling(rest, self.task)
            if len(member.literals) > 1:
                for literal in member.literals:
                    shorter = clause(member.target, [entry for entry in member.literals if entry != literal])
                    yield repair([shorter, *sorted(rest)], self.task)
            yield from self._longer(member, rest)
        for path in self._paths(model):
            yield repair([*sorted(model), *(Clause(e.target, ((e.source, e.sign),)) for e in path)], self.task)

    def _longer(self, member: Clause, rest: Model) -> Iterator[Model]:
        if len(member.literals) >= self.longest:
            return
        active = set(self.task.setup.stimuli) | {entry.target for entry in rest}
        for edge in self.edges.get(member.target, ()):
            if edge.source in active and edge.source not in member.sources:
                longer = clause(member.target, [*member.literals, (edge.source, edge.sign)])
                yield repair([longer, *sorted(rest)], self.task)

    def _paths(self, model: Model) -> Iterator[tuple[Edge, ...]]:
        """Yield paths of edges from a stimulus or an active node to a readout or a node in use, shortest first."""
        starts = set(self.task.setup.stimuli) | {member.target for member in model}
        ends = set(self.task.setup.readouts) | {source for member in model for source in member.sources}
        outgoing: dict[str, list[Edge]] = {}
        for edge in self.task.edges:
            outgoing.setdefault(edge.source, []).append(edge)
        leading = reachable(ends, {v: [e.source for e in edges] for v, edges in self.edges.items()})
        paths: list[tuple[Edge, ...]] = [(edge,) for start in sorted(starts) for edge in outgoing.get(start, ())]
        number = 0
        while paths and number < MAX_PATHS:
            longer = []
            for path in paths[:MAX_PATHS]:
                last = path[-1].target
                if last in ends:
                    number += 1
                    yield path
                visited = {edge.source for edge in path} | {last}
                if last not in starts:
                    longer += [
                        (*path, e) for e in outgoing.get(last, ()) if e.target not in visited and e.target in leading
                    ]
            paths = longer
