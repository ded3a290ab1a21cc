"""Posteriors of noisy items and the most probable map, against the enumerated meaning."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import log, prod, sqrt
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.bench.core.registry import bundled_pool
from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.disclosure import Blocks, HiddenOrder, Ordered, RootedDisclosure
from calibrant.dsl.replayscm.extensions.extension import (
    NOISE_FREE,
    MechanismClass,
    NoiseKind,
    NoiseModel,
    Prior,
    known_rate,
)
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms, enumerate_scms, posterior_weights
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.scm import local_function
from calibrant.solvers.acyclic.count import total
from calibrant.solvers.formulas.synthesis import formula_for
from calibrant.solvers.outcome import BudgetSpent, Found, OutOfBudget
from calibrant.solvers.replayscm.hidden.mass import posterior_sampler
from calibrant.solvers.replayscm.noise import best_map as best_map_module
from calibrant.solvers.replayscm.noise import best_map as tied_maps_module
from calibrant.solvers.replayscm.noise import subset_tables
from calibrant.solvers.replayscm.noise.best_map import Formulas, best_map, tied_maps
from calibrant.solvers.replayscm.noise.most_probable import fewest_mismatches, most_probable
from calibrant.solvers.replayscm.noise.posterior import ApproximateMasses, Posterior
from calibrant.solvers.replayscm.noise.subset_tables import (
    EvidenceRow,
    VariableRows,
    exact_mass_by_tables,
    invert,
    parent_masks,
    scaled_rate,
    set_weights,
    sum_by_sinks,
    table_sum,
    table_sums,
    target_mask,
)
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.effort import examples
from tests.support.replayscm.extensions import (
    check_members,
    check_query,
    frontier_vectors,
    random_class,
    random_member,
    random_worlds,
)

# --- Closed forms against the enumerated meaning, on random small classes ---------------------------------------------
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


@settings(max_examples=examples(80), deadline=None)
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


# --- Exact masses by tables of placed variables against the sum over Moebius weights, and against every SCM -----------
GRIDS = [
    NoiseModel(NoiseKind.RATE, ((Fraction(1, 20), Fraction(1)),)),
    NoiseModel(NoiseKind.SHARED, ((Fraction(0), Fraction(1, 3)), (Fraction(2, 7), Fraction(2, 3)))),
    NoiseModel(NoiseKind.EACH, ((Fraction(1, 6), Fraction(1, 4)), (Fraction(1, 10), Fraction(3, 4)))),
]


@settings(deadline=None, max_examples=examples(40))
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(3, 1), (4, 2), (5, 3), (6, 2), (7, 4)]),
    noise=st.sampled_from(GRIDS),
    num_worlds=st.integers(0, 5),
    num_clean=st.integers(0, 2),
)
def test_masses_are_those_of_moebius_weights(
    seed: int, shape: tuple[int, int], noise: NoiseModel, num_worlds: int, num_clean: int
) -> None:
    rng = Random(seed)
    scm_class = replace(random_class(rng, shape[0], max_parents=shape[1]), noise=noise)
    member = random_member(rng, scm_class)
    worlds = random_worlds(rng, scm_class, member, num_worlds + num_clean, 4)
    clean = {id(world) for world in worlds[:num_clean]}
    posterior = Posterior(scm_class).condition(*(replace(w, is_clean=id(w) in clean) for w in worlds))
    expected = sum((term.factor * total(term.weights) for term in posterior.terms()), start=Fraction(0))
    assert exact_mass_by_tables(scm_class, posterior.rows) == expected == posterior.mass


def test_sums_by_sinks_are_those_of_all_acyclic_choices() -> None:
    """Every choice of a parent set for each of three variables, those with a cycle left out."""
    rng = Random(4)
    for _ in range(20):
        chosen = [{parents: rng.randint(0, 9) for parents in range(8) if not parents >> i & 1} for i in range(3)]
        expected = sum(
            prod(chosen[i][parents] for i, parents in enumerate(choice))
            for choice in product(*chosen)
            if _has_order(choice)
        )
        # weight within a set of the other two variables, whose bits close up
        weights = [
            [sum(weight for parents, weight in options.items() if parents & ~placed == 0) for placed in _others(i)]
            for i, options in enumerate(chosen)
        ]
        assert sum_by_sinks(weights) == expected


def _others(i: int) -> list[int]:
    """Return the sets of the other two of three variables, ascending."""
    return [placed for placed in range(8) if not placed >> i & 1]


def _has_order(parents: tuple[int, ...]) -> bool:
    placed = 0
    for _ in parents:
        placed |= sum(1 << i for i, mask in enumerate(parents) if mask & ~placed == 0)
    return placed == (1 << len(parents)) - 1


def test_classes_beyond_the_tables_are_left_to_the_general_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(8)
    scm_class = random_class(rng, 5, max_parents=2, rate=Fraction(1, 8))
    scm_class = replace(scm_class, disclosure=HiddenOrder(scm_class.observed, scm_class.roots))
    posterior = Posterior(scm_class).condition(*random_worlds(rng, scm_class, random_member(rng, scm_class), 3, 4))
    mass = posterior.mass
    assert exact_mass_by_tables(replace(scm_class, noise=NOISE_FREE), posterior.rows) is None
    with_hidden = random_class(rng, 5, num_hidden=1, rate=Fraction(1, 8))
    assert exact_mass_by_tables(with_hidden, ()) is None
    monkeypatch.setattr(subset_tables, "MAX_LOOKUP", 1)  # codes are sorted instead
    assert exact_mass_by_tables(scm_class, posterior.rows) == mass
    for limit in ("MAX_COMPONENT", "MAX_BINS"):
        subset_tables.class_layout.cache_clear()
        monkeypatch.setattr(subset_tables, limit, 1)
        assert exact_mass_by_tables(scm_class, posterior.rows) is None
        assert replace(posterior).mass == mass
        monkeypatch.undo()
    subset_tables.class_layout.cache_clear()


# --- Draws and masses in doubles against exact weights ----------------------------------------------------------------
GRID = ((Fraction(0), Fraction(1, 4)), (Fraction(1, 10), Fraction(1, 2)), (Fraction(1, 3), Fraction(1, 4)))


@pytest.mark.parametrize("kind", ["rate", "shared", "each", "hidden", "null", "silent", "silent null"])
def test_members_come_by_their_posterior(kind: str) -> None:
    rng = Random(kind)
    stated = None if "null" in kind else 2
    hidden = int(kind not in ("rate", "shared", "each"))
    scm_class = random_class(
        rng,
        3 + hidden,
        num_roots=1 + hidden,
        num_hidden=hidden,
        max_parents=1,
        stated=stated,
        rate=None if "silent" in kind else Fraction(1, 5),
    )
    if kind in ("shared", "each"):
        scm_class = replace(scm_class, noise=NoiseModel(NoiseKind(kind), GRID))
    worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), 2, 2)
    posterior = Posterior(scm_class).condition(*worlds)
    shares = {
        tuple(sorted(member.items())): posterior.likelihood(member) / posterior.mass
        for member, _ in enumerate_scms(scm_class)
    }
    assert sum(shares.values()) == 1
    sampler, number = posterior_sampler(posterior), 2_000
    counts = Counter(tuple(sorted(sampler.draw(rng).items())) for _ in range(number))
    assert counts.keys() <= {key for key, share in shares.items() if share}
    for key, share in shares.items():
        deviation = sqrt(number * float(share) * (1 - float(share)))
        assert abs(counts[key] - number * float(share)) <= 5 * deviation + 3


@pytest.mark.parametrize(("observed", "max_parents", "num_worlds"), [(6, 3, 10), (7, 4, 12), (9, 4, 24)])
def test_masses_in_doubles(observed: int, max_parents: int, num_worlds: int) -> None:
    rng = Random(observed)
    scm_class = random_class(rng, observed, num_roots=3, max_parents=max_parents, rate=Fraction(1, 20))
    worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), num_worlds, 8)
    posterior = Posterior(scm_class).condition(*worlds[:-1])
    masses = ApproximateMasses(posterior)
    exact = posterior.mass
    assert masses.log_mass == pytest.approx(log(exact.numerator) - log(exact.denominator), abs=1e-9)
    after = posterior.condition(worlds[-1])
    reading = [(row.word, row.clamped) for row in after.rows[-8:]]
    probability = after.mass / exact
    expected = log(probability.numerator) - log(probability.denominator)
    words, targets = (np.array([*column] * 2, np.uint64) for column in zip(*reading, strict=True))
    of_readings = masses.log_masses(words, targets, np.array([0, len(reading), len(reading), len(words)]))
    assert of_readings - masses.log_mass == pytest.approx([expected, 0, expected], abs=1e-9)


def test_masses_in_doubles_on_a_grid() -> None:
    rng = Random(5)
    scm_class = replace(random_class(rng, 4, num_roots=1), noise=NoiseModel(NoiseKind.SHARED, GRID))
    posterior = Posterior(scm_class).condition(EvidenceWorld({}, ("0110", "1011")))
    mass = posterior.mass
    assert ApproximateMasses(posterior).log_mass == pytest.approx(
        log(mass.numerator) - log(mass.denominator), abs=1e-12
    )


# --- Exact posteriors under noise against the shared vectors, which were made by enumeration --------------------------


def test_every_noise_vector() -> None:
    """All lines, two seconds: grids, priors and orders are spread over them."""
    number = 0
    for line in frontier_vectors("noise"):
        check_members(line)
        if "query" in line and "query" in line["expect"]:
            check_query(line)
        number += 1
    assert number == 162


# --- The most probable map against listing: posterior, and least formula size among the best --------------------------
def _size(mechanisms: Mechanisms) -> int:
    sizes = (formula_for(f.table, f.parents or ("A",), STANDARD_OPERATORS).size for f in mechanisms.values())
    return sum(sizes)


def _functions(mechanisms: Mechanisms) -> frozenset[tuple[str, tuple[str, ...], int]]:
    return frozenset((v, tuple(f.parents), f.table.bits) for v, f in mechanisms.items())


def _replayed(formulas: Formulas) -> frozenset[tuple[str, tuple[str, ...], int]]:
    return _functions({v: local_function(formula) for v, formula in formulas.items()})


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 10), Fraction(2, 5)])
@pytest.mark.parametrize(("num_hidden", "stated"), [(0, None), (1, 2), (1, None)])
def test_best_and_smallest_of_all_members(rate: Fraction, num_hidden: int, stated: int | None) -> None:
    rng = Random(f"{rate} {num_hidden}")
    for _ in range(2):
        scm_class = random_class(
            rng,
            3 + num_hidden,
            num_roots=1 + num_hidden,
            num_hidden=num_hidden,
            max_parents=2 - num_hidden,
            stated=stated,
            rate=rate,
        )
        evidence = random_worlds(rng, scm_class, random_member(rng, scm_class), 2, 2)
        posterior = Posterior(scm_class).condition(*evidence)
        weighed = list(posterior_weights(scm_class, evidence))
        top = max(weight for _, weight in weighed)
        result = best_map(posterior, STANDARD)
        assert result.share == top / posterior.mass
        functions = {v: local_function(formula) for v, formula in result.formulas.items()}
        assert posterior.likelihood(functions) == top
        assert result.size == sum(formula.size for formula in result.formulas.values())
        least = min(_size(mechanisms) for mechanisms, weight in weighed if weight == top)
        assert result.size == least
        expected = [_functions(m) for m, weight in weighed if weight == top and _size(m) == least]
        tied = tied_maps(posterior, STANDARD, result)
        assert isinstance(tied, Found)
        assert tied.value.count == len(tied.value.maps) == len(expected)
        assert {_replayed(formulas) for formulas in tied.value.maps} == set(expected)
        assert {sum(f.size for f in formulas.values()) for formulas in tied.value.maps} == {least}
        assert _replayed(result.formulas) in expected


@pytest.mark.parametrize(("rate", "num_hidden"), [(Fraction(0), 0), (Fraction(1, 10), 0), (Fraction(1, 10), 1)])
def test_draws_of_tied_maps_are_uniform(rate: Fraction, num_hidden: int) -> None:
    """Of 40 or more ties half as many draws: distinct ones as often as of independent uniform draws."""
    rng, num_drawn, expected, variance = Random(f"ties {rate} {num_hidden}"), 0, 0.0, 0.0
    for _ in range(6):
        scm_class = random_class(rng, 4, num_hidden=num_hidden, max_parents=2, rate=rate)
        evidence = random_worlds(rng, scm_class, random_member(rng, scm_class), 1, 2)
        posterior = Posterior(scm_class).condition(*evidence)
        best = best_map(posterior, STANDARD)
        listed = tied_maps(posterior, STANDARD, best)
        assert isinstance(listed, Found)
        count = listed.value.count
        if count < 2:
            continue
        drawn = tied_maps(posterior, STANDARD, best, max_listed=count - 1)
        assert isinstance(drawn, Found)
        assert drawn.value.count == count == len(drawn.value.maps) + 1
        every = {_replayed(formulas) for formulas in listed.value.maps}
        distinct = {_replayed(formulas) for formulas in drawn.value.maps}
        assert distinct <= every
        # of k draws among n, independent and uniform: n (1 - (1 - 1/n)**k) distinct ones, with this variance
        k, n = count - 1, count
        one, two = (1 - 1 / n) ** k, (1 - 2 / n) ** k
        num_drawn, expected = num_drawn + len(distinct), expected + n * (1 - one)
        variance += n * one + n * (n - 1) * two - n * n * one * one
    assert expected > 0
    assert abs(num_drawn - expected) <= 4 * variance**0.5 + 1e-9


def test_ties_that_are_not_counted_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random("uncounted")
    scm_class = random_class(rng, 4, rate=Fraction(1, 10))
    posterior = Posterior(scm_class).condition(*random_worlds(rng, scm_class, random_member(rng, scm_class), 1, 2))
    best = best_map(posterior, STANDARD)
    assert isinstance(tied_maps(posterior, STANDARD, replace(best, is_smallest=False)), OutOfBudget)
    monkeypatch.setattr(tied_maps_module, "MAX_MECHANISMS", 1)
    outcome = tied_maps(posterior, STANDARD, best)
    assert isinstance(outcome, OutOfBudget)
    assert "more than 1 mechanisms" in outcome.reached


@pytest.mark.parametrize("prior", list(Prior))
def test_many_hidden_columns_cost_the_smallest_size_alone(prior: Prior, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hidden variables, noise-free: columns that fit no SCM are not searched."""
    rng = Random(f"columns {prior}")
    scm_class = replace(random_class(rng, 5, num_roots=2, num_hidden=2, max_parents=2, rate=Fraction(0)), prior=prior)
    evidence = random_worlds(rng, scm_class, random_member(rng, scm_class), 4, 4)
    posterior = Posterior(scm_class).condition(*evidence)
    whole = best_map(posterior, STANDARD)
    assert whole.is_smallest
    assert whole.num_columns > 1
    monkeypatch.setattr(best_map_module, "MAX_SIGNED_COLUMNS", 1)
    part = best_map(posterior, STANDARD)
    assert not part.is_smallest
    assert (part.share, part.num_columns) == (whole.share, whole.num_columns)
    assert part.size >= whole.size
    functions = {v: local_function(formula) for v, formula in part.formulas.items()}
    assert posterior.likelihood(functions) / posterior.mass == part.share
    # of a prior that is not uniform columns are to be weighted, one of each kind
    monkeypatch.setattr(best_map_module, "MAX_COLUMNS", 1 if prior is Prior.UNIFORM else 0)
    if prior is Prior.UNIFORM:
        assert best_map(posterior, STANDARD).share == whole.share
    else:
        with pytest.raises(BudgetSpent, match="more than 0 kinds of columns"):
            best_map(posterior, STANDARD)
