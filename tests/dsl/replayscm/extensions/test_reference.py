"""The enumerated meaning against vectors that were made elsewhere, also by enumeration."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from calibrant.dsl.replayscm.extensions.extension import Prior, num_essential_functions, parent_weights
from calibrant.dsl.replayscm.extensions.reference import (
    EvidenceWorld,
    enumerate_scms,
    posterior_weights,
    visible_rows,
)
from tests.support.replayscm.extensions.vectors import class_of, evidence_of, frontier_vectors

MAX_MEMBERS = 130  # the reference is slow: a class of 112 with three rates takes 50 ms


def _small(name: str, max_members: int, number: int) -> list[dict[str, Any]]:
    return [line for line in frontier_vectors(name) if line["expect"]["members"] <= max_members][:number]


def test_masses_edges_and_best_of_small_noisy_classes() -> None:
    lines = _small("noise", MAX_MEMBERS, 12)
    assert len(lines) == 12
    for line in lines:
        _check(line)


def test_masses_meanings_and_negations_of_small_hidden_classes() -> None:
    lines = _small("hidden", 1_000, 4)
    assert len(lines) == 4
    for line in lines:
        _check(line)


def _check(line: dict[str, Any]) -> None:
    scm_class = class_of(line["class"], line["noise"])
    expect = line["expect"]
    weighed = list(posterior_weights(scm_class, evidence_of(line["worlds"])))
    mass = sum((weight for _, weight in weighed), start=Fraction(0))
    assert len(weighed) == expect["members"]
    assert mass == Fraction(expect["mass"])
    if not mass or "edges" not in expect:
        return
    edges: Counter[str] = Counter()
    for mechanisms, weight in weighed:
        for variable, function in mechanisms.items():
            edges.update({f"{parent}>{variable}": weight for parent in function.parents})
    assert {edge: share / mass for edge, share in edges.items() if share} == {
        edge: Fraction(share) for edge, share in expect["edges"].items()
    }
    top = max(weight for _, weight in weighed)
    assert {"share": top / mass, "number": sum(weight == top for _, weight in weighed)} == {
        "share": Fraction(expect["best"]["share"]),
        "number": expect["best"]["number"],
    }
    if "meanings" in expect:
        meanings = {visible_rows(scm_class, mechanisms) for mechanisms, weight in weighed if weight}
        assert len(meanings) == expect["meanings"]


def test_clean_rows_admit_only_tables_that_agree() -> None:
    line = next(line for line in frontier_vectors("noise") if line["noise"] == "1/3" and "query" in line)
    scm_class = class_of(line["class"], line["noise"])
    query = EvidenceWorld(line["query"]["do"], tuple(line["query"]["rows"]), is_clean=True)
    weighed = posterior_weights(scm_class, [query])
    agreeing = sum(1 for _, weight in weighed if weight)
    assert 0 < agreeing < sum(1 for _ in enumerate_scms(scm_class))


@pytest.mark.parametrize(("num_parents", "count"), [(0, 2), (1, 2), (2, 10), (3, 218), (4, 64594)])
def test_numbers_of_functions_that_depend_on_all_variables(num_parents: int, count: int) -> None:
    assert num_essential_functions(num_parents) == count


def test_weights_by_parents_of_three_variables() -> None:
    assert parent_weights(Prior.BY_PARENTS, 3, 2) == (Fraction(1, 2), Fraction(1, 4), Fraction(1, 10))
    assert parent_weights(Prior.BY_PARENTS, 2, 2)[2] == 0
