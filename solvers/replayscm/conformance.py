"""The contract of a solver for whole problems: what its outcomes must be, whatever its method.

The caller brings the problems, so nothing here needs a test framework. Small problems are also solved by exhaustion, in
plain Python that shares nothing with the solvers.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.problem import Problem, Task
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.submission import illegality
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.outcome import BestSoFar, Found, Outcome, OutOfBudget
from calibrant.solvers.replayscm.exhaustion import least_size

BUDGETS = (0, 1, 100, 10_000, 1_000_000, None)  # states, ascending
SMALL_VARIABLES, SMALL_ROWS = 5, 8  # different rows of one parent set; exhaustion takes well under a second


class SolverAnswer(Protocol):
    """Result of a solver: an SCM and its total formula size."""

    @property
    def model(self) -> Scm: ...
    @property
    def size(self) -> int: ...


class Solver(Protocol):
    """Answers a task with the SCM of least total size; gives up after so many states of its own, None: never."""

    def __call__(self, task: Task, *, states: int | None) -> Outcome[SolverAnswer]: ...


Hypotheses = Callable[[Task], Iterable[tuple[str, ...]]]
"""The root sets that a solver claims to consider."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One thing that a solver should not have said.

    rule: certified | least | budget | repeatable; problem: its id; reason: what was said and what it should have been
    """

    rule: str
    problem: str
    reason: str


def all_root_sets(task: Task) -> Iterable[tuple[str, ...]]:
    """The disclosed root set, or every set of the disclosed size."""
    return task.disclosure.root_sets()


def check(
    solver: Solver, problems: Iterable[Problem], *, max_parents: int = 5, hypotheses: Hypotheses = all_root_sets
) -> list[Breach]:
    """Every breach of the contract; the solver is handed the tasks only.

    certified: answers are legal, replay every training row, and have the size that is stated
    least: answers of small problems have the least size, and are Impossible only if there is none
    budget: a larger budget never changes what was decided; lower bounds are true
    repeatable: the answer stays when the task is copied and its worlds come in another order
    """
    rules: dict[str, Callable[[Solver, Task, Outcome[SolverAnswer]], Iterator[str]]] = {
        "certified": partial(_certified, max_parents=max_parents),
        "least": partial(_least, max_parents=max_parents, hypotheses=hypotheses),
        "budget": _budget,
        "repeatable": _repeatable,
    }
    breaches = []
    for problem in problems:
        outcome = solver(problem.task, states=None)
        for rule, breach in rules.items():
            breaches += [Breach(rule, problem.id, reason) for reason in breach(solver, problem.task, outcome)]
    return breaches


def _certified(solver: Solver, task: Task, outcome: Outcome[SolverAnswer], *, max_parents: int) -> Iterator[str]:
    if not isinstance(outcome, Found):
        return
    model = outcome.value.model
    if wrong := illegality(task, model):
        yield wrong
    elif mismatch := first_mismatch(model, task.training.worlds):
        yield f"does not replay {mismatch}"
    if model.size != outcome.value.size:
        yield f"has {model.size} nodes, {outcome.value.size} are stated"
    for variable, mechanism in model.mechanisms.items():
        if len(mechanism.mentioned) > max_parents:
            yield f"mechanism of {variable} mentions {len(mechanism.mentioned)} variables"


def _least(
    solver: Solver, task: Task, outcome: Outcome[SolverAnswer], *, max_parents: int, hypotheses: Hypotheses
) -> Iterator[str]:
    num_vars = len(task.variables)
    if num_vars > SMALL_VARIABLES or min(task.training.num_rows, 1 << min(max_parents, num_vars - 1)) > SMALL_ROWS:
        return
    said = outcome.value.size if isinstance(outcome, Found) else None
    least = least_size(task, max_parents, hypotheses(task))
    if said != least:
        yield f"least size {said}; by exhaustion {least}"


def _budget(solver: Solver, task: Task, outcome: Outcome[SolverAnswer]) -> Iterator[str]:
    decided = False
    for states in BUDGETS:
        limited = solver(task, states=states)
        if isinstance(limited, OutOfBudget):
            if decided:
                yield f"undecided with {states} states, decided with fewer"
            bound = limited.lower_bound or 0
            if isinstance(outcome, Found) and bound > outcome.value.size:
                yield f"lower bound {bound} with {states} states; an answer has size {outcome.value.size}"
            if isinstance(limited, BestSoFar):
                yield from _best_so_far(task, limited, outcome)
        else:
            decided = True
            if _said(limited) != _said(outcome):
                yield f"with {states} states: {_said(limited)}; without limit: {_said(outcome)}"


def _best_so_far(task: Task, best: BestSoFar[SolverAnswer], outcome: Outcome[SolverAnswer]) -> Iterator[str]:
    """Return what is wrong with the best answer of a search that was cut off."""
    model = best.value.model
    wrong = illegality(task, model) or first_mismatch(model, task.training.worlds)
    if wrong or model.size != best.upper_bound:
        yield f"best so far: {wrong or f'has {model.size} nodes, {best.upper_bound} are stated'}"
    elif not isinstance(outcome, Found) or outcome.value.size > model.size:
        yield f"best so far: {model.size} nodes, less than what was said to be least"


def _repeatable(solver: Solver, task: Task, outcome: Outcome[SolverAnswer]) -> Iterator[str]:
    worlds = task.training.worlds
    turned = replace(task, training=Panel(task.variables, worlds[::-1]))
    for name, other in (("a copy", pickle.loads(pickle.dumps(task))), ("the worlds turned round", turned)):
        again = _said(solver(other, states=None))
        if again != _said(outcome):
            yield f"for {name}: {again}; first: {_said(outcome)}"


def _said(outcome: Outcome[SolverAnswer]) -> tuple[str, Sequence[str], Sequence[tuple[str, str]]]:
    """Return what has to be the same whenever the question is."""
    if not isinstance(outcome, Found):
        return type(outcome).__name__, (), ()
    model = outcome.value.model
    return "Found", model.roots, [(v, render(mechanism)) for v, mechanism in model.mechanisms.items()]
