"""Blickets as a benchmark: what the registry says of it, and text episodes with numbered moves."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from calibrant.audits.attribution import Kind
from calibrant.bench.blickets.agents import text_episode
from calibrant.bench.blickets.benchmark import BENCHMARK
from calibrant.bench.cli import main
from calibrant.bench.core.attribution import KINDS
from calibrant.bench.core.registry import bundled_sample
from calibrant.bench.runs.records import folder_records
from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.blickets.records import read_pool
from tests.support.commands import jsonl, refused


# Blicket pools under the commands: drawn, run, tabled, played, audited, refused where there is nothing for them
@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("blickets") / "pool.jsonl"
    line = ["generate", "--benchmark", "blickets", "--seed", "5", "--strata", "conjunctive,easy-3,stochastic"]
    assert main([*line, "--per-stratum", "2", "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def items(pool: Path) -> tuple[BlicketItem, ...]:
    return tuple(BENCHMARK.items.read_pool(pool).items)


def test_tables_know_the_kinds_of_attribution() -> None:
    assert tuple(Kind) == KINDS


def test_the_same_seed_draws_the_same_bytes(pool: Path, tmp_path: Path, items: tuple[BlicketItem, ...]) -> None:
    again = tmp_path / "pool.jsonl"
    line = ["generate", "--benchmark", "blickets", "--seed", "5", "--strata", "conjunctive,easy-3,stochastic"]
    assert main([*line, "--per-stratum", "2", "--out", str(again)]) == 0
    assert again.read_bytes() == pool.read_bytes()
    assert [(item.id, item.stratum) for item in items][::2] == [
        ("conjunctive-5-0", "conjunctive"),
        ("easy-3-5-0", "easy-3"),
        ("stochastic-5-0", "stochastic"),
    ]


def test_runs_keep_steps_and_attributions_and_do_not_depend_on_workers(pool: Path, tmp_path: Path) -> None:
    for workers, rows in (("1", "static,abstain"), ("2", "static")):
        assert main(["run", rows, str(pool), "--out", str(tmp_path / workers), "--workers", workers]) == 0
    one, two = (sorted(folder_records(tmp_path / name), key=lambda r: r.key) for name in "12")
    static = {r.instance: r for r in one if r.protocol == "static"}
    assert [(r.key, r.answer, r.score, r.steps, r.attribution) for r in static.values()] == [
        (r.key, r.answer, r.score, r.steps, r.attribution) for r in two
    ]
    conjunctive = static["conjunctive-5-0"]
    assert conjunctive.benchmark == "blickets"
    assert (conjunctive.score["correct"], _kind(conjunctive.attribution)) == (True, "earned")
    assert all(_kind(r.attribution) == "short" and r.score["steps"] == 0 for r in one if r.protocol == "abstain")


def _kind(attribution: Any) -> str:
    assert isinstance(attribution, Mapping)
    return str(attribution["kind"])


def test_a_run_goes_on_and_its_table_counts_by_condition(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["run", "static", str(pool), "--out", str(tmp_path / "out"), "--workers", "1"]
    assert main([*line, "--limit", "3"]) == 0
    capsys.readouterr()
    assert main([*line, "--json"]) == 0
    printed = capsys.readouterr()
    assert "3 instances answered, 3 had a record already" in printed.err
    rows = {row["setting"]: row for row in json.loads(printed.out)["rows"]}
    assert list(rows) == ["conjunctive", "moderator", "stochastic"]
    assert [(row["n"], row["coverage"], row["benchmark"]) for row in rows.values()] == [(2, 1.0, "blickets")] * 3
    assert (rows["conjunctive"]["accuracy"], rows["conjunctive"]["earned"]) == (1.0, 1.0)
    assert main(["table", str(tmp_path / "out"), "--attribution"]) == 0
    assert "Earned  Lucky  Missed  Short" in capsys.readouterr().out.splitlines()[0]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda *lines: monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_an_episode_is_played_in_lines_of_json(pool: Path, typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (item,) = [one for one in BENCHMARK.items.read_pool(pool).items if one.id == "conjunctive-5-1"]
    rule = item.sealed.mechanisms[0].rule.as_json(item.task.objects)
    first = rule["blickets"][0]
    typed(json.dumps({"place": first}), "what?", json.dumps({"remove": "Z"}), json.dumps({"check": rule}))
    assert main(["play", str(pool), item.id, "--jsonl"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["task", "step", "unreadable", "step", "step", "verdict"]
    assert (events[1]["reading"], events[1]["left"]) == ("INACTIVE", item.task.budget - 1)
    assert events[3]["refused"] == "unknown object"
    assert (events[-1]["score"]["correct"], events[-1]["attribution"]["kind"]) == (True, "lucky")


def test_an_episode_that_ends_with_the_input_is_not_right(
    pool: Path, typed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    typed('{"place": "A"}')
    assert main(["play", str(pool)]) == 1
    assert (
        capsys.readouterr().out.splitlines()[-1] == "not right: no answer was given; what you saw left several answers"
    )
    typed()
    assert main(["play", str(pool)]) == 1
    capsys.readouterr()
    assert "no instance 'nobody'" in refused(capsys, "play", pool, "nobody")


def test_a_pool_is_written_again_with_the_same_items(
    pool: Path, tmp_path: Path, items: tuple[BlicketItem, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    packed, again = tmp_path / "pool.jsonl.gz", tmp_path / "again.jsonl"
    packed.write_bytes(gzip.compress(pool.read_bytes()))
    assert main(["pool", "convert", str(packed), str(again)]) == 0
    assert "6 instances written" in capsys.readouterr().err
    assert again.read_bytes() == pool.read_bytes()
    assert tuple(BENCHMARK.items.read_pool(again).items) == items
    before = again.read_bytes()
    assert main(["pool", "convert", str(again), str(again)]) == 2
    assert again.read_bytes() == before


def test_findings_have_certificates_that_hold_until_they_are_touched(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["audit", str(pool), "--only", "easy-3-5-0", "--certificates", str(tmp_path), "--json"]
    assert main(line) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"vacuous", "gameable"} <= {one["kind"] for one in found if one["verdict"] == "proved"}
    files = sorted(tmp_path.glob("*.claim.json"))
    assert len(files) == sum(one["certificate"] is not None for one in found) > 2
    assert main(["verify", *map(str, files), str(pool)]) == 0
    forged = json.loads(files[0].read_text(encoding="utf-8"))
    forged["instance"] = "conjunctive-5-0"
    jsonl(tmp_path / "forged.json", forged)
    jsonl(tmp_path / "list.json", [1])
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "forged.json"), str(tmp_path / "list.json"), str(pool), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [(one["verified"], one["reason"]) for one in told] == [
        (False, "made for other evidence"),
        (False, "not a JSON object"),
    ]


def test_a_gate_fails_on_a_flaw_that_is_proved(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(pool), "--fail-on", "vacuous"]) == 1
    assert main(["audit", str(pool), "--fail-on", "vacuous", "--only", "conjunctive-5-0"]) == 0
    capsys.readouterr()
    assert main(["audit", str(pool), "--fail-on", "moonshine"]) == 2
    assert "unknown kind 'moonshine'; known: ambiguous, " in capsys.readouterr().err


def test_prompts_and_items_show_nothing_that_is_sealed(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prompts", str(pool)]) == 0
    prompts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(prompts) == 6
    assert len({one["prompt"] for one in prompts}) == 1  # the same objects and budget, whatever the rule
    assert main(["show", str(pool), "easy-3-5-0", "--json"]) == 0
    assert "sealed" not in json.loads(capsys.readouterr().out)
    assert main(["show", str(pool), "easy-3-5-0", "--json", "--gold"]) == 0
    assert "rule1" in json.loads(capsys.readouterr().out)["sealed"]


@pytest.mark.parametrize(
    "line",
    [
        ("harden", "POOL", "--out", "OUT", "--seed", "1"),
        ("score", "POOL", "POOL"),
        ("separate", "POOL", "easy-3-5-0"),
        ("generate", "--benchmark", "blickets", "--seed", "1", "--strata", "nowhere", "--out", "OUT"),
        ("generate", "--benchmark", "chess", "--seed", "1", "--out", "OUT"),
    ],
)
def test_what_is_not_for_blickets_is_refused_in_one_line(
    line: tuple[str, ...], pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"POOL": str(pool), "OUT": str(tmp_path / "out")}
    refused(capsys, *(places.get(word, word) for word in line))
    assert not (tmp_path / "out").exists()


# --- Text episodes with numbered moves, and the share of replies without an action ------------------------------------
def item() -> BlicketItem:
    return next(one for one in read_pool(bundled_sample("blickets")).items if len(one.task.objects) == 5)


def test_a_number_is_the_move_that_is_listed_under_it() -> None:
    episode = text_episode(item(), actions="numbered")
    opening = episode.reset()[-1]["content"]
    first, second = item().task.objects[:2]
    assert f"1. place {first}\n2. place {second}" in opening
    reaction = episode.reply("I think.\nACTION: 2")
    assert reaction.info["steps"][0]["action"] == {"place": second}
    assert f"1. place {first}\n2. remove {second}" in reaction.text
    assert episode.reply("**ACTION:** 2").info["steps"][0]["action"] == {"remove": second}
    assert episode.reply(f"ACTION: place {first}").info["steps"][0]["action"] == {"place": first}


def test_a_number_without_a_move_is_no_action_and_counts_as_unread() -> None:
    episode = text_episode(item(), actions="numbered")
    episode.reset()
    for reply in ("ACTION: 0", "ACTION: 6", "nothing"):
        reaction = episode.reply(reply)
        assert reaction.info["steps"] == []
        assert "Not understood" in reaction.text
    names = " ".join(item().task.objects[:2])
    score = episode.reply(f"ACTION: check conjunctive {names}").info["score"]
    assert score["unread"] == 0.75


def test_without_the_option_numbers_are_no_actions() -> None:
    episode = text_episode(item())
    assert "1. place" not in episode.reset()[-1]["content"]
    assert episode.reply("ACTION: 1").info["steps"] == []
