"""The complete solver: against brute force, and what it promises beside the optimum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS, Formula, apply, var
from calibrant.dsl.formulas.text import STANDARD, Grammar, parse
from calibrant.dsl.replayscm.disclosure import Blocks, Disclosure, HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.item import Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.pools.files import record_from_problem
from calibrant.dsl.replayscm.pools.records import problem_from_record
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.formulas.synthesis import least_formula
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.replayscm import exact
from calibrant.solvers.replayscm.certified import check
from calibrant.solvers.replayscm.exact import ExactAnswer, solve
from calibrant.solvers.replayscm.roots_and_parents import ParentSearch, ParentSet
from tests.support.effort import cases, effort
from tests.support.replayscm.brute_force import (
    Parents,
    assignments,
    can_be_root,
    function_size,
    optimum,
    root_hypotheses,
    seen,
    table_bits,
    tree_of,
    tree_value,
)
from tests.support.replayscm.random_problems import SETTINGS, Limits, small_problems

pytestmark = pytest.mark.soak  # `cases` says how many problems


# --- The complete solver against brute force: least size, the tie rule, impossibility, roots, bounds, budgets ---------
SMALL = Limits()
LARGER = Limits(variables=5, endogenous=4)
SPARSE = Limits(variables=5, endogenous=4, rows=6)  # brute force over four parents needs few rows


def found(outcome: Outcome[ExactAnswer]) -> ExactAnswer:
    assert isinstance(outcome, Found), outcome
    return outcome.value


def agrees_with_brute_force(task: Task, outcome: Outcome[ExactAnswer], most: int, roots: Sequence[Parents]) -> None:
    """Impossible iff nothing fits; otherwise the least size, and of all choices of that size the one by the rule."""
    best = optimum(task, most, roots)
    if best is None:
        assert isinstance(outcome, Impossible)
        return
    answer = found(outcome)
    mentions = {v: mechanism.variables for v, mechanism in answer.model.mechanisms.items()}
    assert (answer.size, answer.model.size, mentions) == (best.size, best.size, best.structure)


@pytest.mark.parametrize(
    ("seed", "number", "limits", "most"),
    [(1, 1200, SMALL, 1), (2, 1200, SMALL, 2), (3, 1200, SMALL, 3), (4, 120, LARGER, 3), (5, 60, SPARSE, 4)],
)
def test_answers_are_least_and_ties_go_by_the_rule(seed: int, number: int, limits: Limits, most: int) -> None:
    for problem in small_problems(seed, cases(number), limits):
        outcome = solve(problem.task, max_parents=most, nested_roots=False)
        agrees_with_brute_force(problem.task, outcome, most, root_hypotheses(problem.task))


def test_the_small_problems_have_every_kind_of_case() -> None:
    kinds: Counter[Hashable] = Counter()
    for problem in small_problems(2, effort(400, 1200)):
        task, outcome = problem.task, solve(problem.task, max_parents=2, nested_roots=False)
        kinds[problem.setting, type(outcome).__name__] += 1
        columns = [task.training.columns[v] & ~task.training.clamped[v] for v in task.variables]
        scored = [task.training.all_rows & ~task.training.clamped[v] for v in task.variables]
        kinds["never scored"] += 0 in scored
        kinds["constant"] += any(rows and column in (0, rows) for column, rows in zip(columns, scored, strict=True))
    cases = ["never scored", "constant", *((s, said) for s in SETTINGS for said in ("Found", "Impossible"))]
    assert all(kinds[case] >= 10 for case in cases), kinds


RESTRICTED = [
    ("not", "and", "or", "xor"),
    ("not", "and", "or"),
    ("not", "xor"),
    ("not", "iff"),
    ("and", "or"),
    ("xor", "iff"),
    ("and", "xor"),
    ("and",),
    ("not",),
    ("iff",),
]


@pytest.mark.parametrize("operators", RESTRICTED, ids=" ".join)
def test_minimality_under_fewer_operators(operators: tuple[str, ...]) -> None:
    for problem in small_problems(6, cases(160), Limits(operators=operators)):
        outcome = solve(problem.task, max_parents=2, nested_roots=False)
        agrees_with_brute_force(problem.task, outcome, 2, root_hypotheses(problem.task))


@pytest.mark.parametrize("operators", [STANDARD_OPERATORS, ("not", "and", "or"), ("not", "xor"), ("and", "or")])
def test_minimality_where_literals_are_allowed(operators: tuple[str, ...]) -> None:
    """Brute force lets 0 and 1 stand anywhere in a formula."""
    for problem in small_problems(7, cases(300), Limits(operators=operators, allow_constants=True)):
        outcome = solve(problem.task, max_parents=3, nested_roots=False)
        agrees_with_brute_force(problem.task, outcome, 3, root_hypotheses(problem.task))


def test_literals_that_would_matter_inside_formulas_are_refused() -> None:
    (problem,) = small_problems(1, 1)
    for operators in [("xor",), ("and", "or", "xor"), ("iff",), ("not", "and", "iff")]:
        with pytest.raises(ValueError, match="literals are allowed with"):
            solve(replace(problem.task, grammar=Grammar(operators, allow_constants=True)))
        solve(replace(problem.task, grammar=Grammar(operators)))


def test_between_formulas_over_one_parent_set_the_smallest_table_wins() -> None:
    compared = 0
    for problem in small_problems(8, effort(400, 1200), Limits(variables=5, rows=12)):
        outcome = solve(problem.task, max_parents=3, nested_roots=False)
        for variable, mechanism in outcome.value.model.mechanisms.items() if isinstance(outcome, Found) else ():
            parents = mechanism.variables
            table = seen(problem.task, variable, parents)
            assert table is not None
            wanted = {sum(bit << i for i, bit in enumerate(pattern)): bit for pattern, bit in table.items()}
            agreeing = [
                bits
                for bits in range(1 << (1 << len(parents)))
                if all(bits >> row & 1 == bit for row, bit in wanted.items())
                and function_size(bits, len(parents), STANDARD) == mechanism.size
            ]
            assert table_bits(tree_of(mechanism), parents) == agreeing[0]
            compared += len(agreeing) > 1
    assert compared >= 15


# --- hidden roots ----------------------------------------------------------------------------------------------------


def hidden_roots_problems(seed: int, number: int) -> Iterator[Problem]:
    """Half of them with nested columns of the roots."""
    for limits in (SMALL, Limits(thresholds=False)):
        for problem in small_problems(seed, 2 * number, limits):
            if isinstance(problem.task.disclosure, HiddenRoots):
                yield problem


def test_nested_evidence_limits_the_root_sets_unless_none_of_them_fits() -> None:
    notes: Counter[tuple[str, bool]] = Counter()
    smaller_with_other_roots = 0
    for problem in hidden_roots_problems(9, effort(200, 500)):
        task = problem.task
        every = root_hypotheses(task)
        able = [roots for roots in every if all(can_be_root(task, root) for root in roots)]
        fitting = able if optimum(task, 2, able) else every
        outcome = solve(task, max_parents=2)
        agrees_with_brute_force(task, outcome, 2, fitting)
        assert outcome == solve(task, max_parents=2, nested_roots=True)
        if isinstance(outcome, Found):
            note = str(outcome.value.provenance["nested_roots"])
            assert note.startswith("only" if fitting is able else "no root set with nested columns fits")
            notes[note, able != every] += 1
            said = str(outcome.value.provenance["class"])
            assert said.endswith("variables, roots with nested columns" if fitting is able else "at most 2 variables")
            best = optimum(task, 2, every)
            assert best is not None
            smaller_with_other_roots += best.size < outcome.value.size
    assert smaller_with_other_roots >= 5  # so the class has to be said
    assert min(notes.values()) >= 5
    assert len(notes) == 3


def test_nested_evidence_is_not_used_where_units_are_not_shared() -> None:
    differing = 0
    for problem in hidden_roots_problems(9, effort(100, 500)):
        strangers = replace(problem.task, shares_units=False)
        outcome = solve(strangers, max_parents=2)
        assert outcome == solve(problem.task, max_parents=2, nested_roots=False)
        differing += outcome != solve(problem.task, max_parents=2)
    assert differing >= 25


# --- sizes that are only bounded at first ----------------------------------------------------------------------------


class _Unsized(ParentSearch):
    """All determining sets, none of them with a size: everything is left to the loop that refines bounds."""

    def parent_sets(self, target: int, candidates: Sequence[int], *, free: int = 0) -> list[ParentSet]:
        exactly = {option.mask: option for option in super().parent_sets(target, candidates, free=free)}
        return [ParentSet(mask, option.table, 1, None) for mask, option in exactly.items()]


@pytest.mark.parametrize("operators", [STANDARD_OPERATORS, ("and", "or"), ("xor", "iff")])
def test_bounds_lead_to_the_same_answers(operators: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    problems = list(small_problems(10, cases(300), Limits(operators=operators)))
    expected = [solve(problem.task, max_parents=3, nested_roots=False) for problem in problems]
    monkeypatch.setattr(exact, "ParentSearch", _Unsized)
    for problem, outcome in zip(problems, expected, strict=True):
        again = solve(problem.task, max_parents=3, nested_roots=False)
        assert type(again) is type(outcome)
        if isinstance(again, Found) and isinstance(outcome, Found):
            assert again.value.model == outcome.value.model
        agrees_with_brute_force(problem.task, again, 3, root_hypotheses(problem.task))


# --- What the complete solver promises beside the optimum: certificates, budgets, independence of everything else -----
FIVE = ("X1", "X2", "X3", "X4", "X5")
THIRTEEN = "(xor (and X1 X2 X3) (or X4 (and X5 X1)) (and X2 X5))"
FOURTEEN = "(iff (xor X1 (and X2 X3)) (or X4 (and X5 X1)) (xor X3 X5))"


def observed(roots: Sequence[str], texts: dict[str, str], disclosure: Callable[..., Disclosure]) -> Task:
    """One world without intervention in which the roots take all their values; `disclosure(variables, roots)`."""
    mechanisms = {v: tree_of(parse(text, STANDARD, frozenset((*roots, *texts)))) for v, text in texts.items()}
    rows = list(assignments(roots))
    for row in rows:
        for variable, tree in mechanisms.items():
            row[variable] = tree_value(tree, row.__getitem__)
    variables = (*roots, *texts)
    columns = tuple(sum(row[v] << r for r, row in enumerate(rows)) for v in variables)
    world = World("w0", Intervention(), variables, tuple(f"u{r}" for r in range(len(rows))), columns)
    told = disclosure(variables, tuple(roots))
    kind = TaskKind.ROOTS if isinstance(told, HiddenRoots) else TaskKind.SCM
    return Task(kind, told, STANDARD, Panel(variables, (world,)), shares_units=False, num_heldout=0)


def hidden_roots(variables: tuple[str, ...], roots: tuple[str, ...]) -> HiddenRoots:
    return HiddenRoots(variables, len(roots))


# --- nothing but the task matters ------------------------------------------------------------------------------------


def _shuffled(task: Task, rng: Random) -> Task:
    """Worlds, rows within worlds and dictionaries in another order."""
    worlds = []
    for world in rng.sample(task.training.worlds, len(task.training.worlds)):
        order = rng.sample(range(world.num_rows), world.num_rows)
        columns = tuple(sum((column >> r & 1) << index for index, r in enumerate(order)) for column in world.columns)
        constants = dict(reversed(list(world.intervention.constants.items())))
        intervention = Intervention(constants, world.intervention.assigned[::-1])
        units = tuple(world.units[r] for r in order)
        worlds.append(World(world.id, intervention, world.variables, units, columns))
    return replace(task, training=Panel(task.variables, tuple(worlds)))


def test_the_order_of_worlds_rows_and_dictionaries_does_not_matter() -> None:
    rng = Random(1)
    for problem in small_problems(11, cases(400), Limits(variables=5)):
        expected, again = solve(problem.task), solve(_shuffled(problem.task, rng))
        assert again == expected


def test_what_is_sealed_does_not_matter() -> None:
    problems = list(small_problems(13, 80))
    for problem, other in pairwise(problems):
        variables = problem.task.variables
        gold = Scm(variables[:-1], {variables[-1]: var(variables[0])}) if problem.setting == "Hidden-roots" else None
        heldout = Panel(variables, tuple(replace(world, id=f"h{world.id}") for world in problem.task.training.worlds))
        order = problem.sealed.latent_order if problem.setting == "Ordered" else problem.sealed.latent_order[::-1]
        scrambled = Sealed(gold, 999, heldout, order, 1, (7,), {"w0": {variables[-1]: 0.5}}, {"seed": other.id})
        record = record_from_problem(Problem("other", problem.task, scrambled))
        read = problem_from_record(record)
        assert read.sealed.latent_order == order
        assert read.sealed.labels == {"seed": other.id}
        assert solve(read.task) == solve(problem.task)


# --- certificates ----------------------------------------------------------------------------------------------------


def _negated(formula: Formula) -> Formula:
    return apply("not", [formula])


def _inert(formula: Formula) -> Formula:
    """Return the same function, larger than claimed."""
    return apply("or", [formula, formula])


@pytest.mark.parametrize("tampered", [_negated, _inert])
def test_a_wrong_formula_does_not_pass_the_certificate(
    tampered: Callable[[Formula], Formula], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = observed(("X1", "X2"), {"X3": "X1", "X4": "(not X2)"}, HiddenOrder)
    assert found(solve(task)).size == 3
    monkeypatch.setattr(
        "calibrant.solvers.replayscm.exact.least_formula",
        lambda *a, **k: Found(tampered(found_formula(least_formula(*a, **k)))),
    )
    with pytest.raises(AssertionError, match="failed its certificate"):
        solve(task)


def found_formula(outcome: Outcome[Formula]) -> Formula:
    assert isinstance(outcome, Found)
    return outcome.value


def test_a_wrong_bit_does_not_pass_the_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same size, over the same parents: only the replay of the rows can tell."""
    task = observed(("X1", "X2"), {"X3": "(and X1 X2)"}, Ordered)
    wrong = parse("(or X1 X2)", STANDARD, frozenset(("X1", "X2")))
    monkeypatch.setattr("calibrant.solvers.replayscm.exact.least_formula", lambda *a, **k: Found(wrong))
    with pytest.raises(AssertionError, match="failed its certificate"):
        solve(task)


def test_an_evaluator_that_accepts_everything_shows_no_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference replays what is shown, whatever the evaluator finds, and is asked where the evaluator refuses."""
    task = observed(("X1", "X2"), {"X3": "(and X1 X2)"}, Ordered)
    right = found(solve(task)).model
    wrong = parse("(or X1 X2)", STANDARD, frozenset(("X1", "X2")))
    monkeypatch.setattr("calibrant.solvers.replayscm.certified.replays", lambda *a: False)
    with pytest.raises(AssertionError, match="the evaluator refuses an SCM that the reference replays"):
        check(task, right)
    monkeypatch.setattr("calibrant.solvers.replayscm.certified.replays", lambda *a: True)
    monkeypatch.setattr("calibrant.solvers.replayscm.exact.least_formula", lambda *a, **k: Found(wrong))
    with pytest.raises(AssertionError, match="failed its certificate: Cell"):
        solve(task)


def test_a_later_variable_does_not_pass_the_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """X3 and X4 are copies of X1, so X3 = X4 replays every row and has the right size; the order forbids it."""
    task = observed(("X1", "X2"), {"X3": "X1", "X4": "X1"}, Ordered)
    formulas = iter([var("X4"), var("X1")])
    monkeypatch.setattr("calibrant.solvers.replayscm.exact.least_formula", lambda *a, **k: Found(next(formulas)))
    with pytest.raises(AssertionError, match=r"failed its certificate.*admissible parents: X1, X2"):
        solve(task)


# --- budgets ---------------------------------------------------------------------------------------------------------

DISCLOSURES: dict[str, Callable[..., Disclosure]] = {
    "Ordered": Ordered,
    "Block": lambda variables, roots: Blocks((variables,), roots),
    "Hidden-order": HiddenOrder,
    "Hidden-roots": hidden_roots,
}


@pytest.mark.parametrize("setting", ["Ordered", "Hidden-roots"])
def test_few_states_are_not_enough_for_large_mechanisms_and_more_never_change_an_answer(setting: str) -> None:
    task = observed(FIVE, {"X6": THIRTEEN, "X7": FOURTEEN}, DISCLOSURES[setting])
    answer = found(solve(task, states=None))
    assert answer.size <= 27
    states, bounds = 0, []
    decided: list[ExactAnswer] = []
    while not decided:
        outcome = solve(task, states=states)
        if isinstance(outcome, OutOfBudget):
            assert outcome.lower_bound is not None
            bounds.append(outcome.lower_bound)
        else:
            decided.append(found(outcome))
        states = 8 * states + 1_000_000
    assert len(bounds) >= 3
    assert bounds == sorted(bounds)
    assert bounds[-1] <= answer.size
    for more in (10 * states,):
        decided.append(found(solve(task, states=more)))
    assert {(given.size, str(dict(given.model.mechanisms))) for given in decided} == {
        (answer.size, str(dict(answer.model.mechanisms)))
    }


def test_tables_of_four_parents_cost_no_states() -> None:
    for problem in small_problems(14, cases(200), Limits(variables=5)):
        assert solve(problem.task, states=0) == solve(problem.task, states=None)


def test_a_mechanism_beyond_reach_is_out_of_budget_not_impossible() -> None:
    """Five parents, a random function: its least formula is larger than what can be searched (24 nodes)."""
    task = observed(FIVE, {"X6": "X1"}, HiddenOrder)
    (world,) = task.training.worlds
    world = replace(world, columns=(*world.columns[:5], Random(5).getrandbits(32)))
    outcome = solve(replace(task, training=Panel(task.variables, (world,))), states=20_000_000)
    assert isinstance(outcome, OutOfBudget)
    assert outcome.lower_bound is not None
    assert outcome.lower_bound >= 12


# --- classes ---------------------------------------------------------------------------------------------------------


def test_a_parity_needs_as_many_parents_as_it_has() -> None:
    task = observed(FIVE, {"X6": "(xor X1 X2 X3 X4 X5)"}, HiddenOrder)
    assert all(isinstance(solve(task, max_parents=most), Impossible) for most in (1, 2, 3, 4))
    assert [found(solve(task, max_parents=most)).size for most in (5, 6)] == [6, 6]


def test_six_parents() -> None:
    text = "(xor X1 X2 X3 X4 X5 X6)"
    task = observed((*FIVE, "X6"), {"X7": text}, HiddenOrder)
    assert isinstance(solve(task, max_parents=5), Impossible)
    assert found(solve(task, max_parents=6)).model.mechanisms["X7"].size == 7


@pytest.mark.parametrize("most", [0, 7, -1])
def test_numbers_of_parents_that_are_not_supported(most: int) -> None:
    with pytest.raises(ValueError, match="1 to 6 are supported"):
        solve(observed(("X1",), {"X2": "X1"}, HiddenOrder), max_parents=most)


# --- cases with a known answer ---------------------------------------------------------------------------------------


def test_copies_of_each_other_cannot_both_be_explained_by_the_other() -> None:
    """X2 and X3 agree in all rows: one of them has to be explained by X1; the smaller parent sets win the tie."""
    task = observed(("X1",), {"X2": "(not X1)", "X3": "(not X1)"}, HiddenOrder)
    answer = found(solve(task))
    assert {v: str(f) for v, f in answer.model.mechanisms.items()} == {"X2": "(not X1)", "X3": "X2"}
    assert answer.size == 3


def test_a_constant_column_mentions_something_unless_literals_are_allowed() -> None:
    """Constant 1 over a root with both values: (iff X1 X1); as a literal, 1; without xor and iff, (or X1 (not X1))."""
    task = observed(("X1",), {"X2": "(iff X1 X1)"}, HiddenOrder)
    sizes = {
        Grammar(STANDARD_OPERATORS): 3,
        Grammar(STANDARD_OPERATORS, allow_constants=True): 1,
        Grammar(("not", "and", "or")): 4,
    }
    assert {grammar: found(solve(replace(task, grammar=grammar))).size for grammar in sizes} == sizes
    assert isinstance(solve(replace(task, grammar=Grammar(("and", "or")))), Impossible)


def test_a_variable_that_is_never_scored_takes_the_first_variable_that_closes_no_circle() -> None:
    task = observed(("X1", "X2"), {"X3": "(and X1 X2)", "X4": "X3"}, HiddenOrder)
    (world,) = task.training.worlds
    clamped = replace(world, intervention=Intervention({}, ("X3",)))
    answer = found(solve(replace(task, training=Panel(task.variables, (clamped,)))))
    assert {v: str(f) for v, f in answer.model.mechanisms.items()} == {"X3": "X1", "X4": "X3"}
