"""Scoring by several processes, and the cache of evaluators."""

from __future__ import annotations

import gc
import json
import pickle
import weakref
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant.audits.replayscm.attribution
from calibrant.audits.replayscm.attribution import HeldoutDecision
from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pools
from calibrant.bench.core.scoring import EvaluatorCache, Prediction
from calibrant.bench.core.verdict import LazyVerdict, encode_json, encode_rates
from calibrant.bench.replayscm.scoring import ReplayScmAttribution
from calibrant.bench.replayscm.verdict import METRICS
from calibrant.bench.report.table import ResultTable
from calibrant.bench.scoring import lines as parallel
from calibrant.bench.scoring.lines import json_line
from calibrant.bench.scoring.predictions import Predictions
from calibrant.bench.scoring.scorer import PoolScorer
from calibrant.dsl import records
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.score import Score
from tests.support.commands import jsonl
from tests.support.stub_protocols import small_pool

# --- Long files: as many processes as one likes, the same verdicts, in the same order, with the same table ------------
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
        {"instanceId": problem.id, "model": f"model {index % 2}", "response": text}
        for index, text in enumerate(TEXTS * 3)
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
    assert f"27 responses hold no answer that can be read (first: {first}: no_json) at line " in found[0][1].err


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
        assert late.reading.reason == late["reason"] == pickle.loads(pickle.dumps(late))["reason"]
        reasons.append(late.reading.problem)
    assert {reason for reason in reasons if reason} == {
        "no_json",
        "no answer",
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
        assert json_line(line) == encode_json(dict(line))  # though parts of it were encoded for an earlier response
    assert late.to_json() == made.to_json()
    assert [row.to_dict() for row in late.sample_rows()] == [row.to_dict() for row in made.sample_rows()] != []


def test_equal_responses_are_encoded_once_and_their_lines_are_those_of_their_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[int] = Counter()
    make = Score.to_dict
    monkeypatch.setattr(Score, "to_dict", lambda score: (calls.update([id(score)]), make(score))[1])
    for pool in bundled_pools():
        problems, scorer = read_pool(pool).problems[:3], PoolScorer([pool])
        lines = []
        for problem in problems:
            assert problem.sealed.gold is not None
            gold = {name: render(formula) for name, formula in problem.sealed.gold.mechanisms.items()}
            few = dict.fromkeys(list(gold)[:1], problem.task.variables[-1])
            answers = [json.dumps({"mechanisms": mechanisms}) for mechanisms in (gold, few, gold | few)]
            texts = [*answers, f"Thus:\n{answers[0]}", "I refuse", ""]
            lines += [
                {"instanceId": problem.id, "model": model, "response": text, "seconds": seconds}
                for model, seconds in (("m", 1.5), ('\u00e9 "q"', None), ("n", 0), ("o", 1e-5), ("p", 1e16))
                for text in texts
            ]
        scored = [
            scorer.score(read).line for read in Predictions(jsonl(tmp_path / f"{pool.stem}.jsonl", *lines), scorer)
        ]
        calls.clear()
        encoded = [*map(json_line, scored)]
        assert len(encoded) == 90
        assert {*calls.values()} == {1}
        assert len(calls) < 90 / 4
        assert encoded == [json.dumps(dict(line)) for line in scored]


RATES = st.integers(1, 10_000).flatmap(lambda cells: st.integers(0, cells).map(lambda right: right / cells))
RATED = st.recursive(
    RATES | st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), RATED))
def test_rates_are_encoded_as_by_the_standard_library(fields: dict[str, Any]) -> None:
    assert encode_rates(fields) == json.dumps(fields)


@pytest.mark.parametrize("rate", [1 / 10_000, 0.1 + 0.2, 1.0, 0.0, 1e15, 10**30])
@pytest.mark.parametrize("text", ["\x7f", "\u2028", "\ud800", "/<\b\x1f", '\\"'])
def test_rates_beside_any_text(rate: float, text: str) -> None:
    assert encode_rates({text: [text, rate]}) == json.dumps({text: [text, rate]})


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


# --- The cache of evaluators: a value is made once, whoever made the item, and the number of values is bounded --------
SCORE = {"trainExact": True, "heldoutExact": False}


def test_a_value_is_computed_once_for_equal_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[Problem] = []

    def decision(problem: Problem) -> HeldoutDecision:
        computed.append(problem)
        return HeldoutDecision(problem.id.endswith("0"), len(computed), "a class")

    monkeypatch.setattr(calibrant.audits.replayscm.attribution, "heldout_decision", decision)
    path = tmp_path / "pool.jsonl"
    write_pool(small_pool(["good", "or"]), path)
    attribute = ReplayScmAttribution()
    said = []
    for _ in range(200):
        for item in read_pool(path).problems:
            said.append(attribute(item, {}, (), SCORE))
    assert len(computed) == 2
    assert [one and one["members"] for one in said] == ["1", "2"] * 200
    other = replace(read_pool(path).problems[0], sealed=read_pool(path).problems[1].sealed)
    assert (attribute(other, {}, (), SCORE) or {})["members"] == "3"  # the same id is not the same item


def test_the_least_recently_used_values_are_dropped() -> None:
    made: list[str] = []

    def make(key: str) -> int:
        made.append(key)
        return len(made)

    cache: EvaluatorCache[int] = EvaluatorCache(3)

    def value(key: str) -> int:
        return cache.get(("pool", key), partial(make, key))

    for key in "abcabcabc":
        assert value(key) == "abc".index(key) + 1
    assert made == ["a", "b", "c"]
    assert value("d") == 4
    assert value("b") == 2  # used later than a
    assert value("a") == 5
    assert len(cache) == 3


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(1, 4))
def test_a_cache_equals_a_list_of_the_latest_keys(keys: list[int], max_entries: int) -> None:
    cache: EvaluatorCache[list[int]] = EvaluatorCache(max_entries)
    latest: list[tuple[int, list[int]]] = []  # the model: keys by their last use, with the very objects
    for key in keys:
        value = cache.get(key, lambda key=key: [key])  # type: ignore[misc]
        expected = next((entry for entry in latest if entry[0] == key), None)
        assert value == [key]
        assert expected is None or value is expected[1]
        latest = [*(entry for entry in latest if entry[0] != key), (key, value)][-max_entries:]
        assert len(cache) == len(latest)


def test_two_equal_objects_and_two_options_have_values_of_their_own() -> None:
    cache: EvaluatorCache[object] = EvaluatorCache()
    first, second = ["item"], ["item"]
    assert cache.get_for(first, object) is cache.get_for(first, object)
    assert cache.get_for(first, object) is not cache.get_for(second, object)
    assert cache.get_for(first, object) is not cache.get_for(first, object, "published")


def test_an_object_stays_alive_as_long_as_its_value() -> None:
    class Item:
        pass

    cache: EvaluatorCache[int] = EvaluatorCache(1)
    item = Item()
    alive = weakref.ref(item)
    cache.get_for(item, lambda: 1)
    del item
    assert alive() is not None  # another object could have its id otherwise
    cache.get_for(Item(), lambda: 2)
    gc.collect()
    assert alive() is None


def test_a_copy_in_another_process_starts_empty_and_holds_as_many() -> None:
    cache: EvaluatorCache[int] = EvaluatorCache(2)
    cache.get("a", lambda: 1)
    copy: EvaluatorCache[int] = pickle.loads(pickle.dumps(cache))
    assert len(copy) == 0
    for key in "abc":
        copy.get(key, lambda: 1)
    assert len(copy) == 2


def test_attributions_of_a_large_pool_leave_one_entry_an_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items of a file above `MAX_CACHED_ITEMS` are made anew at each access, so that no object is met twice."""
    monkeypatch.setattr(records, "MAX_CACHED_ITEMS", 1)
    monkeypatch.setattr(calibrant.audits.replayscm.attribution, "heldout_decision", lambda problem: None)
    path = tmp_path / "pool.jsonl"
    write_pool(small_pool(["good", "or", "xor"]), path)
    attribute, problems = ReplayScmAttribution(), read_pool(path).problems
    for _ in range(3):
        for item in problems:
            attribute(item, {}, (), SCORE)
    assert problems[0] is not problems[0]
    assert len(attribute._decisions) == 3
