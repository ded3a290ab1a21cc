"""The shipped contract of solvers: the exact solver keeps it, and whoever does not is told so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import pytest

from calibrant.dsl.formulas.formula import Formula, apply, constant, var
from calibrant.dsl.replayscm.disclosure import HiddenRoots
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.replayscm.exact import ExactAnswer, solve
from tests.oracles.conformance import Breach, Solver, check, least_size
from tests.support.effort import cases, effort
from tests.support.replayscm.brute_force import can_be_root, optimum, root_hypotheses
from tests.support.replayscm.random_problems import Limits, small_problems

pytestmark = pytest.mark.soak  # `cases` says how many problems

exact = partial(solve, nested_roots=False)


# --- exhaustion, against brute force that is written in another way --------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [
        Limits(),
        Limits(variables=5, endogenous=4, rows=7),
        Limits(operators=("and", "or")),
        Limits(operators=("xor", "iff")),
        Limits(operators=("iff",), allow_constants=True),
        Limits(allow_constants=True),
    ],
)
def test_exhaustion_agrees_with_brute_force(limits: Limits) -> None:
    sizes = []
    for problem in small_problems(21, effort(60, 120), limits):
        best = optimum(problem.task, 3, root_hypotheses(problem.task))
        sizes.append(least_size(problem.task, 3, root_hypotheses(problem.task)))
        assert sizes[-1] == (best and best.size)
    assert None in sizes
    assert max(size or 0 for size in sizes) >= 3


# --- who keeps the contract ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [Limits(), Limits(variables=5), Limits(operators=("not", "or"))])
@pytest.mark.parametrize("most", [2, 3])
def test_the_exact_solver_keeps_the_contract(limits: Limits, most: int) -> None:
    problems = list(small_problems(22, cases(120), limits))
    assert check(partial(exact, max_parents=most), problems, max_parents=most) == []


def nested_root_sets(task: Task) -> Iterable[tuple[str, ...]]:
    every = root_hypotheses(task)
    if not isinstance(task.disclosure, HiddenRoots):
        return every
    able = [roots for roots in every if all(can_be_root(task, root) for root in roots)]
    return able if optimum(task, 3, able) else every


def test_with_nested_roots_it_keeps_the_contract_for_those_root_sets() -> None:
    problems = list(small_problems(23, 200, Limits(thresholds=False)))
    nested = partial(solve, max_parents=3)
    assert check(nested, problems, max_parents=3, hypotheses=nested_root_sets) == []
    assert {breach.rule for breach in check(nested, problems, max_parents=3)} == {"least"}


# --- who does not ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Edited:
    """The exact solver, with its answers changed."""

    edit: Callable[[Task, ExactAnswer, int | None], Outcome[ExactAnswer]]

    def __call__(self, task: Task, *, states: int | None) -> Outcome[ExactAnswer]:
        outcome = solve(task, max_parents=3, nested_roots=False, states=states)
        return self.edit(task, outcome.value, states) if isinstance(outcome, Found) else outcome


def _exchanged(model: Scm, edit: Callable[[Formula], Formula]) -> Outcome[ExactAnswer]:
    """One mechanism changed, and the size stated accordingly."""
    variable = next(iter(model.mechanisms))
    changed = Scm(model.roots, {**model.mechanisms, variable: edit(model.mechanisms[variable])})
    return Found(ExactAnswer(changed, changed.size))


def _wrong(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    return _exchanged(answer.model, lambda formula: apply("not", [formula]))


def _bloated(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    return _exchanged(answer.model, lambda formula: apply("or", [formula, formula]))


def _understated(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    return Found(replace(answer, size=answer.size - 1))


def _with_literal(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    return _exchanged(answer.model, lambda formula: apply("or", [formula, constant(False)]))


def _with_too_many_mentions(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    every = [var(root) for root in answer.model.roots]
    return _exchanged(answer.model, lambda formula: apply("or", [formula, apply("and", [formula, *every])]))


def _with_other_roots(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    model = answer.model
    everything = Scm((*model.roots, *model.mechanisms), {})
    return Found(ExactAnswer(everything, 0))


def _denied(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    return Impossible("nothing was searched")


def _wavering(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    return OutOfBudget("tired", 1) if states == 10_000 else Found(answer)


def _overrated(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    return OutOfBudget("a guess", answer.size + 1) if states == 0 else Found(answer)


def _by_budget(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    return Found(answer) if states is None else _bloated(task, answer, states)


def _by_world_order(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    first_comes_first = task.training.worlds[0].id == "w0"
    return Found(answer) if first_comes_first else _bloated(task, answer, states)


@pytest.mark.parametrize(
    ("edit", "rule", "reason"),
    [
        (_wrong, "certified", "does not replay Cell"),
        (_bloated, "least", "by exhaustion"),
        (_understated, "certified", "are stated"),
        (_with_literal, "certified", "not allowed"),
        (_with_too_many_mentions, "certified", "variables"),
        (_with_other_roots, "certified", "roots"),
        (_denied, "least", "least size None; by exhaustion"),
        (_wavering, "budget", "undecided with 10000 states, decided with fewer"),
        (_overrated, "budget", "lower bound"),
        (_by_budget, "budget", "without limit"),
        (_by_world_order, "repeatable", "the worlds turned round"),
    ],
)
def test_a_breach_is_reported(
    edit: Callable[[Task, ExactAnswer, int | None], Outcome[ExactAnswer]], rule: str, reason: str
) -> None:
    most = 1 if edit is _with_too_many_mentions else 3
    problems = [problem for problem in small_problems(24, 40, Limits(rows=12)) if solvable(problem)]
    breaches = check(Edited(edit), problems, max_parents=most)
    assert any(breach.rule == rule and reason in breach.reason for breach in breaches), breaches


def solvable(problem: Problem) -> bool:
    return isinstance(solve(problem.task, max_parents=3, nested_roots=False), Found)


def test_a_false_answer_to_an_impossible_task_is_reported() -> None:
    def claims_everything(task: Task, *, states: int | None) -> Outcome[ExactAnswer]:
        outcome = exact(task, states=states)
        roots = task.variables[:1]
        return Found(ExactAnswer(Scm(roots, {}), 0)) if isinstance(outcome, Impossible) else outcome

    solver: Solver = claims_everything
    problems = [problem for problem in small_problems(25, cases(120)) if not solvable(problem)]
    assert problems
    assert {breach.problem for breach in check(solver, problems)} == {problem.id for problem in problems}


def test_a_breach_names_rule_problem_and_reason() -> None:
    (problem,) = small_problems(24, 1)
    breaches = check(Edited(_understated), [problem], max_parents=3)
    size = solve(problem.task, max_parents=3).value.size
    assert breaches[0] == Breach("certified", problem.id, f"has {size} nodes, {size - 1} are stated")
