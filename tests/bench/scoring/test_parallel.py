"""Long files: as many processes as one likes, the same verdicts, in the same order, with the same table."""

from __future__ import annotations

import json
import pickle
import weakref
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.scoring import Prediction
from calibrant.bench.core.verdict import LazyVerdict
from calibrant.bench.replayscm.verdict import METRICS
from calibrant.bench.report.table import ResultTable
from calibrant.bench.scoring import parallel
from calibrant.bench.scoring.answers import unread_reason
from calibrant.bench.scoring.lines import json_line
from calibrant.bench.scoring.predictions import Predictions
from calibrant.bench.scoring.scorer import PoolScorer
from calibrant.dsl.replayscm.pools.files import write_pool
from tests.support.commands import jsonl
from tests.support.stub_protocols import small_pool

TEXTS = (
    *('{"mechanisms": {"X3": "(and X1 X2)"}}', '```json\n{"mechanisms": {"X3": "(xor X1 X2)"}}\n```', "no idea", ""),
    *('{"mechanisms": {"X3": "(and X1 X9)"}}', '{"mechanisms": {"X3": "(and X1"}}', '{"mechanisms": {"X4": "X1"}}'),
    *(
        '{"mechanisms": 1}',
        '{"mechanisms": {"X3": "X3"}}',
        ' {"mechanisms": {"X3": "(not X1)"}}',
        '{"mechanisms": {"X3": 1}}',
    ),
)
FORM = " variable: formula"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    pool = tmp_path / "small.jsonl"
    problems = small_pool(["good", "or", "good"])
    write_pool(problems, pool)
    lines: list[dict[str, Any]] = [
        {"instanceId": problem.id, "model": f"model {number % 2}", "response": text}
        for number, text in enumerate(TEXTS * 3)
        for problem in problems.problems
    ]
    return pool, jsonl(tmp_path / "said.jsonl", *lines)


def test_processes_change_nothing(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(parallel, "PARALLEL_THRESHOLD", 10)
    monkeypatch.setattr(parallel, "GROUP_SIZE", 7)
    found = []
    for workers in ("1", "2"):
        out = tmp_path / f"verdicts{workers}.jsonl"
        assert main(["score", *map(str, files), "--out", str(out), "--workers", workers]) == 0
        found.append((out.read_bytes(), capsys.readouterr()))
    assert found[0][0] == found[1][0]
    assert found[0][1].out == found[1][1].out
    assert found[0][1].err == found[1][1].err.replace("verdicts2", "verdicts1")  # the hint names the file
    assert found[0][0].count(b"\n") == 99
    first = small_pool(["good"]).problems[0].id
    assert f"27 responses hold no answer that can be read (first: {first}: no_json)\n" in found[0][1].err


def test_responses_without_an_answer_are_counted_however_they_are_scored(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for options in ([], ["--structure"], ["--extractor", "published"]):
        assert main(["score", *map(str, files), *options]) == 0
        said.append([line for line in capsys.readouterr().err.splitlines() if "that can be read" in line])
    assert said[0] == said[1]
    assert [line.partition("(")[0] for (line,) in said] == ["27 responses hold no answer that can be read "] * 3
    scorer = PoolScorer([files[0]])
    reasons = []
    for prediction in Predictions(files[1], scorer):
        _, late = scorer.score(prediction)
        assert isinstance(late, LazyVerdict)
        assert unread_reason(late) == unread_reason(late.record()) == unread_reason(pickle.loads(pickle.dumps(late)))
        reasons.append(unread_reason(late))
    assert {reason for reason in reasons if reason} == {
        "no_json",
        "empty",
        "'mechanisms' is 1, not an object of" + FORM,
    }


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("order", ["by item", "in turns", "one item"])
def test_shares_are_equal_whatever_the_order_of_the_file(order: str, workers: int) -> None:
    items = {"by item": [n // 400 for n in range(4_000)], "in turns": [n % 10 for n in range(4_000)]}
    predictions = [Prediction("pool", f"I{n}", "m", 0, "") for n in items.get(order, [0] * 4_000)]
    shards = parallel.ItemShards(workers, lead=50)
    places = [shards.assign(one) for one in predictions]
    for end in range(1, 4_001):
        if end % 97 == 0 or end == 4_000:
            given = [places[:end].count(number) for number in range(workers)]
            assert max(given) - min(given) <= 50
    if order == "in turns":
        moved = sum(place != n % 10 % workers for n, place in enumerate(places))
        assert moved < len(places) / 5  # what one has read of an item others hardly read again


def test_what_is_before_a_line_that_is_refused_has_been_scored(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(parallel, "PARALLEL_THRESHOLD", 10)
    monkeypatch.setattr(parallel, "GROUP_SIZE", 7)
    lines = files[1].read_bytes().splitlines(keepends=True)
    files[1].write_bytes(b"".join(lines[:40]) + b'{"instanceId": 3}\n' + b"".join(lines[40:]))
    assert main(["score", *map(str, files), "--json", "--workers", "2"]) == 2
    said = capsys.readouterr()
    assert said.out.count("\n") == 40
    assert "line 41: instanceId is '3', not a text" in said.err.replace("instanceId is 3", "instanceId is '3'")


def test_a_table_counts_the_same_of_a_line_before_it_is_made(files: tuple[Path, Path]) -> None:
    scorer = PoolScorer(files[:1])
    late, made = ResultTable(METRICS), ResultTable(METRICS)
    for prediction in Predictions(files[1], scorer):
        origin, line = scorer.score(prediction)
        assert isinstance(line, LazyVerdict)
        late.add(origin, line)
        made.add(origin, dict(line))
        assert json.loads(json_line(line)) == dict(line)
    assert late.to_json() == made.to_json()
    assert [row.to_dict() for row in late.sample_rows()] == [row.to_dict() for row in made.sample_rows()] != []


def test_what_a_scorer_has_kept_is_not_sent_to_other_processes_and_can_be_dropped(files: tuple[Path, Path]) -> None:
    scorer = PoolScorer(files[:1])
    before = len(pickle.dumps(scorer))
    verdicts = [json_line(scorer.score(prediction).line) for prediction in Predictions(files[1], scorer)]
    sent = pickle.loads(pickle.dumps(scorer))
    assert len(pickle.dumps(scorer)) < 2 * before
    cached = weakref.ref(scorer.evaluator(next(iter(Predictions(files[1], scorer)))))
    assert cached() is not None
    scorer.clear_cache()
    assert cached() is None
    for other in (scorer, sent):
        assert verdicts == [json_line(other.score(one).line) for one in Predictions(files[1], other)]
