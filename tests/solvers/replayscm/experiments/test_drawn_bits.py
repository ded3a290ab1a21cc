"""Bits from drawn readings against exact ones, within their standard errors; regrets with theirs."""

from __future__ import annotations

from random import Random

import pytest

from calibrant.dsl.replayscm.episode import ScmEpisode, steps_evidence, task_class
from calibrant.solvers.replayscm.experiments import policies
from calibrant.solvers.replayscm.experiments.greedy import WorldChooser
from calibrant.solvers.replayscm.experiments.shares import expected_bits, request_rows
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.problems import small_problem

NUM_DRAWS = 300


def _start(seed: int, rate: str | None) -> tuple[WorldChooser, Posterior]:
    problem = small_problem(seed, rate=rate)
    scm_class = task_class(problem.task)
    posterior = Posterior(scm_class).condition(*steps_evidence(ScmEpisode(problem).steps))
    return WorldChooser(problem.task, scm_class, problem.id), posterior


def test_drawn_bits_are_unbiased() -> None:
    chooser, posterior = _start(1, "1/10")
    chooser.places = chooser.places[:6]
    contexts = range(4)
    by_draw = chooser.bits_by_draw(posterior, [contexts], Random(1), NUM_DRAWS)
    assert by_draw.shape == (NUM_DRAWS, 6)
    for column, place in zip(by_draw.T, chooser.places, strict=True):
        exact = expected_bits(posterior, request_rows(posterior.scm_class, chooser.candidates[place], contexts))
        error = column.std(ddof=1) / NUM_DRAWS**0.5
        assert column.mean() == pytest.approx(exact, abs=max(1e-9, 5 * error))


@pytest.mark.parametrize("rate", [None, "1/10"])
def test_estimated_regrets_lie_near_exact_ones(rate: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    chooser, posterior = _start(2, rate)
    do = chooser.candidates[3]
    exact = policies.step_regret(chooser.task, posterior, do, range(4), chooser.item_id, 1)
    assert exact.is_exact
    assert exact.standard_error is None
    monkeypatch.setattr(policies, "MAX_REGRET_MEMBERS", 0)
    drawn = policies.step_regret(chooser.task, posterior, do, range(4), chooser.item_id, 1)
    assert not drawn.is_exact
    assert drawn.standard_error is not None
    # the best of many estimates is overrated, hence the slack beyond four standard errors
    assert drawn.regret == pytest.approx(exact.regret, abs=4 * drawn.standard_error + 0.15)
