"""Evidence of claims about logic models: prior, setup, experiments, discretised values, options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from calibrant.dsl.logic import reference
from calibrant.dsl.logic.clause import Clause, Model, parse_clause
from calibrant.dsl.logic.prior import Edge
from calibrant.dsl.logic.task import Experiment, Options, Setup, Task, Tolerance


class ExperimentRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Clamps by name, sorted."""

    stimuli: list[str]
    inhibited: list[str]


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Visible task.

    values: discretised, None where nothing was measured; fit, size: tolerances, None for no limit of the size
    """

    prior: list[tuple[str, int, str]]
    stimuli: list[str]
    inhibitors: list[str]
    readouts: list[str]
    experiments: list[ExperimentRecord]
    values: list[list[int | None]]
    factor: int
    compress: bool
    max_clause: int
    fit: str
    size: int | None


def evidence_of(task: Task) -> dict[str, Any]:
    """Return the evidence of a task as JSON."""
    setup = task.setup
    evidence = Evidence(
        [(edge.source, edge.sign, edge.target) for edge in sorted(set(task.prior))],
        list(setup.stimuli),
        list(setup.inhibitors),
        list(setup.readouts),
        [ExperimentRecord(sorted(x.on), sorted(x.inhibited)) for x in task.experiments],
        [list(row) for row in task.discretised],
        task.options.factor,
        task.options.compress,
        task.options.max_clause,
        task.tolerance.fit,
        task.tolerance.size,
    )
    content: dict[str, Any] = msgspec.to_builtins(evidence)
    return content


class Case:
    """Evidence as a verifier reads it: the class, and misfits by the reference."""

    def __init__(self, content: Any) -> None:
        """Read the visible task.

        content: evidence as JSON; msgspec's errors and `LogicError` for another shape
        """
        evidence = msgspec.convert(content, Evidence, strict=True)
        self.factor, self.values = evidence.factor, evidence.values
        self.experiments = [Experiment(frozenset(x.stimuli), frozenset(x.inhibited)) for x in evidence.experiments]
        self.setup = Setup(tuple(evidence.stimuli), tuple(evidence.inhibitors), tuple(evidence.readouts))
        options = Options(evidence.factor, "round", evidence.compress, evidence.max_clause)
        tolerance = Tolerance(evidence.fit, evidence.size)
        self.task = Task(tuple(Edge(*edge) for edge in evidence.prior), self.setup, (), (), options, tolerance)
        if len(self.values) != len(self.experiments) or any(len(r) != len(self.setup.readouts) for r in self.values):
            raise ValueError("values do not fit experiments and readouts")

    def misfit(self, model: Iterable[Clause]) -> int:
        """Return the misfit of an acyclic model."""
        clauses = list(model)
        total = 0
        for experiment, row in zip(self.experiments, self.values, strict=True):
            answers = reference.predict(clauses, self.setup, experiment)
            total += sum((self.factor * int(a) - d) ** 2 for a, d in zip(answers, row, strict=True) if d is not None)
        return total


def model_from_texts(texts: Iterable[str]) -> Model:
    """Return the model of clause texts; `ClauseError` for a text that is no clause."""
    return frozenset(map(parse_clause, texts))
