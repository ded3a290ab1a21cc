"""What every solver keeps: the shipped contract, canonical tasks, and problems of many variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from random import Random
from typing import TypeAlias

import pytest

from calibrant.bench.core.registry import benchmark_of, bundled_pools
from calibrant.bench.lab.renamings import Invariance, measure
from calibrant.bench.lab.replayscm import rename
from calibrant.bench.protocols import Protocol
from calibrant.bench.replayscm.rows.exact import Exact
from calibrant.bench.replayscm.rows.listed import FirstFound, MostPosterior, RandomLegal
from calibrant.dsl.formulas.formula import Formula, apply, constant, var
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.disclosure import Disclosure, HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.generation.problems import disclose_problem, sample_problem
from calibrant.dsl.replayscm.generation.strata import stratum
from calibrant.dsl.replayscm.item import Problem, Task, TaskKind
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.submission import illegality
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.acyclic.least import ParentSet, cost_by_size, remove_dominated
from calibrant.solvers.acyclic.optimum import STATES_PER_CONFLICT, Choice, optimal_choice
from calibrant.solvers.outcome import BestSoFar, Found, Impossible, Outcome, OutOfBudget, Undecided
from calibrant.solvers.replayscm import exact
from calibrant.solvers.replayscm.canonical import canonical_task
from calibrant.solvers.replayscm.exact import ExactAnswer, solve
from calibrant.solvers.replayscm.roots_and_parents import ParentSearch
from tests.oracles.conformance import Breach, Solver, check, least_size
from tests.support.effort import cases, effort
from tests.support.replayscm.brute_force import can_be_root, optimum, root_hypotheses
from tests.support.replayscm.random_problems import Limits, small_problems

pytestmark = pytest.mark.soak  # `cases` says how many problems


# --- The shipped contract of solvers: the exact solver keeps it, and whoever does not is told so ----------------------
solve_all_roots = partial(solve, nested_roots=False)


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
    assert check(partial(solve_all_roots, max_parents=most), problems, max_parents=most) == []


def nested_root_sets(task: Task) -> Iterable[tuple[str, ...]]:
    every = root_hypotheses(task)
    if not isinstance(task.disclosure, HiddenRoots):
        return every
    able = [roots for roots in every if all(can_be_root(task, root) for root in roots)]
    return able if optimum(task, 3, able) else every


def test_with_nested_roots_it_keeps_the_contract_for_those_root_sets() -> None:
    problems = list(small_problems(23, 200, Limits(thresholds=False)))[effort(120, 0) :]  # one has such a breach: 187
    nested = partial(solve, max_parents=3)
    assert check(nested, problems, max_parents=3, hypotheses=nested_root_sets) == []
    assert {breach.rule for breach in check(nested, problems, max_parents=3)} == {"least"}


# --- who does not ----------------------------------------------------------------------------------------------------


Edit: TypeAlias = Callable[[Task, ExactAnswer, int | None], Outcome[ExactAnswer]]


@dataclass(frozen=True)
class Edited:
    """The exact solver, with its answers changed."""

    edit: Edit

    def __call__(self, task: Task, *, states: int | None) -> Outcome[ExactAnswer]:
        outcome = solve(task, max_parents=3, nested_roots=False, states=states)
        return self.edit(task, outcome.value, states) if isinstance(outcome, Found) else outcome


def _exchanged(model: Scm, edit: Callable[[Formula], Formula]) -> Outcome[ExactAnswer]:
    """One mechanism changed, and the size stated accordingly."""
    variable = next(iter(model.mechanisms))
    changed = Scm(model.roots, {**model.mechanisms, variable: edit(model.mechanisms[variable])})
    return Found(ExactAnswer(changed, changed.size))


def _bloated(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    return _exchanged(answer.model, lambda formula: apply("or", [formula, formula]))


def _understated(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    return Found(replace(answer, size=answer.size - 1))


def _with_too_many_mentions(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    every = [var(root) for root in answer.model.roots]
    return _exchanged(answer.model, lambda formula: apply("or", [formula, apply("and", [formula, *every])]))


def _with_other_roots(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    return Found(ExactAnswer(Scm((*answer.model.roots, *answer.model.mechanisms), {}), 0))


def _by_world_order(task: Task, answer: ExactAnswer, states: int | None) -> Outcome[ExactAnswer]:
    first_comes_first = task.training.worlds[0].id == "w0"
    return Found(answer) if first_comes_first else _bloated(task, answer, states)


BREACHES: dict[str, tuple[Edit, str, str]] = {
    "wrong": (
        lambda task, answer, states: _exchanged(answer.model, lambda formula: apply("not", [formula])),
        "certified",
        "does not replay Cell",
    ),
    "bloated": (_bloated, "least", "by exhaustion"),
    "understated": (_understated, "certified", "are stated"),
    "with a literal": (
        lambda task, answer, states: _exchanged(answer.model, lambda f: apply("or", [f, constant(False)])),
        "certified",
        "not allowed",
    ),
    "with too many mentions": (_with_too_many_mentions, "certified", "variables"),
    "with other roots": (_with_other_roots, "certified", "roots"),
    "denied": (lambda *_: Impossible("nothing was searched"), "least", "least size None; by exhaustion"),
    "wavering": (
        lambda task, answer, states: OutOfBudget("tired", 1) if states == 10_000 else Found(answer),
        "budget",
        "undecided with 10000 states, decided with fewer",
    ),
    "overrated": (
        lambda task, answer, states: OutOfBudget("a guess", answer.size + 1) if states == 0 else Found(answer),
        "budget",
        "lower bound",
    ),
    "by budget": (
        lambda task, answer, states: Found(answer) if states is None else _bloated(task, answer, states),
        "budget",
        "without limit",
    ),
    "by the order of worlds": (_by_world_order, "repeatable", "the worlds turned round"),
}


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_is_reported(name: str) -> None:
    edit, rule, reason = BREACHES[name]
    breaches = check(Edited(edit), _solvable(), max_parents=1 if edit is _with_too_many_mentions else 3)
    assert any(breach.rule == rule and reason in breach.reason for breach in breaches), breaches


@cache
def _solvable() -> list[Problem]:
    return [problem for problem in small_problems(24, 20, Limits(rows=12)) if solvable(problem)]


def solvable(problem: Problem) -> bool:
    return isinstance(solve(problem.task, max_parents=3, nested_roots=False), Found)


def test_a_false_answer_to_an_impossible_task_is_reported() -> None:
    def claims_everything(task: Task, *, states: int | None) -> Outcome[ExactAnswer]:
        outcome = solve_all_roots(task, states=states)
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


# --- Canonical tasks: equal for all names and orders, and answers that come back over the names of the task -----------
HIDDEN_ORDER = bundled_pools()[2]


@cache
def _problems() -> tuple[Problem, ...]:
    return tuple(problem for path in bundled_pools() for problem in benchmark_of(path).items.read_pool(path).items[:3])


def test_renamed_problems_have_one_canonical_task() -> None:
    for problem in _problems():
        forms = [canonical_task(rename(problem, Random(seed)).item.task).task for seed in range(3)]
        assert forms[0] == forms[1] == forms[2] == canonical_task(problem.task).task


def test_different_problems_have_different_canonical_tasks() -> None:
    tasks = [
        repr((form.disclosure, form.training.worlds)) for form in (canonical_task(p.task).task for p in _problems())
    ]
    assert len(set(tasks)) == len(tasks)


def test_the_canonical_task_is_the_task_renamed() -> None:
    for problem in _problems():
        canonical = canonical_task(problem.task)
        assert sorted(canonical.names.values()) == sorted(problem.task.variables)
        rows = sorted(tuple(sorted((canonical.names[v], b) for v, b in row.items())) for row in _rows(canonical.task))
        assert rows == sorted(tuple(sorted(row.items())) for row in _rows(problem.task))


def _rows(task: Task) -> list[dict[str, int]]:
    return [row for world in task.training.worlds for row in world.rows()]


def _twins() -> Task:
    """Return a task in which X1 and X2 are alike."""
    columns = {"X1": 0b1010, "X2": 0b1100, "X3": 0b1000}
    world = World("w0", Intervention(), tuple(columns), ("a", "b", "c", "d"), tuple(columns.values()))
    disclosure = HiddenOrder(tuple(columns), ("X1", "X2"))
    return Task(TaskKind.SCM, disclosure, STANDARD, Panel(tuple(columns), (world,)), shares_units=True, num_heldout=0)


def test_symmetry_is_reported() -> None:
    canonical = canonical_task(_twins())
    child = next(new for new, old in canonical.names.items() if old == "X3")
    first, second = sorted(canonical.names.keys() - {child})
    assert canonical.symmetries == ({first: second, second: first, child: child},)
    assert all(canonical_task(problem.task).symmetries == () for problem in _problems())


def test_restore_replaces_names_in_texts_and_keys_alone() -> None:
    canonical = canonical_task(_twins())
    new = {old: new for new, old in canonical.names.items()}
    assert canonical.restore({new["X3"]: [f"(and {new['X1']} {new['X2']})", "V10", 7, None]}) == {
        "X3": ["(and X1 X2)", "V10", 7, None]
    }


def _measured(protocol: Protocol) -> Invariance:
    bench = benchmark_of(HIDDEN_ORDER)
    return measure(bench, bench.items.read_pool(HIDDEN_ORDER).items[:3], protocol, times=2, seed=3)


@pytest.mark.parametrize("protocol", [Exact(), MostPosterior(), FirstFound(), RandomLegal()])
def test_rates_and_answers_of_rows_do_not_move(protocol: Protocol) -> None:
    result = _measured(protocol)
    assert (result.moved, result.num_different, result.num_crashed) == ({}, 0, 0)


class RawFirstFound(FirstFound, frozen=True):
    """Stand-in: first-found without the canonical form."""

    reads_canonical = False


def test_the_measure_sees_a_row_that_names_move() -> None:
    assert _measured(RawFirstFound()).num_different > 0


# --- Problems of many variables: what is proved of them, what is said when the budget ends, and what is out of
# reach
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
