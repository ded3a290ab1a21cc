"""Version spaces: counts, marginals, agreement, root sets and imagined rows, against enumeration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from math import prod
from random import Random

import numpy as np
import pytest

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.text import STANDARD, Grammar
from calibrant.dsl.replayscm.disclosure import HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.item import Problem, Task, TaskKind
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.world import Intervention, Panel, World, columns_from_rows, pack_rows
from calibrant.solvers.acyclic.count import Layers, Weights, total
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, ParentSets, draw
from calibrant.solvers.replayscm.members import count_by_size, sample_members
from calibrant.solvers.replayscm.roots_and_parents import is_repeating, nested_variables
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.effort import cases, effort
from tests.support.replayscm.brute_force import (
    Family,
    Parents,
    all_members,
    can_be_root,
    does,
    families,
    member_size,
    members,
    observed,
    root_hypotheses,
)
from tests.support.replayscm.pools import POOLS, dev_problems
from tests.support.replayscm.random_problems import SETTINGS, Limits, Shape, gold_problem, small_problems

pytestmark = pytest.mark.soak  # `cases` says how many problems


# --- Counts, marginals and agreement of version spaces, against enumeration of root sets, structures and functions ----
CAPS = (None, 1, 3, 4, 6, 9)


def enumerated(task: Task, model_class: ModelClass) -> list[Family]:
    """Return the version space of a class by brute force."""
    roots = root_hypotheses(task)
    if model_class.nested_roots and isinstance(task.disclosure, HiddenRoots):
        roots = [chosen for chosen in roots if all(can_be_root(task, root) for root in chosen)]
    return families(task, model_class.max_parents, roots, model_class.max_size)


def number(found: Sequence[Family]) -> int:
    return sum(family.num_members for family in found)


# --- counts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("limits", [Limits(), Limits(rows=8), Limits(thresholds=False)])
def test_counts_equal_enumeration(limits: Limits, most: int) -> None:
    seen: Counter[tuple[str, int]] = Counter()
    for problem in small_problems(41, effort(48, 120), limits):
        for cap in CAPS:
            model_class = ModelClass(most, cap)
            expected = number(enumerated(problem.task, model_class))
            assert VersionSpace(problem.task, model_class).count == expected
            seen[problem.setting, min(expected, 2)] += 1
    assert all(seen[setting, few] for setting in SETTINGS for few in (0, 1, 2)), seen


@pytest.mark.parametrize("operators", [("not", "and", "or"), ("and", "or"), ("xor",), ("iff",), STANDARD_OPERATORS])
@pytest.mark.parametrize("allow_constants", [False, True])
def test_capped_counts_follow_the_grammar(operators: tuple[str, ...], allow_constants: bool) -> None:
    grammar = Grammar(operators, allow_constants)
    for problem in small_problems(42, cases(60), Limits(operators=operators, allow_constants=allow_constants)):
        for cap in CAPS:
            if cap and allow_constants and operators in (("xor",), ("iff",)):
                with pytest.raises(ValueError, match="literals are allowed with"):
                    VersionSpace(problem.task, ModelClass(2, cap))
                continue
            assert problem.task.grammar == grammar
            expected = number(enumerated(problem.task, ModelClass(2, cap)))
            assert VersionSpace(problem.task, ModelClass(2, cap)).count == expected


def test_nested_root_sets_are_a_class_of_their_own() -> None:
    fewer = 0
    for problem in small_problems(43, effort(120, 200), Limits(thresholds=False)):
        nested, every = ModelClass(2, nested_roots=True), ModelClass(2)
        counts = [VersionSpace(problem.task, chosen).count for chosen in (nested, every)]
        assert counts == [number(enumerated(problem.task, chosen)) for chosen in (nested, every)]
        fewer += counts[0] < counts[1]
    assert fewer >= 10


def test_counts_by_roots_equal_enumeration() -> None:
    for problem in small_problems(44, cases(120)):
        by_roots: Counter[Parents] = Counter()
        for family in enumerated(problem.task, ModelClass(3)):
            by_roots[family.roots] += family.num_members
        assert VersionSpace(problem.task, ModelClass(3)).counts_by_roots == dict(by_roots)


def test_without_evidence_the_counts_are_those_of_all_scms() -> None:
    """Two roots and two endogenous variables, order hidden, nothing scored.

    Functions of exactly 0, 1, 2, 3 arguments: 2, 2, 10, 218 (2**2**n by inclusion and exclusion). Each variable alone
    over the roots: 2 + 2 * 2 + 10 = 16; with the other one: 256 - 16 = 240 more. Acyclic: 16 * 16 + 2 * 16 * 240.
    """
    tasks = [problem.task for problem in small_problems(45, 60)]
    hidden = [task for task in tasks if isinstance(task.disclosure, HiddenOrder) and len(task.disclosure.roots) == 2]
    task = next(task for task in hidden if len(task.variables) == 4)
    worlds = tuple(replace(world, intervention=Intervention({}, task.variables)) for world in task.training.worlds)
    task = replace(task, training=Panel(task.variables, worlds))
    assert VersionSpace(task, ModelClass(3)).count == 16 * 16 + 2 * 16 * 240
    assert VersionSpace(task, ModelClass(1)).count == 6 * 6 + 2 * 6 * 2  # 2 + 2 * 2 over the roots, 2 with the other


def test_evidence_only_removes_members_and_larger_classes_only_add_some() -> None:
    for problem in small_problems(46, cases(120)):
        worlds = problem.task.training.worlds
        panels = [Panel(problem.task.variables, worlds[:number]) for number in range(1, len(worlds) + 1)]
        for cap in (None, 5):
            tasks = [replace(problem.task, training=panel) for panel in panels]
            counts = [[VersionSpace(task, ModelClass(most, cap)).count for most in (1, 2, 3)] for task in tasks]
            assert all(row == sorted(row) for row in counts)
            assert all(
                more <= less for fewer, longer in pairwise(counts) for less, more in zip(fewer, longer, strict=True)
            )
        capped = [VersionSpace(problem.task, ModelClass(3, cap)).count for cap in range(1, 12)]
        assert capped == sorted(capped)
        assert capped[-1] <= VersionSpace(problem.task, ModelClass(3)).count


# --- marginals and agreement -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model_class", [ModelClass(2), ModelClass(3), ModelClass(3, 5)])
def test_marginals_equal_enumeration(model_class: ModelClass) -> None:
    compared = 0
    for problem in small_problems(47, cases(270)):
        found = enumerated(problem.task, model_class)
        whole = number(found)
        if not whole:
            continue
        sets: dict[str, Counter[Parents]] = {v: Counter() for v in problem.task.variables}
        for family in found:
            for variable, parents in family.structure.items():
                sets[variable][parents] += family.num_members
        space = VersionSpace(problem.task, model_class)
        for variable, counts in sets.items():
            expected = {parents: Fraction(n, whole) for parents, n in counts.items()}
            assert space.parent_set_marginals(variable) == expected
        compared += len({(parent, v) for v, counts in sets.items() for parents in counts for parent in parents}) >= 3
    assert compared >= 30


def replays(member: Sequence[tuple[str, Parents, int]], worlds: Sequence[World]) -> bool:
    """Row by row, in an order of the structure, with errors that propagate."""
    waiting = {v: (parents, bits) for v, parents, bits in member}
    order = []
    while waiting:
        variable = next(v for v, (parents, _) in waiting.items() if not set(parents) & waiting.keys())
        order.append((variable, *waiting.pop(variable)))
    for world in worlds:
        for r in range(len(world.units)):
            observed = {v: column >> r & 1 for v, column in zip(world.variables, world.columns, strict=True)}
            values = dict(observed)
            for variable, parents, bits in order:
                if variable not in world.intervention.targets:
                    values[variable] = bits >> sum(values[p] << i for i, p in enumerate(parents)) & 1
            if values != observed:
                return False
    return True


@pytest.mark.parametrize("model_class", [ModelClass(2), ModelClass(2, 4), ModelClass(2, nested_roots=True)])
def test_agreement_is_the_share_of_members_that_replay(model_class: ModelClass) -> None:
    """The last world of each problem is the query. Nested columns there do not change who is a member."""
    shares = set()
    for problem in small_problems(48, effort(100, 300), Limits(thresholds=False)):
        *worlds, query = problem.task.training.worlds
        task = replace(problem.task, training=Panel(problem.task.variables, tuple(worlds)))
        found = enumerated(task, model_class) if worlds else []
        if not 0 < number(found) <= 2000:
            continue
        agreeing = sum(replays(member, [query]) for family in found for _, member in members(family))
        share = VersionSpace(task, model_class).agreement([query])
        assert share == Fraction(agreeing, number(found))
        shares.add(share)
    assert {Fraction(0), Fraction(1)} < shares
    assert len(shares) >= 10


@pytest.mark.parametrize("penalty", [0, 1, 3])
def test_masses_and_agreement_under_weights_by_size(penalty: int) -> None:
    """A member weighs 2**(-penalty * its total size), up to one factor for all members of a class."""
    shares = set()
    for problem in small_problems(48, effort(80, 200), Limits(thresholds=False)):
        *worlds, query = problem.task.training.worlds
        if not worlds:
            continue
        task = replace(problem.task, training=Panel(problem.task.variables, tuple(worlds)))
        found = enumerated(task, ModelClass(2, 4))
        if not 0 < number(found) <= 500:
            continue
        masses = {True: Fraction(0), False: Fraction(0)}
        for family in found:
            for member in members(family):
                masses[replays(member[1], [query])] += Fraction(1, 2 ** (penalty * member_size(member, task.grammar)))
        space = VersionSpace(task, ModelClass(2, 4))
        share = masses[True] / sum(masses.values())
        assert space.agreement([query], size_penalty=penalty) == share
        after = space.with_worlds([query])
        assert Fraction(after.mass(size_penalty=penalty), space.mass(size_penalty=penalty)) == share
        shares.add(share)
    assert len(shares) >= 10


def test_the_empty_space_has_no_shares() -> None:
    (empty,) = [s for p in small_problems(49, 100) if not (s := VersionSpace(p.task, ModelClass(1))).count][:1]
    with pytest.raises(ZeroDivisionError):
        empty.agreement(empty.task.training.worlds)


# --- shared pools ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POOLS)
def test_three_sums_of_the_same_terms_agree_on_the_shared_pools(name: str) -> None:
    """Inclusion and exclusion, layers without negative terms, and the spectrum's coefficients."""
    for problem in dev_problems(name)[::8]:
        space = VersionSpace(problem.task, ModelClass(3, 12))
        weights = {roots: space.weights(roots) for roots in space.root_sets}
        by_layers = sum(Layers(chosen).total for chosen in weights.values())
        assert space.count == by_layers == sum(total(chosen) for chosen in weights.values())
        assert sum(count_by_size(space).values()) == space.count


@pytest.mark.parametrize("name", POOLS)
def test_every_function_of_four_parents_has_a_formula_of_fifteen_nodes(name: str) -> None:
    for problem in dev_problems(name)[::8]:
        capped, uncapped = (VersionSpace(problem.task, ModelClass(4, cap)) for cap in (15, None))
        assert capped.counts_by_roots == uncapped.counts_by_roots


@pytest.mark.parametrize("name", POOLS)
def test_gold_is_a_member_of_the_shared_instances(name: str) -> None:
    """So there is a member wherever gold's functional parents are in the class, and one that agrees with held-out."""
    for problem in dev_problems(name)[::8]:
        gold = problem.sealed.gold
        assert gold is not None
        most = max(len(local.parents) for local in gold.local_functions.values())
        space = VersionSpace(problem.task, ModelClass(most))
        assert space.count >= 1
        assert 0 < space.agreement(problem.sealed.heldout.worlds) <= 1


# --- classes ---------------------------------------------------------------------------------------------------------


def test_classes_say_what_they_are() -> None:
    tasks = {problem.setting: problem.task for problem in small_problems(1, 4)}
    assert ModelClass(4).describe(tasks["Block"]) == "functional parents <= 4, any formula size, Block"
    assert ModelClass(3, 9, nested_roots=True).describe(tasks["Ordered"]).endswith("formula size <= 9, Ordered")
    described = ModelClass(2, nested_roots=True).describe(tasks["Hidden-roots"])
    assert described == "functional parents <= 2, any formula size, Hidden-roots, roots with nested columns"


def test_classes_that_are_not_supported() -> None:
    (problem,) = small_problems(1, 1)
    for most in (0, 7):
        with pytest.raises(ValueError, match="1 to 6 are supported"):
            VersionSpace(problem.task, ModelClass(most))
    with pytest.raises(ValueError, match="need a class with a size cap"):
        count_by_size(VersionSpace(problem.task, ModelClass(2)))


def test_caps_beyond_the_lists_of_functions_are_refused() -> None:
    """Functions of five variables are listed up to size 11."""
    (problem,) = [p for p in dev_problems("ordered") if len(p.task.variables) == 10][:1]
    assert VersionSpace(problem.task, ModelClass(5, 11)).count <= VersionSpace(problem.task, ModelClass(5)).count
    with pytest.raises(ValueError, match="functions of 5 variables are listed up to size 11, not 12"):
        assert VersionSpace(problem.task, ModelClass(5, 12)).count


def test_choices_multiply_over_what_no_cycle_leaves() -> None:
    """Random parent sets, one sum over everything, one over layers, and the product over groups."""
    several = 0
    for seed in range(400):
        rng = Random(seed)
        names = rng.sample(range(8), rng.randint(1, 7))
        roots = names[: rng.randint(0, 2)]
        options = {}
        for v in names[len(roots) :]:
            others = [u for u in names if u != v]
            sets = [rng.sample(others, rng.randint(0, min(2, len(others)))) for _ in range(rng.randint(1, 3))]
            options[v] = {sum(1 << u for u in chosen): rng.randint(1, 5) for chosen in sets}
        weights = Weights(options, sum(1 << root for root in roots))
        several += len(weights.components()) > 1
        assert total(weights) == Layers(weights).total == by_enumeration(options, roots)
    assert several > 100


def by_enumeration(options: dict[int, dict[int, int]], roots: list[int]) -> int:
    whole, known = 0, {*roots, *options}
    for choice in product(*(own.items() for own in options.values())):
        parents = {v: {u for u in range(8) if mask >> u & 1} for v, (mask, _) in zip(options, choice, strict=True)}
        if all(own <= known for own in parents.values()):
            placed = set(roots)
            while ready := [v for v in parents if v not in placed and parents[v] <= placed]:
                placed.update(ready)
            whole += prod(weight for _, weight in choice) if placed == known else 0
    return whole


def test_a_known_order_has_no_largest_number_of_variables() -> None:
    names = [f"X{i}" for i in range(1, 26)]
    columns = tuple(0b0011 if i % 2 else 0b0101 for i in range(25))
    world = World("w", Intervention(), tuple(names), ("a", "b", "c", "d"), columns)
    panel = Panel(tuple(names), (world,))
    task = Task(TaskKind.SCM, Ordered(tuple(names), ("X1", "X2")), STANDARD, panel, False, 0)
    space = VersionSpace(task, ModelClass(2))
    assert space.count == prod(sum(space.local(i).counts.values()) for i in range(2, 25))
    equal = Panel(tuple(names), (replace(world, columns=(0b0011,) * 25),))
    hidden = replace(task, training=equal, disclosure=HiddenOrder(tuple(names), ("X1", "X2")))
    with pytest.raises(BudgetSpent, match="23 variables that may lie on a cycle together, in more than 5,000,000"):
        _ = VersionSpace(hidden, ModelClass(2)).count


# --- Root sets and the panel evidence about them, which is nested by the paper's section B.2.2 ------------------------
VARIABLES = ("X1", "X2")


def world(rows: Sequence[str], *, units: str = "abcdefgh", clamped: Sequence[str] = ()) -> World:
    columns = columns_from_rows(rows, len(VARIABLES))
    return World("w", Intervention({}, tuple(clamped)), VARIABLES, tuple(units[: len(rows)]), columns)


def nested(*worlds: World) -> tuple[str, ...]:
    disclosure = HiddenRoots(VARIABLES, 1)
    panel = Panel(VARIABLES, worlds)
    return nested_variables(Task(TaskKind.ROOTS, disclosure, STANDARD, panel, shares_units=True, num_heldout=0))


def test_root_sets_are_all_sets_of_the_size_in_lexicographic_order() -> None:
    pairs = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]
    assert list(HiddenRoots(tuple("abcd"), 2).root_sets()) == pairs
    assert list(HiddenRoots(tuple("abcd"), 2).root_sets({"d", "b", "a"})) == [("a", "b"), ("a", "d"), ("b", "d")]
    assert list(HiddenRoots(tuple("abc"), 3).root_sets()) == [("a", "b", "c")]
    assert list(HiddenRoots(tuple("ab"), 0).root_sets()) == [()]


@pytest.mark.parametrize("able", [None, {"a", "b", "d", "e"}])
def test_root_sets_with_certain_roots_are_those_that_contain_them(able: set[str] | None) -> None:
    disclosure = HiddenRoots(tuple("abcde"), 3)
    with_certain = replace(disclosure, certain=("b", "e"))
    expected = [roots for roots in disclosure.root_sets(able) if {"b", "e"} <= set(roots)]
    assert list(with_certain.root_sets(able)) == expected
    assert with_certain.num_root_sets(None if able is None else len(able)) == len(expected) > 1


def test_chains_of_unit_sets_pass_and_crossing_sets_do_not() -> None:
    """X1 is 1 in {a} and {a, b}; X2 is 1 in {a} and {b}."""
    assert nested(world(["11", "00", "00"]), world(["10", "11", "00"])) == ("X1",)


def test_a_world_that_clamps_the_variable_says_nothing_about_it() -> None:
    crossing = [world(["11", "00", "00"]), world(["10", "11", "00"], clamped=["X2"])]
    assert nested(*crossing) == VARIABLES


def test_every_pair_of_worlds_counts() -> None:
    """Each neighbouring pair is nested for X2, the first and the last world are not."""
    worlds = [world(["11", "00", "01"]), world(["01", "01", "11"]), world(["10", "11", "01"])]
    assert "X2" not in nested(*worlds)
    assert "X2" in nested(*worlds[:2])
    assert "X2" in nested(*worlds[1:])


def test_worlds_with_cyclically_repeated_rows_are_left_out() -> None:
    """The same crossing sets twice over, and with the last repetition cut, are not evidence."""
    one, other = ["11", "00", "10"], ["10", "11", "00"]
    assert nested(world(one), world(other)) == ()
    assert nested(world(one), world(other * 2)) == VARIABLES
    assert nested(world(one), world((other * 3)[:7])) == VARIABLES
    assert nested(world(one), world([*other, *other[:2]])) == ()  # less than one whole repetition


def test_worlds_are_compared_on_the_units_they_share() -> None:
    """X2 is 1 in {a} and {b}; unit a is missing in the second world, or stands elsewhere."""
    first = world(["11", "10", "00"])
    assert nested(first, world(["10", "11", "00"])) == ("X1",)
    assert nested(first, world(["11", "00", "10"], units="bcd")) == VARIABLES
    assert nested(first, world(["11", "10", "00"], units="bac")) == ("X1",)
    assert nested(first, world(["11", "10", "00"], units="xyz")) == VARIABLES


def test_nestedness_agrees_with_its_definition() -> None:
    outcomes = set()
    for limits in (Limits(), Limits(thresholds=False), Limits(rows=9)):
        for problem in small_problems(31, cases(400), limits):
            expected = tuple(v for v in problem.task.variables if can_be_root(problem.task, v))
            assert nested_variables(problem.task) == expected
            outcomes.add(len(expected))
    assert outcomes == {0, 1, 2, 3, 4}


def test_a_root_with_thresholds_is_nested() -> None:
    for problem in small_problems(32, cases(400)):
        first_of_the_order = problem.sealed.latent_order[0]
        assert first_of_the_order in nested_variables(problem.task)


def test_the_roots_of_the_shared_pool_are_nested_in_every_instance() -> None:
    """And as many variables pass as docs/semantics.md says of the published generator."""
    problems = dev_problems("hidden_roots")
    passing = []
    for problem in problems:
        able = nested_variables(problem.task)
        assert problem.sealed.gold is not None
        assert set(problem.sealed.gold.roots) <= set(able)
        assert able == tuple(v for v in problem.task.variables if can_be_root(problem.task, v))
        passing.append(len(able))
    assert 3.1 <= sum(passing) / len(passing) <= 3.8


def test_more_worlds_never_make_a_variable_nested() -> None:
    losses = 0
    for problem in small_problems(33, cases(200), Limits(thresholds=False)):
        variables, worlds = problem.task.variables, problem.task.training.worlds
        panels = (Panel(variables, worlds[:number]) for number in range(1, len(worlds) + 1))
        able = [set(nested_variables(replace(problem.task, training=panel))) for panel in panels]
        assert all(more <= fewer for fewer, more in pairwise(able))
        losses += able[-1] < able[0]
    assert losses >= 20


def test_rows_repeat_where_a_block_laid_end_to_end_gives_them() -> None:
    for length in range(6):
        for rows in product(("00", "01", "10", "11"), repeat=length):
            blocks = (rows[:period] * length for period in range(1, length // 2 + 1))
            assert is_repeating(world(rows)) == any(laid[:length] == rows for laid in blocks), rows


# --- Counts that imagined rows bring up to date, against enumeration and against counts from scratch; draws as
# tables
MOST_MEMBERS = 800
WEIGHTS = ((ModelClass(2), None), (ModelClass(3), None), (ModelClass(3, 11), None), (ModelClass(3, 11), 1))


def problems(number: int) -> Iterator[tuple[Problem, Task, tuple[World, ...]]]:
    """Problems of few members, their task without the last two worlds, and these."""
    for seed in range(number):
        problem = gold_problem(seed, SETTINGS[seed % 4], Shape(roots=2, endogenous=2, units=4, training=4))
        *first, one, other = problem.task.training.worlds
        task = replace(problem.task, training=Panel(problem.task.variables, tuple(first)))
        if 1 < VersionSpace(task, ModelClass(3)).count <= MOST_MEMBERS:
            yield problem, task, (one, other)


def spaces(space: VersionSpace, penalty: int | None) -> list[ConditionedSpace]:
    sets = ParentSets(space, penalty)
    return [ConditionedSpace(sets, roots) for roots in space.root_sets]


def agreeing_share(task: Task, model_class: ModelClass, penalty: int | None, worlds: Sequence[World]) -> Fraction:
    """Return the share of the members' weight that replays the worlds; 11 nodes are enough for three parents."""
    every = agreeing = Fraction(0)
    for member in all_members(task, model_class.max_parents):
        weight = Fraction(1, 2 ** ((penalty or 0) * member_size(member, task.grammar)))
        every += weight
        agreeing += weight * (does(member, worlds) == observed(worlds))
    return agreeing / every


@pytest.mark.parametrize(("model_class", "penalty"), WEIGHTS)
def test_what_worlds_leave_is_what_enumeration_leaves(model_class: ModelClass, penalty: int | None) -> None:
    shares = set()
    for problem, task, more in problems(16):
        made = spaces(VersionSpace(task, model_class), penalty)
        whole = sum(one.mass for one in made)
        for worlds in ((), more[:1], more):
            rows = pack_rows(worlds, task.variables)
            together = sum(one.mass_with(rows) for one in made)
            after = [one.condition(rows) for one in made]
            one_by_one = list(made)
            for r in range(len(rows.words)):
                one_by_one = [one.condition(rows.select(slice(r, r + 1))) for one in one_by_one]
            assert together == sum(one.mass for one in after) == sum(one.mass for one in one_by_one)
            assert Fraction(together, whole) == agreeing_share(task, model_class, penalty, worlds), problem.id
            shares.add(Fraction(together, whole))
    assert len(shares) >= 8


@pytest.mark.parametrize(("model_class", "penalty"), [(ModelClass(6), None), (ModelClass(4, 9), 2)])
def test_many_worlds_at_once_are_weighed_as_each_is_from_scratch(model_class: ModelClass, penalty: int | None) -> None:
    nothing = 0
    for seed in range(4):
        problem = gold_problem(seed, SETTINGS[seed], Shape(roots=2, endogenous=5, units=4, training=2))
        space = VersionSpace(problem.task, model_class)
        rng = Random(seed)
        worlds = [*problem.sealed.heldout.worlds]
        worlds += [replace(w, columns=tuple(rng.getrandbits(w.num_rows) for _ in w.columns)) for w in worlds]
        spans = np.cumsum([0, *(world.num_rows for world in worlds)])
        rows = pack_rows(worlds, problem.task.variables)
        made = spaces(space, penalty)
        left = [sum(masses) for masses in zip(*(one.masses(rows, spans) for one in made), strict=True)]
        assert left == [space.with_worlds([world]).mass(size_penalty=penalty) for world in worlds]
        nothing += left.count(0)
    assert nothing


@pytest.mark.parametrize(("model_class", "penalty"), WEIGHTS)
def test_draws_are_those_of_the_sampler(model_class: ModelClass, penalty: int | None) -> None:
    """The same members for the same seed, and what the tables do is what their formulas do."""
    drawn = 0
    for problem, task, more in problems(16):
        space = VersionSpace(task, model_class)
        for roots in list(space.counts_by_roots)[:2]:
            told = space if task.disclosure.roots is not None else space.given_roots(roots)
            for worlds in ((), more[:1]):
                here = ConditionedSpace(ParentSets(told, penalty), roots).condition(pack_rows(worlds, task.variables))
                if not here.mass:
                    continue
                members = draw(here, Random(problem.id), 6)
                listed = sample_members(told.with_worlds(worlds), Random(problem.id), 6, size_penalty=penalty)
                assert [members.scm(i) for i in range(6)] == listed
                rows = pack_rows(more, task.variables)
                exact = (members.outcomes(rows) == rows.words).all(1).tolist()
                assert exact == [replays_exactly(model, more) for model in listed]
                drawn += 1
    assert drawn >= 12
