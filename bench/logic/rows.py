"""Rows of logic models: exact ones, local search, a genetic algorithm, chance (baselines.logic.rows)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from calibrant.bench.protocols import Presentation, Protocol, ProtocolResult, nothing_found, replace_words
from calibrant.dsl.logic.item import Task
from calibrant.solvers.logic.canonical import canonical_task

if TYPE_CHECKING:
    from calibrant.dsl.logic.score import LogicAnswer
    from calibrant.solvers.outcome import Found, OutOfBudget


class LogicRow(Protocol, frozen=True):
    """Base of the rows: an answer as a JSON object, or the reason why there is none."""

    reads_canonical = True

    def warm_up(self) -> None:
        import calibrant.baselines.logic.rows
        import calibrant.solvers.logic.family  # noqa: F401

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        raise NotImplementedError

    def answer(self, given: Task) -> ProtocolResult:
        from calibrant.dsl.logic.item import model_size
        from calibrant.dsl.logic.score import answer_json
        from calibrant.solvers.outcome import Found

        outcome = self.outcome(given)
        if not isinstance(outcome, Found):
            return nothing_found(outcome)
        size = model_size(outcome.value) if isinstance(outcome.value, frozenset) else None
        return ProtocolResult("found", answer_json(outcome.value), size)


class Exact(LogicRow, frozen=True):
    """A model of the least misfit, and of these of the least size, with proof."""

    name = "exact"

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        from calibrant.solvers.logic.family import exact

        return exact(task)


class Posterior(LogicRow, frozen=True):
    """The share of models that fit which answer 1, cell by cell."""

    name = "posterior"

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        from calibrant.solvers.logic.family import posterior

        return posterior(task)


class Vote(LogicRow, frozen=True):
    """The answer of most models that fit, cell by cell."""

    name = "vote"

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        from calibrant.solvers.logic.family import vote

        return vote(task)


class Greedy(LogicRow, frozen=True):
    """Local search by paths, clauses and literals, to the end."""

    name = "greedy"

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        from calibrant.baselines.logic.rows import greedy

        return greedy(task)


class Genetic(LogicRow, frozen=True):
    """A genetic algorithm over strings of clauses, as published tools have it.

    seed: of its draws; generations: how many
    """

    name = "genetic"
    seed: int = 0
    generations: int = 500

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        from calibrant.baselines.logic.rows import GeneticPlan, genetic

        return genetic(task, self.seed, GeneticPlan(generations=self.generations))


class RandomModel(LogicRow, frozen=True):
    """A model drawn uniformly from the class, whatever the data.

    seed: of the draw
    """

    name = "random"
    seed: int = 0

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        from calibrant.baselines.logic.rows import random_model

        return random_model(task, self.seed)


class Abstain(LogicRow, frozen=True):
    """One half in every cell."""

    name = "abstain"

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        from calibrant.baselines.logic.rows import abstain

        return abstain(task)


ROWS = (Exact, Posterior, Vote, Greedy, Genetic, RandomModel, Abstain)


# --- Canonical presentation of tasks of logic models ------------------------------------------------------------------
_NAME = re.compile(r"\bn[0-9]+\b")


def present(task: Task) -> Presentation:
    """Return a task in canonical form; tables of probabilities get the columns of the task back."""
    canonical = canonical_task(task)

    def restore(content: Any) -> Any:
        if isinstance(content, Mapping) and content.keys() == {"probabilities"}:
            return {
                "probabilities": [[row[column] for column in canonical.readouts] for row in content["probabilities"]]
            }
        return replace_words(content, _NAME, canonical.names)

    return Presentation(canonical.task, restore)
