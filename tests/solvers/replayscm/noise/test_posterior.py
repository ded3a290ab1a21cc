"""Closed forms against the enumerated meaning, on random small classes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.bench.core.registry import bundled_pool
from calibrant.dsl.replayscm.disclosure import Blocks, HiddenOrder, Ordered, RootedDisclosure
from calibrant.dsl.replayscm.extensions.extension import (
    NOISE_FREE,
    MechanismClass,
    NoiseKind,
    NoiseModel,
    Prior,
    known_rate,
)
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, enumerate_scms, posterior_weights
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.solvers.replayscm.noise.local_weights import (
    EvidenceRow,
    VariableRows,
    invert,
    parent_masks,
    scaled_rate,
    set_weights,
    table_sum,
    table_sums,
    target_mask,
)
from calibrant.solvers.replayscm.noise.most_probable import fewest_mismatches, most_probable
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

OBSERVED = ("A", "B", "C")
RATES = (Fraction(0), Fraction(1, 7), Fraction(2, 5))


@st.composite
def classes(draw: Any) -> MechanismClass:
    hidden: dict[str, tuple[str, ...] | None] = draw(st.sampled_from([{}, {}, {"H": ("A", "B")}, {"H": None}]))
    every = (*OBSERVED, *hidden)
    order = ("A", "B", *hidden, "C")
    disclosures: list[RootedDisclosure] = [
        Ordered(order, ("A",)),
        HiddenOrder(every, ("A",)),
        Blocks((("A", "B"), (*hidden, "C")), ("A",)),
    ]
    kind = draw(st.sampled_from(NoiseKind))
    priors = (Fraction(1, 6), Fraction(1, 3), Fraction(1, 2))
    noise = known_rate(draw(st.sampled_from(RATES)))
    if kind is not NoiseKind.RATE:
        noise = NoiseModel(kind, tuple(zip(RATES, priors, strict=True)))
    max_parents = draw(st.integers(1, 1 if hidden else 2))
    prior = draw(st.sampled_from(Prior))
    return MechanismClass(OBSERVED, ("A",), draw(st.sampled_from(disclosures)), max_parents, prior, noise, hidden)


@st.composite
def worlds(draw: Any) -> EvidenceWorld:
    constants = draw(st.dictionaries(st.sampled_from(OBSERVED), st.integers(0, 1), max_size=2))
    rows = draw(st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=1, max_size=3))
    texts = ("".join(str(constants.get(v, bit)) for v, bit in zip(OBSERVED, row, strict=True)) for row in rows)
    return EvidenceWorld(constants, tuple(texts), draw(st.booleans()))


@settings(max_examples=40, deadline=None)
@given(classes(), st.lists(worlds(), max_size=2))
def test_masses_edges_and_maxima_are_those_of_the_reference(
    scm_class: MechanismClass, evidence: list[EvidenceWorld]
) -> None:
    weighed = list(posterior_weights(scm_class, evidence))
    posterior = Posterior(scm_class).condition(*evidence)
    mass = sum((weight for _, weight in weighed), start=Fraction(0))
    assert posterior.mass == mass
    assert posterior.num_members == sum(1 for _, weight in weighed if weight)
    for mechanisms, weight in weighed[:: max(1, len(weighed) // 5)]:
        assert posterior.likelihood(mechanisms) == weight
    if not mass:
        return
    top = max(weight for _, weight in weighed)
    best = most_probable(posterior)
    assert (best.share, best.number) == (top / mass, sum(1 for _, weight in weighed if weight == top))
    edges: dict[tuple[str, str], Fraction] = {}
    for mechanisms, weight in weighed:
        for child, function in mechanisms.items():
            for parent in function.parents:
                edges[parent, child] = edges.get((parent, child), Fraction(0)) + weight / mass
    assert posterior.edges == {edge: share for edge, share in edges.items() if share}


@given(st.dictionaries(st.integers(0, 15), st.integers(1, 4), max_size=10))
def test_fewest_mismatches_by_listing_tables(noisy: dict[int, int]) -> None:
    """The majority table or its cheapest flip: every table over every set of up to three parents is tried."""
    rows = VariableRows(noisy)
    masks = parent_masks((0, 1, 2), 3)
    listed = {}
    for mask in masks:
        places = [i for i in range(3) if mask >> i & 1]
        costs = []
        for table in range(1 << (1 << len(places))):
            flips = [
                any((table >> r ^ table >> (r ^ 1 << j)) & 1 for r in range(1 << len(places)))
                for j in range(len(places))
            ]
            if all(flips):
                patterns = {w: sum((w >> i & 1) << j for j, i in enumerate(places)) for w in noisy}
                costs.append(sum(n for w, n in noisy.items() if (table >> patterns[w] ^ w >> 3) & 1))
        listed[mask] = min(costs), costs.count(min(costs))
    assert fewest_mismatches(rows, 3, masks) == listed


@pytest.mark.parametrize("setting", ["hidden-order", "block", "ordered"])
def test_rate_zero_counts_what_version_spaces_count(setting: str) -> None:
    """On bundled items, whose worlds set variables row by row too; every mechanism by the same evidence."""
    counts = []
    for problem in list(read_pool(bundled_pool(setting)).problems)[::8]:
        task = problem.task
        assert isinstance(task.disclosure, HiddenOrder | Blocks | Ordered)
        roots = task.disclosure.roots
        for noise in (NOISE_FREE, known_rate(Fraction(0))):
            scm_class = MechanismClass(task.variables, roots, task.disclosure, 3, Prior.UNIFORM, noise)
            rows = [
                EvidenceRow(sum(values[v] << i for i, v in enumerate(task.variables)), target_mask(scm_class, targets))
                for world in task.training.worlds
                for targets in [world.intervention.targets]
                for values in world.rows()
            ]
            counts.append(Posterior(scm_class).condition_rows(rows).mass)
            assert counts[-1] == VersionSpace(task, ModelClass(3)).count
    assert any(counts)


def test_rate_zero_counts_members() -> None:
    disclosure = HiddenOrder(OBSERVED, ("A",))
    scm_class = MechanismClass(OBSERVED, ("A",), disclosure, 2)
    assert Posterior(scm_class).mass == sum(1 for _ in enumerate_scms(scm_class))


@pytest.mark.parametrize("num_vars", [1, 2, 3])
def test_inversion_of_subset_sums(num_vars: int) -> None:
    masks = parent_masks(range(num_vars), num_vars)
    values = {mask: 3 * mask + 1 for mask in masks}
    sums = {mask: sum(values[sub] for sub in masks if sub & mask == sub) for mask in masks}
    assert invert(sums) == values


@given(st.dictionaries(st.integers(0, 255), st.integers(1, 3), min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
def test_weights_by_arrays_are_those_of_single_sets(noisy: dict[int, int]) -> None:
    rows = VariableRows(noisy)
    masks = parent_masks((0, 1, 2, 3, 4, 5, 6), 3)
    rate = scaled_rate(Fraction(3, 10))
    single = invert({mask: table_sum(rows, 7, mask, rate) for mask in masks})
    assert invert(dict(zip(masks, table_sums(rows, 7, masks, rate), strict=True))) == single
    assert set_weights(rows, 7, masks, rate) == single
