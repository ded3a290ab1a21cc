"""Problems of many variables: what is proved of them, what is said when the budget ends, and what is out of reach."""

from __future__ import annotations

import pytest

from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.disclosure import Disclosure, HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.generation.problems import disclose_problem, sample_problem
from calibrant.dsl.replayscm.generation.strata import stratum
from calibrant.dsl.replayscm.item import Task, TaskKind
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.submission import illegality
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.acyclic.least import ParentSet, cost_by_size, remove_dominated
from calibrant.solvers.acyclic.optimum import STATES_PER_CONFLICT, Choice, optimal_choice
from calibrant.solvers.outcome import BestSoFar, Found, OutOfBudget, Undecided
from calibrant.solvers.replayscm import exact
from calibrant.solvers.replayscm.exact import ExactAnswer, solve
from calibrant.solvers.replayscm.parents import ParentSearch

NAMES_30, NAMES_64 = (tuple(f"X{i}" for i in range(1, number + 1)) for number in (30, 64))


@pytest.mark.parametrize(
    ("disclosure", "reason"),
    [
        (HiddenOrder(NAMES_64, NAMES_64[:3]), "64 variables, at most 63"),
        (HiddenRoots(NAMES_30, 20), "more than 10000 root sets"),
    ],
)
def test_what_cannot_be_reached_is_said_at_once(disclosure: Disclosure, reason: str) -> None:
    names = disclosure.variables
    world = World("w", Intervention(), names, ("u0", "u1"), tuple(i % 4 for i in range(len(names))))
    kind = TaskKind.ROOTS if isinstance(disclosure, HiddenRoots) else TaskKind.SCM
    task = Task(kind, disclosure, STANDARD, Panel(names, (world,)), shares_units=False, num_heldout=0)
    outcome = solve(task)
    assert isinstance(outcome, OutOfBudget)
    assert not isinstance(outcome, BestSoFar)
    assert reason in outcome.reached


def sized(outcome: object) -> int:
    assert isinstance(outcome, Found)
    assert isinstance(outcome.value, ExactAnswer)
    return outcome.value.size


def test_a_known_order_needs_no_search_and_no_order_none_smaller() -> None:
    """The same 16 variables with the order told, in blocks, and hidden: the classes contain one another."""
    problem = sample_problem(stratum("large_n16"), 2)
    gold = problem.sealed.gold
    assert gold is not None
    sizes = [
        sized(solve(disclose_problem(problem, name).task, max_parents=4))
        for name in ("ordered", "block", "hidden-order")
    ]
    assert gold.size >= sizes[0] >= sizes[1] >= sizes[2]
    assert sizes[0] > sizes[2]


def test_bounds_and_a_model_where_the_budget_ends() -> None:
    problem = sample_problem(stratum("large_n20"), 0)
    least = solve(problem.task, max_parents=4)
    assert isinstance(least, Found)
    spent = least.value.provenance["states"]
    assert spent >= STATES_PER_CONFLICT
    decided = {}
    for states in (0, spent - 1, 2 * spent):
        outcome = solve(problem.task, max_parents=4, states=states)
        decided[states] = isinstance(outcome, Found)
        if isinstance(outcome, Found):
            assert outcome.value.model == least.value.model
            continue
        assert isinstance(outcome, BestSoFar)
        assert outcome.lower_bound is not None
        assert outcome.lower_bound <= least.value.size <= outcome.upper_bound
        assert f"at least {outcome.lower_bound}, the best one found has {outcome.upper_bound}" in outcome.reached
        model = outcome.incumbent.model
        assert model.size == outcome.incumbent.size == outcome.upper_bound
        assert illegality(problem.task, model) is None
        assert first_mismatch(model, problem.task.training.worlds) is None
    assert decided == {0: False, spent - 1: False, 2 * spent: True}


def test_sets_left_out_beside_free_variables_are_dominated() -> None:
    """Both lists have the same undominated sets among the variables that are not free, ties by number included."""
    task = sample_problem(stratum("large_n12"), 3).task
    roots = task.disclosure.roots
    assert roots is not None
    index, search = {v: i for i, v in enumerate(task.variables)}, ParentSearch(task, 4)
    free = sum(1 << index[root] for root in roots)
    endogenous = [index[v] for v in task.variables if v not in roots]
    shorter = 0
    for v in endogenous:
        candidates = [i for i in index.values() if i != v]
        every, fewer = search.parent_sets(v, candidates), search.parent_sets(v, candidates, free=free)
        assert {one.mask for one in fewer} <= {one.mask for one in every}
        left = [
            remove_dominated([ParentSet(cost_by_size(one.at_least, one.mask), one.mask) for one in sets], endogenous)
            for sets in (every, fewer)
        ]
        assert left[0] == left[1]
        shorter += len(fewer) < len(every)
    assert shorter >= 2


def test_a_known_order_has_no_such_limit() -> None:
    world = World("w", Intervention(), NAMES_30, ("u0", "u1"), tuple((i % 2) + 1 for i in range(30)))
    disclosure = Ordered(NAMES_30, NAMES_30[:3])
    task = Task(TaskKind.SCM, disclosure, STANDARD, Panel(NAMES_30, (world,)), shares_units=False, num_heldout=0)
    outcome = solve(task, max_parents=2)
    assert isinstance(outcome, Found)
    assert outcome.value.size == 27  # every column is a copy of X1 or X2


def test_the_best_choice_met_is_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a choice ends with one that is better than a search over orders finds, that is the model."""
    problem = sample_problem(stratum("large_n12"), 3)
    least = sized(solve(problem.task, max_parents=4))

    def late(options: dict[int, dict[int, int]], roots: int, *rest: object, **_options: object) -> Choice | None:
        met = optimal_choice(options, roots, len(problem.task.variables))
        assert met is not None
        raise Undecided(0, None, met.chosen)

    monkeypatch.setattr(exact, "optimal_choice", late)
    monkeypatch.setattr(exact, "find_good_choice", lambda options, roots: None)
    outcome = solve(problem.task, max_parents=4)
    assert isinstance(outcome, BestSoFar)
    assert outcome.upper_bound == least
    assert first_mismatch(outcome.incumbent.model, problem.task.training.worlds) is None
