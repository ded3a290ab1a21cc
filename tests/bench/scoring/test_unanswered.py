"""An episode or item without an answer counts as not right in every rate that is not conditional by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from calibrant.bench.core.attribution import KEY
from calibrant.bench.core.metrics import InvalidHandling, Metric
from calibrant.bench.core.registry import NAMES, benchmark, bundled_sample

SAMPLES = {"replayscm": "hidden_order"}
RIGHT = ("accuracy", "fits", "earned", "strict", "valid", "train_exact", "heldout_exact")


def _columns(name: str) -> list[Metric]:
    return [one for one in benchmark(name).metrics.columns if not one.conditional]


def _scores(name: str) -> list[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Return (setting, score of a right answer, score of none) for the first items of the bundled sample."""
    of = benchmark(name)
    scored: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = []
    for item in of.items.read_pool(bundled_sample(SAMPLES.get(name, name))).items[:2]:
        gold = of.training.gold(item)
        assert gold is not None
        pair = [of.scoring.score(item, answer, ()) for answer in (gold, of.scoring.no_answer(item))]
        answers = (gold, of.scoring.no_answer(item))
        for score, answer in zip(pair, answers, strict=True):
            said = of.attribution(item, answer, (), score)
            if said is not None:
                score[KEY] = said
        scored.append((item.setting, pair[0], pair[1]))
    return scored


# ReplaySCM's published means leave invalid submissions out by definition (`Means`).
@pytest.mark.parametrize("name", NAMES[1:])
def test_what_counts_an_answer_counts_a_missing_one(name: str) -> None:
    measures = benchmark(name).metrics
    for setting, right, missing in _scores(name):
        verdicts = [measures.verdict(score, setting, InvalidHandling.PUBLISHED) for score in (right, missing)]
        for column in _columns(name):
            answered, unanswered = (column.value(verdict) for verdict in verdicts)
            assert (unanswered is None) <= (answered is None), column.key
        assert not any(measures.sample(verdicts[1])[1:4])


@pytest.mark.parametrize("name", NAMES)
def test_rates_of_right_answers_are_zero_without_an_answer(name: str) -> None:
    measures = benchmark(name).metrics
    for setting, _, missing in _scores(name):
        verdict = measures.verdict(missing, setting, InvalidHandling.PUBLISHED)
        for column in _columns(name):
            if column.key in RIGHT:
                assert not column.value(verdict), column.key
