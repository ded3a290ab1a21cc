"""The prior of the `posterior` row: against the sampler of the published kind, enumeration and hand calculation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple
from fractions import Fraction
from itertools import pairwise, permutations, product
from math import prod
from random import Random

import numpy as np
import pytest

from calibrant.baselines.replayscm.posterior.latent_orders import (
    NO_FIT,
    LatentOrders,
    LocalPosterior,
    MechanismEvidence,
)
from calibrant.baselines.replayscm.posterior.posterior import BASELINE, LEVELS, root_probability
from calibrant.baselines.replayscm.posterior.prior import (
    ANY,
    ANY_SIZE,
    CONFIGURATIONS,
    MAX_PARENTS,
    UP_TO_4,
    UP_TO_5,
    XOR_ONLY,
    Configuration,
    Drawn,
    column_of,
    function_weights,
    load_shipped,
    of_shape,
    pack,
    representatives,
    size_weights,
    slot_mass,
    unpack,
)
from calibrant.bench.lab.posterior import by_class, draw_chunk
from calibrant.dsl.formulas.table import PartialTable, TruthTable, from_formula, permute
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.disclosure import Blocks, Disclosure, HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.generation.scms import sample_scm, shortest_sizes
from calibrant.dsl.replayscm.generation.strata import NUM_ROOTS, STRATA, Stratum
from calibrant.dsl.replayscm.item import Task, TaskKind
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.outcome import Budget, BudgetSpent
from tests.support.effort import effort

BY_NAME = {configuration.name: configuration for configuration in CONFIGURATIONS}


def test_the_configurations_are_the_strata_of_the_sampler() -> None:
    assert [astuple(one) for one in CONFIGURATIONS] == [
        ("hs_n6_easy_calibration", 6, 10, 2, (4, 8), False, 3),
        ("hs_n7_anchor_plus", 7, 10, 3, (5, 10), True, 3),
        ("hs_n8_bridge", 8, 10, 4, (6, 11), True, 3),
        ("vhs_n8_dense", 8, 10, 5, (6, 12), True, 3),
        ("vhs_n9_anchor", 9, 10, 4, (6, 12), True, 3),
        ("vhs_n9_dense_strict", 9, 11, 5, (7, 13), True, 3),
        ("vhs_n10_anchor_m10", 10, 10, 4, (7, 13), True, 3),
        ("vhs_n10_extreme_near_impossible", 10, 11, 5, (8, 14), True, 3),
        ("t1_clean_hard", 8, 11, 4, (7, 12), True, 2),
    ]
    assert (LEVELS, BASELINE, MAX_PARENTS, ANY_SIZE) == ((0.2, 0.35, 0.5, 0.65, 0.8), 2, 5, (4, 14))
    assert [one.name for one in of_shape(8, 10)] == ["hs_n8_bridge", "vhs_n8_dense"]
    assert [one.name for one in of_shape(8, 11)] == ["t1_clean_hard"]
    assert of_shape(8, 12) == CONFIGURATIONS


# --- functions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_parents", [2, 4])
def test_a_chunk_that_is_drawn_again_is_part_of_the_shipped_counts(num_parents: int) -> None:
    counts = by_class(draw_chunk(num_parents, 1), num_parents)
    assert all(load_shipped()[num_parents].counts[key] >= number for key, number in counts.items())
    assert counts.total() == 2_000


def test_shipped_counts_are_read_as_they_were_written() -> None:
    written = [Drawn(2, {(0x8, 4): 7, (0x6, 5): 1}), Drawn(5, {(0xFFFF_FFFE, 14): 70_000})]
    assert list(unpack(pack(written))) == written
    assert {k: sum(one.counts.values()) for k, one in load_shipped().items()} == {
        2: 20_000,
        3: 100_000,
        4: 300_000,
        5: 80_000,
    }


def test_representatives_are_the_smallest_permuted_tables() -> None:
    smallest = representatives(3)
    for bits in range(256):
        tables = [permute(TruthTable(3, bits), order).bits for order in permutations(range(3))]
        assert smallest[bits] == min(tables)
    assert len(set(representatives(4).tolist())) == 3984  # classes of functions of 4 variables under permutation


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=lambda one: one.name)
@pytest.mark.parametrize("num_parents", [2, 3, 4])
def test_functions_weigh_what_is_accepted(configuration: Configuration, num_parents: int) -> None:
    """1 less the share that is equivalent to a shortcut, counted here with the sampler's own table of sizes."""
    low, high = configuration.sizes
    sizes = shortest_sizes(num_parents, 5)
    counts = {key: n for key, n in load_shipped()[num_parents].counts.items() if low <= key[1] <= high}
    refuted = sum(
        number for (bits, size), number in counts.items() if configuration.refutes and sizes.get(bits, 99) <= size - 1
    )
    functions = function_weights(num_parents, configuration)
    expected = 1 - refuted / sum(counts.values()) if counts else 1.0  # else the fallback
    assert functions.weights[ANY].sum() == pytest.approx(expected)
    assert (functions.weights >= 0).all()
    assert all((functions.weights[a] <= functions.weights[b] + 1e-15).all() for a, b in pairwise(range(4)))


def test_two_parents_of_the_large_strata_are_an_exclusive_or() -> None:
    for name in ("t1_clean_hard", "vhs_n9_dense_strict", "vhs_n10_anchor_m10", "vhs_n10_extreme_near_impossible"):
        functions = function_weights(2, BY_NAME[name])
        assert dict(zip(functions.bits.tolist(), functions.weights[XOR_ONLY].tolist(), strict=True))[0b0110] == 1.0
        assert functions.weights[XOR_ONLY].sum() == functions.weights[ANY].sum() == 1.0
    assert function_weights(2, BY_NAME["vhs_n9_anchor"]).weights.sum() == 0.0  # every one has a shortcut


def test_which_formulas_a_fitting_shortcut_leaves() -> None:
    t1, n7, n6 = BY_NAME["t1_clean_hard"], BY_NAME["hs_n7_anchor_plus"], BY_NAME["hs_n6_easy_calibration"]
    assert [column_of(fit, t1) for fit in (1, 2, 3, 4, 5, 6)] == [None, None, XOR_ONLY, UP_TO_4, UP_TO_5, ANY]
    assert column_of(2, n7) == XOR_ONLY  # no shortcut of size 2 is looked for
    assert column_of(1, n6) == ANY  # one may survive


def test_weights_of_five_parents_are_those_of_the_draws() -> None:
    sized = size_weights(BY_NAME["vhs_n8_dense"])
    assert sized.weights[:6].sum() == 0
    assert 0 < sized.remaining_mass < 0.05
    functions = LocalPosterior(_NoEvidence(6), BY_NAME["vhs_n8_dense"]).functions(5, 0b11111, ANY)
    assert functions[1].sum() + sized.remaining_mass == pytest.approx(1.0)


# --- slots -----------------------------------------------------------------------------------------------------------


class _NoEvidence(MechanismEvidence):
    """Nothing is known of any mechanism."""

    def __init__(self, num_variables: int) -> None:
        variables = tuple(f"X{i + 1}" for i in range(num_variables))
        world = World("w0", Intervention(), variables, ("u0",), (0,) * num_variables)
        disclosure = HiddenOrder(variables, variables[:3])
        super().__init__(
            Task(TaskKind.SCM, disclosure, STANDARD, Panel(variables, (world,)), shares_units=True, num_heldout=1)
        )

    def tables(self, variable: int) -> Mapping[Mask, PartialTable]:
        others = [mask for mask in range(1 << len(self.index)) if not mask >> variable & 1]
        return {mask: PartialTable(mask.bit_count(), 0, 0) for mask in others if mask.bit_count() <= MAX_PARENTS}

    def least_fit(self, variable: int, window: Mask) -> int:
        return NO_FIT


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=lambda one: one.name)
def test_a_slot_draws_something(configuration: Configuration) -> None:
    """Without evidence the mechanisms of every window that can be accepted have probability 1 together."""
    local = LocalPosterior(_NoEvidence(7), configuration)
    for length in range(2, configuration.window + 1):
        whole = local.window_mass(6, (1 << length) - 1)
        assert whole == pytest.approx(1.0 if slot_mass(length, configuration) else 0.0)


@pytest.mark.soak
@pytest.mark.parametrize("known", STRATA, ids=lambda known: known.name)
def test_parent_counts_and_functions_are_those_of_the_sampler(known: Stratum) -> None:
    """Frequencies over 40 sampled SCMs against the prior, each within four standard errors; over 240 in a soak.

    Forty have some 130 mechanisms: a share that is off by a sixth shows.
    """
    local = LocalPosterior(_NoEvidence(known.num_variables), BY_NAME[known.name])
    window = (1 << known.max_parents) - 1
    variable = known.num_variables - 1
    rng = Random(f"slots of {known.name}")
    counts: Counter[int] = Counter()
    ones: Counter[int] = Counter()
    for _ in range(effort(40, 240)):
        latent = sample_scm(known, rng)
        for place in range(max(NUM_ROOTS, known.max_parents), known.num_variables):
            mechanism = latent.model.mechanisms[latent.order[place]]
            counts[len(mechanism.variables)] += 1
            ones[from_formula(mechanism, mechanism.variables).bits.bit_count() == 1] += 1
    shares = dict.fromkeys(range(known.max_parents + 1), 0.0)
    lonely = 0.0
    for parents, mass in local.sets(variable, window):
        shares[parents.bit_count()] += mass
        bits, weights = local.functions(variable, parents, ANY)
        lonely += mass * sum(w for b, w in zip(bits, weights, strict=True) if b.bit_count() == 1) / weights.sum()
    for share, number in [(shares[k], counts[k]) for k in shares] + [(lonely, ones[1])]:
        error = (counts.total() * share * max(0.0, 1 - share)) ** 0.5
        assert abs(number - counts.total() * share) <= 4 * error + 1e-9


# --- orders ----------------------------------------------------------------------------------------------------------

VARIABLES = ("A", "B", "C", "D", "E", "F")
ROOTS = ("B", "E")
DISCLOSURES: dict[str, Disclosure] = {
    "ordered": Ordered(("E", "B", "F", "A", "C", "D"), ROOTS),
    "blocks": Blocks((("A", "B", "E", "F"), ("C", "D")), ROOTS),
    "hidden order": HiddenOrder(VARIABLES, ROOTS),
    "hidden roots": HiddenRoots(VARIABLES, 2),
}


def _orders(disclosure: Disclosure) -> list[tuple[str, ...]]:
    found = [order for order in permutations(VARIABLES) if set(order[:2]) == set(ROOTS)]
    if isinstance(disclosure, Ordered):
        return [disclosure.order]
    if isinstance(disclosure, Blocks):
        return [order for order in found if set(order[:4]) == {"A", "B", "E", "F"}]
    return found


@pytest.mark.parametrize("name", DISCLOSURES)
@pytest.mark.parametrize("window", [1, 2, 3, 5])
def test_sum_and_maximum_over_orders_are_those_of_enumeration(name: str, window: int) -> None:
    rng = np.random.default_rng(window)
    table = rng.random((len(VARIABLES), 1 << len(VARIABLES)))
    if name != "ordered":  # the only order has to be possible
        table *= rng.random(table.shape) > 0.1

    def weight(variable: int, mask: Mask) -> float:
        return float(table[variable, mask])

    def windows(order: tuple[str, ...]) -> dict[int, int]:
        places = [VARIABLES.index(v) for v in order]
        return {v: sum(1 << u for u in places[max(0, i - window) : i]) for i, v in enumerate(places) if i >= 2}

    disclosure = DISCLOSURES[name]
    orders = LatentOrders(VARIABLES, disclosure, ROOTS, window, weight, Budget(None))
    weights = {order: prod(weight(v, mask) for v, mask in windows(order).items()) for order in _orders(disclosure)}
    num_root_orders = len({order[:2] for order in weights})
    assert orders.mean() == pytest.approx(sum(weights.values()) / num_root_orders)
    chosen = orders.heaviest()
    assert prod(weight(v, mask) for v, mask in chosen.items()) == pytest.approx(max(weights.values()))
    assert chosen in [windows(order) for order in weights]
    drawn_windows = orders.sample(Random(0))
    assert drawn_windows in [windows(order) for order, chance in weights.items() if chance > 0]


def test_too_many_orders_are_not_summed_over() -> None:
    variables = tuple(f"X{i}" for i in range(14))
    orders = LatentOrders(
        variables, HiddenOrder(variables, variables[:3]), variables[:3], 4, lambda *_: 1.0, Budget(500)
    )
    with pytest.raises(BudgetSpent):
        orders.mean()


# --- roots -----------------------------------------------------------------------------------------------------------


def _root_task(columns: tuple[int, ...], num_rows: int, *, shares_units: bool = True) -> Task:
    units = tuple(f"u{i}" for i in range(num_rows))
    worlds = [
        World(f"w{i}", Intervention() if i == 0 else Intervention({"X2": 1}), ("X1", "X2"), units, (column, i % 3))
        for i, column in enumerate(columns)
    ]
    panel = Panel(("X1", "X2"), tuple(worlds))
    return Task(TaskKind.ROOTS, HiddenRoots(("X1", "X2"), 1), STANDARD, panel, shares_units, 1)


def _enumerated(columns: tuple[int, ...], num_rows: int) -> Fraction:
    """Mean over all levels of the probability that thresholds fall where the columns say, unit by unit."""
    levels = [Fraction(level).limit_denominator(100) for level in LEVELS]
    total = Fraction(0)
    for drawn_levels in product(levels, repeat=len(columns) - 1):
        chosen = (Fraction(1, 2), *drawn_levels)
        probability = Fraction(1)
        for row in range(num_rows):
            above = max(
                (level for level, c in zip(chosen, columns, strict=True) if not c >> row & 1), default=Fraction(0)
            )
            below = min((level for level, c in zip(chosen, columns, strict=True) if c >> row & 1), default=Fraction(1))
            probability *= max(Fraction(0), below - above)
        total += probability / len(levels) ** (len(columns) - 1)
    return total


def test_root_probabilities_are_those_of_enumerated_levels_and_sum_to_one() -> None:
    whole = 0.0
    for columns in product(range(8), repeat=3):
        probability = root_probability(_root_task(columns, 3), "X1")
        if all(len({(c >> row & 1, i % 3 >> row & 1) for row in range(3)}) > 1 for i, c in enumerate(columns)):
            assert probability == pytest.approx(float(_enumerated(columns, 3)))
        whole += float(_enumerated(columns, 3))
    assert whole == pytest.approx(1.0)


def test_root_probabilities_without_shared_units_are_a_product_over_rows() -> None:
    one = root_probability(_root_task((0b01, 0b11), 2, shares_units=False), "X1")
    assert one == pytest.approx(0.25 * sum(level**2 for level in LEVELS) / 5)


def test_crossing_columns_cannot_be_a_root() -> None:
    assert root_probability(_root_task((0b0011, 0b0110), 4), "X1") == 0.0
