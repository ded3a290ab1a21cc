"""The shared exact fitter: least mechanisms over proposed parents, against brute force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from random import Random

import pytest

from calibrant.baselines.replayscm.fit import Fitter, Unfit
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.exact import solve
from tests.support.replayscm.brute_force import is_acyclic, least_size, parent_sets, root_hypotheses
from tests.support.replayscm.pools import dev_problems
from tests.support.replayscm.random_problems import gold_problem, small_problems

SMALL = [problem.task for problem in small_problems(71, 80)]


def drawn_sets(task: Task, variable: str, rng: Random) -> list[tuple[str, ...]]:
    others = [u for u in task.variables if u != variable]
    return [tuple(rng.sample(others, rng.randint(0, len(others)))) for _ in range(rng.randint(0, 3))]


def admissible(task: Task, variable: str, candidates: Sequence[str]) -> tuple[str, ...]:
    allowed = task.disclosure.admissible_parents(variable)
    return tuple(u for u in task.variables if u in candidates and u in allowed)


@pytest.mark.parametrize("index", range(len(SMALL)))
def test_a_fitted_mechanism_is_least_over_its_candidates(index: int) -> None:
    task, rng = SMALL[index], Random(index)
    fitter = Fitter(task)
    for variable in task.variables:
        for candidates in drawn_sets(task, variable, rng):
            found = fitter.least_mechanism(variable, candidates)
            expected = least_size(task, variable, admissible(task, variable, candidates))
            assert (found.size if found else None) == expected
            if found:
                assert found.size == found.formula.size
                assert set(found.formula.variables) == set(found.parents) <= set(candidates)
            capped = Fitter(task, max_size=4).least_mechanism(variable, candidates)
            assert (capped.size if capped else None) == (expected if expected and expected <= 4 else None)


@pytest.mark.parametrize("index", range(len(SMALL)))
def test_proposals_are_fitted_with_least_total_size(index: int) -> None:
    task, rng = SMALL[index], Random(index)
    roots = rng.choice(root_hypotheses(task))
    free = [v for v in task.variables if v not in roots]
    proposals = {v: drawn_sets(task, v, rng) for v in free}
    fitted = Fitter(task).fit_proposals(proposals, roots)
    expected = least_total(task, roots, proposals)
    if isinstance(fitted, Unfit):
        assert expected is None
        return
    assert fitted.size == expected
    assert replays_exactly(fitted, task.training.worlds)
    assert fitted.roots == tuple(v for v in task.variables if v in roots)


def least_total(task: Task, roots: Sequence[str], proposals: Mapping[str, Sequence[Sequence[str]]]) -> int | None:
    """By trying every choice of a set per variable; a variable without a mechanism may say its constant over a root."""
    options: list[list[tuple[str, tuple[str, ...], int]]] = []
    for variable, sets in proposals.items():
        allowed = [admissible(task, variable, candidates) for candidates in sets]
        own = {
            parents: size
            for parents in parent_sets(task, variable, len(task.variables))
            if any(set(parents) <= set(candidates) for candidates in allowed)
            and (size := least_size(task, variable, parents)) is not None
        }
        if not own:
            unscored_or_constant = least_size(task, variable, ())
            first = next(u for u in task.variables if u in roots)
            size = least_size(task, variable, (first,)) if constant(task, variable) else unscored_or_constant
            own = {} if size is None else {(first,): size}
        options.append([(variable, parents, size) for parents, size in own.items()])
    totals = [
        sum(size for _, _, size in choice)
        for choice in product(*options)
        if is_acyclic({variable: parents for variable, parents, _ in choice})
    ]
    return min(totals, default=None)


def constant(task: Task, variable: str) -> bool:
    values = {
        row[variable]
        for world in task.training.worlds
        if variable not in world.intervention.targets
        for row in world.rows()
    }
    return len(values) <= 1


@pytest.mark.parametrize("name", ["ordered", "block", "hidden_order", "hidden_roots"])
def test_gold_parents_are_always_fitted_and_all_parents_give_the_exact_solution(name: str) -> None:
    for problem in dev_problems(name)[::11]:
        gold = problem.sealed.gold
        assert gold is not None
        fitter = Fitter(problem.task, max_parents=5)
        model = fitter.fit_dag({v: local.parents for v, local in gold.local_functions.items()}, gold.roots)
        assert isinstance(model, Scm)
        assert all(set(f.variables) <= set(gold.local_functions[v].parents) for v, f in model.mechanisms.items())
        if name == "hidden_roots":
            continue
        everything = fitter.fit_proposals({v: [problem.task.variables] for v in gold.mechanisms}, gold.roots)
        least = solve(problem.task, max_parents=5)
        assert isinstance(least, Found)
        assert isinstance(everything, Scm)
        assert everything == least.value.model


def test_what_cannot_be_fitted_is_named() -> None:
    task = dev_problems("hidden_order")[0].task
    roots = task.disclosure.roots
    assert roots is not None
    free = tuple(v for v in task.variables if v not in roots)
    assert Fitter(task).fit_dag({}, roots) == Unfit(free)
    assert Fitter(task, max_size=1).fit_dag(dict.fromkeys(free, roots), roots) == Unfit(free)
    assert Fitter(task, states=0).fit_dag(dict.fromkeys(free, task.variables), roots) == Unfit(free)


def test_a_choice_that_can_only_be_cyclic_is_refused() -> None:
    """Two variables that always agree, each proposed as the only parent of the other."""
    from calibrant.dsl.formulas.text import STANDARD
    from calibrant.dsl.replayscm.disclosure import HiddenOrder
    from calibrant.dsl.replayscm.item import TaskKind
    from calibrant.dsl.replayscm.world import Intervention, Panel, World

    world = World("w", Intervention(), ("X1", "X2", "X3"), ("a", "b"), (0b01, 0b10, 0b10))
    disclosure = HiddenOrder(world.variables, ("X1",))
    task = Task(TaskKind.SCM, disclosure, STANDARD, Panel(world.variables, (world,)), False, 0)
    fitter = Fitter(task)
    assert fitter.fit_proposals({"X2": [("X3",)], "X3": [("X2",)]}, ("X1",)) == Unfit(("X2", "X3"), cyclic=True)
    model = fitter.fit_proposals({"X2": [("X3",)], "X3": [("X2",), ("X1",)]}, ("X1",))
    assert isinstance(model, Scm)
    assert {v: str(f) for v, f in model.mechanisms.items()} == {"X2": "X3", "X3": "(not X1)"}


def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    problem = gold_problem(5)
    task, gold = problem.task, problem.sealed.gold
    assert gold is not None
    parents = {v: [task.variables] for v in gold.mechanisms}
    fresh = Fitter(task).fit_proposals(parents, gold.roots)
    used = Fitter(task)
    for v in reversed(list(gold.mechanisms)):
        used.least_mechanism(v, task.variables[:2])
    assert used.fit_proposals(parents, gold.roots) == fresh
