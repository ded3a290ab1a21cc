"""What choices with each parent set weigh: against all choices, and against sums with that set alone."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod
from random import Random

import pytest

from calibrant.solvers.acyclic import count
from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.acyclic.draws import Marginals
from calibrant.solvers.outcome import BudgetSpent
from tests.solvers.acyclic.test_counting import Options, path, random_weights
from tests.solvers.acyclic.test_elimination import near
from tests.solvers.acyclic.test_estimate import dense
from tests.solvers.acyclic.test_structure import is_acyclic


def by_enumeration(options: Options) -> dict[int, Counter[int]]:
    found = {v: Counter[int]() for v in options}
    for masks in product(*options.values()):
        chosen = dict(zip(options, masks, strict=True))
        weight = prod(options[v][mask] for v, mask in chosen.items())
        if is_acyclic(chosen) and weight:
            for v, mask in chosen.items():
                found[v][mask] += weight
    return found


@pytest.mark.parametrize("largest", [5, 1 << 80])
def test_each_parent_set_weighs_what_all_choices_with_it_do(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By kernels; then, as for more variables, by two passes, with tables and without; then by elimination."""
    cases = [random_weights(Random(seed), largest) for seed in range(60)]
    expected = [by_enumeration(options) for options, _ in cases]
    assert sum(any(one.values()) for one in expected) > 20
    for changes in (
        {},
        {"word_weights": lambda sets: None},
        {"word_weights": lambda sets: None, "MAX_TABLE_VARIABLES": 0, "MIN_TABLE_IDEALS": 10**6},
        {"word_weights": lambda sets: None, "MAX_POSITIONS": 0, "MIN_TABLE_IDEALS": 1},
    ):
        with monkeypatch.context() as patched:
            for name, value in changes.items():
                patched.setattr(count, name, value)
            for (options, roots), found in zip(cases, expected, strict=True):
                marginals = Marginals(Weights(options, roots))
                assert {v: marginals.of(v) for v in options} == found


@pytest.mark.parametrize(
    "weights", [dense(11, 9, 0), path(3, 5, 7, 11), near(16, 2)], ids=["sums", "path", "eliminated"]
)
def test_marginals_of_a_variable_add_up_to_the_sum(weights: Weights) -> None:
    marginals, whole = Marginals(weights), total(weights)
    for v in weights.endogenous[::7]:
        found, at = marginals.of(v), weights.position[v]
        assert sum(found.values()) == whole
        mask = max(found)
        alone = dict(zip(weights.endogenous, weights.options, strict=True)) | {v: {mask: weights.options[at][mask]}}
        assert total(Weights(alone, 1)) == found[mask]


def test_too_many_terms_are_a_spent_budget() -> None:
    with pytest.raises(BudgetSpent, match="11 variables that may lie on a cycle together, in more than 20 partial"):
        Marginals(dense(11, 1, 0, terms=20)).of(1)
