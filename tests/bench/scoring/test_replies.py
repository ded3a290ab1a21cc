"""Predictions about CauSim questions: responses and objects, verdicts node by node, samples, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.bench.causim.benchmark import BENCHMARK
from calibrant.bench.causim.verdict import CausimVerdict
from calibrant.bench.cli import main
from calibrant.dsl.causim.bundle import module_text
from calibrant.dsl.causim.item import CausimItem, Labels, Task
from calibrant.dsl.causim.question import Question
from calibrant.dsl.causim.records import write_pool
from tests.support.causim.models import bundles, questions, vectors
from tests.support.commands import jsonl

PROGRAM = """
import random

def U_A():
    return random.choice([1, 2])

def U_B():
    return random.choice([0, 1])

def f_A(u):
    return u

def f_B(a, u):
    return u == 0 if a == 1 else a

def run_once(seed=None):
    u_a = U_A()
    a = f_A(u_a)
    u_b = U_B()
    b = f_B(a, u_b)
    return {"a": a, "b": b}
"""
# seen a = 1 and b = true, so that u_b = 0; under do(A = 2) b is 2
SEEN = Question("counterfactual", unknown=("U_A", "U_B"), do={"A": "2"}, observed={"A": "1", "B": "true"})
ALONE = Question("counterfactual", unknown=("U_A", "U_B"), do={"B": "true"}, observed={"A": "1", "B": "false"})
OPEN = Question("deduction", fixed={"U_A": "1"}, unknown=("U_B",))


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "pool.jsonl"
    items = [
        CausimItem("seen", Task(PROGRAM, SEEN, "deterministic"), Labels(1, False, True, True, False), topology="chain"),
        CausimItem("alone", Task(PROGRAM, ALONE, "deterministic"), Labels(1, False, False, False, True)),
        CausimItem("open", Task(PROGRAM, OPEN, "stochastic"), Labels(2, False)),
    ]
    write_pool(path, items, name="by hand")
    return path


def scored(capsys: pytest.CaptureFixture[str], pool: Path, *lines: Any) -> tuple[list[dict[str, Any]], str]:
    """Return the verdicts on these predictions, and what was said of them."""
    file = jsonl(pool.parent / "predictions.jsonl", *({"id": "seen", "model": "m", **line} for line in lines))
    assert main(["score", str(pool), str(file), "--json"]) == 0
    printed = capsys.readouterr()
    return [json.loads(line) for line in printed.out.splitlines()], printed.err


@pytest.mark.parametrize(
    ("given", "why", "wrong"),
    [
        ({"response": '{"A": 1} is what was; now {"A": 2, "B": 2}'}, None, {}),
        ({"answer": {"a": 2, "b": 2}}, None, {}),
        ({"answer": {"A": 2, "B": 2.0}}, "wrong_answer", {"B": "impossible"}),
        ({"answer": {"A": 1, "B": False}}, "wrong_answer", {"A": "do ignored", "B": "wrong noise"}),
        ({"answer": {"A": 1, "B": True}}, "wrong_answer", {"A": "do ignored"}),
        ({"answer": {"A": 1, "B": 1}}, "wrong_answer", {"A": "do ignored", "B": "impossible"}),
        ({"response": '{"A": 2, "B": 2, "b": 2}'}, "wrong_keys", None),
        ({"answer": {}}, "wrong_keys", None),
        ({"response": "A and B are 2"}, "no_object", None),
        ({"response": '{"A": 2, "B": 2'}, "no_object", None),
        ({"answer": None}, "no_object", None),
    ],
    ids=str,
)
def test_a_response_gets_its_reward_and_reasons(
    given: dict[str, Any], why: str | None, wrong: Any, pool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,), said = scored(capsys, pool, given)
    assert (line["correct"], line["why"], line["wrong"]) == (why is None, why, wrong)
    assert line["answered"] is (why not in ("wrong_keys", "no_object"))
    assert (
        bool(line["problem"]) is (why in ("no_object", "wrong_keys")) is ("nothing was submitted in 1 of them" in said)
    )
    assert line["first"] == (next(iter(wrong.values()), None) if wrong else None)
    fits = None if wrong is None else why is None
    kind = "earned" if why is None else "missed"
    told = {"kind": kind, "decided": True, "fits": fits, "members": "1"}
    assert told.items() <= line["attribution"].items()
    assert (line["setting"], line["stratum"], line["copyable"], line["vacuous"], line["trivial"]) == (
        *("counterfactual-deterministic", "chain-02"),
        *(False, False, False),
    )
    msgspec.convert(line, CausimVerdict, strict=True)


ODD = [[2], {"x": 2}, float("nan"), float("inf"), ["tuple", ["x"]], 10**400, "x" * 20_000, ["tuple", 2]]


@pytest.mark.parametrize("key", ["A", "B"])
@pytest.mark.parametrize("value", ODD, ids=lambda value: str(value)[:12])
def test_an_odd_value_costs_its_own_answer_alone_and_is_named(
    key: str, value: Any, pool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A is read by the mechanism of B, and open in one question; its value in an answer may be anything."""
    good = {"A": 2, "B": 2}
    lines = [{"answer": good}, {"answer": good | {key: value}}, {"id": "open", "answer": {"A": 1, "B": False}}]
    lines.append({"id": "open", "response": json.dumps({"A": 1, "B": True} | {key: value})})
    verdicts, said = scored(capsys, pool, *lines)
    assert [line["correct"] for line in verdicts] == [True, False, True, False]
    is_value = value in ([*["tuple", 2]], 10**400, "x" * 20_000)
    for line in verdicts[1::2]:
        assert line["why"] == "wrong_answer"
        assert bool(line["problem"]) is not is_value
        assert is_value or key in line["problem"]
        assert set(json.loads(line["meaning"])) == {"A", "B"}
        assert key in line["wrong"]
        msgspec.convert(line, CausimVerdict, strict=True)
    assert ("2 responses hold an answer that is incomplete or misplaced" in said) is not is_value


@pytest.mark.parametrize(
    ("given", "is_told"),
    [
        ({"response": '{"answer": {"A": 2, "B": 2}}'}, True),
        ({"response": '{"memory": "m", "value": [{"b": 2, "a": 2}]}'}, True),
        ({"response": '{"answer": "{\\"A\\": 2, \\"B\\": 2}"}'}, True),
        ({"response": '{"A": 2, "B": 2} and {"confidence": 1}'}, True),
        ({"response": '{"A": 2, "B": 2} {"A": 2}'}, True),
        ({"answer": {"value": {"final": {"A": 2, "B": 2}}}}, True),
        ({"answer": {"answer": {"A": 2, "B": 2}}}, True),
        ({"response": '{"answer": {"A": 2}}'}, False),
        ({"response": '{"A": 2, "B": 2, "C": 2}'}, False),
    ],
    ids=str,
)
def test_an_answer_in_another_wrapping_is_not_lost_in_silence(
    given: dict[str, Any], is_told: bool, pool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,), said = scored(capsys, pool, given)
    assert (line["correct"], line["why"]) == (False, "wrong_keys")
    assert ("the required keys" in line["problem"]) is is_told
    is_wrapped = is_told or "C" in str(given)  # the lenient reader drops other keys
    assert line["reason"] == ("wrong_format" if is_wrapped else "unreadable")
    assert f": {line['reason']} 1" in said


def test_samples_are_counted_by_mean_pass_and_majority(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two questions: three of four right, and one of four, where a wrong answer is given twice."""
    good, bad = '{"A": 2, "B": 2}', '{"A": 1, "B": true}'
    other = ('{"A": 1, "B": true}', '{"A": 1, "B": false}', "nothing", '{"b": false, "a": 1}')
    lines = [{"response": text} for text in (good, good, good, bad)]
    lines += [{"id": "alone", "response": text} for text in other]
    verdicts, _ = scored(capsys, pool, *lines)
    assert [line["sample"] for line in verdicts] == [0, 1, 2, 3] * 2
    assert len({line["meaning"] for line in verdicts[5::2]}) == 1  # keys in another case, the same answer
    out = jsonl(pool.parent / "verdicts.jsonl", *verdicts)
    assert main(["table", str(out), "--by", "setting", "--json"]) == 0
    ways = {(row["way"], row["k"]): row["correct"]["value"] for row in json.loads(capsys.readouterr().out)["samples"]}
    pass_2 = (1 + (1 - Fraction(3, 6))) / 2
    assert ways == {
        ("mean", None): 0.5,
        ("pass", 2): float(pass_2),
        ("pass", 4): 1.0,
        ("majority", None): 0.5,
    }


def test_replies_of_the_vectors_get_their_rewards_from_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {record["id"]: record for record in vectors("question")}
    asked = {record["question"] for record in vectors("verdict")}
    items, replies = [], []
    for name in sorted(asked):
        source = module_text(bundles()[named[name]["program"]], comments=False)
        task = Task(source, questions()[name][1], named[name]["scenario"])
        items.append(CausimItem(name, task, Labels(named[name]["expect"]["size"], False)))
    for record in vectors("verdict"):
        replies += [(record["question"], reply) for reply in record["replies"]]
    write_pool(tmp_path / "pool.jsonl", items)
    lines = [{"id": name, "response": reply["text"]} for name, reply in replies]
    line = ["score", str(tmp_path / "pool.jsonl"), str(jsonl(tmp_path / "in.jsonl", *lines)), "--json"]
    assert main(line) == 0
    verdicts = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [int(one["correct"]) for one in verdicts] == [reply["reward"] for _, reply in replies]
    assert len(verdicts) > 300


def test_the_same_answer_is_the_same_typed_values_under_any_names(pool: Path) -> None:
    item = next(one for one in BENCHMARK.items.read_pool(pool).items if one.id == "seen")
    assert BENCHMARK.scoring.same_answer(item, {"A": 1, "B": 2}, {"b": 2, "a": 1})
    assert not BENCHMARK.scoring.same_answer(item, {"A": 1, "B": 2}, {"A": True, "B": 2})
    assert not BENCHMARK.scoring.same_answer(item, {"A": 1, "B": 2}, {"A": 1})
