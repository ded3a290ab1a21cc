"""Extended items behind the public names, in trainers' conversations, reports and in commands that refuse them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import calibrant
from calibrant.bench.core.registry import benchmark
from calibrant.bench.replayscm.episodes import text_episode
from calibrant.bench.training import attributed, conversation, lesson, score_replies, verdict
from calibrant.dsl.episode import ActionError
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.solvers.outcome import Found
from tests.support.commands import called
from tests.support.replayscm.extensions.problems import gold_submission, small_problem

REPLAYSCM = benchmark("replayscm")


def test_public_names_score_solve_and_count() -> None:
    item = small_problem(1)
    episode = calibrant.open_episode(item)
    episode.act({"do": {"X1": 1}})
    score = calibrant.score(item, gold_submission(item), steps=episode.steps)
    assert score.correct
    assert score.to_dict()["worlds"] == 1
    solved = calibrant.solve(item)
    assert isinstance(solved, Found)
    assert calibrant.score(item, solved.value.answer, steps=solved.value.steps).valid
    after = calibrant.version_space(item, steps=episode.steps).count
    assert 1 <= after <= calibrant.version_space(item).count
    with pytest.raises(CalibrantError, match="no options"):
        calibrant.solve(item, max_parents=3)
    passive = small_problem(1, is_episode=False)
    with pytest.raises(CalibrantError, match="no steps"):
        calibrant.score(passive, gold_submission(passive), steps=episode.steps)
    with pytest.raises(CalibrantError, match="noise or hidden"):
        calibrant.version_space(small_problem(1, rate="1/10"))


@pytest.mark.parametrize(
    ("text", "do"),
    [("do X1=1, X2=0\n", {"X1": 1, "X2": 0}), ("do", {}), ("do X1=2", {"X1": 2}), ('{"do": {"X1": 1}}', {"X1": 1})],
)
def test_worlds_are_asked_for_by_hand(text: str, do: dict[str, int]) -> None:
    assert REPLAYSCM.play.parse_action(small_problem(1), text) == {"do": do}


@pytest.mark.parametrize("text", ["do X1", "do X1=1 please", "X1=1", "done"])
def test_no_world_is_guessed_from_talk(text: str) -> None:
    with pytest.raises(ActionError):
        REPLAYSCM.play.parse_action(small_problem(1), text)


def test_replies_are_rewarded() -> None:
    item = small_problem(2)
    submission = json.dumps({"submit": gold_submission(item)})
    replies = ['ACTION: {"do": {"X2": 0}}', "I think about it", f"ACTION: {submission}"]
    result = score_replies(REPLAYSCM, item, replies)
    assert result.answered
    assert result.verdict.correct
    assert result.verdict.to_dict()["refusals"] == 1
    task = lesson("replayscm", json.dumps(REPLAYSCM.items.record(item)))
    assert verdict(task, result) == 1
    assert attributed(task, result) in (0.5, 1.0)
    bare = score_replies(REPLAYSCM, item, [json.dumps(gold_submission(item))])
    assert bare.verdict.correct
    assert not score_replies(REPLAYSCM, item, []).answered


def test_shares_of_maps_and_forecasts_lie_between_wrong_and_right() -> None:
    share = REPLAYSCM.training.share
    for item in (small_problem(1, is_episode=False), small_problem(2, rate="1/10", is_episode=False)):
        scm_class = item.task.disclosure
        roots = scm_class.roots or ()
        constant = {"mechanisms": dict.fromkeys(gold_submission(item)["mechanisms"], f"(xor {roots[0]} {roots[0]})")}
        scores = [calibrant.score(item, answer) for answer in ({}, constant, gold_submission(item))]
        shares = [share(item, score) for score in scores]
        assert shares == sorted(shares)
        assert (shares[0], shares[-1]) == (0.0, 1.0)
        assert (shares[1] == 1.0) is scores[1].correct


def test_noise_excludes_no_legal_answer() -> None:
    """An answer to noisy evidence that decides nothing is worth a half if it is legal, right or not."""
    passive = small_problem(2, rate="1/10", is_episode=False, num_worlds=1)
    task = lesson("replayscm", json.dumps(REPLAYSCM.items.record(passive)))
    assert task.decided is False
    assert attributed(task, score_replies(REPLAYSCM, passive, [json.dumps(gold_submission(passive))])) == 0.5
    assert attributed(task, score_replies(REPLAYSCM, passive, ["no answer"])) == 0
    episode = small_problem(2, rate="1/10")
    at_once = score_replies(REPLAYSCM, episode, [json.dumps(gold_submission(episode))])
    task = lesson("replayscm", json.dumps(REPLAYSCM.items.record(episode)))
    assert attributed(task, at_once) in (0.5, 1.0)


def test_an_environment_ends_after_its_replies() -> None:
    item = small_problem(2, num_worlds=2)
    environment = text_episode(item)
    assert "World 0" in environment.reset()[-1]["content"]
    reactions = [environment.reply("no action")]
    while not reactions[-1].done:
        reactions.append(environment.reply("no action"))
    assert (len(reactions), reactions[-1].reward) == (2 * 2 + 10, 0)
    assert reactions[-1].info["score"]["refusals"] == len(reactions)
    assert conversation(REPLAYSCM, item).messages[0]["content"] == ""


@pytest.mark.parametrize(
    "line",
    [
        ["harden", "POOL", "--out", "OUT", "--workers", "1"],
        ["separate", "POOL", "ID"],
        ["pool", "alternatives", "POOL", "OUT"],
        ["pool", "convert", "POOL", "YAML"],
    ],
)
@pytest.mark.parametrize("is_episode", [False, True])
def test_commands_for_plain_items_refuse_extended_ones(line: list[str], is_episode: bool, tmp_path: Path) -> None:
    item = small_problem(3, rate="1/10", is_episode=is_episode)
    write_pool(Pool("pool", (item,)), tmp_path / "pool.jsonl")
    names = {
        "POOL": tmp_path / "pool.jsonl",
        "OUT": tmp_path / "out.jsonl",
        "YAML": tmp_path / "out.yaml",
        "ID": item.id,
    }
    done = called(*[names.get(word, word) for word in line])
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("is_episode", [False, True])
def test_extended_items_are_explained(is_episode: bool, tmp_path: Path) -> None:
    item = small_problem(3, rate="1/10", is_episode=is_episode)
    write_pool(Pool("pool", (item,)), tmp_path / "pool.jsonl")
    done = called("show", tmp_path / "pool.jsonl", item.id, "--why")
    assert done.returncode == 0
    assert re.fullmatch(rf"{item.id} is item-[0-9a-f]{{16}} there, an id that tells nothing of it\n", done.stderr)
    assert re.match("Why is \u201citem-[0-9a-f]{16}\u201d open", done.stdout)  # ids may name what is sealed


def test_reports_draw_bits_by_world_and_calibration(tmp_path: Path) -> None:
    """Run, report, plots and page of items with noise and without, through the commands alone."""
    pool, runs, page = tmp_path / "pool.jsonl", tmp_path / "runs", tmp_path / "report.html"
    write_pool(Pool("pool", tuple(small_problem(seed, rate=rate) for seed, rate in enumerate((None, "1/10")))), pool)
    assert called("run", "greedy,random", pool, "--out", runs, "--workers", "1").returncode == 0
    done = called("report", runs, "--pool", pool, "--out", page, "--no-times", "--plots", tmp_path / "plots")
    assert done.returncode == 0, done.stderr
    for name in ("bits_left", "posterior_calibration"):
        assert "<svg" in (tmp_path / "plots" / f"{name}.svg").read_text("utf-8")
    text = page.read_text("utf-8")
    for title in ("Bits left by world", "Calibration of posteriors"):
        assert f'role="img" aria-label="{title}"' in text
    shown = called("show", pool, "small_0_None_0", "--run", runs, "--html", tmp_path / "episode.html")
    assert shown.returncode == 0, shown.stderr
