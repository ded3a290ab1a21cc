"""Items without held-out worlds beside others: no command counts an answer to them as wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.answer_context import AnswerContext
from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.verdict import MeanScore
from calibrant.bench.difficulty.outcomes import read_outcomes
from calibrant.bench.play.results import PersonRow, csv_text, summary_lines
from calibrant.bench.report.drawn_ties import DrawnTies
from calibrant.bench.report.overview.contract import GUIDE
from calibrant.bench.report.scored_answers import scored_answers
from calibrant.datasets import bundled_pool
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.dsl.replayscm.problem import Pool, Problem
from calibrant.rewards import verdict
from tests.support.replayscm.extensions.problems import gold_submission, small_problem


def _problems() -> list[Problem]:
    """Return an item with held-out worlds, and one without."""
    judged, other = (small_problem(seed, rate="1/20", is_episode=False) for seed in (3, 4))
    heldout = replace(other.sealed.heldout, worlds=())
    return [replace(judged, id="judged"), replace(other, id="unjudged", sealed=replace(other.sealed, heldout=heldout))]


@pytest.fixture
def scored(tmp_path: Path) -> tuple[Path, Path]:
    """Return a pool, and the verdicts on gold for each of its items."""
    pool, answers, scores = tmp_path / "pool.jsonl", tmp_path / "answers.jsonl", tmp_path / "scores.jsonl"
    problems = _problems()
    write_pool(Pool("pool", problems), pool)
    lines = [{"id": problem.id, "model": "gold", "answer": gold_submission(problem)} for problem in problems]
    answers.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert main(["score", str(pool), str(answers), "--out", str(scores)]) == 0
    return pool, scores


def test_difficulty_is_of_items_that_have_a_right_answer(scored: tuple[Path, Path]) -> None:
    pool, scores = scored
    outcomes = read_outcomes([scores], [pool])
    assert [item.id for item in outcomes.items] == ["judged"]
    assert outcomes.rates.tolist() == [[1.0]]


def test_words_on_an_answer_give_no_verdict_where_there_is_none(scored: tuple[Path, Path]) -> None:
    guide = benchmark("replayscm").require(GUIDE)
    explained = {
        context.instance: guide.explain(None, context, {}, (), score) for context, score in scored_answers([scored[1]])
    }
    chips = {name: [text for _, text in explanation.chips] for name, explanation in explained.items()}
    assert "held-out exact" in chips["judged"]
    assert not any("held-out" in text for text in chips["unjudged"])
    assert explained["unjudged"].sentences[0].startswith("The answer is neither right nor wrong")


def test_means_over_people_leave_out_what_nobody_can_get_right() -> None:
    def row(item: str, position: int, correct: int | None) -> PersonRow:
        return PersonRow(
            "p1", position, "replayscm", "pool", item, "", "", "none", correct, "", "", 0, 0, 1.0, 1.0, "2026-01-01"
        )

    rows = [row("judged", 1, 1), row("unjudged", 2, None)]
    lines = [line for line in summary_lines(rows) if "right" in line]
    assert [line.split("1.000")[0].split() for line in lines] == [
        ["replayscm", "right"],
        ["replayscm", "right", "at", "item", "1"],
    ]
    assert ",1,,," in csv_text(rows).splitlines()[1]
    assert csv_text(rows).splitlines()[2].split(",")[8] == ""


def test_ties_are_counted_among_items_that_have_a_right_answer() -> None:
    ties, context = DrawnTies(), AnswerContext("exact", "p", "d", 2, "a", "Ordered", "", benchmark="replayscm")
    right, wrong = {"heldoutExact": True, "trainExact": True}, {"heldoutExact": False, "trainExact": True}
    ties.add(context, MeanScore(right, ((1, right), (1, wrong)), is_drawn=True))
    before = list(ties.lines())
    ties.add(context, {"heldoutExact": None, "trainExact": True})
    assert list(ties.lines()) == before
    assert before


def test_a_trainer_gets_no_verdict_where_there_is_none() -> None:
    problems = _problems()
    completions = [[{"role": "assistant", "content": json.dumps(gold_submission(problem))}] for problem in problems]
    records = [json.dumps(benchmark("replayscm").items.record(problem)) for problem in problems]
    assert verdict(completions, records, ["replayscm"] * 2) == [1.0, None]


def test_plain_items_without_held_out_cells_have_no_verdict_either() -> None:
    """Answers that are valid; whether an invalid one is right is not asked."""
    of = benchmark("replayscm")
    success = of.metrics.success
    for item in of.items.read_pool(bundled_pool("hidden-order")).items[:3]:
        bare = replace(item, sealed=replace(item.sealed, heldout=replace(item.sealed.heldout, worlds=())))
        gold = of.training.gold(item)
        assert gold is not None
        assert success.judge(of.scoring.score(item, gold, ()), item.setting) is True
        assert success.judge(of.scoring.score(bare, gold, ()), bare.setting) is None
