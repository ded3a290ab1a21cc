"""Sets of SCMs with noise or hidden variables: number, membership and probabilities against plain enumeration."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from calibrant.audits.replayscm.extended.items import item_evidence
from calibrant.bench.lab.replayscm import rename
from calibrant.bench.replayscm.sets import hypotheses
from calibrant.bench.scoring.sets import SetScore, score_sets
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.episode import task_class
from calibrant.dsl.replayscm.extensions.reference import Mechanisms, posterior_weights
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.solvers.replayscm.experiments.answers import member_formulas
from tests.support.commands import jsonl
from tests.support.replayscm.extensions.problems import small_problem


def _answer(item: Problem, mechanisms: Mechanisms) -> dict[str, Any]:
    formulas = member_formulas(task_class(item.task).roots, mechanisms)
    return {"mechanisms": {v: render(formula) for v, formula in formulas.items()}}


def _scored(folder: Path, item: Problem, entries: list[Any], size: int) -> SetScore:
    write_pool(Pool("small", (item,)), folder / "pool.jsonl")
    file = jsonl(folder / "sets.jsonl", {"instanceId": item.id, "model": "m", "hypotheses": entries})
    (score,) = score_sets([folder / "pool.jsonl"], file, size)
    return score


# one item each: 4,900 SCMs, all of them possible under noise; 26,600 with a hidden variable, few of which fit
@pytest.mark.parametrize(("rate", "num_hidden", "num_worlds"), [("1/4", 0, 1), (None, 1, 2)])
def test_sets_are_weighed_as_by_enumeration(rate: str | None, num_hidden: int, num_worlds: int, tmp_path: Path) -> None:
    item = small_problem(1, rate=rate, num_hidden=num_hidden, num_worlds=num_worlds, is_episode=False)
    listed = list(posterior_weights(task_class(item.task), item_evidence(item, ())))
    fitting = [(mechanisms, weight) for mechanisms, weight in listed if weight]
    chosen = Random(3).sample(fitting, 3)
    excluded = [_answer(item, mechanisms) for mechanisms, weight in listed if not weight][:1]
    repeated, fewer = _answer(item, chosen[0][0]), _answer(item, chosen[1][0])
    del fewer["mechanisms"][min(fewer["mechanisms"])]  # no SCM of the class
    entries = [*(_answer(item, mechanisms) for mechanisms, _ in chosen), repeated, fewer, "I do not know.", *excluded]
    score = _scored(tmp_path, item, entries, 8)
    assert (score.num_read, score.num_fitting, score.num_distinct) == (4 + len(excluded), 4, 3)
    assert score.count == len(fitting)
    total = sum((weight for _, weight in fitting), start=Fraction(0))
    assert score.prior_mass == pytest.approx(float(sum(weight for _, weight in chosen) / total))
    exact_draws = sum(float(weight / total) * (1 - float(1 - weight / total) ** 8) for _, weight in fitting)
    assert score.draws_prior_mass == pytest.approx(exact_draws, abs=0.1)  # a mean over 100 draws
    assert bool(excluded) is (rate is None)
    assert {_terms(other) for other in _renamed(item)} == {_terms(item)}


def _terms(item: Problem) -> str:
    prior = hypotheses(item).prior
    assert prior is not None
    return repr(prior.terms)


def _renamed(item: Problem) -> list[Any]:
    return [rename(item, Random(seed)).item for seed in range(2)]


def test_episodes_and_forecasts_have_no_sets() -> None:
    for item, asked in (
        (small_problem(1), "worlds to ask for"),
        (small_problem(1, is_episode=False, is_forecast=True), "a forecast to make"),
    ):
        with pytest.raises(CalibrantError, match=f"{asked}; sets are of passive items that ask for an SCM"):
            hypotheses(item)
