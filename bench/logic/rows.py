"""Methods for logic models: exact ones, local search, a genetic algorithm and chance (baselines.logic.rows).

Some answer items of experiments, some items of trajectories, some both, with other code for each kind of item.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from calibrant.bench.protocols import Presentation, Protocol, ProtocolResult, nothing_found, replace_words
from calibrant.dsl.logic.item import Task
from calibrant.dsl.logic.trajectories import is_trajectory_task
from calibrant.dsl.networks.network import Question, Trajectory, TrajectoryTask
from calibrant.solvers.logic.canonical import canonical_task

if TYPE_CHECKING:
    from calibrant.baselines.logic.rows import Answer
    from calibrant.bench.core.items import ItemPool
    from calibrant.dsl.logic.item import LogicItem
    from calibrant.dsl.logic.score import LogicAnswer
    from calibrant.solvers.outcome import Found, OutOfBudget


class LogicRow(Protocol, frozen=True):
    """Base of the methods; `answer` is a JSON object, or the reason why there is none.

    answers_trajectories, answers_experiments: whether the method answers items of that kind
    """

    reads_canonical = True
    answers_trajectories: ClassVar[bool] = False
    answers_experiments: ClassVar[bool] = True

    def refusal(self, handout: object) -> str:
        if is_trajectory_task(handout):
            return "" if self.answers_trajectories else f"{self.name} answers no items of trajectories"
        return "" if self.answers_experiments else f"{self.name} answers items of trajectories alone"

    def warm_up(self) -> None:
        import calibrant.baselines.logic.rows
        import calibrant.solvers.logic.family  # noqa: F401

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        raise NotImplementedError

    def states(self, task: TrajectoryTask) -> Answer:
        """Return the answer to an item of trajectories."""
        raise NotImplementedError

    def answer(self, task: Task) -> ProtocolResult:
        from calibrant.dsl.logic.item import model_size
        from calibrant.dsl.logic.score import answer_json
        from calibrant.solvers.outcome import Found

        if is_trajectory_task(task):
            answer = self.states(task)
            return ProtocolResult("found", dict(answer.value)) if isinstance(answer, Found) else nothing_found(answer)
        outcome = self.outcome(task)
        if not isinstance(outcome, Found):
            return nothing_found(outcome)
        size = model_size(outcome.value) if isinstance(outcome.value, frozenset) else None
        return ProtocolResult("found", answer_json(outcome.value), size)


class Exact(LogicRow, frozen=True):
    """A model of least misfit and, among these, of least size, found by exhaustive search."""

    name = "exact"
    answers_trajectories = True

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        from calibrant.solvers.logic.family import exact

        return exact(task)

    def states(self, task: TrajectoryTask) -> Answer:
        from calibrant.baselines.logic.rows import fitting_network

        return fitting_network(task)


class Posterior(LogicRow, frozen=True):
    """For each held-out readout, the share of the models that fit whose answer is 1."""

    name = "posterior"

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        from calibrant.solvers.logic.family import posterior

        return posterior(task)


class Vote(LogicRow, frozen=True):
    """For each held-out readout, the answer of the majority of the models that fit."""

    name = "vote"
    answers_trajectories = True

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        from calibrant.solvers.logic.family import vote

        return vote(task)

    def states(self, task: TrajectoryTask) -> Answer:
        from calibrant.baselines.logic.rows import likeliest

        return likeliest(task)


class Greedy(LogicRow, frozen=True):
    """Local search by paths, clauses and literals, until no step improves the model."""

    name = "greedy"

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        from calibrant.baselines.logic.rows import greedy

        return greedy(task)


class Genetic(LogicRow, frozen=True):
    """A genetic algorithm over bit strings of clauses, as in published tools.

    seed: of its draws; generations: number of generations
    """

    name = "genetic"
    seed: int = 0
    generations: int = 500

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        from calibrant.baselines.logic.rows import GeneticPlan, genetic

        return genetic(task, self.seed, GeneticPlan(generations=self.generations))


class RandomModel(LogicRow, frozen=True):
    """A model drawn uniformly from the class, independently of the data.

    seed: of the draw
    """

    name = "random"
    answers_trajectories = True
    seed: int = 0

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        from calibrant.baselines.logic.rows import random_model

        return random_model(task, self.seed)

    def states(self, task: TrajectoryTask) -> Answer:
        from calibrant.baselines.logic.rows import random_network

        return random_network(task, self.seed)


class Abstain(LogicRow, frozen=True):
    """Probability 0.5 for every held-out readout; no answer to an item of trajectories."""

    name = "abstain"
    answers_trajectories = True

    def outcome(self, task: Task) -> Found[LogicAnswer] | OutOfBudget:
        from calibrant.baselines.logic.rows import abstain

        return abstain(task)

    def states(self, task: TrajectoryTask) -> Answer:
        from calibrant.solvers.outcome import Found

        return Found({})


class Majority(LogicRow, frozen=True):
    """States of trajectories: at each step the value of the majority of each gene's functions."""

    name = "majority"
    answers_trajectories = True
    answers_experiments = False

    def states(self, task: TrajectoryTask) -> Answer:
        from calibrant.baselines.logic.rows import majority

        return majority(task)


class CopyState(LogicRow, frozen=True):
    """States of trajectories: the initial state, for every state in question."""

    name = "copy"
    answers_trajectories = True
    answers_experiments = False

    def states(self, task: TrajectoryTask) -> Answer:
        from calibrant.baselines.logic.rows import copy_start

        return copy_start(task)


ROWS = (Exact, Posterior, Vote, Greedy, Genetic, RandomModel, Abstain, Majority, CopyState)


def applicable_rows(pools: Sequence[ItemPool[LogicItem]]) -> Sequence[type[Protocol]]:
    """Return the methods that answer at least one item of the pools; all of them without items."""
    tasks = [item.task for pool in pools for item in pool.items]
    return [row for row in ROWS if not tasks or any(not row().refusal(task) for task in tasks)]


# --- Canonical presentation of tasks ----------------------------------------------------------------------------------
_NAME = re.compile(r"\bn[0-9]+\b")


def present(task: Task) -> Presentation:
    """Return a task in canonical form; `restore` of its answers restores names, and columns of probabilities.

    Genes of trajectories are named n01, n02, ... by their order.
    """
    if is_trajectory_task(task):
        return _present_trajectories(task)
    canonical = canonical_task(task)

    def restore(content: Any) -> Any:
        if isinstance(content, Mapping) and content.keys() == {"probabilities"}:
            return {
                "probabilities": [[row[column] for column in canonical.readouts] for row in content["probabilities"]]
            }
        return replace_words(content, _NAME, canonical.names)

    return Presentation(canonical.task, restore)


def _present_trajectories(task: TrajectoryTask) -> Presentation:
    width = len(str(len(task.genes)))
    names = {gene: f"n{number:0{width}}" for number, gene in enumerate(task.genes, start=1)}

    def rename(clamps: Mapping[str, int]) -> dict[str, int]:
        return {names[gene]: value for gene, value in clamps.items()}

    question = task.question
    canonical = replace(
        task,
        genes=tuple(names.values()),
        candidates={
            names[gene]: tuple(sorted((names[name], sign) for name, sign in entries))
            for gene, entries in task.candidates.items()
        },
        evidence=tuple(Trajectory(rename(entry.clamps), entry.states) for entry in task.evidence),
        question=Question(rename(question.clamps), question.start, question.steps),
        wording="standard",
    )
    back = {new: gene for gene, new in names.items()}
    return Presentation(canonical, lambda answer: replace_words(answer, _NAME, back))
