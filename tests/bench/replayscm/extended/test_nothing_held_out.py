"""Items without held-out worlds beside others: no command counts an answer to them as wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.core.verdict import MeanScore
from calibrant.bench.difficulty.models import read_outcomes
from calibrant.bench.pages.capabilities import EPISODE_VIEWS
from calibrant.bench.play.folder import game_record, game_verdict
from calibrant.bench.play.game import Game, PlayPool
from calibrant.bench.play.results import PersonRow, csv_text, summary_lines
from calibrant.bench.replayscm.episodes import submitted_steps, text_episode
from calibrant.bench.report.drawn_ties import DrawnTies
from calibrant.bench.report.overview.contract import GUIDE
from calibrant.bench.report.scored_answers import scored_answers
from calibrant.datasets import bundled_pool
from calibrant.dsl.replayscm.episode import ScmEpisode
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.dsl.replayscm.world import Intervention
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


@pytest.mark.parametrize("pool", ["hidden-order", "hidden-roots", "ordered"])
def test_plain_items_without_held_out_cells_have_no_verdict_either(pool: str, tmp_path: Path) -> None:
    """Neither a valid nor an invalid answer, as an object or a text; targets may also leave no cell to score."""
    of = benchmark("replayscm")
    success = of.metrics.success
    item = next(iter(of.items.read_pool(bundled_pool(pool)).items))
    gold = of.training.gold(item)
    assert gold is not None
    everything = Intervention(assigned=item.task.variables)
    world = replace(item.sealed.heldout.worlds[0], intervention=everything)
    heldouts = (replace(item.sealed.heldout, worlds=worlds) for worlds in ((), (world,)))
    bares = [replace(item, id="bare", sealed=replace(item.sealed, heldout=heldout)) for heldout in heldouts]
    for bare in bares:
        for answer in (gold, {}, {"mechanisms": {"X1": "(((("}}):
            assert success.judge(of.scoring.score(item, answer, ()), item.setting) is (answer is gold)
            score = of.scoring.score(bare, answer, ())
            assert success.judge(score, bare.setting) is None
            assert of.attribution(bare, answer, (), score) is None
    path, file = tmp_path / "pool.jsonl", tmp_path / "answers.jsonl"
    write_pool(Pool("pool", [item, *bares[:1]]), path)
    file.write_text("".join(json.dumps({"id": name, "response": "none"}) + "\n" for name in (item.id, "bare")))
    out = tmp_path / "scores.jsonl"
    assert main(["score", str(path), str(file), "--out", str(out)]) == 0
    judged, unjudged = scored_answers([out])
    assert [success.judge(score, context.setting) for context, score in (judged, unjudged)] == [False, None]


def test_an_environment_rewards_no_answer_where_nothing_is_held_out() -> None:
    item = small_problem(4, rate="1/20")
    bare = replace(item, sealed=replace(item.sealed, heldout=replace(item.sealed.heldout, worlds=())))
    for answer, reward in ((gold_submission(item), 1.0), ({"mechanisms": {}}, 0.0)):
        for problem, expected in ((item, reward), (bare, None)):
            episode = text_episode(problem)
            episode.reset()
            reaction = episode.reply(f"ACTION: {json.dumps({'submit': answer})}")
            assert reaction.done
            assert reaction.reward == expected


@pytest.mark.parametrize("is_episode", [False, True])
def test_correct_is_null_at_every_door(tmp_path: Path, is_episode: bool) -> None:
    """Scores, records of play, attributions, text views and table values."""
    of, item = benchmark("replayscm"), small_problem(4, rate="1/20", is_episode=is_episode)
    bare = replace(item, sealed=replace(item.sealed, heldout=replace(item.sealed.heldout, worlds=())))
    answers: list[dict[str, Any]] = [gold_submission(item), {"mechanisms": {}}]
    for answer in answers:
        steps = submitted_steps(bare, answer) if is_episode else ()
        score = of.scoring.score(bare, answer, steps)
        assert (score["correct"], score["heldoutExact"]) == (None, None)
        assert of.attribution(bare, answer, steps, score) is None
        values = {
            m.key: m.value(of.metrics.verdict(score, bare.setting, InvalidHandling.PUBLISHED))
            for m in of.metrics.hidden
        }
        assert values["task_correct"] is None
    assert of.scoring.score(item, gold_submission(item), ())["correct"] is not None
    path, file = tmp_path / "pool.jsonl", tmp_path / "answers.jsonl"
    write_pool(Pool("pool", [bare]), path)
    file.write_text(json.dumps({"id": bare.id, "answer": gold_submission(item)}) + "\n", encoding="utf-8")
    out = tmp_path / "scores.jsonl"
    assert main(["score", str(path), str(file), "--out", str(out)]) == 0
    (line,) = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    assert line["correct"] is None
    if is_episode:
        game = Game(PlayPool(path), bare.id)
        game.give_up()
        verdict_of_play = game_verdict(of, game.shown, game_record(game, "p1", {}, ""))
        assert verdict_of_play["right"] is None
        assert verdict_of_play["score"]["correct"] is None
        episode = ScmEpisode(bare)
        episode.act({"submit": gold_submission(item)})
        text = of.require(EPISODE_VIEWS).text(bare, episode.steps, "gold")
        assert "; neither right nor wrong: nothing is held out" in text
        assert "not right" not in text
