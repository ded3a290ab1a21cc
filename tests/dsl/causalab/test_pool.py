"""Native pools: round trip, and recomputation of every number that is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from calibrant.bench.causalab.benchmark import BENCHMARK
from calibrant.dsl.causalab.episode import LabEpisode, run_score
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.item import Bases, Family, LabItem, Name, Terms, Traced, lab_item
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Noise, Term
from calibrant.dsl.causalab.records import item_of_record, read_pool, record_of_item, write_pool
from calibrant.dsl.causalab.reference import Reading, bases_after, round_value, values
from calibrant.dsl.episode import replay_actions
from calibrant.dsl.errors import PoolError
from calibrant.dsl.item import Pool
from tests.support.benchmarks.causalab import SUITES, items, made_item
from tests.support.effort import examples


@pytest.mark.parametrize("suite", SUITES)
def test_pools_round_trip(suite: str, tmp_path: Path) -> None:
    pool = Pool(suite, "causalab", tuple(generate_items(PLANS[suite], 1, 4)), {"seed": 1})
    write_pool(pool, tmp_path / "pool.jsonl")
    first = (tmp_path / "pool.jsonl").read_bytes()
    assert read_pool(tmp_path / "pool.jsonl") == pool
    write_pool(read_pool(tmp_path / "pool.jsonl"), tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == first


@settings(max_examples=examples(100), deadline=None)
@given(items())
def test_item_to_record_to_item_is_the_identity(item: LabItem) -> None:
    assert item_of_record(record_of_item(item)) == item


def damaged(tmp_path: Path, path: list[Any], value: Any, suite: str = "4nodes_hidden_n1") -> Path:
    file = tmp_path / "pool.jsonl"
    write_pool(Pool("p", "causalab", (made_item(suite),), {}), file)
    header, line = file.read_text(encoding="utf-8").splitlines()
    raw = json.loads(line)
    at = raw
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    file.write_text(f"{header}\n{json.dumps(raw)}\n", encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["baseline", "resonanceFreq"], 1.5, "baseline: states"),
        (["sealed", "target"], -3.0, "sealed.target: states"),
        (["records", 0], {}, "records: states"),
        (["noise"], False, "noise: states"),
        (["allowance"], -1, "allowance: below 0"),
        (["reading"], "mood", "reading"),
        (["sealed", "equations"], {}, "sealed.equations: no equation for resonanceFreq"),
        (["sealed", "hidden", "values"], [], "sealed.hidden.values: empty"),
        (["sealed", "hidden", "affected"], ["x"], "sealed.hidden.affected"),
        (["properties"], ["a"], "properties: does not agree"),
        (["surprise"], 1, "surprise"),
        (["sealed", "target"], 1e999, "Infinity is not a JSON number"),
    ],
)
def test_what_disagrees_is_named(tmp_path: Path, path: list[Any], value: Any, said: str) -> None:
    file = damaged(tmp_path, path, value)
    with pytest.raises(PoolError) as caught:
        read_pool(file)
    assert said in str(caught.value)
    assert str(caught.value).startswith("pool.jsonl: ")


def test_two_items_of_one_id_are_refused(tmp_path: Path) -> None:
    item = made_item("3nodes")
    write_pool(Pool("p", "causalab", (item, item), {}), tmp_path / "p.jsonl")
    with pytest.raises(PoolError, match="second item of that id"):
        read_pool(tmp_path / "p.jsonl")


# --- Success of a run: the state that the last try of the reactor leaves, and whether any try opened it --------------


ITEM = made_item("3nodes")
TARGET = 636.0
LAB = replace(ITEM, sealed=replace(ITEM.sealed, target=TARGET))
SUBMIT: dict[str, Any] = {"submit": {"hypothesis": {}}}


def success(*tries: Any) -> tuple[bool, bool]:
    """(activated, opened) after these tries and a submission."""
    actions = [*({"reactor": tried} for tried in tries), SUBMIT]
    score = run_score(LAB, replay_actions(LabEpisode(LAB), actions).steps)
    assert score.flat()["activated"] == score.activated
    assert score.flat()["opened"] == score.opened
    return score.activated, score.opened


@pytest.mark.parametrize(
    ("tries", "expected"),
    [
        ((), (False, False)),
        ((636,), (True, True)),
        ((248, 636), (True, True)),
        ((636, 636), (True, True)),
        ((636, 1136), (False, True)),  # a miss shuts it
        ((636, 248, 636), (False, True)),  # and the third try never opens
        ((636, 636, 636), (False, True)),  # the third shuts it whatever it dials
        ((636, 636, 636, 636), (False, True)),  # refused
        ((248, 636, 636), (False, True)),
        ((1, 2, 636), (False, False)),
        ((1, 2, 3, 636), (False, False)),
        ((631, 640.9), (True, True)),  # the dial is cut to 631, which is 5 away, then to 640
        ((632, 641), (False, True)),
        ((636, "636"), (True, True)),  # no number: not a try
        ((636, float("nan")), (True, True)),
    ],
)
def test_success_is_the_state_after_the_last_try(tries: tuple[Any, ...], expected: tuple[bool, bool]) -> None:
    assert success(*tries) == expected


def test_a_try_after_the_submission_is_none() -> None:
    actions = [{"reactor": TARGET}, SUBMIT, {"reactor": 0}]
    score = run_score(LAB, replay_actions(LabEpisode(LAB), actions).steps)
    assert (score.activated, score.opened) == (True, True)


def test_a_generated_laboratory_that_is_shut_again_does_not_count() -> None:
    item = made_item("3nodes", seed=5)
    assert abs(item.sealed.target - 288) < 5
    for tries, activated in (((288, 0), False), ((288,), True), ((0, 288), True)):
        actions = [*({"reactor": tried} for tried in tries), SUBMIT]
        score = run_score(item, replay_actions(LabEpisode(item), actions).steps)
        assert (score.activated, score.opened) == (activated, True)


# --- Zero is written one way: no reading, record, prompt or verdict of a laboratory has -0.0 -------------------------


MECHANISM = Mechanism(
    {"a": Equation(), "b": Equation((Term("a", 1, 1.0),)), FREQUENCY: Equation((Term("b", 1, 2.0),), -0.0)}
)
TRACE = (Traced({"a": -0.0, "b": 0.0, FREQUENCY: -0.0}), Traced({"a": 1.0, "b": 1.0, FREQUENCY: 2.0}, "a", -0.0))
NOISE = Noise((-0.0, 0.0), 1.0, ("a", "b", FREQUENCY), 3)


def lab(reading: Reading, noise: Noise | None = None, trace: tuple[Traced, ...] = ()) -> LabItem:
    bases = Bases(({"a": -0.0, "b": -0.001},), {"a": -0.0, "b": 0.0}, {"a": -0.004, "b": -0.0})
    return lab_item(Name("x", "s"), Terms(Family.LINEAR, 9, reading=reading, trace=trace), MECHANISM, bases, noise)


def negative_zeros(value: Any) -> list[str]:
    """Where JSON text or a value holds a negative zero."""
    text = value if isinstance(value, str) else json.dumps(value)
    parts = text.replace(",", " ").replace("}", " ").replace("]", " ").split()
    return [part for part in parts if part.endswith("-0.0")]


@pytest.mark.parametrize("reading", Reading)
@pytest.mark.parametrize("noise", [None, NOISE], ids=["quiet", "noisy"])
@pytest.mark.parametrize("trace", [(), TRACE], ids=["", "trace"])
def test_no_reading_is_a_negative_zero(
    reading: Reading, noise: Noise | None, trace: tuple[Traced, ...], tmp_path: Path
) -> None:
    assert negative_zeros([-0.0]) == ["[-0.0"]
    made = lab(reading, noise, trace)
    path = tmp_path / "pool.jsonl"
    write_pool(Pool("p", "causalab", (made,), {}), path)
    for item in (made, read_pool(path).items[0]):
        task = item.task
        rows = [*task.records, task.baseline, task.reactor, *(entry.values for entry in task.trace)]
        assert negative_zeros([dict(row) for row in rows]) == []
        assert negative_zeros([entry.value for entry in task.trace]) == []
        assert negative_zeros([item.sealed.target]) == []
        assert negative_zeros(BENCHMARK.items.prompt(item)) == []
        record = BENCHMARK.items.record(item)
        assert negative_zeros({key: record.get(key) for key in ("records", "baseline", "reactor", "trace")}) == []
        episode = LabEpisode(item)
        for value in (-0.0, -0.001, 0, 5, -5, -0.0, 1e-9, -1e-9):
            for name in ("a", "b"):
                step = episode.act({"set": name, "value": value})
                assert step.reading is None or negative_zeros(dict(step.reading)) == []
                assert negative_zeros(BENCHMARK.play.describe(episode, step)) == []
        assert negative_zeros(dict(episode.act({"reactor": -0.0}).reading or {})) == []
        score = BENCHMARK.scoring.score(item, {"frequency": -0.0, "hypothesis": {}}, ())
        assert negative_zeros(score) == []
        assert negative_zeros(BENCHMARK.scoring.extract(item, {"frequency": -0.0})) == []


def test_rounding_keeps_whole_numbers_whole() -> None:
    assert [repr(round_value(number)) for number in (-0.0, 0, -0.004, 7, -1.239)] == ["0.0", "0", "0.0", "7", "-1.24"]
    assert negative_zeros(values(MECHANISM, {"a": -0.001, "b": -0.0}, {"a": -0.0})) == []
    bases = {"a": 0.0, "b": 0.0}
    assert negative_zeros([bases_after(MECHANISM, bases, name, -0.0, r) for name in "ab" for r in Reading]) == []
