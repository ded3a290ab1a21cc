"""Cluster cuts: no choice without a cycle violates one, and what is violated is found."""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

import numpy as np

from calibrant.solvers.acyclic.integer_program._kernels_cuts import share_outside as shares_outside
from calibrant.solvers.acyclic.integer_program.cutting import (
    Cluster,
    Support,
    find_most_violated_cut,
    find_violated_cuts,
)
from tests.support.packages import needs

needs("highspy")


def drawn(rng: Random, num: int) -> Support:
    """Up to three sets of each variable, with shares of a whole number of eighths."""
    owner, parents, share = [], [], []
    for v in range(num):
        parts = sorted({0, 8, rng.randint(1, 7), rng.randint(1, 7)})
        for low, high in pairwise(parts):
            chosen = rng.sample([u for u in range(num) if u != v], rng.randint(0, 2))
            owner.append(v)
            parents.append([u in chosen for u in range(num)])
            share.append((high - low) / 8)
    return Support(np.array(owner), np.array(parents), np.array(share))


def outside(support: Support, cluster: Cluster) -> float:
    sets = zip(support.owner.tolist(), support.parents.tolist(), support.share.tolist(), strict=True)
    few = (s for v, own, s in sets if v in cluster.members and sum(own[u] for u in cluster.members) < cluster.level)
    return float(sum(few))


def test_cuts_that_are_found_are_violated_and_by_a_program_all_that_are_by_an_eighth_are_found() -> None:
    rng, without = Random("cuts"), 0
    for _ in range(30):
        num = rng.randint(3, 6)
        support = drawn(rng, num)
        found = find_violated_cuts(support)
        assert all(outside(support, one) < one.level for one in found)
        groups = [Cluster(group) for size in range(2, num + 1) for group in combinations(range(num), size)]
        any_short = any(outside(support, one) < 1 for one in groups)
        last = find_most_violated_cut(support)
        assert bool(last) == any_short
        assert all(outside(support, one) < 1 for one in last)
        without += not any_short
    assert 3 < without < 27


def test_no_choice_without_a_cycle_violates_a_cut() -> None:
    rng = Random("without a cycle")
    for _ in range(30):
        num = rng.randint(1, 7)
        order = rng.sample(range(num), num)
        before = {v: order[: order.index(v)] for v in order}
        chosen = {v: rng.sample(own, rng.randint(0, len(own))) for v, own in before.items()}
        parents = np.array([[u in chosen[v] for u in range(num)] for v in range(num)])
        assert find_violated_cuts(Support(np.arange(num), parents, np.ones(num))) == set()


def test_what_a_variable_changes_is_what_the_cut_changes_by() -> None:
    rng = Random("changes")
    for _ in range(50):
        num, level = rng.randint(3, 8), rng.randint(1, 3)
        support, group = drawn(rng, num), rng.getrandbits(num)
        words = (support.parents.astype(np.uint64) << np.arange(num, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        change = np.empty(num)
        total = shares_outside(np.uint64(group), level, support.owner, words, support.share, change)
        assert total == outside(support, members(group, level))
        others = [outside(support, members(group ^ 1 << v, level)) for v in range(num)]
        assert np.allclose(change, np.array(others) - total, atol=1e-12)


def members(group: int, level: int) -> Cluster:
    return Cluster(tuple(v for v in range(group.bit_length()) if group >> v & 1), level)
