"""Three engines, one answer: "is there one", "is there a second one", "how many up to N".

Small problems are compared with brute force, shared pools with each other and with the exact count.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations, product

import pytest
from pysat.solvers import Solver

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.text import parse, render
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.outcome import Budget, Found, Impossible, OutOfBudget
from calibrant.solvers.replayscm.engines.contract import Counted, Enumeration
from calibrant.solvers.replayscm.engines.registry import ENGINES, choose_engine, create_engine
from calibrant.solvers.replayscm.engines.sat import SYMMETRY_BREAKS, SatMembers
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from calibrant.solvers.sat import (
    Cnf,
    add_at_most_one,
    add_exactly,
    add_linear_order,
)
from tests.support.effort import cases, effort
from tests.support.replayscm.brute_force import is_acyclic
from tests.support.replayscm.dev_pools import POOLS, dev_problems
from tests.support.replayscm.enumerated_members import all_members
from tests.support.replayscm.small_problems import Limits, small_problems

SMALL = [problem.task for problem in small_problems(23, cases(240))]
GRAMMARS = (("not", "and", "or"), (*STANDARD_OPERATORS, "if"), ("not", "xor", "and"))
NO_LIMIT = 10**9
SMT_MEMBERS = effort(12, 60)
SMT_PROBLEMS = effort(36, len(SMALL))


@cache
def number_of_members(index: int, most: int) -> int:
    """By brute force, once for all engines."""
    return len(all_members(SMALL[index], most))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "index"),
    [(name, i) for name in ENGINES for i in range(SMT_PROBLEMS if name == "smt" else len(SMALL))],
)
def test_small_problems_against_brute_force(name: str, index: int) -> None:
    """Six problems or seven of each of four disclosures with at most one, two and three parents; in a soak 20.

    By SMT, which is slow, three; it lists up to 12 members, which takes every constraint that keeps two of them apart.
    In a soak 60 of all.
    """
    task, model_class = SMALL[index], ModelClass(1 + index % 3)
    expected = number_of_members(index, model_class.max_parents)
    if name == "smt" and expected > SMT_MEMBERS:
        assert create_engine(name).count_up_to(task, model_class, SMT_MEMBERS) == Counted(SMT_MEMBERS, more=True)
    else:
        assert create_engine(name).count_up_to(task, model_class, NO_LIMIT) == Counted(expected, more=False)
        assert create_engine(name).count_up_to(task, model_class, expected) == Counted(expected, more=False)
    if expected:
        assert create_engine(name).count_up_to(task, model_class, expected - 1 if expected < 10 else 5).more  # type: ignore[union-attr]
    check_first_and_second(name, task, model_class, expected)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("operators", GRAMMARS)
@pytest.mark.parametrize("constants", [False, True])
def test_models_are_written_in_the_grammar_of_the_task(name: str, operators: tuple[str, ...], constants: bool) -> None:
    """Of 24 problems, six of each setting: of fewer, SMT may write too few constants."""
    written = 0
    for problem in small_problems(31, 24, Limits(operators=operators, allow_constants=constants)):
        task, model_class = problem.task, ModelClass(3)
        first = create_engine(name).first(task, model_class)
        if isinstance(first, Found):
            assert_member(first.value, task, model_class)
            for variable, formula in first.value.mechanisms.items():
                allowed = task.disclosure.admissible_parents(variable)
                assert parse(render(formula), task.grammar, allowed) == formula
                written += not first.value.local_functions[variable].parents
    assert written >= 3  # constants, which have to mention something where there are no literals


def check_first_and_second(name: str, task: Task, model_class: ModelClass, number: int) -> None:
    first = create_engine(name).first(task, model_class)
    if not number:
        assert isinstance(first, Impossible)
        assert model_class.describe(task) in first.exhausted
        return
    assert isinstance(first, Found)
    assert_member(first.value, task, model_class)
    second = create_engine(name).second(task, model_class, first.value)
    if number == 1:
        assert isinstance(second, Impossible)
        return
    assert isinstance(second, Found)
    assert_member(second.value, task, model_class)
    assert not second.value.equivalent(first.value)


def assert_member(model: Scm, task: Task, model_class: ModelClass) -> None:
    assert replays_exactly(model, task.training.worlds)
    assert all(len(local.parents) <= model_class.max_parents for local in model.local_functions.values())


@pytest.mark.parametrize("left_out", [*SYMMETRY_BREAKS, None])
def test_no_symmetry_break_changes_a_count(left_out: object) -> None:
    kept = tuple(rule for rule in SYMMETRY_BREAKS if rule is not left_out)

    def members(task: Task, model_class: ModelClass, budget: Budget) -> SatMembers:
        return SatMembers(task, model_class, budget, symmetry_breaks=kept)

    for index, task in enumerate(SMALL[:48]):
        expected = number_of_members(index, 2)
        assert Enumeration("sat", members).count_up_to(task, ModelClass(2), 200) == Counted(
            min(expected, 200), more=expected > 200
        )


# --- pools ----------------------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("pool", POOLS[:3])
def test_sat_enumerates_as_many_members_as_there_are(pool: str) -> None:
    """Every third problem, all in a soak, wherever there are at most 500; all up to 10,000 were compared by hand."""
    compared = 0
    for problem in dev_problems(pool)[:: effort(3, 1)]:
        count = VersionSpace(problem.task, ModelClass(4)).count
        limit = 500 if count <= 500 else 10
        expected = Counted(min(count, limit), more=count > limit)
        assert create_engine("sat").count_up_to(problem.task, ModelClass(4), limit) == expected
        assert create_engine("subset_dp").count_up_to(problem.task, ModelClass(4), limit) == expected
        compared += count <= 500
    assert compared > effort(7, 20)


@pytest.mark.parametrize("pool", ["t1_ordered", "t1_block", "t1_hidden_order"])
def test_all_engines_agree_on_pools(pool: str) -> None:
    """On a few instances; all of them were compared by hand."""
    for problem in dev_problems(pool)[::5]:
        model_class = ModelClass(3)
        counts = {name: create_engine(name).count_up_to(problem.task, model_class, 2) for name in ENGINES}
        assert counts["subset_dp"] == counts["sat"] == counts["smt"]
        check_first_and_second("sat", problem.task, model_class, VersionSpace(problem.task, model_class).count)


# --- budgets and the choice of an engine -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENGINES)
def test_a_budget_only_ends_the_search(name: str) -> None:
    task = next(task for task in SMALL if len(task.variables) == 4 and len(all_members(task, 3)) in range(5, 30))
    whole = create_engine(name).count_up_to(task, ModelClass(3), 30)
    assert isinstance(create_engine(name).first(task, ModelClass(3), budget=Budget(0)), OutOfBudget)
    answers = [
        create_engine(name).count_up_to(task, ModelClass(3), 30, budget=Budget(states))
        for states in (1, 100, 10_000, 1_000_000, 10**9)
    ]
    assert isinstance(answers[0], OutOfBudget)
    assert answers[-1] == whole
    assert whole == Counted(len(all_members(task, 3)), more=False)
    decided = [isinstance(answer, Counted) for answer in answers]
    assert decided == sorted(decided)
    assert all(answer == whole for answer in answers if isinstance(answer, Counted))
    assert answers == [
        create_engine(name).count_up_to(task, ModelClass(3), 30, budget=Budget(states))
        for states in (1, 100, 10_000, 1_000_000, 10**9)
    ]


def test_auto_takes_the_engine_that_can() -> None:
    for problem in (*dev_problems("ordered")[:3], *dev_problems("hidden_order")[:3]):
        assert choose_engine(problem.task, ModelClass(3)).name == "subset_dp"
    with pytest.raises(ValueError, match="no engine 'z80'; there are auto, subset_dp, sat, smt"):
        create_engine("z80")
    for task in SMALL[:12]:
        expected = len(all_members(task, 2))
        assert create_engine("auto").count_up_to(task, ModelClass(2), NO_LIMIT) == Counted(expected, more=False)
        check_first_and_second("auto", task, ModelClass(2), expected)


def test_classes_with_a_size_cap_are_refused() -> None:
    for name in ENGINES:
        with pytest.raises(ValueError, match="without a cap on formula size"):
            create_engine(name).first(SMALL[0], ModelClass(2, 9))


# --- clauses ----------------------------------------------------------------------------------------------------------


def models(cnf: Cnf, over: Sequence[int]) -> set[tuple[bool, ...]]:
    """Return the assignments to some variables that can be completed, by asking for each."""
    with Solver(name="glucose4", bootstrap_with=cnf.clauses) as solver:
        signs = product((False, True), repeat=len(over))
        return {
            held
            for held in signs
            if solver.solve(assumptions=[v if positive else -v for v, positive in zip(over, held, strict=True)])
        }


@pytest.mark.parametrize("number", range(8))
def test_cardinality(number: int) -> None:
    for size in range(8):
        cnf = Cnf()
        literals = [cnf.variable(f"x{i}") for i in range(size)]
        add_exactly(cnf, literals, number, "count")
        assert models(cnf, literals) == {held for held in product((False, True), repeat=size) if sum(held) == number}
        few = Cnf()
        literals = [few.variable(f"x{i}") for i in range(size)]
        add_at_most_one(few, literals, "few")
        assert models(few, literals) == {held for held in product((False, True), repeat=size) if sum(held) <= 1}


def test_acyclicity_admits_the_dags_and_nothing_else() -> None:
    """All 4,096 graphs of four nodes, of which 543 have no cycle."""
    cnf = Cnf()
    pairs = [arc for pair in combinations(range(4), 2) for arc in (pair, pair[::-1])]
    arcs = {arc: cnf.variable(str(arc)) for arc in pairs}
    add_linear_order(cnf, arcs)
    admitted = models(cnf, list(arcs.values()))
    assert len(admitted) == 543
    for held in admitted:
        parents = {
            str(v): tuple(str(u) for (u, w), on in zip(pairs, held, strict=True) if on and w == v) for v in range(4)
        }
        assert is_acyclic(parents)


def test_members_by_smt_do_not_depend_on_what_was_asked_before() -> None:
    tasks = SMALL[:16]

    def members(order: Sequence[int]) -> list[dict[str, str]]:
        outcomes = {i: create_engine("smt").first(tasks[i], ModelClass(3)) for i in order}
        found = [outcomes[i] for i in range(len(tasks))]
        return [
            {v: render(formula) for v, formula in outcome.value.mechanisms.items()}
            for outcome in found
            if isinstance(outcome, Found)
        ]

    first = members(range(len(tasks)))
    assert len(first) > 3
    assert members(range(len(tasks) - 1, -1, -1)) == first
