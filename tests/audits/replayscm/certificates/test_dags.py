"""The plain count of DAGs: against published numbers, against all choices, and its limits."""

from __future__ import annotations

from itertools import combinations, product
from math import prod
from random import Random

import pytest

from calibrant.audits.replayscm.certificates.counting import MAX_GROUP, LargeGroupError, count_dags


def every_set(names: list[str]) -> dict[str, dict[frozenset[str], int]]:
    return {
        name: {frozenset(own): 1 for k in range(len(names)) for own in combinations([n for n in names if n != name], k)}
        for name in names
    }


@pytest.mark.parametrize(("number", "dags"), [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29_281), (6, 3_781_503)])
def test_labelled_dags_are_as_many_as_published(number: int, dags: int) -> None:
    """OEIS A003024."""
    names = [f"X{i}" for i in range(number)]
    assert count_dags(every_set(names), (), names) == dags


def is_acyclic(parents: dict[str, frozenset[str]]) -> bool:
    waiting = dict(parents)
    while ready := [name for name, own in waiting.items() if not own & set(waiting)]:
        for name in ready:
            del waiting[name]
    return not waiting


def test_weighted_sums_with_roots_are_those_of_all_choices() -> None:
    """Five variables, one or two of them roots, with parent sets that fall into several groups."""
    rng, several = Random(3), 0
    for _ in range(60):
        names = [f"X{i}" for i in range(5)]
        roots = names[: rng.randint(1, 2)]
        functions = {
            name: {
                frozenset(own): rng.randint(1, 9) for own in rng.sample(list(every_set(names)[name]), rng.randint(1, 4))
            }
            for name in names
        }
        free = [name for name in names if name not in roots]
        expected = sum(
            prod(functions[name][own] for name, own in zip(free, chosen, strict=True))
            for chosen in product(*(functions[name] for name in free))
            if is_acyclic(dict(zip(free, chosen, strict=True)))
        )
        assert count_dags(functions, roots, names) == expected
        several += expected > 0
    assert several > 20


def test_a_group_that_is_too_large_is_left_and_a_long_chain_is_not() -> None:
    names = [f"X{i}" for i in range(MAX_GROUP + 1)]
    ring = {name: {frozenset({names[i - 1]}): 1, frozenset(): 1} for i, name in enumerate(names)}
    with pytest.raises(LargeGroupError, match=f"{MAX_GROUP + 1} variables can reach each other"):
        count_dags(ring, (), names)
    chain = {**ring, names[0]: {frozenset[str](): 1}}
    assert count_dags(chain, (), names) == 2**MAX_GROUP
