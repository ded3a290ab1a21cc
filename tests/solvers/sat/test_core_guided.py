"""MaxSAT that grows, against all assignments."""

from __future__ import annotations

from contextlib import closing
from itertools import product
from random import Random

import pytest

from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.sat import Cnf, CoreGuided

NUM = 6


def clause(rng: Random) -> list[int]:
    return [rng.choice([v, -v]) for v in rng.sample(range(1, NUM + 1), rng.randint(2, 3))]


def holds(literal: int, true: set[int]) -> bool:
    return literal in true if literal > 0 else -literal not in true


def least_cost(clauses: list[list[int]], weights: dict[int, int]) -> int | None:
    """Of all assignments that satisfy the clauses, by the weights of literals that do not hold."""
    costs = []
    for bits in product([False, True], repeat=NUM):
        true = {v for v, bit in enumerate(bits, start=1) if bit}
        if all(any(holds(x, true) for x in own) for own in clauses):
            costs.append(sum(weight for x, weight in weights.items() if not holds(x, true)))
    return min(costs, default=None)


def test_least_cost_as_clauses_and_weights_are_added() -> None:
    impossible = 0
    for seed in range(60):
        rng, cnf = Random(seed), Cnf()
        for v in range(1, NUM + 1):
            cnf.variable(f"v{v}")
        for _ in range(18):
            cnf.add(*clause(rng))
        clauses, weights = list(cnf.clauses), dict[int, int]()
        with closing(CoreGuided(cnf, Budget())) as search:
            for _ in range(4):
                v = rng.randint(1, NUM)
                literal, weight = rng.choice([v, -v]), rng.randint(1, 5)
                search.prefer(literal, weight)
                weights[literal] = weights.get(literal, 0) + weight
                model, expected = search.cheapest_model(), least_cost(clauses, weights)
                if expected is None or model is None:
                    assert model is None
                    assert expected is None
                    impossible += 1
                    break
                assert sum(weight for x, weight in weights.items() if not holds(x, model)) == expected
                assert search.at_least == expected
                assert all(any(holds(x, model) for x in own) for own in clauses)
                clauses.append(clause(rng))
                search.add(clauses[-1])
    assert impossible > 5


def test_settled_models_stay_least_under_assumptions() -> None:
    cnf = Cnf()
    a, b, c = (cnf.variable(name) for name in "abc")
    cnf.add(a, b)
    cnf.add(b, c)
    with closing(CoreGuided(cnf, Budget())) as search:
        for literal in (a, b, c):
            search.prefer(-literal, 1)
        assert search.cheapest_model() == {b}
        search.settle()
        assert search.model([b]) == {b}
        assert search.model([a]) is None
        assert search.model([-b]) is None


def test_a_spent_budget_leaves_a_proven_bound() -> None:
    """Seven pigeons for six holes: each that goes without costs 1, and to see that one must takes conflicts."""
    cnf = Cnf()
    sits = {(p, h): cnf.variable(f"{p} in {h}") for p in range(7) for h in range(6)}
    seated = [cnf.variable(f"{p} sits") for p in range(7)]
    for p in range(7):
        cnf.add(-seated[p], *(sits[p, h] for h in range(6)))
    for h, p, q in product(range(6), range(7), range(7)):
        if p < q:
            cnf.add(-sits[p, h], -sits[q, h])
    for states in (0, 5):
        with closing(CoreGuided(cnf, Budget(states))) as search:
            for literal in seated:
                search.prefer(literal, 1)
            with pytest.raises(BudgetSpent):
                search.cheapest_model()
            assert search.at_least in (0, 1)
    with closing(CoreGuided(cnf, budget := Budget(), states=3)) as search:
        for literal in seated:
            search.prefer(literal, 1)
        assert search.cheapest_model() is not None
        assert search.at_least == 1
    assert budget.used > 15
    assert budget.used % 3 == 0
