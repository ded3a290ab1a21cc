"""The complete solver against brute force: least size, the tie rule, impossibility, roots, bounds, budgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

import pytest

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.text import STANDARD, Grammar
from calibrant.dsl.replayscm.disclosure import HiddenRoots
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.solvers.outcome import Found, Impossible, Outcome
from calibrant.solvers.replayscm import exact
from calibrant.solvers.replayscm.exact import ExactAnswer, solve
from calibrant.solvers.replayscm.parents import ParentSearch, ParentSet
from tests.support.effort import cases, effort
from tests.support.replayscm.brute_force import Parents, can_be_root, function_size, optimum, root_hypotheses, seen
from tests.support.replayscm.oracles import table_bits, tree_of
from tests.support.replayscm.random_problems import SETTINGS, Limits, small_problems

pytestmark = pytest.mark.soak  # `cases` says how many problems

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
    [(1, 1200, SMALL, 1), (2, 1200, SMALL, 2), (3, 1200, SMALL, 3), (4, 120, LARGER, 3), (5, 120, SPARSE, 4)],
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
    for problem in small_problems(8, effort(720, 1200), Limits(variables=5, rows=12)):
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
    assert compared >= 30


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
    for problem in hidden_roots_problems(9, effort(200, 500)):
        strangers = replace(problem.task, shares_units=False)
        outcome = solve(strangers, max_parents=2)
        assert outcome == solve(problem.task, max_parents=2, nested_roots=False)
        differing += outcome != solve(problem.task, max_parents=2)
    assert differing >= 50


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
