"""Metrics, their means over samples, and the fields of verdicts."""

from __future__ import annotations

import io
import json
from math import sqrt
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, Struct

from calibrant.bench.commands.start import listing
from calibrant.bench.core.attribution import verdict_text
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.metrics import Metric, ObservationReader, View
from calibrant.bench.core.registry import NAMES, benchmark, benchmarks, bundled_pools, bundled_sample
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.core.verdict import MeanScore, change_score, line_struct
from calibrant.bench.play.folder import Player, PlayFolder
from calibrant.bench.play.game import PlayPool
from calibrant.bench.play.review import Reviews
from calibrant.bench.replayscm.rows.exact import Exact
from calibrant.bench.report.sources import scored_answers
from calibrant.bench.report.table import DrawnTies
from calibrant.bench.runs.records import folder_records
from calibrant.bench.runs.runner import Selection, run
from tests.support.commands import called, jsonl
from tests.support.pages.metric_tables import PAGE, page_text

# --- The metrics of every benchmark: each with a meaning, on the page of metrics --------------------------------------


def test_the_page_of_metrics_is_written_from_the_declarations() -> None:
    assert PAGE.read_text("utf-8") == page_text(), "python -m tests.support.pages.metric_tables"


@pytest.mark.parametrize("benchmark", benchmarks(), ids=lambda benchmark: benchmark.name)
def test_every_metric_has_a_meaning_and_a_key_of_its_own(benchmark: Benchmark[Any]) -> None:
    metrics = [metric for view in benchmark.metrics.views.values() for metric in view.metrics]
    assert len({metric.key for metric in metrics}) == len(metrics)
    for metric in metrics:
        assert len(metric.meaning) >= 10
        assert not metric.meaning.endswith(".")


def test_a_caption_explains_what_is_shown() -> None:
    metrics = [Metric(key, key.upper(), f"means {key}", lambda verdict: None) for key in ("a", "b", "c")]
    assert View(tuple(metrics), note="Of all.").caption({"a", "c"}) == "Of all. A: means a. C: means c."
    assert View(tuple(metrics)).caption(()) == ""


# --- Rates of a row that chooses by a tie rule: means over all equally good answers -----------------------------------
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


# --- Lines of `calibrant score`: what all benchmarks share around the fields of a score -------------------------------
HEAD = ["benchmark", "instanceId", "model", "sample"]
READING = ["correctPublished", "correctLenient", "reason", "source", "stop", "warnings", "repairs"]
TAIL = [*READING, "pool", "poolDigest", "poolSize", "setting", "stratum", "seconds"]


class Fields(Struct, kw_only=True, rename={"kind": "class"}):
    """A score."""

    kind: Annotated[str, Meta(description="a word")]
    size: Annotated[int, Meta(description="a number")] = 0


LINE = line_struct("Line", "chess", Fields, "A line.", problem=Annotated[str, Meta(description="why not")])


def test_a_line_has_the_fields_of_the_score_between_those_of_all() -> None:
    assert [field.encode_name for field in msgspec.structs.fields(LINE)] == [
        *HEAD,
        "template",
        "class",
        "size",
        "problem",
        *TAIL,
    ]
    assert LINE.__doc__ == "A line."
    schema = msgspec.json.schema(LINE)["$defs"]["Line"]
    assert all(value["description"] for value in schema["properties"].values())
    assert "size" not in schema["required"]


def test_a_line_is_read_strictly() -> None:
    where: dict[str, Any] = {
        "pool": "p",
        "poolDigest": "d",
        "poolSize": 1,
        "setting": "s",
        "stratum": "",
        "seconds": None,
    }
    line = {"benchmark": "chess", "instanceId": "i", "model": None, "sample": 0, "class": "k", "problem": ""} | where
    reading = {"correctPublished": None, "correctLenient": None, "reason": "", "source": "", "stop": ""}
    defaults: dict[str, Any] = {"size": 0, **reading, "warnings": [], "repairs": []}
    assert msgspec.to_builtins(msgspec.convert(line, LINE, strict=True)) == line | defaults
    for wrong in ({"benchmark": "go"}, {"kind": "k"}, {"sample": "0"}, {"size": None}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(line | wrong, LINE, strict=True)


@pytest.mark.parametrize("benchmark", benchmarks(), ids=lambda benchmark: benchmark.name)
def test_every_benchmark_says_where_an_answer_belongs(benchmark: Any) -> None:
    keys = [field.encode_name for field in msgspec.structs.fields(benchmark.scoring.verdict_record)]
    assert {*HEAD[1:], *TAIL} <= {*keys}
    assert benchmark.name == "replayscm" or (keys[: len(HEAD)], keys[-len(TAIL) :]) == (HEAD, TAIL)


# --- One meaning of a right answer: in lists, play, reviews and classes of attribution --------------------------------
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
        row = Reviews(folder).get("p", source.key(None)).row()
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
    why, answers = called("list", pool, "--why"), called("list", pool, "--scores", scores, "--class", "no_answer")
    assert "24,576" in why.stdout
    assert "Fit counts functional parents <= 4, any formula size, Hidden-order" in why.stderr
    assert "1.3 \N{MULTIPLICATION SIGN} 10" in answers.stdout
    assert "Left counts functional parents <= 5, any formula size, Hidden-order" in answers.stderr
    assert "Earned and missed" not in answers.stderr


@pytest.mark.parametrize(
    ("kind", "left", "said"), [("earned", "4", True), ("earned", "1", False), ("lucky", "4", False)]
)
def test_an_earned_answer_with_several_worlds_left_is_explained(kind: str, left: str, said: bool) -> None:
    lines = list(listing._counted_lines([{"id": "i", "class": kind, "left": left, listing.COUNTED_CLASS: "worlds"}]))
    assert lines[0] == "Left counts worlds"
    explained = ["Earned and missed: what is left decides the answer, though it may be several"]
    assert lines[1:] == (explained if said else [])
