"""Rates of a row that chooses by a tie rule: means over all equally good answers."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import msgspec

from calibrant.bench.core.observations import ObservationReader
from calibrant.bench.core.registry import benchmark, bundled_pools
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.core.verdict import MeanScore, change_score
from calibrant.bench.replayscm.rows.exact import Exact
from calibrant.bench.report.drawn_ties import DrawnTies
from calibrant.bench.report.scored_answers import scored_answers
from calibrant.bench.runs.records import folder_records
from calibrant.bench.runs.runner import Selection, run

METRICS = benchmark("replayscm").metrics


def _score(heldout: bool) -> dict[str, object]:
    return {"valid": True, "correct": heldout, "trainExact": True, "heldoutExact": heldout}


def test_a_metric_is_the_mean_over_the_answers() -> None:
    score = MeanScore(_score(True), [(1, _score(True)), (3, _score(False))])
    reader = ObservationReader(METRICS)
    values, sample = reader.read_values("Hidden-order", score)
    by_key = dict(zip((column.key for column in reader.columns), values, strict=True))
    assert by_key["heldout_exact"] == 0.25
    assert by_key["train_exact"] == 1.0
    assert by_key["parent_f1"] is None
    assert sample.correct  # of the chosen one


def test_a_change_reaches_every_part() -> None:
    changed = change_score(MeanScore({"a": 1}, [(2, {"a": 1}), (1, {"a": 0})]), lambda score: {**score, "b": 2})
    assert isinstance(changed, MeanScore)
    assert (dict(changed), changed.parts) == ({"a": 1, "b": 2}, ((2, {"a": 1, "b": 2}), (1, {"a": 0, "b": 2})))
    assert change_score({"a": 1}, lambda score: {**score, "b": 2}) == {"a": 1, "b": 2}


def test_records_of_exact_hold_all_least_answers(tmp_path: Path) -> None:
    run(Exact(), [bundled_pools()[2]], tmp_path, selection=Selection(limit=7))
    records = list(folder_records(tmp_path))
    reader = ObservationReader(METRICS)
    for record, (context, score) in zip(records, scored_answers([tmp_path]), strict=True):
        assert record.ties is not msgspec.UNSET
        assert context.is_tied
        assert record.ties.count == str(record.ties.scored) == str(sum(part.times for part in record.ties.scores))
        exact = sum(part.times * part.score["heldoutExact"] for part in record.ties.scores) / record.ties.scored
        values, _ = reader.read_values(context.setting, score)
        assert values[[column.key for column in reader.columns].index("heldout_exact")] == exact
    assert [record.ties.count for record in records if record.ties] == ["2", "1", "1", "1", "2", "1", "36"]


def test_draws_have_an_interval() -> None:
    """Of two items one has draws, .3 of them right: 1.96 sqrt(.3 * .7 / 1000) / 2."""
    ties, context = DrawnTies(), AnswerContext("exact", "p", "d", 2, "a", "Ordered", "", benchmark="replayscm")
    ties.add(context, MeanScore(_score(True), [(300, _score(True)), (700, _score(False))], is_drawn=True))
    ties.add(context, MeanScore(_score(True), [(1, _score(True)), (3, _score(False))]))
    (line,) = ties.lines()
    assert "1 of 2 items have more than 1,000" in line
    assert f"\N{PLUS-MINUS SIGN} {1.959964 * sqrt(0.3 * 0.7 / 1000) / 2:.4f}" in line
