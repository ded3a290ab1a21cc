"""Root sets and the panel evidence about them, which is nested by the paper's section B.2.2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product

import pytest

from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.disclosure import HiddenRoots
from calibrant.dsl.replayscm.item import Task, TaskKind
from calibrant.dsl.replayscm.world import Intervention, Panel, World, columns_from_rows
from calibrant.solvers.replayscm.parents import is_repeating, nested_variables
from tests.support.effort import cases
from tests.support.replayscm.brute_force import can_be_root
from tests.support.replayscm.pools import dev_problems
from tests.support.replayscm.random_problems import Limits, small_problems

pytestmark = pytest.mark.soak  # `cases` says how many problems

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
