"""Members of version spaces listed by SAT, an oracle of its own, against brute force and the exact count."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, islice, product

import pytest
from pysat.solvers import Solver

from calibrant.solvers.replayscm.certified import certify_model
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from calibrant.solvers.sat import Cnf, add_at_most_one, add_exactly, add_linear_order
from tests.oracles.members_by_sat import sat_members
from tests.support.effort import cases, effort
from tests.support.replayscm.brute_force import is_acyclic
from tests.support.replayscm.oracles import all_members
from tests.support.replayscm.pools import POOLS, dev_problems
from tests.support.replayscm.random_problems import small_problems

SMALL = [problem.task for problem in small_problems(23, cases(240))]


@pytest.mark.soak
def test_small_problems_against_brute_force() -> None:
    """Six problems or seven of each of four disclosures with at most one, two and three parents; in a soak 20."""
    several = 0
    for index, task in enumerate(SMALL):
        model_class = ModelClass(1 + index % 3)
        expected = len(all_members(task, model_class.max_parents))
        members = list(sat_members(task, model_class))
        assert len(members) == expected == VersionSpace(task, model_class).count
        assert all(a != b for a, b in combinations(members, 2))
        assert all(certify_model(task, model_class.max_parents, member) for member in members[:3] if member)
        several += expected > 1
    assert several >= 3


# --- pools ----------------------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("pool", POOLS[:3])
def test_sat_lists_as_many_members_as_there_are(pool: str) -> None:
    """Every third problem, all in a soak, wherever there are at most 500; all up to 10,000 were compared by hand."""
    compared = 0
    for problem in dev_problems(pool)[:: effort(3, 1)]:
        count = VersionSpace(problem.task, ModelClass(4)).count
        limit = count if count <= 500 else 10
        assert sum(1 for _ in islice(sat_members(problem.task, ModelClass(4)), limit + 1)) == min(count, limit + 1)
        compared += count <= 500
    assert compared > effort(7, 20)


# --- clauses ----------------------------------------------------------------------------------------------------------


def models(cnf: Cnf, over: Sequence[int]) -> set[tuple[bool, ...]]:
    """Return the assignments to some variables that can be completed, by asking for each."""
    with Solver(name="glucose4", bootstrap_with=cnf.clauses) as solver:
        signs = product((False, True), repeat=len(over))
        return {
            held
            for held in signs
            if solver.solve(assumptions=[v if positive else -v for v, positive in zip(over, held, strict=True)])
        }


@pytest.mark.parametrize("number", range(8))
def test_cardinality(number: int) -> None:
    for size in range(8):
        cnf = Cnf()
        literals = [cnf.variable(f"x{i}") for i in range(size)]
        add_exactly(cnf, literals, number, "count")
        assert models(cnf, literals) == {held for held in product((False, True), repeat=size) if sum(held) == number}
        few = Cnf()
        literals = [few.variable(f"x{i}") for i in range(size)]
        add_at_most_one(few, literals, "few")
        assert models(few, literals) == {held for held in product((False, True), repeat=size) if sum(held) <= 1}


def test_acyclicity_admits_the_dags_and_nothing_else() -> None:
    """All 4,096 graphs of four nodes, of which 543 have no cycle."""
    cnf = Cnf()
    pairs = [arc for pair in combinations(range(4), 2) for arc in (pair, pair[::-1])]
    arcs = {arc: cnf.variable(str(arc)) for arc in pairs}
    add_linear_order(cnf, arcs)
    admitted = models(cnf, list(arcs.values()))
    assert len(admitted) == 543
    for held in admitted:
        parents = {
            str(v): tuple(str(u) for (u, w), on in zip(pairs, held, strict=True) if on and w == v) for v in range(4)
        }
        assert is_acyclic(parents)
