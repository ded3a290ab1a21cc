"""Certificates of classes with a cap on formula size: recounted from a list of functions that is made anew."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from calibrant.audits.claims import Refused
from calibrant.audits.replayscm.certificates.certificate import build_certificate, to_json
from calibrant.audits.replayscm.certificates.counting import MAX_CAP, essential_functions, least_sizes
from calibrant.audits.replayscm.certificates.verify import verify
from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.table import TruthTable, depends_on, full_mask, projection
from calibrant.dsl.formulas.text import STANDARD, Grammar
from calibrant.dsl.replayscm.disclosure import Ordered
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.commands import refused
from tests.support.effort import effort
from tests.support.replayscm.dev_pools import POOLS, dev_problems
from tests.support.replayscm.enumerated_members import all_members
from tests.support.replayscm.small_problems import Limits, small_problems
from tests.support.replayscm.synthesis_oracle import least_sizes as by_multisets
from tests.support.replayscm.written import written_problem, written_scm, written_world
from tests.support.shared import shared_file

OPERATOR_SETS = (STANDARD_OPERATORS, ("not", "and", "or"), ("iff", "or"), ("xor",), ("not", "iff"))


@pytest.mark.parametrize("operators", OPERATOR_SETS)
@pytest.mark.parametrize(("num_vars", "max_size"), [(1, 7), (2, 7), (3, 6), (4, 5), (5, 5)])
def test_sizes_are_those_of_naive_enumeration(operators: tuple[str, ...], num_vars: int, max_size: int) -> None:
    atoms = [projection(i, num_vars).bits for i in range(num_vars)]
    expected = by_multisets(atoms, full_mask(num_vars), operators, max_size)
    assert dict(least_sizes(num_vars, max_size, operators)) == expected
    listed = {int(bits) for bits in essential_functions(num_vars, max_size, frozenset(operators))}
    tables = (TruthTable(num_vars, bits) for bits in expected)
    assert listed == {t.bits for t in tables if all(depends_on(t, i) for i in range(num_vars))}


def as_read(made: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(to_json(made))
    return read


@cache
def small(operators: tuple[str, ...]) -> tuple[Problem, ...]:
    return tuple(small_problems(9, 40, Limits(operators=operators)))


@pytest.mark.soak
@pytest.mark.parametrize("index", range(effort(16, 40)))
def test_counts_of_small_problems_are_those_of_brute_force(index: int) -> None:
    """Four problems of each disclosure, in two sets of operators; ten in a soak."""
    problem = small(OPERATOR_SETS[index % 2])[index]
    for max_size in (1, 3, 5):
        made = as_read(build_certificate(problem, ModelClass(2, max_size)))
        assert made["count"] == str(len(all_members(problem.task, 2, max_size)))
        assert f"{problem.id}: {made['count']} members" in verify(made, problem)


CAPPED = [ModelClass(3, 7), ModelClass(4, 9), ModelClass(5, 8)]


@pytest.mark.soak
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("model_class", [*CAPPED, *effort([], [ModelClass(4, 12)])])
def test_counts_of_pools_hold(pool: str, model_class: ModelClass) -> None:
    """Recount two problems of each pool, of six and of nine variables; in a soak nine.

    In a soak also under the largest cap, which lists all functions of four variables of up to twelve nodes.
    """
    for problem in dev_problems(pool)[:: effort(47, 9)]:
        made = as_read(build_certificate(problem, model_class))
        assert made["count"] == str(VersionSpace(problem.task, model_class).count)
        assert f"formula size <= {model_class.max_size}" in verify(made, problem)


def unique() -> tuple[Problem, ModelClass]:
    """Return an instance with one member under a cap, but not without it."""
    for problem in dev_problems("hidden_order"):
        for max_size in range(5, 10):
            counts = [VersionSpace(problem.task, ModelClass(4, cap)).count for cap in (max_size, None)]
            if counts[0] == 1 < counts[1]:
                return problem, ModelClass(4, max_size)
    raise AssertionError("no such instance")


def test_a_claim_of_uniqueness_under_a_cap_holds_and_carries_a_proof() -> None:
    problem, model_class = unique()
    made = as_read(build_certificate(problem, model_class))
    assert made["unique"]["proof"]
    assert " 1 members " in verify(made, problem)
    made["class"]["max_size"] = model_class.max_size + 1 if model_class.max_size else None
    with pytest.raises(Refused):
        verify(made, problem)


def test_forgeries_are_refused_with_the_reason() -> None:
    problem = dev_problems("ordered")[0]
    made = as_read(build_certificate(problem, ModelClass(3, 9)))
    variable, counts = next((v, c) for v, c in made["functions"].items() if c)
    parents = next(iter(counts))
    counts[parents] = str(int(counts[parents]) + 1)
    with pytest.raises(Refused, match=f"functions of {variable} over"):
        verify(made, problem)
    del counts[parents]
    with pytest.raises(Refused, match="it claims none"):
        verify(made, problem)
    uncapped = as_read(build_certificate(problem, ModelClass(3)))
    uncapped["class"]["max_size"] = 4
    with pytest.raises(Refused, match="functions of"):
        verify(uncapped, problem)
    renamed = as_read(build_certificate(problem, ModelClass(3, 9)))
    renamed["class"]["in_words"] = "functional parents <= 3, any formula size, Ordered"
    with pytest.raises(
        Refused, match="its class is called 'functional parents <= 3, any formula size, Ordered', but is"
    ):
        verify(renamed, problem)


@pytest.mark.parametrize("claimed", [MAX_CAP[4] + 1, 0, "9", True, 9.0])
def test_sizes_that_cannot_be_recounted_are_refused_in_one_line(claimed: object) -> None:
    problem = dev_problems("ordered")[0]
    made = as_read(build_certificate(problem, ModelClass(4, 5)))
    made["class"]["max_size"] = claimed
    with pytest.raises(Refused, match="with 4 parents sizes up to 12 can be recounted"):
        verify(made, problem)
    made["class"] |= {"max_parents": 6, "max_size": 5}
    with pytest.raises(Refused, match="with 6 parents sizes up to 0 can be recounted"):
        verify(made, problem)


def test_the_command_refuses_sizes_that_cannot_be_verified(capsys: pytest.CaptureFixture[str]) -> None:
    pool = shared_file("pool_dev_t1_ordered.runtime.yaml")
    line = refused(capsys, "audit", pool, "--max-parents", 5, "--max-size", 10, "--certificates", "c")
    assert "with 5 parents, `calibrant verify` recounts sizes up to 9" in line


def three_rows(grammar: Grammar = STANDARD) -> Problem:
    """C is 1 where A and B are 0, and 0 where one of them is 1: (iff A B) of 3 nodes, (not (or A B)) of 4."""
    gold = written_scm("A B", C="(iff A B)")
    world = written_world("w", "A B C", "001 010 100")
    return written_problem(Ordered(("A", "B", "C"), ("A", "B")), gold, [world], grammar=grammar)


def test_a_member_outside_the_cap_is_not_the_unique_one() -> None:
    problem = three_rows()
    made = as_read(build_certificate(problem, ModelClass(2, 3)))
    assert made["unique"]["mechanisms"] == {"C": "(iff A B)"}
    assert " 1 members " in verify(made, problem)
    made["unique"]["mechanisms"]["C"] = "(not (or A B))"
    with pytest.raises(Refused, match="the unique member's C has no formula of at most 3 nodes"):
        verify(made, problem)


def test_sizes_are_of_the_operators_that_the_class_names() -> None:
    """Where `if` is allowed no least formulas are made of it, and the class says so."""
    problem = three_rows(Grammar((*STANDARD_OPERATORS, "if"), False))
    made = as_read(build_certificate(problem, ModelClass(2, 3)))
    words = "functional parents <= 2, formula size <= 3 over not and or xor iff, Ordered"
    assert made["class"]["in_words"] == words
    assert words in verify(made, problem)
    made["class"]["in_words"] = "functional parents <= 2, formula size <= 3, Ordered"
    with pytest.raises(Refused, match="its class is called"):
        verify(made, problem)
