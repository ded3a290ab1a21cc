"""The staged exact-search: its caps hold, its stages follow each other, its answers replay."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pytest

from calibrant.baselines.replayscm.staged import STAGES, Candidates, Caps, NotFound, Stage, StagedAnswer, staged_search
from calibrant.bench.replayscm.rows.exact import StagedExactSearch
from calibrant.dsl.formulas.text import STANDARD, parse
from calibrant.dsl.replayscm.disclosure import HiddenOrder, HiddenRoots
from calibrant.dsl.replayscm.item import Task, TaskKind
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.exact import solve
from calibrant.solvers.replayscm.parents import iterate_likely_first
from tests.support.replayscm.brute_force import least_size, parent_sets
from tests.support.replayscm.pools import POOLS, dev_problems
from tests.support.replayscm.random_problems import small_problems
from tests.support.replayscm.written import answered

GENEROUS = Caps(20, 20, 10_000, 10**9)


def task_of(columns: dict[str, int], num_rows: int, roots: tuple[str, ...]) -> Task:
    variables = tuple(columns)
    world = World("w", Intervention(), variables, tuple(f"u{r}" for r in range(num_rows)), tuple(columns.values()))
    return Task(TaskKind.SCM, HiddenOrder(variables, roots), STANDARD, Panel(variables, (world,)), False, 0)


@pytest.mark.parametrize("index", range(40))
def test_candidates_are_the_least_formulas_of_their_parent_sets(index: int) -> None:
    task = next(p.task for i, p in enumerate(small_problems(41, 40)) if i == index)
    listed = Candidates(task)
    for variable in task.variables:
        found = listed.of(variable, GENEROUS)
        assert found == sorted(found)
        smallest = min((least_size(task, variable, s) or 99 for s in parent_sets(task, variable, 4)), default=99)
        assert (found[0].size if found else 99) == smallest
        for size, num_parents, mask in found:
            parents = tuple(v for i, v in enumerate(task.variables) if mask >> i & 1)
            assert (len(parents), least_size(task, variable, parents)) == (num_parents, size)
            formula = listed.formula(variable, mask)
            assert (formula.size, set(formula.variables)) == (size, set(parents))
        for few in (0, 1, 3):
            assert listed.of(variable, GENEROUS._replace(candidates=few)) == found[:few]
        for most in (1, 3, 5):
            assert listed.of(variable, GENEROUS._replace(max_size=most)) == [c for c in found if c.size <= most]


def parity_of_four() -> Task:
    """X5 is the parity of four roots, all sixteen rows seen: size 5, behaviours of size 3 are needed to build it."""
    roots = {f"X{i + 1}": sum((row >> i & 1) << row for row in range(16)) for i in range(4)}
    parity = parse("(xor X1 X2 X3 X4)").evaluate(roots.__getitem__, 0xFFFF)
    return task_of({**roots, "X5": parity}, 16, tuple(roots))


def test_a_size_is_reached_if_what_it_is_built_from_was_kept() -> None:
    """Over four variables there are 4 functions of size 1 and, by listing them, 24 essential ones of size 5 or less."""
    task = parity_of_four()
    assert [c.size for c in Candidates(task).of("X5", GENEROUS)] == [5]
    assert Candidates(task).of("X5", GENEROUS._replace(max_size=4)) == []


def test_nothing_is_found_above_a_size_with_too_many_behaviours() -> None:
    """Four functions of five variables have size 6, one per operator; a formula of size 8 is built from all of them."""
    roots = {f"X{i + 1}": sum((row >> i & 1) << row for row in range(32)) for i in range(5)}
    formula = parse("(and (or X1 X2) (xor X3 X4) X5)")
    task = task_of({**roots, "X6": formula.evaluate(roots.__getitem__, 0xFFFFFFFF)}, 32, tuple(roots))
    assert [c.size for c in Candidates(task).of("X6", GENEROUS._replace(states=4))] == [8]
    assert Candidates(task).of("X6", GENEROUS._replace(states=3)) == []


def stages(*caps: Caps, nodes: int = 1000) -> Sequence[Stage]:
    return [Stage(one, nodes) for one in caps]


def test_the_first_stage_that_finds_a_model_wins() -> None:
    task = parity_of_four()
    small, large = GENEROUS._replace(max_size=4), GENEROUS._replace(max_size=5)
    found = staged_search(task, stages(small, large, GENEROUS))
    assert isinstance(found, StagedAnswer)
    assert (found.stage, str(found.model.mechanisms["X5"])) == (2, "(xor X1 X2 X3 X4)")
    assert staged_search(task, stages(small)) == NotFound(("X5",), out_of_nodes=False)
    assert staged_search(task, stages(large, nodes=0)) == NotFound((), out_of_nodes=True)


def test_slack_is_what_a_choice_may_cost_more_than_the_smallest_that_closes_no_cycle() -> None:
    """X2 and X3 always agree; over the roots alone either is an exclusive or, of size 3 against size 1."""
    columns = {"X1": 0b0101, "X2": 0b0110, "X3": 0b0110, "X4": 0b0011}
    task = task_of(columns, 4, ("X1", "X4"))
    found = staged_search(task, stages(GENEROUS._replace(slack=0)))
    assert isinstance(found, StagedAnswer)
    assert {v: str(f) for v, f in found.model.mechanisms.items()} == {"X2": "X3", "X3": "(xor X1 X4)"}
    only_each_other = staged_search(task, stages(GENEROUS._replace(slack=0, candidates=1)))
    assert only_each_other == NotFound((), out_of_nodes=False)


@pytest.mark.parametrize("pool", POOLS)
def test_answers_are_legal_and_replay_and_nodes_are_the_only_budget(pool: str) -> None:
    for problem in dev_problems(pool)[::6]:
        found = staged_search(problem.task)
        assert found == staged_search(pickle.loads(pickle.dumps(problem.task)))
        result = StagedExactSearch().answer(problem.task)
        score = Evaluator(problem).score_answer(answered(problem.task, result))
        assert score.valid == score.train_exact == isinstance(found, StagedAnswer)
        if isinstance(found, StagedAnswer):
            assert replays_exactly(found.model, problem.task.training.worlds)
            stage = STAGES[found.stage - 1]
            assert all(f.size <= stage.caps.max_size for f in found.model.mechanisms.values())
            least = solve(problem.task, max_parents=5)
            assert isinstance(least, Found)
            assert found.model.size >= least.value.size
        starved = StagedExactSearch(nodes_per_second=1, stages=1).answer(problem.task)
        assert starved.outcome in ("found", "out_of_budget")
        no_nodes = staged_search(problem.task, [Stage(GENEROUS, 0)])
        assert isinstance(no_nodes, NotFound)
        assert no_nodes.out_of_nodes


def test_root_sets_with_nested_columns_come_first() -> None:
    task = dev_problems("hidden_roots")[0].task
    assert isinstance(task.disclosure, HiddenRoots)
    listed = list(iterate_likely_first(task))
    gold = dev_problems("hidden_roots")[0].sealed.gold
    assert gold is not None
    assert sorted(listed) == sorted(set(listed))
    assert listed.index(tuple(v for v in task.variables if v in gold.roots)) < 5
