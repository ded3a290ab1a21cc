"""Rows that search little or in stages, by hand; the shared exact fitter against brute force."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product
from random import Random

import pytest

from calibrant.baselines.replayscm.fit import (
    STAGES,
    Candidates,
    Caps,
    Fitter,
    NotFound,
    Stage,
    StagedAnswer,
    Unfit,
    all_root_sets,
    root_hypotheses,
    staged_search,
)
from calibrant.baselines.replayscm.rows import _consistent_rows, copy_parent, first_found, majority, random_legal
from calibrant.bench.core.benchmark import TaskHandout
from calibrant.bench.protocols import Protocol
from calibrant.bench.replayscm.rows.exact import Exact, StagedExactSearch
from calibrant.bench.replayscm.rows.listed import SIMPLE, CopyParent, FirstFound, Majority, MostPosterior, RandomLegal
from calibrant.bench.replayscm.rows.structures import BnlearnThenFit
from calibrant.bench.runs.workers import timed_answer
from calibrant.dsl.formulas.text import STANDARD, Grammar, parse
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
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible
from calibrant.solvers.replayscm.exact import solve
from calibrant.solvers.replayscm.hidden.mass import exact_mass
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.replayscm.roots_and_parents import MAX_ROOT_SETS, iterate_likely_first, list_root_sets
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.oracles.members_by_sat import sat_members
from tests.support.replayscm.brute_force import is_acyclic, least_size, parent_sets, seen, structures
from tests.support.replayscm.brute_force import root_hypotheses as brute_root_sets
from tests.support.replayscm.extensions import random_class, random_member, random_worlds
from tests.support.replayscm.pools import POOLS, T1_POOLS, dev_problems
from tests.support.replayscm.random_problems import Limits, gold_problem, small_problems
from tests.support.replayscm.written import answered

# --- Rows that search little or nothing: what they answer, by hand, and that it is always legal -----------------------
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
    for problem in small_problems(31, 60, Limits(operators=operators)):
        model = first_found(problem.task)
        other = solve(problem.task, max_parents=3, nested_roots=False)
        assert (model is None) == isinstance(other, Impossible)
        if model is not None:
            found += 1
            assert replays_exactly(model, problem.task.training.worlds)
    assert found >= 5


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


# --- The shared exact fitter: least mechanisms over proposed parents, against brute force -----------------------------
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
    roots = rng.choice(brute_root_sets(task))
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


# --- The staged exact-search: its caps hold, its stages follow each other, its answers replay -------------------------
GENEROUS = Caps(20, 20, 10_000, 10**9)


def task_of_rows(columns: dict[str, int], num_rows: int, roots: tuple[str, ...]) -> Task:
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
    return task_of_rows({**roots, "X5": parity}, 16, tuple(roots))


def test_a_size_is_reached_if_what_it_is_built_from_was_kept() -> None:
    """Over four variables there are 4 functions of size 1 and, by listing them, 24 essential ones of size 5 or less."""
    task = parity_of_four()
    assert [c.size for c in Candidates(task).of("X5", GENEROUS)] == [5]
    assert Candidates(task).of("X5", GENEROUS._replace(max_size=4)) == []


def test_nothing_is_found_above_a_size_with_too_many_behaviours() -> None:
    """Four functions of five variables have size 6, one per operator; a formula of size 8 is built from all of them."""
    roots = {f"X{i + 1}": sum((row >> i & 1) << row for row in range(32)) for i in range(5)}
    formula = parse("(and (or X1 X2) (xor X3 X4) X5)")
    task = task_of_rows({**roots, "X6": formula.evaluate(roots.__getitem__, 0xFFFFFFFF)}, 32, tuple(roots))
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
    task = task_of_rows(columns, 4, ("X1", "X4"))
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
