"""Conditions of views: a metric that is not read of a verdict is one that the verdict does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from calibrant.bench.core.attribution import CHANCE
from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.core.observations import ObservationReader
from calibrant.bench.core.registry import benchmark
from calibrant.bench.replayscm.episodes import ExtendedVerdicts
from calibrant.dsl.replayscm.episode import ScmEpisode
from tests.support.replayscm.extensions.problems import gold_submission, small_problem
from tests.support.replayscm.gold_problems import gold_problem

REPLAYSCM = benchmark("replayscm")
ATTRIBUTION = {"kind": "earned", "decided": True, "fits": True, "members": "1", "class": "in words"}
EXPECTED = {"uniform": 0.25, "draw": 0.5, "best": 0.75}  # of guessers, which a table reads beside attributions


def _scores() -> Iterator[dict[str, Any]]:
    """Yield scores of plain and extended items, right, invalid, in episodes, as forecasts."""
    plain = gold_problem(1)
    yield REPLAYSCM.scoring.score(plain, {"mechanisms": {}}, ())
    yield REPLAYSCM.scoring.score(plain, gold_submission(plain), ())
    noisy, forecast = (small_problem(2, rate="1/10", is_episode=False, is_forecast=asked) for asked in (False, True))
    for item in (noisy, forecast):
        yield REPLAYSCM.scoring.score(item, gold_submission(item), ())
        yield REPLAYSCM.scoring.score(item, {"forecast": []}, ())
    laws = ExtendedVerdicts(forecast).evaluator._laws
    even = {"forecast": [[dict.fromkeys(row, 0.5) for row in rows] for rows in laws]}
    yield REPLAYSCM.scoring.score(forecast, even, ())
    for rate in (None, "1/20"):
        played = small_problem(1, rate=rate)
        submitted: list[dict[str, Any]] = [{"do": {}}, {"submit": gold_submission(played)}]
        for actions in (submitted, [{"do": {"X9": 1}}]):
            episode = ScmEpisode(played)
            for action in actions:
                episode.act(action)
            verdicts = ExtendedVerdicts(played, with_regret=True)
            yield verdicts.record(verdicts.score(None, list(episode.steps)), list(episode.steps))


@pytest.mark.parametrize("handling", InvalidHandling)
def test_metrics_that_are_not_read_are_none(handling: InvalidHandling) -> None:
    reader = ObservationReader(REPLAYSCM.metrics, handling, with_hidden=True)
    defined = set[str]()
    for score in _scores():
        for line in (
            score,
            {**score, "attribution": ATTRIBUTION, CHANCE: EXPECTED},
            {**score, "attribution": None, CHANCE: dict.fromkeys(EXPECTED)},
        ):
            for setting in ("Hidden-order", "Hidden-roots", "Episode Hidden-order+noise", "Alt-Ordered"):
                verdict = REPLAYSCM.metrics.verdict(line, setting, handling)
                values = [column.value(verdict) for column in reader.columns]
                assert reader.read_values(setting, line)[0] == tuple(values)
                defined |= {c.key for c, value in zip(reader.columns, values, strict=True) if value is not None}
    conditional = [view for view in REPLAYSCM.metrics.views.values() if view.applies is not None]
    of_verdicts = {metric.key for view in conditional for metric in view.metrics if not metric.skill_of}  # else of rows
    assert of_verdicts - defined <= {"excess", "right_given_undecided"}
