"""Several samples of an item: pass@k, majority, means, in `score`, `table` and `report`."""

from __future__ import annotations

import csv
import json
import re
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.bench.answers.frame import AnswerFrame, Answers
from calibrant.bench.answers.rates import pass_at
from calibrant.bench.cli import main
from calibrant.bench.core.metrics import Right, Sample
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.replayscm.verdict import METRICS
from calibrant.bench.report.table import ResultTable
from calibrant.bench.scoring.predictions import SampleNumbers
from calibrant.dsl.replayscm.pools.files import write_pool
from tests.support.commands import jsonl
from tests.support.stub_protocols import small_pool

GOOD, SAME, WRONG = ({"mechanisms": {"X3": f}} for f in ("(and X1 X2)", "(and X2 X1 X1)", "(xor X1 X2)"))


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_pass_at_k_is_the_share_of_draws_that_hold_a_right_one(right: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(right)))
    draws = [any(draw) for draw in combinations(right, k)]
    assert pass_at(len(right), sum(right), k) == Fraction(sum(draws), len(draws))


def samples(*told: str) -> list[Sample]:
    """Of each a letter that stands for its meaning, capital if it is right; a dash for an answer that is not valid."""
    return [Sample(t != "-", t.isupper(), t.isupper(), t.isupper(), None if t == "-" else t) for t in told]


def frame_of(*items: list[Sample]) -> AnswerFrame:
    """Return the answers to some items, first one of each item, then the second ones."""
    collected = Answers(lambda item: str(item[1]))
    longest = max(map(len, items), default=0)
    for number, (name, listed) in product(range(longest), enumerate(items)):
        if number < len(listed):
            collected.add(run_of(f"I{name}", number), (1.0,), listed[number])
    (frame,) = collected.group(lambda origin: origin.system).values()
    return frame


def majorities(*items: list[Sample], right: Right = lambda sample: sample.correct) -> list[Fraction] | None:
    return frame_of(*items).majorities(right)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("AAb", 1),
        ("Abb", 0),
        ("Ab", Fraction(1, 2)),
        ("AAbbc", Fraction(1, 2)),
        ("A--", 1),
        ("---", 0),
        ("AbB", Fraction(2, 3)),
    ],
)
def test_the_majority_is_of_meanings_and_only_of_valid_answers(told: str, expected: Fraction) -> None:
    assert majorities(samples(*told)) == [expected]


def test_a_majority_is_not_known_where_a_meaning_is_not() -> None:
    assert majorities([*samples("A"), Sample(True, True, True, True, None)]) is None


def run_of(instance: str, number: int = 0) -> AnswerContext:
    return AnswerContext("m", "p", "d", 3, instance, "Ordered", "", sample=number)


def verdict(right: bool) -> dict[str, object]:
    rate = 1.0 if right else 0.5
    rates = {"trainWorldExactAccuracy": rate, "heldoutWorldExactAccuracy": rate}
    return {"valid": True, "correct": right, "trainExact": right, "heldoutExact": right, "meaning": str(right), **rates}


_MEANINGS = st.one_of(st.none(), st.text(max_size=17), st.text("0123456789abcdefABCDEF ", min_size=15, max_size=17))


_SAMPLE = st.builds(Sample, st.booleans(), st.booleans(), st.booleans(), st.booleans(), _MEANINGS)
_SAMPLES = st.lists(_SAMPLE, min_size=1)


def counted_majority(listed: list[Sample]) -> Fraction | None:
    """Return what the docstring of `majorities` states, counted one by one."""
    votes: dict[str | None, list[bool]] = {}
    for sample in listed:
        if sample.valid:
            votes.setdefault(sample.meaning, []).append(sample.heldout_exact)
    if None in votes:
        return None
    most = max(map(len, votes.values()), default=0)
    shares = [Fraction(sum(hits), most) for hits in votes.values() if len(hits) == most]
    return sum(shares, Fraction()) / len(shares) if shares else Fraction()


@given(st.lists(_SAMPLES, min_size=1, max_size=5))
def test_what_is_kept_of_samples_in_few_bytes_votes_as_they_do(items: list[list[Sample]]) -> None:
    expected = [counted_majority(listed) for listed in items]
    known = None if None in expected else expected
    assert majorities(*items, right=lambda sample: sample.heldout_exact) == known
    numbers = frame_of(*items).num_right(lambda sample: sample.train_exact).tolist()
    assert numbers == [sum(sample.train_exact for sample in listed) for listed in items]


def test_every_item_weighs_the_same_however_often_it_was_answered() -> None:
    table = ResultTable(METRICS)
    for instance, told in (("I", [True]), ("J", [True, False, False, False]), ("K", [False])):
        for index, right in enumerate(told):
            table.add(run_of(instance, index), verdict(right))
    (row,) = table.cells()
    assert (row["n"], row["coverage"], row["samples"]) == ("3", "1.000", "1-4")
    assert row["train_exact"] == "0.417"  # (1 + 1/4 + 0) / 3
    assert row["heldout_world"] == "0.708"  # (1 + 5/8 + 1/2) / 3
    assert row["heldout_exact_given_train_exact"] == "*"  # two items, though there are answers enough
    (figures,) = table.to_json()
    assert figures["train_exact"] == pytest.approx(5 / 12, abs=0)
    assert (figures["n"], figures["answers"], figures["samples"]) == (3, 6, [1, 4])
    assert figures["heldout_exact_given_train_exact"] is None
    assert "heldout_exact_given_train_exact" in figures["suppressed"]
    assert figures["root_exact"] is None
    assert "root_exact" not in figures["suppressed"]


@pytest.fixture
def scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Eight items: two with four right samples, two with two of four, four with none; one line holds two samples."""
    pool, out = tmp_path / "small.jsonl", tmp_path / "scores.jsonl"
    write_pool(small_pool(["good"] * 8), pool)
    told = [[GOOD] * 4] * 2 + [[GOOD, SAME, WRONG, WRONG]] * 2 + [[WRONG] * 4] * 4
    lines: list[dict[str, Any]] = [
        {"id": f"I{i}", "model": "m", "extractedAnswer": answer} for i, answers in enumerate(told) for answer in answers
    ]
    lines[-2:] = [{"id": "I7", "model": "m", "choices": [{"message": {"content": json.dumps(WRONG)}}] * 2}]
    assert main(["score", str(pool), str(jsonl(tmp_path / "p.jsonl", *lines)), "--out", str(out)]) == 0
    return out


def printed_rows(text: str) -> dict[str, list[str]]:
    """By the way of counting: the figures of the last table."""
    lines = text.split("Several samples")[1].splitlines()
    return {
        way: line.split() for line in lines for way in ("mean", "pass@2", "pass@4", "majority") if f" {way} " in line
    }


def test_answers_without_a_number_get_the_next_that_no_line_states() -> None:
    numbers, key = SampleNumbers(), ("digest", "I0", "m")
    assert [numbers.number(key, stated) for stated in (0, 2, None, None, 4, None)] == [0, 2, 1, 3, 4, 5]


def test_samples_are_numbered_and_counted_in_score_table_and_report(
    scores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    score_text = capsys.readouterr()
    lines = [json.loads(line) for line in scores.read_text(encoding="utf-8").splitlines()]
    assert [line["sample"] for line in lines] == [0, 1, 2, 3] * 8
    by_item = {i: {line["meaning"] for line in lines if line["instanceId"] == i} for i in ("I0", "I2", "I7")}
    assert {i: len(meanings) for i, meanings in by_item.items()} == {"I0": 1, "I2": 2, "I7": 1}  # GOOD means SAME
    assert main(["table", str(scores)]) == 0
    table_text = capsys.readouterr()
    assert main(["table", str(scores), "--json"]) == 0
    made = {(row["way"], row["k"]): row["train_exact"] for row in json.loads(capsys.readouterr().out)["samples"]}
    expected = {
        ("mean", None): (2 + 2 * 0.5) / 8,
        ("pass", 2): (2 + 2 * (1 - 1 / 6)) / 8,  # of the six pairs one holds two wrong ones
        ("pass", 4): 4 / 8,
        ("majority", None): (2 + 2 * 0.5) / 8,  # two right ones of one meaning against two wrong ones of another
    }
    assert {key: found["value"] for key, found in made.items()} == pytest.approx(expected)
    assert all(found["low"] < found["value"] < found["high"] for found in made.values())
    for text in (score_text.out, table_text.out):
        rows = printed_rows(text)
        assert {way: row[row.index(way) + 1] for way, row in rows.items()} == {
            "mean": "0.375",
            "pass@2": "0.458",
            "pass@4": "0.500",
            "majority": "0.375",
        }
        assert max(map(len, text.splitlines())) <= 80
    assert main(["report", str(scores), "--format", "csv", "--table", "samples", "--table", "1", "--no-paper"]) == 0
    rows_of_csv = [
        row for row in csv.DictReader(capsys.readouterr().out.splitlines()) if row["column"] == "train_exact"
    ]
    (line,) = [row for row in rows_of_csv if row["other"] == "pass@2"]
    assert (line["n"], line["n_text"], line["value"]) == ("8", "8 x 4", "0.458")
    (line,) = [row for row in rows_of_csv if row["table"] == "1"]
    assert (line["n"], line["n_text"], line["value"]) == ("8", "", "0.375")


def test_rows_of_samples_by_stratum_name_it(scores: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.loads(line) for line in scores.read_text(encoding="utf-8").splitlines()]
    jsonl(scores, *(line | {"stratum": "right" if line["instanceId"] < "I2" else "mixed"} for line in lines))
    capsys.readouterr()
    assert main(["table", str(scores), "--by", "stratum", "--json"]) == 0
    made = {(row["stratum"], row["way"], row["k"]): row for row in json.loads(capsys.readouterr().out)["samples"]}
    values = {stratum: made[stratum, "mean", None]["train_exact"]["value"] for stratum in ("right", "mixed")}
    assert (values, len(made)) == ({"right": 1, "mixed": pytest.approx(1 / 6)}, 8)
    assert main(["table", str(scores), "--by", "stratum"]) == 0
    heading, *rows = capsys.readouterr().out.split("Several samples")[1].splitlines()[1:]
    assert "Stratum" in heading
    assert [row.split()[heading.split().index("Stratum")] for row in rows if row.strip()] == ["mixed"] * 4 + [
        "right"
    ] * 4
    jsonl(scores, *(line | {"stratum": f"vhs_n10_near_impossible_{line['instanceId'] < 'I2'}"} for line in lines))
    assert main(["table", str(scores), "--by", "stratum"]) == 0
    _, row, *_ = capsys.readouterr().out.split("Several samples")[1].splitlines()[1:]
    assert re.search(r"\d x 4 +mean +[01]\.\d{3}", row)  # labels leave room for n and a rate in 80 columns


def test_samples_that_are_all_right_get_an_interval_with_a_width() -> None:
    table = ResultTable(METRICS)
    for i in range(8):
        for number in range(2):
            table.add(run_of(f"I{i}", number), verdict(True))
    for row in table.sample_rows():
        rate = row.estimates["train_exact"]
        assert rate is not None
        assert rate.interval is not None
        assert (rate.mean, rate.interval.high) == (1, 1)
        assert rate.interval.low == pytest.approx(8 / (8 + 1.959964**2), abs=1e-6)  # Wilson's, of 8 of 8


def test_single_answers_get_no_table_of_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = tmp_path / "small.jsonl"
    write_pool(small_pool(["good"] * 2), pool)
    lines = [{"id": f"I{i}", "model": "m", "response": json.dumps(GOOD)} for i in range(2)]
    assert main(["score", str(pool), str(jsonl(tmp_path / "p.jsonl", *lines))]) == 0
    assert "Several samples" not in capsys.readouterr().out


def test_rows_take_time_in_proportion_to_their_number() -> None:
    """A work count, not a clock: how often configurations are looked at."""

    class Counting(dict[str, int]):
        looked = 0

        def get(self, key: str, default: Any = None) -> Any:
            Counting.looked += 1
            return super().get(key, default)

    def work(number: int) -> int:
        table = ResultTable(METRICS)
        for i in range(number):
            table.add(run_of("I")._replace(system="s", config=Counting(seed=i)), verdict(True))
        Counting.looked = 0
        assert len(table.cells()) == number
        return Counting.looked

    assert work(400) <= 2.1 * work(200)
