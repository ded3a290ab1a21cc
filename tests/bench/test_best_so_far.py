"""A search that its budget cuts off: what the public verb and the records of rows say of the best model so far."""

from __future__ import annotations

from functools import partial

import pytest

from calibrant.bench.replayscm.api import ReplayScmFunctions
from calibrant.bench.replayscm.rows.exact import Exact
from calibrant.dsl.replayscm.generation.problems import sample_problem
from calibrant.dsl.replayscm.generation.strata import stratum
from calibrant.solvers.outcome import BestSoFar
from calibrant.solvers.replayscm import exact


def test_the_verb_has_it_as_a_solution_and_the_record_tells_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = sample_problem(stratum("large_n20"), 0)
    outcome = ReplayScmFunctions().solve(problem, max_parents=4, states=0)
    assert isinstance(outcome, BestSoFar)
    assert ReplayScmFunctions().score(problem, outcome.incumbent.answer).train_exact
    assert outcome.incumbent.size == outcome.upper_bound >= (outcome.lower_bound or 0) > 0
    monkeypatch.setattr(exact, "solve", partial(exact.solve, states=0))
    recorded = Exact(max_parents=4).answer(problem.task)
    assert (recorded.outcome, recorded.answer) == ("out_of_budget", None)
    assert recorded.provenance == {
        "reached": outcome.reached,
        "lower_bound": outcome.lower_bound,
        "upper_bound": outcome.upper_bound,
    }
