"""Inclusion thresholds and averaged networks against bnlearn's records and against their definitions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.baselines.structure_learning.search import (
    ArcStrengths,
    averaged_network,
    inclusion_threshold,
    strengths_from_frequencies,
)
from tests.support.bnlearn import compatible as bnlearn_compatible
from tests.support.bnlearn import vectors as bnlearn
from tests.support.bnlearn.quicksort_order import quicksort_order
from tests.support.bnlearn.vectors import Record

EXACT = 1e-9
F64 = npt.NDArray[np.float64]

# --- bnlearn's records ------------------------------------------------------------------------------------------


@cache
def averaging_records() -> tuple[tuple[Record, ArcStrengths], ...]:
    listed = [(r, list(r["nodes"])) for r in bnlearn.records("threshold")]
    listed += [(r, list(bnlearn.frame_of(r["ds"]).variables)) for r in bnlearn.records("boot")]
    return tuple((record, bnlearn.recorded_strengths(record, variables)) for record, variables in listed)


def named(strengths: ArcStrengths, found: Sequence[tuple[int, int]]) -> list[list[str]]:
    return sorted([strengths.variables[i], strengths.variables[j]] for i, j in found)


def test_thresholds_are_those_of_bnlearn() -> None:
    records = averaging_records()
    assert len(records) == 164
    for record, strengths in records:
        assert abs(bnlearn_compatible.inclusion_threshold(strengths) - record["threshold"]) <= EXACT


def test_averaged_networks_are_those_of_bnlearn() -> None:
    for record, strengths in averaging_records():
        found = bnlearn_compatible.averaged_network(strengths)
        if "cycle_warnings" in record:
            assert len(found.refused) == record["cycle_warnings"]
        assert named(strengths, found.arcs) == sorted(record["averaged_arcs"])


def test_averaged_networks_at_one_half_are_those_of_bnlearn() -> None:
    records = [(r, s) for r, s in averaging_records() if "averaged_arcs_at_0.5" in r]
    assert len(records) == 60
    for record, strengths in records:
        found = bnlearn_compatible.averaged_network(strengths, threshold=0.5)
        assert named(strengths, found.arcs) == sorted(record["averaged_arcs_at_0.5"])


@given(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 1000)), max_size=100))
@settings(deadline=None)
def test_the_order_of_quicksort_is_ascending(keys: list[int]) -> None:
    order = quicksort_order(keys)
    assert sorted(order) == list(range(len(keys)))
    assert [keys[i] for i in order] == sorted(keys)


# --- averaging ----------------------------------------------------------------------------------------------------


def strengths_of(num_vars: int, listed: dict[tuple[int, int], float]) -> ArcStrengths:
    """Arcs of these probabilities, their reverses of none."""
    frequency = np.zeros((num_vars, num_vars))
    for arc, value in listed.items():
        frequency[arc] = value
    return strengths_from_frequencies(tuple("ABCDEF"[:num_vars]), frequency)


def test_the_weakest_arc_of_a_cycle_is_left_out() -> None:
    cycle = strengths_of(3, {(0, 1): 0.9, (1, 2): 0.8, (2, 0): 0.6})
    assert averaged_network(cycle, threshold=0.5) == (((0, 1), (1, 2)), ((2, 0),))
    assert bnlearn_compatible.averaged_network(cycle, threshold=0.5) == (((1, 2), (2, 0)), ((0, 1),))


def test_equally_strong_arcs_are_taken_by_column_order() -> None:
    cycle = strengths_of(3, {(0, 1): 0.7, (1, 2): 0.7, (2, 0): 0.7})
    assert averaged_network(cycle, threshold=0.5).refused == ((2, 0),)


def test_an_undecided_arc_stays_undirected() -> None:
    frequency = np.array([[0, 0.45, 0], [0.45, 0, 0.9], [0, 0, 0]])
    strengths = strengths_from_frequencies(("A", "B", "C"), frequency)
    assert averaged_network(strengths, threshold=0.5).arcs == ((0, 1), (1, 0), (1, 2))
    assert strengths.frequency().tolist() == frequency.tolist()


def test_undecided_arcs_are_no_cycle_with_each_other() -> None:
    """Every tree of undecided arcs stays as it is, whatever the order of the columns."""
    for tree in (
        [(0, 1), (1, 2)],
        [(0, 2), (1, 2)],
        [(0, 1), (0, 2)],
        [(0, 3), (1, 3), (2, 3)],
        [(0, 1), (1, 2), (2, 3)],
    ):
        frequency = np.zeros((4, 4))
        for i, j in tree:
            frequency[i, j] = frequency[j, i] = 0.45
        arcs_both_ways = sorted([*tree, *((j, i) for i, j in tree)])
        strengths = strengths_from_frequencies(tuple("ABCD"), frequency)
        assert averaged_network(strengths, threshold=0.5) == (tuple(arcs_both_ways), ())


def test_an_undecided_arc_loses_the_direction_that_closes_a_cycle() -> None:
    frequency = np.array([[0, 0.3, 0], [0.3, 0, 0.9], [0.8, 0, 0]])
    strengths = strengths_from_frequencies(("A", "B", "C"), frequency)
    assert averaged_network(strengths, threshold=0.5) == (((1, 0), (1, 2), (2, 0)), ((0, 1),))


def test_what_is_certain_is_significant_whatever_the_threshold() -> None:
    strengths = strengths_of(3, {(0, 1): 1.0, (1, 2): 0.99})
    assert averaged_network(strengths, threshold=1.0).arcs == ((0, 1),)


def l1_distance(strengths: F64, share: float) -> float:
    """Area between the distribution of the strengths and the constant, straight from the definition."""
    listed: list[float] = strengths.tolist()
    points = sorted({0.0, 1.0, *listed})
    below = [sum(s <= point for s in listed) / len(listed) for point in points]
    return sum((after - point) * abs(at - share) for (point, after), at in zip(pairwise(points), below, strict=False))


@given(st.data())
@settings(deadline=None)
def test_the_threshold_is_the_quantile_at_the_least_l1_distance(data: st.DataObject) -> None:
    num_vars = data.draw(st.integers(2, 4))
    values = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1).map(lambda x: round(x, 3)))
    listed = {(i, j): data.draw(values) for i in range(num_vars) for j in range(i + 1, num_vars)}
    strengths = strengths_of(num_vars, listed)
    ordered = strengths.sorted_strengths()
    assert ordered.tolist() == sorted([*listed.values()] * 2)
    heights = sorted({0.0, 1.0, *(float((ordered <= s).mean()) for s in ordered)})  # it is linear between these
    least = min(l1_distance(ordered, share) for share in heights)
    best = [share for share in heights if l1_distance(ordered, share) <= least + 1e-9]
    quantiles = [min(s for s in [*ordered, 2.0] if (ordered <= s).mean() >= share - 1e-12) for share in best]
    assert inclusion_threshold(strengths) in quantiles


def test_one_variable_has_no_arcs() -> None:
    nothing = strengths_of(1, {})
    assert (inclusion_threshold(nothing), averaged_network(nothing)) == (0.0, ((), ()))


def test_brent_finds_the_bottom_of_a_valley() -> None:
    assert abs(bnlearn_compatible.minimum_by_brent(lambda x: (x - 1 / 3) ** 2, 0.0, 1.0, 1e-6) - 1 / 3) < 1e-5
    assert abs(bnlearn_compatible.minimum_by_brent(lambda x: abs(x - 0.7) + x / 2, 0.0, 1.0, 1e-6) - 0.7) < 1e-5
    assert bnlearn_compatible.minimum_by_brent(lambda x: x, 0.0, 1.0, 1e-6) < 1e-5
    assert bnlearn_compatible.minimum_by_brent(lambda x: -x, 2.0, 3.0, 1e-6) > 3 - 1e-5
