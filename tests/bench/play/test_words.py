"""Words for people: every benchmark solved by typing, mistakes that cost nothing, records that commands read."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

import calibrant
from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark_of, bundled_sample
from calibrant.bench.core.typed_moves import Act, Position, WordsError
from calibrant.bench.play.game import Game, PlayPool, item_state
from calibrant.bench.runs.records import Record, folder_records
from tests.support.commands import NEXT, called, jsonl
from tests.support.play.right_lines import OTHER_QUESTIONS, POOLS, first_item, pool_file, right_actions, right_lines

KINDS = ("logic", "blickets", "causalab", "causim", "replayscm", "hidden roots", "episode", "hidden episode")
each = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def pool(kind: str, tmp_path: Path) -> Path:
    return pool_file(kind, tmp_path)


def play(monkeypatch: pytest.MonkeyPatch, pool: Path, lines: list[str], *options: object) -> Any:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    return called("play", pool, *options)


def content(folder: Path) -> list[dict[str, Any]]:
    """Return the records of a folder without times and participants."""
    records = [msgspec.to_builtins(record) for record in folder_records(folder)]
    return [{k: v for k, v in record.items() if k not in ("timing", "protocol")} for record in records]


@pytest.mark.parametrize("kind", [*KINDS, "noisy episode", *OTHER_QUESTIONS])
def test_typed_and_sent_moves_give_equal_records_that_commands_read(
    kind: str, pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = first_item(pool)
    typed, sent = tmp_path / "typed", tmp_path / "sent"
    done = play(monkeypatch, pool, right_lines(item), "--out", typed, "--participant", "p1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert play(monkeypatch, pool, right_actions(item), "--out", sent, "--jsonl").returncode == 0
    assert content(typed) == content(sent)
    (record,) = folder_records(typed)
    assert (record.protocol, record.outcome, record.score["correct"]) == ("human:p1", "found", True)
    bench = benchmark_of(pool)
    num_moves = len(record.steps) if isinstance(record.steps, list) else 1
    assert isinstance(record.timing.moves, list)
    assert len(record.timing.moves) == num_moves
    again = called("score", pool, typed / "records.jsonl", "--out", tmp_path / "scores.jsonl")
    assert again.returncode == 0, again.stderr
    (scored,) = map(json.loads, (tmp_path / "scores.jsonl").read_text(encoding="utf-8").splitlines())
    assert (scored["model"], scored["instanceId"], scored["correct"]) == ("human:p1", item.id, True)
    assert "human:p1" in called("table", typed).stdout
    if kind == "blickets":  # reading records is the same for all
        assert called("report", typed, "--no-times", "--out", tmp_path / "report.txt").returncode == 0
    if bench.is_interactive(item):
        called("show", pool, item.id, "--run", typed, "--html", tmp_path / "show.html")
        assert "human:p1" in (tmp_path / "show.html").read_text(encoding="utf-8")


MISTAKES = {
    "logic": (
        "n2 <- n9",
        "n2 <-",
        "n2",
        "drop n2 <- s1",
        "chance 9 n1 = 1",
        "chance n1 = 2",
        "submit",
        "chance 1 s1 = 1",
    ),
    "blickets": ("plac A", "place Q", "remove A", "check both A", "check conjunctive", "check all A Q", "submit"),
    "causalab": ("set", "set mass 3", "set density x", "reactor", "reactor soon", "a -> b", "density -> density"),
    "causim": ("Ruba = NUB", "ruba: MAV", "values Nobody", "submit", "Nobody = 3", '{"submit": {"Ruba": "MAV"}}'),
    "replayscm": ("X9 = X1", "X1 = X2", "X4 = X1 and", "X4 = X4", "X4 = nand(X1, X2)", "submit", '{"x": 1}'),
    "hidden roots": ("roots X1", "roots X1 X2 X9", "submit", "noise 1/10"),
    "hidden episode": ("X2 = H2", "submit", "H2 = X1", "do H1=1", "H1 = H1"),
    "episode": ("do", "do X1=1 X1=0", "do X1", "do X1=2", "do X9=1", "do X1=1 with 000", "X4 = X1 or", "submit"),
}


@each
def test_a_typing_error_costs_nothing_and_names_what_would_work(
    kind: str, pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = first_item(pool)
    lines = [*MISTAKES[kind], "", "help", "show", "undo", *right_lines(item)]
    done = play(monkeypatch, pool, lines, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    expected = tmp_path / "expected"
    play(monkeypatch, pool, right_lines(item), "--out", expected)
    assert content(tmp_path / "out") == content(expected)
    source = PlayPool(pool)
    shown = source.public.shown(source.item(None))
    for line in MISTAKES[kind]:
        if not line.startswith("{"):
            with pytest.raises(WordsError):
                source.words.read(shown, Position((), 5, {}), line)


def test_a_game_ends_with_the_file_that_it_wrote_and_commands_that_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, out = pool_file("blickets", tmp_path), tmp_path / "out"
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"{line}\n" for line in right_lines(first_item(pool)))
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    assert main(["play", str(pool), "--out", str(out), "--participant", "p1"]) == 0
    errors = capsys.readouterr().err
    assert f"record written to {out / 'records.jsonl'}\n" in errors
    commands = [line.partition("calibrant ")[2] for line in NEXT.findall(errors)]
    assert [line.split()[0] for line in commands] == ["table", "play"]
    for line in commands:
        assert main(shlex.split(line)) == 0
    assert "1 item of p1: review.html" in capsys.readouterr().out


def test_a_game_goes_on_where_it_was_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, out = pool_file("blickets", tmp_path), tmp_path / "out"
    lines = right_lines(first_item(pool))
    for line in lines[:-1]:
        done = play(monkeypatch, pool, [line, "quit"], "--out", out)
        assert "the same command goes on" in done.stderr
        with (out / "moves.jsonl").open("ab") as journal:  # a process that was killed while it wrote
            journal.write(b'{"participant":"yo')
    assert "left open" in play(monkeypatch, pool, ["answer all A B"], "--out", out).stderr  # the input ends
    assert "No answer is written" in play(monkeypatch, pool, ["show", "undo", "quit"], "--out", out).stdout
    assert play(monkeypatch, pool, lines[-1:], "--out", out).returncode == 0
    at_once = tmp_path / "at once"
    play(monkeypatch, pool, lines, "--out", at_once)
    assert content(out) == content(at_once)


def test_a_record_that_a_kill_prevented_is_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, out = pool_file("causim", tmp_path), tmp_path / "out"
    play(monkeypatch, pool, right_lines(first_item(pool)), "--out", out)
    whole = (out / "records.jsonl").read_bytes()
    for kept in (b"", whole[:50]):
        (out / "records.jsonl").write_bytes(kept)
        assert play(monkeypatch, pool, [], "--out", out).stdout.splitlines()[-1].startswith("right; whether ")
        assert (out / "records.jsonl").read_bytes() == whole


def test_giving_up_closes_an_item_without_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, out = pool_file("replayscm", tmp_path), tmp_path / "out"
    assert play(monkeypatch, pool, ["give up"], "--out", out).returncode == 1
    (record,) = folder_records(out)
    assert (record.outcome, record.score["correct"]) == ("out_of_budget", False)
    assert record.provenance == {"reason": "the participant gave no answer"}


@pytest.mark.parametrize("name", ["", " ", "../x", "a b", "é", "x" * 65, "-x"])
def test_a_participant_id_is_checked(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = pool_file("blickets", tmp_path)
    assert main(["play", str(pool), "--out", str(tmp_path / "out"), "--participant", name]) == 2
    assert "is no participant id" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_records_of_a_run_are_predictions_too(tmp_path: Path) -> None:
    pool = pool_file("blickets", tmp_path)
    called("run", "static", pool, "--out", tmp_path / "run", "--limit", 2, "--workers", 1)
    records: list[Record] = list(folder_records(tmp_path / "run"))
    called("score", pool, tmp_path / "run" / "records.jsonl", "--out", tmp_path / "scores.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(line["model"], line["instanceId"], line["correct"]) for line in lines] == [
        (record.protocol, record.instance, record.score["correct"]) for record in records
    ]
    other = {"rule": "conjunctive", "blickets": list(first_item(pool).task.objects)}
    changed = jsonl(tmp_path / "changed.jsonl", msgspec.to_builtins(records[0]) | {"answer": other})
    assert "is not what the steps submit" in called("score", pool, changed).stderr


def test_an_aid_is_shown_after_each_reading_and_named_in_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, out, aided = pool_file("causalab", tmp_path), tmp_path / "out", ("--aid", "members")
    item = first_item(pool)
    name = item.task.settable[0]
    begun = play(monkeypatch, pool, [f"set {name} 3"], "--out", out, *aided)
    episode = calibrant.open_episode(item)
    expected = [calibrant.version_space(item, steps=()).count]
    episode.act({"set": name, "value": 3})
    expected.append(calibrant.version_space(item, steps=episode.steps).count)
    texts = [line for line in begun.stdout.splitlines() if line.startswith("Mechanisms that fit all readings: ")]
    assert [int(text.split(": ")[1].split(".")[0]) for text in texts] == expected
    refused = play(monkeypatch, pool, ["quit"], "--out", out)
    assert refused.returncode == 2
    assert "begun with --aid members" in refused.stderr
    assert item.id not in refused.stderr
    events = play(monkeypatch, pool, ['{"reactor": 3}', "quit"], "--out", out, "--jsonl", *aided).stdout
    task, earlier, tried, *_ = map(json.loads, events.splitlines())
    assert (task["aid"], earlier["reading"][name], "aid" in tried) == (texts[1], 3, bool(tried["cost"]))
    play(monkeypatch, pool, ["give up"], "--out", out, *aided)
    (record,) = folder_records(out)
    assert record.config == {"aid": "members"}
    shown = item_state(Game(PlayPool(pool), item.id), with_cells=False, aid=Path("members"))
    assert shown["aid"] == texts[0]
    assert "aid" not in item_state(Game(PlayPool(pool), item.id), with_cells=False)
    other = play(monkeypatch, pool_file("causim", tmp_path), [], *aided)
    assert (other.returncode, "it supports CausaLab" in other.stderr) == (2, True)


def test_assignments_of_a_program_are_read_without_json() -> None:
    pool = PlayPool(POOLS["causim"])
    openings = [pool.words.opening(pool.item(name)) for name in pool.indices]
    assert "Given noise: U_Side = jat\nUnknown noise: U_Ruba\n" in openings[0]
    assert any("Given noise: none\n" in text for text in openings)
    assert any(" = false" in text for text in openings)
    givens = [line for text in openings for line in text.split("```")[2].splitlines() if ": " in line]
    assert givens
    assert not any(set(line) & set("{}[]") for line in givens)


def test_readings_of_a_laboratory_are_read_without_json() -> None:
    pool = PlayPool(POOLS["causalab"])
    game = Game(pool, pool.key(None).instance)
    name = next(iter(pool.words.view(game.shown)["settable"]))
    stated = pool.words.read(game.shown, game.position, f"set {name} 3")
    assert isinstance(stated, Act)
    step = game.act(stated.action)
    assert step is not None
    assert f"{name} = 3.0" in game.step_text(step)
    assert game.step_text(step).endswith(f". Settings left: {game.num_left}.")
    assert not set(game.step_text(step)) & set('{}"')


def test_an_intervention_is_read_as_reasons_write_it() -> None:
    source = PlayPool(bundled_sample("replayscm_episodes"))
    shown = source.public.shown(source.item(None))
    acts = [
        source.words.read(shown, Position((), 5, {}), line)
        for line in ("do X1=1 X2=0", "do(X1 = 1, X2 = 0)", "do X1 = 1, X2 = 0", "do X2=0 X1=1")
    ]
    assert acts == [Act({"do": {"X1": 1, "X2": 0}})] * 4


@pytest.mark.parametrize("is_json", [False, True])
def test_a_move_inside_thoughts_is_none(is_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words and in JSON: what stands outside is the move, and a line of thoughts alone costs nothing."""
    moves = ['{"place": "A"}', '{"place": "B"}'] if is_json else ["place A", "place B"]
    lines = [f"<think>{moves[0]}</think>{moves[1]}", f"<think>{moves[0]}", f"{moves[0]}</think>"]
    result = play(monkeypatch, bundled_sample("blickets"), lines, *(["--jsonl"] if is_json else []))
    assert "the reply ends inside its thoughts" in result.stdout
    assert "the reply holds thoughts only" in result.stdout
    steps = [line for line in result.stdout.splitlines() if "The detector is " in line and "Moves left" in line]
    assert len(steps) == 1
    assert "On the detector: B." in steps[0]
