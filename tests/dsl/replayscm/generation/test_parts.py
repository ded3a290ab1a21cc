"""The parts of the sampler: sizes of formulas, latent SCMs, interventions and simulated worlds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.table import from_formula
from calibrant.dsl.formulas.text import canonical_formula, parse
from calibrant.dsl.replayscm.generation.problems import (
    Population,
    sample_assigned,
)
from calibrant.dsl.replayscm.generation.scms import (
    LatentScm,
    has_equivalent_shortcut,
    published_sizes,
    sample_scm,
    shortest_sizes,
)
from calibrant.dsl.replayscm.generation.strata import (
    ENVIRONMENT_LEVELS,
    NAMED_STRATA,
    NUM_ROOTS,
    NUM_WORLDS,
    SHORTCUT_CAP,
    STRATA,
    T1_CLEAN_HARD,
    stratum,
)
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.reference import replay_row
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.yaml_text import load_yaml
from tests.support.replayscm.brute_force import Tree, table_bits
from tests.support.replayscm.pools import shared_problems
from tests.support.replayscm.strategies import interventions, scms
from tests.support.shared import shared_file, shared_json

NUM_SCMS = 60  # per stratum: 180 to 420 mechanisms
NAMES = [s.name for s in STRATA]
POOLS = ("pool_dev_ordered.runtime.yaml", "pool_dev_t1_ordered.runtime.yaml")


@cache
def sampled(name: str) -> tuple[LatentScm, ...]:
    rng = Random(7)
    return tuple(sample_scm(stratum(name), rng) for _ in range(NUM_SCMS))


def mechanisms(name: str) -> list[Formula]:
    return [mechanism for latent in sampled(name) for mechanism in latent.model.mechanisms.values()]


@cache
def drawn_by_the_generator() -> dict[str, list[Problem]]:
    """Return the problems of the shared pools by stratum."""
    problems: dict[str, list[Problem]] = {}
    for name in POOLS:
        for problem in shared_problems(name):
            problems.setdefault(problem.stratum, []).append(problem)
    return problems


# strata


@cache
def configurations() -> dict[str, dict[str, Any]]:
    """Return the generator's configurations in the records of the shared pools, by stratum."""
    found: dict[str, dict[str, Any]] = {}
    for name in POOLS:
        for record in load_yaml(shared_file(name).read_text(encoding="utf-8"))["problems"]:
            description = record["problemDescription"]
            knobs = record["problem"]["task"]["parameters"]["knobs"] | {"difficulty": description["difficulty"]}
            assert found.setdefault(description["extra"]["subslice"], knobs) == knobs
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_stratum_is_what_the_generator_was_configured_with(name: str) -> None:
    known, knobs = stratum(name), configurations()[name]
    assert (known.difficulty, known.num_variables, known.num_units) == (knobs["difficulty"], knobs["n"], knobs["m"])
    assert known.max_parents == knobs["parent_max"] == knobs["scm_max_predecessors_per_target"]
    assert known.sizes == (knobs["scm_eq_ast_min"], knobs["scm_eq_ast_max"])
    assert known.target_probabilities == tuple(knobs["intervention_size_probs"][count] for count in "123")
    assert known.assigned_probability == knobs["scm_intervention_mode_probs"]["hard_assigned"]
    assert known.max_survivors == knobs["scm_target_survivors_small_max"]
    assert known.shortcut_floor == knobs["scm_shortcut_ast_cap_floor"]
    assert known.exposure.scored_training == (knobs["min_scored_worlds_per_endogenous"] or 0)
    assert known.exposure.scored_heldout == (knobs["heldout_min_scored_worlds_per_endogenous"] or 0)
    assert known.exposure.assigned == (knobs["min_hard_assigned_worlds"] or 0)
    assert known.exposure.constant == (knobs["min_hard_constant_worlds"] or 0)
    # bounds without a field of their own follow from those on scored worlds
    assert known.exposure.scored_training * known.num_units == (knobs["min_scored_cells_per_endogenous"] or 0)
    assert NUM_WORLDS - known.exposure.scored_training == (knobs["max_intervened_worlds_per_endogenous"] or NUM_WORLDS)
    assert known.exposure.scored_heldout * known.num_units == (knobs["heldout_min_scored_cells_per_endogenous"] or 0)
    assert (knobs["k"], knobs["heldout_k"], knobs["scm_root_count"]) == (NUM_WORLDS, NUM_WORLDS, NUM_ROOTS)
    assert list(ENVIRONMENT_LEVELS) == knobs["scm_env_levels"]
    assert knobs["shortcut_ast_cap"] == SHORTCUT_CAP


def test_an_unknown_stratum_is_named_together_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown stratum 'n11'; known: hs_n6_easy_calibration, .*, large_n40$"):
        stratum("n11")


@pytest.mark.parametrize(("size", "cap"), [(3, 0), (4, 3), (5, 4), (6, 5), (12, 5)])
def test_shortcut_cap(size: int, cap: int) -> None:
    assert NAMED_STRATA[0].shortcut_cap(size) == cap


def test_shortcut_cap_of_the_floor_two_stratum_covers_the_fallback() -> None:
    assert T1_CLEAN_HARD.shortcut_cap(3) == 2


# sizes of formulas


def every_tree(size: int, names: tuple[str, ...]) -> Iterator[Tree]:
    """Every formula of exactly that size with operators of at most three arguments."""
    if size == 1:
        yield from names
    for inner in every_tree(size - 1, names) if size > 1 else ():
        yield ("not", (inner,))
    for left_size in range(1, size - 1):
        for left in every_tree(left_size, names):
            for rest in every_list(size - 1 - left_size, names):
                for operator in ("and", "or", "xor", "iff"):
                    yield (operator, (left, *rest))


def every_list(size: int, names: tuple[str, ...]) -> Iterator[tuple[Tree, ...]]:
    """One or two formulas of that size together."""
    yield from ((tree,) for tree in every_tree(size, names))
    for first_size in range(1, size):
        for first in every_tree(first_size, names):
            yield from ((first, second) for second in every_tree(size - first_size, names))


@pytest.mark.parametrize("num_vars", [2, 3])
def test_shortest_sizes_against_every_formula(num_vars: int) -> None:
    names = tuple(f"X{i + 1}" for i in range(num_vars))
    expected: dict[int, int] = {}
    for size in range(1, 6):
        for tree in every_tree(size, names):
            expected.setdefault(table_bits(tree, names), size)
    assert dict(shortest_sizes(num_vars, 5)) == expected


@pytest.mark.parametrize(
    ("text", "exact", "published"),
    [
        ("X1", 1, 1),
        ("(iff X1 X2)", 3, 3),
        ("(not (or X1 X2))", 4, 4),
        ("(and X1 (not X2))", 4, 6),  # a variable beside a larger formula: the published table never forms it
        ("(or X1 (not X2))", 4, 6),
    ],
)
def test_what_the_published_table_does_not_know(text: str, exact: int, published: int) -> None:
    bits = from_formula(parse(text), ("X1", "X2")).bits
    assert shortest_sizes(2, 9)[bits] == exact
    assert published_sizes(2, 9)[bits] == published


POOL_BOUNDS = {2: 9, 3: 10, 4: 11, 5: 8}  # by number of parents, how far it reached when the pools were drawn


def test_the_generator_drew_nothing_that_the_published_table_knows_to_be_redundant() -> None:
    longer_than_shortest = 0
    for problems in drawn_by_the_generator().values():
        for mechanism in (m for p in problems if p.sealed.gold for m in p.sealed.gold.mechanisms.values()):
            num_vars = len(mechanism.variables)
            bits = from_formula(mechanism, mechanism.variables).bits
            assert mechanism.size <= published_sizes(num_vars, POOL_BOUNDS[num_vars]).get(bits, 99), str(mechanism)
            longer_than_shortest += num_vars == 3 and mechanism.size > shortest_sizes(3, 9)[bits]
    assert longer_than_shortest > 50  # exact sizes would have refused these


# latent SCMs


@pytest.mark.parametrize("name", NAMES)
def test_every_mechanism_obeys_algorithm_1(name: str) -> None:
    known = stratum(name)
    low, high = known.sizes
    for model, order in sampled(name)[:10]:
        assert sorted(order) == sorted(f"X{i + 1}" for i in range(known.num_variables))
        assert order != model.variables
        assert set(order[:3]) == set(model.roots)
        for variable, mechanism in model.mechanisms.items():
            slot = order.index(variable)
            parents = mechanism.variables
            assert set(parents) <= set(order[max(0, slot - known.max_parents) : slot])
            assert len(parents) >= 2
            assert model.local_functions[variable].parents == parents  # every parent is essential
            assert canonical_formula(mechanism) == mechanism
            assert low <= mechanism.size <= high or str(mechanism) == f"(xor {' '.join(parents)})"
        assert sum(has_equivalent_shortcut(known, m) for m in model.mechanisms.values()) <= known.max_survivors


def test_equivalent_shortcuts() -> None:
    easy, bridge = stratum("hs_n6_easy_calibration"), stratum("hs_n8_bridge")
    assert has_equivalent_shortcut(easy, parse("(and X1 (xor X1 X2))"))  # = (and X1 (not X2)), size 4 under cap 4
    assert not has_equivalent_shortcut(easy, parse("(and X1 (not X2))"))  # cap 3
    assert has_equivalent_shortcut(bridge, parse("(iff (not X1) (or X1 X3))"))  # = (and X3 (not X1))
    assert not has_equivalent_shortcut(bridge, parse("(xor X1 X2)"))  # cap 2 lies below the floor


# In the published pools worlds were accepted as well, which favours short formulas a little: they mimic others less.
MEAN_SIZE_TOLERANCE = 0.75
STANDARD_ERRORS = 4


@pytest.mark.parametrize("name", NAMES)
def test_mechanisms_resemble_those_of_the_published_generator(name: str) -> None:
    """generator_stats.json counts 22 to 49 problems of each stratum."""
    published = shared_json("generator_stats.json")[name]
    ours = mechanisms(name)
    parents = Counter(len(m.variables) for m in ours)
    assert {str(count) for count in parents} == published["parentCounts"].keys()
    xor2 = sum(m.size == 3 for m in ours) / len(ours)
    spread = xor2 * (1 - xor2) * (1 / len(ours) + 1 / published["mechanisms"])
    assert abs(xor2 - published["xor2Share"]) <= STANDARD_ERRORS * spread**0.5
    histogram = {int(size): count for size, count in published["goldAstHistogram"].items()}
    mean = sum(size * count for size, count in histogram.items()) / published["mechanisms"]
    assert abs(sum(m.size for m in ours) / len(ours) - mean) <= MEAN_SIZE_TOLERANCE


# interventions and worlds


class Constant(Random):
    """Draws the same number every time."""

    def __init__(self, number: float) -> None:
        super().__init__(0)
        self.number = number

    def random(self) -> float:
        return self.number


@pytest.mark.parametrize(("number", "rows"), [(0.0, "0111111111"), (0.99, "0100000000")])
def test_an_all_equal_column_is_repaired_in_its_first_two_rows(number: float, rows: str) -> None:
    """The string shows row 0 first."""
    columns = sample_assigned(("X1", "X4"), 10, Constant(number))
    assert [f"{column:010b}"[::-1] for column in columns.values()] == [rows, rows]


@given(scms(), st.data())
def test_simulation_is_the_reference_on_every_cell(model: Scm, data: st.DataObject) -> None:
    num_rows = data.draw(st.integers(1, 12))
    intervention = data.draw(interventions(model.variables))
    assigned = {target: data.draw(st.integers(0, (1 << num_rows) - 1)) for target in intervention.assigned}
    numbers = st.floats(0, 1, exclude_max=True)
    thresholds = {root: tuple(data.draw(numbers) for _ in range(num_rows)) for root in model.roots}
    environment = {root: data.draw(numbers) for root in model.roots}
    population = Population(model, tuple(f"u{row:02d}" for row in range(num_rows)), thresholds)
    world = population.simulate("w", intervention, environment, assigned)
    assert (world.id, world.intervention, world.units) == ("w", intervention, population.units)
    for row in range(num_rows):
        known = {root: int(thresholds[root][row] < environment[root]) for root in model.roots}
        known |= {target: column >> row & 1 for target, column in assigned.items()}
        assert world.row(row) == replay_row(model, world, known)
