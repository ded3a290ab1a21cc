"""Zero is written one way: no reading, record, prompt or verdict of a laboratory has -0.0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.causalab.benchmark import BENCHMARK
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.item import Bases, Family, LabItem, Name, Terms, Traced, lab_item
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Noise, Term
from calibrant.dsl.causalab.records import read_pool, write_pool
from calibrant.dsl.causalab.reference import Reading, bases_after, round_value, values
from calibrant.dsl.item import Pool

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
