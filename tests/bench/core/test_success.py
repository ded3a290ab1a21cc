"""One meaning of a right answer: in lists, play, reviews and classes of attribution."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from calibrant.bench.core.attribution import verdict_text
from calibrant.bench.core.registry import NAMES, benchmark, bundled_sample
from calibrant.bench.play.folder import Player, PlayFolder
from calibrant.bench.play.game import PlayPool
from tests.support.commands import called, jsonl

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
POOL = EXAMPLES / "switches.jsonl"  # X3 = X1 replays its held-out world; X3 = X1 and X2 its training world alone
ENDS = {
    "X3 = X1": (True, "lucky", "right, but by luck (lucky): what you saw left several answers"),
    "X3 = X1 and X2": (False, "short", "not right, and the evidence was short: what you saw left several answers"),
    "X3 = X2": (False, "short", "not right: your answer contradicts what you saw; what you saw left several answers"),
}


def test_a_list_of_answers_calls_right_what_its_classes_call_right(tmp_path: Path) -> None:
    scores = tmp_path / "scores.jsonl"
    called("score", POOL, EXAMPLES / "answers.jsonl", "--out", scores)
    assert [json.loads(line)["correct"] for line in scores.read_text().splitlines()] == [True, True]  # as published
    for kind in ("lucky", "short"):
        done = called("list", POOL, "--scores", scores, "--class", kind, "--json")
        (row,) = map(json.loads, done.stdout.splitlines())
        assert (row["system"], row["right"]) == {"lucky": ("a", True), "short": ("b", False)}[kind]
    plain = called("list", POOL, "--scores", scores, "--json").stdout.splitlines()
    assert [json.loads(line)["right"] for line in plain] == [True, False]


@pytest.mark.parametrize("line", ENDS)
def test_play_ends_with_whether_it_is_right_and_what_the_evidence_decided(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_right, kind, text = ENDS[line]
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{line}\nsubmit\n"))
    done = called("play", POOL)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0 if is_right else 1, text)
    source = PlayPool(POOL)
    with PlayFolder(None, [source], {}) as folder:
        player = Player(folder, "p", source.key(None))
        for each in (line, "submit"):
            player.do(source.words.read(player.game.shown, player.game.position, each))
        verdict = player.verdict()
        row = folder.review("p", source.key(None)).row()
    assert (verdict["right"], verdict["text"], verdict["attribution"]["kind"]) == (is_right, text, kind)
    assert (row["right"], row["class"]) == (is_right, kind)


def test_every_end_of_an_item_has_its_words() -> None:
    recorded = {"decided": True, "fits": True, "members": "1", "class": "rules"}
    end = {"valid": True, "attribution": {**recorded, "kind": "earned"}}
    assert verdict_text(end, is_right=True) == "right, and earned: what you saw left one answer"
    missed = {**end, "attribution": {**recorded, "kind": "missed", "fits": False}}
    assert verdict_text(missed, is_right=False) == "not right, and missed: what you saw left one answer"
    assert verdict_text({**missed, "no_answer": True}, is_right=False).startswith("not right: no answer was given;")
    assert verdict_text({"valid": True}, is_right=True) == "right; whether what you saw decides it is not counted"


def test_forecasts_and_alternatives_are_right_by_their_own_fields() -> None:
    is_right = benchmark("replayscm").metrics.success.is_right
    assert is_right({"favoured": True, "correct": True}, "Episode Hidden-order+noise")
    assert is_right({"jointSuccess": True, "heldoutExact": False}, "Alt-Ordered")
    assert not is_right({"heldoutExact": True}, "Alt-Ordered")
    assert not is_right({"valid": False, "correct": False}, "Ordered")


def test_every_benchmark_says_what_is_right() -> None:
    page = (EXAMPLES.parent / "metrics.md").read_text()
    for name in NAMES:
        assert benchmark(name).metrics.success.meaning in page


def test_a_count_names_the_class_that_it_is_of(tmp_path: Path) -> None:
    """Reasons may not read gold, whose parents set the class of attributions: the two differ on this item."""
    name = "CAL_vhs_n8_dense_20000001"
    header, *lines = bundled_sample("hidden_order").read_text("utf-8").splitlines()
    pool = jsonl(tmp_path / "one.jsonl", header, next(line for line in lines if name in line))
    given, scores = jsonl(tmp_path / "given.jsonl", {"id": name, "response": "{}"}), tmp_path / "scores.jsonl"
    assert called("score", pool, given, "--out", scores).returncode == 0
    why, answers = called("list", pool, "--why"), called("list", pool, "--scores", scores, "--class", "short")
    assert "24,576" in why.stdout
    assert "Fit counts functional parents <= 4, any formula size, Hidden-order" in why.stderr
    assert "1.3 \N{MULTIPLICATION SIGN} 10" in answers.stdout
    assert "Left counts functional parents <= 5, any formula size, Hidden-order" in answers.stderr
