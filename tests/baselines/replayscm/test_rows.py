"""Rows that search little or nothing: what they answer, by hand, and that it is always legal."""

from __future__ import annotations

import pickle
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from random import Random

import pytest

from calibrant.baselines.replayscm.fit import all_root_sets, root_hypotheses
from calibrant.baselines.replayscm.rows import _consistent_rows, copy_parent, first_found, majority, random_legal
from calibrant.baselines.replayscm.staged import STAGES, NotFound, staged_search
from calibrant.bench.core.benchmark import TaskHandout
from calibrant.bench.protocols import Protocol
from calibrant.bench.replayscm.rows.exact import Exact
from calibrant.bench.replayscm.rows.listed import SIMPLE, CopyParent, FirstFound, Majority, MostPosterior, RandomLegal
from calibrant.bench.replayscm.rows.structures import BnlearnThenFit
from calibrant.bench.runs.workers import timed_answer
from calibrant.dsl.formulas.text import STANDARD, Grammar
from calibrant.dsl.replayscm.disclosure import HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.generation.problems import sample_problem
from calibrant.dsl.replayscm.generation.strata import stratum
from calibrant.dsl.replayscm.item import Task, TaskKind
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.outcome import BudgetSpent, Impossible
from calibrant.solvers.replayscm.exact import solve
from calibrant.solvers.replayscm.hidden.mass import exact_mass
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.replayscm.parents import MAX_ROOT_SETS, iterate_likely_first, list_root_sets
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.oracles.members_by_sat import sat_members
from tests.support.replayscm.brute_force import is_acyclic, parent_sets, seen, structures
from tests.support.replayscm.extensions.problems import random_class, random_member, random_worlds
from tests.support.replayscm.pools import POOLS, T1_POOLS, dev_problems
from tests.support.replayscm.random_problems import Limits, small_problems
from tests.support.replayscm.written import answered

# rows, last one first:  X1 = 0101, X2 = 0011, X3 = X1 and X2, X4 = not X3 but in the third row
COLUMNS = {"X1": 0b0101, "X2": 0b0011, "X3": 0b0001, "X4": 0b1010}


def task_of(columns: dict[str, int], roots: tuple[str, ...], *, clamped: tuple[str, ...] = ()) -> Task:
    variables = tuple(columns)
    intervention = Intervention({}, clamped)
    world = World("w", intervention, variables, ("a", "b", "c", "d"), tuple(columns.values()))
    return Task(TaskKind.SCM, HiddenOrder(variables, roots), STANDARD, Panel(variables, (world,)), False, 0)


def texts(model: Scm | None) -> dict[str, str]:
    assert model is not None
    return {variable: str(formula) for variable, formula in model.mechanisms.items()}


def test_majority_says_the_value_of_most_scored_rows() -> None:
    task = task_of(COLUMNS, ("X1", "X2"))
    assert texts(majority(task)) == {"X3": "(xor X1 X1)", "X4": "(xor X1 X1)"}  # 1 of 4, 2 of 4
    more = task_of({**COLUMNS, "X4": 0b1011}, ("X1", "X2"))
    assert texts(majority(more))["X4"] == "(iff X1 X1)"
    assert texts(majority(task_of({**COLUMNS, "X4": 0b1011}, ("X1", "X2"), clamped=("X4",))))["X4"] == "(xor X1 X1)"
    literal = replace(task, grammar=Grammar(("and", "not"), True))
    assert texts(majority(literal)) == {"X3": "0", "X4": "0"}
    assert majority(replace(task, grammar=Grammar(("and", "not"), False))) is None


def test_copy_parent_makes_as_few_wrong_cells_as_possible() -> None:
    """X4 differs from X1 in all rows; X3 is wrong in one row as X2, as X1, or as the negation of X4."""
    assert texts(copy_parent(task_of(COLUMNS, ("X1", "X2")))) == {"X3": "X1", "X4": "(not X1)"}
    no_negation = replace(task_of(COLUMNS, ("X1", "X2")), grammar=Grammar(("and", "or"), False))
    assert texts(copy_parent(no_negation)) == {"X3": "X1", "X4": "X2"}


@pytest.mark.parametrize("index", range(60))
def test_copies_are_best_by_trying_all(index: int) -> None:
    task = next(p.task for i, p in enumerate(small_problems(3, 60)) if i == index)
    model = copy_parent(task)
    if model is None:
        return
    options = {v: [s for s in parent_sets(task, v, 1) if s] for v in model.mechanisms}
    assert wrong_cells(task, model) == min(
        sum(fewest_wrong(task, v, parents[0]) for v, parents in structure.items()) for structure in structures(options)
    )


def fewest_wrong(task: Task, variable: str, parent: str) -> int:
    rows = [r for w in task.training.worlds if variable not in w.intervention.targets for r in w.rows()]
    wrong = sum(row[variable] != row[parent] for row in rows)
    return min(wrong, len(rows) - wrong)


def wrong_cells(task: Task, model: Scm) -> int:
    return sum(fewest_wrong(task, v, f.variables[0]) for v, f in model.mechanisms.items())


@pytest.mark.parametrize("index", range(60))
def test_first_found_takes_the_first_sets_that_fit(index: int) -> None:
    task = next(p.task for i, p in enumerate(small_problems(4, 60)) if i == index)
    model = first_found(task)
    if model is None:
        return
    assert replays_exactly(model, task.training.worlds)
    assert is_acyclic({v: local.parents for v, local in model.local_functions.items()})
    if isinstance(task.disclosure, Ordered):  # each variable is on its own
        for variable, formula in model.mechanisms.items():
            fitting = [s for s in parent_sets(task, variable, 5) if s and seen(task, variable, s) is not None]
            first = min(fitting, key=lambda s: (len(s), [task.variables.index(u) for u in s]))
            assert set(formula.variables) <= set(first)


def test_first_found_leaves_unseen_rows_at_zero() -> None:
    """Both at once was never seen: "or" fits as well as "exclusive or"."""
    task = task_of({"X1": 0b0010, "X2": 0b0100, "X3": 0b0110}, ("X1", "X2"))
    assert texts(first_found(task)) == {"X3": "(xor X1 X2)"}


@pytest.mark.parametrize("protocol", SIMPLE)
@pytest.mark.parametrize("pool", [*POOLS, *T1_POOLS])
def test_answers_are_legal_on_all_pools(protocol: type[Protocol], pool: str) -> None:
    for problem in dev_problems(pool)[::4]:
        result = protocol().answer(problem.task)
        score = Evaluator(problem).score_answer(answered(problem.task, result))
        assert (result.outcome, score.valid) == ("found", True)
        assert result == protocol().answer(pickle.loads(pickle.dumps(problem.task)))
        if protocol is FirstFound:
            assert score.train_exact


def test_random_answers_depend_on_seed_and_content() -> None:
    tasks = [problem.task for problem in dev_problems("hidden_order")[:6]]
    answers = [[str(random_legal(task, seed)) for task in tasks] for seed in (0, 0, 1)]
    assert answers[0] == answers[1]
    assert all(one != other for one, other in zip(answers[0], answers[2], strict=True))
    assert random_legal(replace(tasks[0], grammar=Grammar(("not",), False)), 0) is None


def test_what_cannot_be_said_is_no_answer() -> None:
    task = replace(task_of(COLUMNS, ("X1", "X2")), grammar=Grammar(("not", "and"), False))
    for protocol in (Majority(),):
        result = protocol.answer(task)
        assert (result.outcome, result.answer) == ("impossible", None)
    item = dev_problems("ordered")[0]
    alternative = replace(item.task, kind=TaskKind.ALTERNATIVE, reference=item.sealed.gold)
    assert RandomLegal().answer(alternative).provenance == {"reason": "no Alternative-SCM row"}


@pytest.mark.parametrize("protocol", [FirstFound(), CopyParent()])
def test_many_variables_of_unknown_order_that_copy_one_another(protocol: Protocol) -> None:
    columns = {f"X{i}": 0b0011 if i % 2 else 0b0101 for i in range(1, 41)}
    task = task_of(columns, ("X1", "X2"))
    result = timed_answer(protocol, TaskHandout(task)).result
    assert result.answer is not None
    copies = {v: {f"X{j}" for j in range(1, 41) if j % 2 == int(v[1:]) % 2} for v in result.answer["mechanisms"]}
    assert all(formula in copies[v] - {v} for v, formula in result.answer["mechanisms"].items())
    assert len(copies) == 38


def test_an_order_too_free_to_decide_is_a_spent_budget_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.baselines.replayscm.rows.MAX_CHOICE_STATES", 0)
    result = timed_answer(FirstFound(), TaskHandout(sample_problem(stratum("large_n20"), 0).task)).result
    assert result.outcome == "out_of_budget"
    said = "no least choice for 15 variables that may lie on a cycle together within the budget"
    assert result.provenance == {"reached": said}


def test_a_variable_that_nothing_comes_before_has_no_random_mechanism() -> None:
    task = task_of(COLUMNS, ())
    assert random_legal(replace(task, disclosure=Ordered(task.variables, ())), 0) is None


def test_first_found_says_what_the_operators_can_say() -> None:
    """Rows 00, 01, 10 are seen: unseen 11 as 0 would be exclusive or, as it is here, or what xor cannot say."""
    columns = {"X1": 0b010, "X2": 0b100, "X3": 0b110, "X4": 0b010}
    for operators, said in ((("xor",), "(xor X1 X2)"), (("or",), "(or X1 X2)"), (("and",), None)):
        task = replace(task_of(columns, ("X1", "X2")), grammar=Grammar(operators, False))
        world = World("w", Intervention(), tuple(columns), ("a", "b", "c"), tuple(columns.values()))
        model = first_found(replace(task, training=Panel(tuple(columns), (world,))))
        assert (model and str(model.mechanisms["X3"])) == said


@pytest.mark.parametrize("operators", [("xor",), ("and", "or"), ("iff",), ("and",), ("not", "xor")])
def test_first_found_is_train_exact_wherever_the_operators_can_say_a_fit(operators: tuple[str, ...]) -> None:
    found = 0
    for problem in small_problems(31, 120, Limits(operators=operators)):
        model = first_found(problem.task)
        other = solve(problem.task, max_parents=3, nested_roots=False)
        assert (model is None) == isinstance(other, Impossible)
        if model is not None:
            found += 1
            assert replays_exactly(model, problem.task.training.worlds)
    assert found >= 10


# --- Rows that noise-blind keeps: by halves as one after the other ----------------------------------------------------


@pytest.mark.parametrize("num_hidden", [0, 1])
def test_rows_are_kept_as_one_after_the_other(num_hidden: int) -> None:
    num_rejected = 0
    for seed in range(5):
        rng = Random(f"blind {num_hidden} {seed}")
        scm_class = random_class(rng, 4, num_hidden=num_hidden, stated=2, rate=Fraction(1, 5))
        worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), 4, 4)
        rows = [EvidenceWorld(world.constants, (row,)) for world in worlds for row in world.rows]
        # rows of two SCMs contradict each other, whatever flips were drawn
        rows += [replace(row, rows=(row.rows[0][::-1],)) for row in rows if not row.constants]
        start = posterior = Posterior(replace(scm_class, noise=NOISE_FREE))
        expected = []
        for row in rows:
            if exact_mass(posterior.condition(row)):
                posterior = posterior.condition(row)
                expected.append(row)
        assert _consistent_rows(start, rows) == expected
        num_rejected += len(rows) - len(expected)
    assert num_rejected


# --- Hidden roots of which there are more sets than anybody goes through: a spent budget in words, within seconds -----
NUM_VARIABLES, NUM_ROOTS, NUM_ROWS = 26, 13, 48


def many_roots_task(columns: dict[str, int], num_roots: int = NUM_ROOTS) -> Task:
    variables = tuple(columns)
    world = World("w", Intervention(), variables, tuple(f"u{i}" for i in range(NUM_ROWS)), tuple(columns.values()))
    return Task(TaskKind.ROOTS, HiddenRoots(variables, num_roots), STANDARD, Panel(variables, (world,)), False, 0)


@pytest.fixture(scope="module")
def task() -> Task:
    """Units are not shared, so every set may be the true one; all columns are drawn, none follows from others."""
    rng = Random(1)
    return many_roots_task({f"X{i}": rng.getrandbits(NUM_ROWS) for i in range(1, NUM_VARIABLES + 1)})


def test_they_are_counted_before_they_are_listed(task: Task) -> None:
    assert task.disclosure.num_root_sets() == 10_400_600
    for asked in (list_root_sets, root_hypotheses, all_root_sets):
        with pytest.raises(BudgetSpent, match="10400600 root sets"):
            asked(task)
    with pytest.raises(BudgetSpent, match="root sets"):
        _ = VersionSpace(task, ModelClass(2)).root_sets


def test_whoever_takes_one_after_another_ends_too(task: Task) -> None:
    listed = iterate_likely_first(task)
    assert len(set(islice(listed, MAX_ROOT_SETS))) == MAX_ROOT_SETS
    with pytest.raises(BudgetSpent, match=f"{MAX_ROOT_SETS} root sets"):
        next(listed)


def test_searches_end_with_a_spent_budget(task: Task) -> None:
    with pytest.raises(BudgetSpent):
        first_found(task)
    found = staged_search(task, [STAGES[0]])
    assert isinstance(found, NotFound)
    assert found.out_of_nodes


@pytest.mark.parametrize("protocol", [Exact(), MostPosterior(), BnlearnThenFit()], ids=lambda p: p.name)
def test_protocols_say_what_ran_out(task: Task, protocol: Protocol) -> None:
    result = timed_answer(protocol, TaskHandout(task)).result
    assert result.outcome == "out_of_budget"
    assert "root sets" in str(result.provenance["reached"])


def test_what_lists_no_root_sets_or_finds_the_first_still_answers(task: Task) -> None:
    """X14 to X26 copy X1 to X13."""
    names, rng = task.variables, Random(2)
    drawn = [rng.getrandbits(NUM_ROWS) for _ in range(NUM_ROOTS)]
    copies = many_roots_task(dict(zip(names, [*drawn, *drawn], strict=True)))
    model = first_found(copies)
    assert model is not None
    assert model.roots == names[:NUM_ROOTS]
    assert next(sat_members(copies, ModelClass(1)), None) is not None
    assert next(sat_members(task, ModelClass(1)), None) is None
