"""Members of version spaces by size, unbiased samples of them, and SAT that lists them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations, islice, product
from math import sqrt
from random import Random

import pytest
from pysat.solvers import Solver

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.table import TruthTable
from calibrant.dsl.formulas.text import STANDARD, parse, render
from calibrant.dsl.replayscm.disclosure import HiddenRoots
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.formulas.synthesis import formula_for
from calibrant.solvers.replayscm.certified import certify, write_model
from calibrant.solvers.replayscm.members import count_by_size, members_by_size, sample_members, smallest_members
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from calibrant.solvers.sat import Cnf, add_at_most_one, add_exactly, add_linear_order
from tests.oracles.members_by_sat import sat_members
from tests.support.effort import cases, effort
from tests.support.replayscm.brute_force import (
    Member,
    all_members,
    families,
    function_size,
    is_acyclic,
    member_size,
    members,
    root_hypotheses,
    table_bits,
    tree_of,
)
from tests.support.replayscm.pools import POOLS, dev_problems
from tests.support.replayscm.random_problems import Limits, small_problems

# --- Members of version spaces by size, and unbiased samples of them, against enumeration -----------------------------
NAMES = ("X1", "X2", "X3", "X4", "X5", "X6")


def enumerated(task: Task, most: int, cap: int | None = None) -> list[Member]:
    found = families(task, most, root_hypotheses(task), cap)
    return [member for family in found for member in members(family)]


def meaning(model: Scm) -> Member:
    local = model.local_functions
    return model.roots, tuple((v, function.parents, function.table.bits) for v, function in local.items())


def small_spaces(seed: int, number: int, limits: Limits, most: int, cap: int, largest: int) -> Iterable[VersionSpace]:
    for problem in small_problems(seed, number, limits):
        space = VersionSpace(problem.task, ModelClass(most, cap))
        if space.count <= largest:
            yield space


# --- by size ---------------------------------------------------------------------------------------------------------

GRAMMARS = [
    Limits(),
    Limits(allow_constants=True),
    Limits(operators=("not", "and", "or")),
    Limits(operators=("and", "or")),
    Limits(operators=("xor",)),
]


@pytest.mark.soak
@pytest.mark.parametrize("limits", GRAMMARS)
def test_the_spectrum_counts_members_by_total_size(limits: Limits) -> None:
    """In the first 32 problems, which have every setting; in all of them in a soak."""
    sizes: set[int] = set()
    for space in small_spaces(51, effort(32, 80), limits, 3, 7, 5000):
        expected = Counter(member_size(member, space.task.grammar) for member in enumerated(space.task, 3, 7))
        assert count_by_size(space) == expected
        assert list(count_by_size(space)) == sorted(expected)
        sizes |= expected.keys()
    assert len(sizes) >= 5


@pytest.mark.parametrize("limits", GRAMMARS)
def test_every_member_is_listed_once_smallest_first(limits: Limits) -> None:
    most_members = 0
    for space in small_spaces(52, 48, limits, 3, 6, 1000):
        listed = list(members_by_size(space))
        assert Counter(map(meaning, listed)) == Counter(enumerated(space.task, 3, 6))
        sizes = [model.size for model in listed]
        assert sizes == sorted(sizes)
        assert Counter(sizes) == count_by_size(space)
        assert all(is_an_answer(model, space.task) for model in listed)
        most_members = max(most_members, len(listed))
    assert most_members >= 50


def is_an_answer(model: Scm, task: Task) -> bool:
    """Legal, in the grammar, and replays every training row."""
    disclosure = task.disclosure
    if isinstance(disclosure, HiddenRoots):
        assert len(model.roots) == disclosure.num_roots
        disclosure = disclosure.given_roots(model.roots)
    for variable, mechanism in model.mechanisms.items():
        parse(render(mechanism), task.grammar, disclosure.admissible_parents(variable))
    return disclosure.violation(model.mechanisms) is None and replays_exactly(model, task.training.worlds)


def test_the_limit_is_honest_about_what_is_left() -> None:
    for space in small_spaces(53, 60, Limits(), 2, 5, 60):
        everything = list(members_by_size(space))
        for limit in (0, 1, len(everything) - 1, len(everything), len(everything) + 1):
            if limit >= 0:
                some = smallest_members(space, limit)
                assert some.models == tuple(everything[:limit])
                assert some.more == (limit < len(everything))


@pytest.mark.parametrize("name", POOLS)
def test_the_smallest_members_of_the_shared_pools(name: str) -> None:
    """Sizes are those of the spectrum, in its order; every member replays and none comes twice."""
    for problem in dev_problems(name)[3::16]:
        space = VersionSpace(problem.task, ModelClass(4, 15))
        expected = [size for size, number in count_by_size(space).items() for _ in range(min(number, 12))][:12]
        listed = list(islice(members_by_size(space), 12))
        assert [model.size for model in listed] == expected
        assert len(set(map(meaning, listed))) == len(listed)
        assert all(is_an_answer(model, problem.task) for model in listed)


def test_the_smallest_members_where_almost_nothing_is_known() -> None:
    """One world of a large instance leaves so many members that no branch without one of the size may be entered."""
    task = max((problem.task for problem in dev_problems("hidden_order")), key=lambda task: len(task.variables))
    space = VersionSpace(replace(task, training=Panel(task.variables, task.training.worlds[:1])), ModelClass(4, 15))
    assert space.count > 10**25
    found = smallest_members(space, 100)
    expected = [size for size, number in count_by_size(space).items() for _ in range(min(number, 100))][:100]
    assert [model.size for model in found.models] == expected
    assert len(set(map(meaning, found.models))) == 100
    assert found.more


# --- formulas for functions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_vars", [0, 1, 2, 3])
def test_formulas_of_all_small_functions(num_vars: int) -> None:
    for bits in range(1 << (1 << num_vars)):
        formula = formula_for(TruthTable(num_vars, bits), NAMES[: num_vars or 1], STANDARD_OPERATORS)
        every = table_bits(tree_of(formula), NAMES[: num_vars or 1])
        assert every == (bits if num_vars else 3 * bits)
        assert formula.size == function_size(bits, num_vars, STANDARD)


@pytest.mark.parametrize("operators", [STANDARD_OPERATORS, ("not", "and", "or")])
def test_formulas_of_large_functions(operators: tuple[str, ...]) -> None:
    rng = Random(54)
    for num_vars in (4, 5, 6):
        for _ in range(10):
            bits = rng.getrandbits(1 << num_vars)
            formula = formula_for(TruthTable(num_vars, bits), NAMES[:num_vars], operators)
            assert table_bits(tree_of(formula), NAMES[:num_vars]) == bits
            assert set(formula.operator_counts) <= set(operators)


def test_listed_functions_of_five_variables_get_their_least_formula() -> None:
    for text in ("(xor X1 X2 X3 X4 X5)", "(iff (and X1 X2) (or X3 (xor X4 X5)))"):
        formula = parse(text, STANDARD, frozenset(NAMES))
        table = TruthTable(5, table_bits(tree_of(formula), NAMES[:5]))
        assert formula_for(table, NAMES[:5], STANDARD_OPERATORS).size <= formula.size


def test_functions_without_a_formula() -> None:
    with pytest.raises(ValueError, match="no formula over and, or for 1"):
        formula_for(TruthTable(1, 1), ("X1",), ("and", "or"))


# --- samples ---------------------------------------------------------------------------------------------------------


def critical_value(degrees: int) -> float:
    """Return the chi-square value that is exceeded with probability 0.001, within 0.6 per cent from ten degrees on.

    E. B. Wilson and M. M. Hilferty, The distribution of chi-square, 1931; 3.0902 is the normal quantile.
    """
    part = 2 / (9 * degrees)
    return float(degrees * (1 - part + 3.0902 * sqrt(part)) ** 3)


def test_critical_values_are_those_of_the_table() -> None:
    """Upper critical values for 0.001 as tabulated in the NIST/SEMATECH e-Handbook, section 1.3.6.7.4."""
    for degrees, value in {10: 29.588, 20: 45.315, 50: 86.661, 100: 149.449}.items():
        assert critical_value(degrees) == pytest.approx(value, rel=0.006)


def chi_square(drawn: Iterable[Member], shares: dict[Member, float], number: int) -> float:
    """Return the statistic as a share of its critical value.

    Members with fewer than five expected draws share a cell.
    """
    counts = Counter(drawn)
    assert counts.keys() <= shares.keys()
    cells: list[tuple[float, int]] = []
    rare, rare_count = 0.0, 0
    for member, share in shares.items():
        if share * number >= 5:
            cells.append((share * number, counts[member]))
        else:
            rare, rare_count = rare + share * number, rare_count + counts[member]
    if rare:
        cells.append((rare, rare_count))
    assert len(cells) > 10  # fewer degrees need another formula for the critical value
    return sum((count - expected) ** 2 / expected for expected, count in cells) / critical_value(len(cells) - 1)


Weight = Callable[[Member, Task], float]


def _uniform(member: Member, task: Task) -> float:
    return 1.0


def _half_per_node(member: Member, task: Task) -> float:
    return 0.5 ** member_size(member, task.grammar)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("cap", "penalty", "weight"),
    [(None, None, _uniform), (6, None, _uniform), (6, 0, _uniform), (6, 1, _half_per_node)],
)
@pytest.mark.parametrize("limits", [Limits(), Limits(rows=9, allow_constants=True)])
def test_samples_pass_a_chi_square_test(limits: Limits, cap: int | None, penalty: int | None, weight: Weight) -> None:
    tested = 0
    for problem in small_problems(55, 60, limits):
        space = VersionSpace(problem.task, ModelClass(3, cap))
        if not 12 <= space.count <= 50:
            continue
        weights = {member: weight(member, problem.task) for member in enumerated(problem.task, 3, cap)}
        whole = sum(weights.values())
        number = 40 * space.count
        models = sample_members(space, Random(f"{problem.id}/{cap}/{penalty}"), number, size_penalty=penalty)
        shares = {member: value / whole for member, value in weights.items()}
        assert chi_square(map(meaning, models), shares, number) <= 1
        tested += 1
        if tested == effort(2, 4):  # a false weight shows in each space of so many draws a member
            return
    assert tested >= effort(2, 3)


def test_a_biased_sample_fails_the_chi_square_test() -> None:
    """Drawn with weights by size and judged by uniform shares: the test above has the power to tell."""
    for problem in small_problems(55, 60):
        space = VersionSpace(problem.task, ModelClass(3, 6))
        if len(count_by_size(space)) >= 3 and 12 <= space.count <= 80:
            shares = dict.fromkeys(enumerated(problem.task, 3, 6), 1 / space.count)
            models = sample_members(space, Random(1), 40 * space.count, size_penalty=1)
            assert chi_square(map(meaning, models), shares, 40 * space.count) > 1
            return
    raise AssertionError("no space with members of several sizes")


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("model_class", [ModelClass(4), ModelClass(4, 15), ModelClass(5)])
def test_sampled_members_of_the_shared_pools_replay(name: str, model_class: ModelClass) -> None:
    for problem in dev_problems(name)[5::20]:
        space = VersionSpace(problem.task, model_class)
        for model in sample_members(space, Random(problem.id), 5) if space.count else ():
            assert is_an_answer(model, problem.task)
            for local in model.local_functions.values():
                assert len(local.parents) <= model_class.max_parents
                if model_class.max_size:
                    assert is_small(local.table, model_class.max_size)


def is_small(table: TruthTable, cap: int) -> bool:
    names: Sequence[str] = NAMES[: table.num_vars or 1]
    return formula_for(table, names, STANDARD_OPERATORS).size <= cap


def test_the_seed_decides_the_sample() -> None:
    (problem,) = [p for p in small_problems(56, 60) if VersionSpace(p.task, ModelClass(3)).count > 1000][:1]
    space = VersionSpace(problem.task, ModelClass(3))
    first = sample_members(space, Random(7), 20)
    assert sample_members(space, Random(7), 20) == first
    assert sample_members(VersionSpace(problem.task, ModelClass(3)), Random(7), 20) == first
    assert sample_members(space, Random(8), 20) != first


def test_what_cannot_be_drawn() -> None:
    spaces = [VersionSpace(problem.task, ModelClass(1)) for problem in small_problems(57, 100)]
    empty = next(space for space in spaces if not space.count)
    with pytest.raises(ValueError, match="the version space is empty"):
        sample_members(empty, Random(1), 1)
    assert list(members_by_size(VersionSpace(empty.task, ModelClass(1, 5)))) == []
    inhabited = next(space for space in spaces if space.count)
    with pytest.raises(ValueError, match="weights by size need a class with a size cap"):
        sample_members(inhabited, Random(1), 1, size_penalty=1)


# --- Members of version spaces listed by SAT, an oracle of its own, against brute force and the exact count -----------
SMALL = [problem.task for problem in small_problems(23, cases(240))]


@pytest.mark.soak
def test_small_problems_against_brute_force() -> None:
    """Six problems or seven of each of four disclosures with at most one, two and three parents; in a soak 20."""
    several = 0
    for index, task in enumerate(SMALL):
        model_class = ModelClass(1 + index % 3)
        expected = len(all_members(task, model_class.max_parents))
        members = list(sat_members(task, model_class))
        assert len(members) == expected == VersionSpace(task, model_class).count
        assert all(a != b for a, b in combinations(members, 2))
        models = [write_model(task, model_class.max_parents, member) for member in members[:3] if member]
        assert all(certify(task, model) for model in models)
        several += expected > 1
    assert several >= 3


# --- pools ----------------------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("pool", POOLS[:3])
def test_sat_lists_as_many_members_as_there_are(pool: str) -> None:
    """Every third problem, all in a soak, wherever there are at most 500; all up to 10,000 were compared by hand."""
    compared = 0
    for problem in dev_problems(pool)[:: effort(3, 1)]:
        count = VersionSpace(problem.task, ModelClass(4)).count
        limit = count if count <= 500 else 10
        assert sum(1 for _ in islice(sat_members(problem.task, ModelClass(4)), limit + 1)) == min(count, limit + 1)
        compared += count <= 500
    assert compared > effort(7, 20)


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
