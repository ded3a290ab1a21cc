"""Misfit of models on all experiments at once, a bit each; compared with the reference in tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter

from calibrant.dsl.logic.clause import Clause
from calibrant.dsl.logic.task import Task
from calibrant.solvers.logic.network import Columns, Network


class ModelCosts:
    """Misfits of acyclic models of one task."""

    def __init__(self, task: Task) -> None:
        self.network = Network(task)
        self.columns = Columns(self.network, task.experiments, task=task)
        self._stimuli = dict(zip(self.network.stimuli, self.columns.stimuli, strict=True))
        self._active = dict(zip(self.network.nodes, self.columns.active, strict=True))

    def misfit(self, model: Iterable[Clause]) -> int:
        """Return the misfit of an acyclic model of the class."""
        responses = self.responses(model)
        nodes = self.network.nodes
        return self.columns.constant + sum(
            self.columns.cost(v, responses.get(nodes[v], 0)) for v in self.network.readouts
        )

    def responses(self, model: Iterable[Clause]) -> Mapping[str, int]:
        """Return the columns in which each node of a model is 1."""
        formulas: dict[str, list[Clause]] = {}
        for clause in model:
            formulas.setdefault(clause.target, []).append(clause)
        # any topological order will do: values of an acyclic model do not depend on it
        order = TopologicalSorter({v: {s for c in formula for s in c.sources} for v, formula in formulas.items()})
        responses = dict(self._stimuli)
        full = self.columns.full
        for name in order.static_order():
            if name in responses:
                continue
            response = 0
            for clause in formulas.get(name, ()):
                true = self._active.get(name, full)
                for source, sign in clause.literals:
                    true &= responses[source] if sign == 1 else full & ~responses[source]
                response |= true
            responses[name] = response
        return responses
