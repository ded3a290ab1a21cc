"""Rewards: right, wrong and half right answers of every benchmark, and what cannot be scored."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from itertools import islice
from typing import Any

import pytest

from calibrant.bench.core.registry import NAMES, benchmark
from calibrant.bench.training import in_turns
from calibrant.dsl.blickets.item import BlicketItem, Condition, Form, Mechanism, Rule, Sealed, Task
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.text import parse, render
from calibrant.dsl.replayscm.reference import replay_world
from calibrant.dsl.replayscm.scm import Scm
from calibrant.rewards import attributed, shaped, verdict

Reward = Callable[..., list[float | None]]
REWARDS = (verdict, shaped, attributed)
BOTH_OF_THREE = BlicketItem(
    "both of three",
    Condition.CONJUNCTIVE,
    Task(("A", "B", "C"), 50),
    Sealed((Mechanism(Rule(Form.CONJUNCTIVE, 0b011)),)),
)
RIGHT = {"rule": "conjunctive", "blickets": ["A", "B"]}


def _record(item: Any) -> str:
    return json.dumps(benchmark(item.benchmark).items.record(item))


def _of(reward: Reward, item: Any, *completions: Any) -> list[float | None]:
    number = len(completions)
    return reward(completions, record=[_record(item)] * number, benchmark=[item.benchmark] * number)


@cache
def _drawn(name: str, number: int) -> list[Any]:
    of = benchmark(name)
    return [drawn.item for drawn in islice(in_turns(of, of.training.stages[:2], 5), number)]


def _messages(*said: object) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": json.dumps(one)} for one in said]


@pytest.mark.parametrize("name", NAMES)
def test_gold_is_right_and_nothing_is_not(name: str) -> None:
    of = benchmark(name)
    for item in _drawn(name, 4):
        gold = json.dumps(of.training.gold(item))
        given: tuple[Any, ...] = (gold, _messages(of.training.gold(item)), "", "no idea", [], "{}")
        assert _of(verdict, item, *given) == [1, 1, 0, 0, 0, 0]
        assert _of(shaped, item, *given) == [1, 1, 0, 0, 0, 0]
        assert _of(attributed, item, *given)[2:] == [0, 0, 0, 0]


def test_shape_of_replayscm_is_the_share_of_cells() -> None:
    """Against a count with the reference interpreter, one mechanism negated at a time."""
    for problem in _drawn("replayscm", 2):
        gold = problem.sealed.gold
        texts = {variable: render(mechanism) for variable, mechanism in gold.mechanisms.items()}
        worlds = (*problem.task.training.worlds, *problem.sealed.heldout.worlds)
        for changed, text in texts.items():
            answer = {**texts, changed: text[5:-1] if text.startswith("(not ") else f"(not {text})"}
            model = Scm(gold.roots, {variable: parse(one) for variable, one in answer.items()})
            cells = [cell for world in worlds for cell in replay_world(model, world)]
            share = sum(cell.predicted == cell.expected for cell in cells) / len(cells)
            assert share < 1
            assert _of(shaped, problem, json.dumps({"mechanisms": answer})) == [pytest.approx(share)]


def test_shape_of_blickets_is_the_share_of_sets() -> None:
    """Both of A and B against one of them: they differ on {A}, {B}, {A, C} and {B, C}, four of eight sets."""
    either = {"rule": "disjunctive", "blickets": ["A", "B"]}
    assert _of(shaped, BOTH_OF_THREE, json.dumps(either), json.dumps(RIGHT)) == [0.5, 1.0]
    assert _of(verdict, BOTH_OF_THREE, json.dumps(either), json.dumps(RIGHT)) == [0.0, 1.0]


def test_shape_of_causalab_is_half_frequency_half_edges() -> None:
    item = _drawn("causalab", 4)[0]
    frequency, edges = item.sealed.target, sorted(item.sealed.mechanism.edges)
    stated = [{"from": parent, "to": child} for parent, child in edges]
    reversed_edges = [{"from": child, "to": parent} for parent, child in edges]
    given = [
        {"frequency": frequency, "hypothesis": {"edges": reversed_edges}},
        {"frequency": frequency + 50, "hypothesis": {"edges": stated}},
        {"frequency": frequency + 50, "hypothesis": {"edges": reversed_edges}},
    ]
    assert _of(shaped, item, *map(json.dumps, given)) == [0.5, 0.5, 0.0]


def test_shape_of_causim_is_the_share_of_nodes() -> None:
    of = benchmark("causim")
    item = next(item for item in _drawn("causim", 24) if item.task.question.type == "intervention")
    gold = of.training.gold(item)
    assert gold is not None
    last = item.task.model.names[-1]  # nothing depends on it
    nodes = len(item.task.model)
    assert _of(shaped, item, json.dumps(gold | {last: "no such value"})) == [pytest.approx((nodes - 1) / nodes)]


def test_an_answer_is_worth_more_once_the_evidence_decides_it() -> None:
    """A dark and A, B lit leave the rules {B}, {B, C} and {A and B}; B dark leaves the last."""
    undecided = _messages({"place": "A"}, {"place": "B"}, {"check": RIGHT})
    decided = _messages({"place": "A"}, {"place": "B"}, {"remove": "A"}, {"check": RIGHT})
    missed = _messages({"place": "A"}, {"place": "B"}, {"remove": "A"}, {"check": {**RIGHT, "rule": "disjunctive"}})
    excluded = _messages({"place": "A"}, {"place": "B"}, {"check": {"rule": "disjunctive", "blickets": ["A"]}})
    assert _of(attributed, BOTH_OF_THREE, undecided, decided, missed, excluded) == [0.5, 1, 0, 0]
    assert _of(verdict, BOTH_OF_THREE, undecided, decided, missed, excluded) == [1, 1, 0, 0]


def test_a_conversation_that_is_cut_off_has_no_answer() -> None:
    cut = _messages({"place": "A"}, {"place": "B"})
    told = [cut[0], {"role": "user", "content": "The detector is INACTIVE."}, cut[1]]
    assert _of(verdict, BOTH_OF_THREE, cut, told) == [0, 0]
    assert _of(attributed, BOTH_OF_THREE, cut, told) == [0, 0]


@pytest.mark.parametrize("reward", REWARDS)
def test_what_cannot_be_scored_is_none(reward: Reward) -> None:
    record, completion = _record(BOTH_OF_THREE), json.dumps(RIGHT)
    rows: list[tuple[Any, str | None, str | None]] = [
        (None, record, "blickets"),
        (3, record, "blickets"),
        (completion, None, "blickets"),
        (completion, "", "blickets"),
        (completion, record, None),
    ]
    completions, records, names = zip(*rows, strict=True)
    assert reward(completions, records, names) == [None] * 5
    assert reward([], [], []) == []


def test_what_the_evidence_decides_is_not_known_where_any_of_several_answers_is_right() -> None:
    item = next(item for item in _drawn("causim", 24) if item.task.scenario == "stochastic")
    gold = json.dumps(benchmark("causim").training.gold(item))
    assert _of(attributed, item, gold) == [None]
    assert _of(verdict, item, gold) == [1.0]


@pytest.mark.parametrize(
    ("record", "name", "problem"),
    [
        ("{", "blickets", "entry 1: record is '{', not JSON"),
        ("[]", "blickets", r"entry 1: record is \[\]"),
        ("{}", "blickets", "entry 1: a record without an id: .*id"),
        ("{}", "nothing", "entry 1: unknown benchmark 'nothing'; known: replayscm"),
        (_record(BOTH_OF_THREE), "causim", "entry 1: record of 'both of three': .*"),
    ],
)
def test_a_record_that_cannot_be_meant_is_one_line(record: str, name: str, problem: str) -> None:
    with pytest.raises(CalibrantError, match=problem) as caught:
        verdict(["", ""], [_record(BOTH_OF_THREE), record], ["blickets", name])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("record", "name"), [({"id": "x"}, "causim"), ("{}", ["causim"])])
def test_an_entry_that_is_no_text_is_one_line(record: Any, name: Any) -> None:
    """A record that is parsed already, as from a data set with JSON columns."""
    for reward in (verdict, shaped, attributed):
        with pytest.raises(
            CalibrantError, match=r"entry 0: (record|benchmark): expected a text, as `calibrant export`"
        ):
            reward([""], [record], [name])


def test_columns_of_unequal_length() -> None:
    with pytest.raises(CalibrantError, match="2 completions, 1 records, 2 names of benchmarks"):
        verdict(["", ""], [_record(BOTH_OF_THREE)], ["blickets", "blickets"])


def test_other_columns_are_not_read_and_metrics_are_logged() -> None:
    logged: list[tuple[str, float]] = []
    given = [json.dumps(RIGHT), "no idea", None]
    found = verdict(
        given,
        [_record(BOTH_OF_THREE)] * 3,
        ["blickets"] * 3,
        lambda name, value: logged.append((name, value)),
        prompts=["p"] * 3,
        trainer_state=object(),
    )
    assert found == [1.0, 0.0, None]
    assert logged == [("calibrant/answered", 0.5)]


def test_rewards_load_no_trainer() -> None:
    code = "import sys, calibrant.rewards; print({'torch', 'trl', 'verifiers', 'numba', 'z3'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_conversation_in_a_laboratory() -> None:
    """Set, dial and submit, action by action; the same answer without the dial has half of the shape."""
    item = _drawn("causalab", 4)[0]
    gold: Any = benchmark("causalab").training.gold(item)
    first = {"set": item.task.settable[0], "value": 20}
    submitted = {"submit": {"hypothesis": gold["hypothesis"]}}
    whole = _messages(first, {"reactor": gold["frequency"]}, submitted)
    assert _of(verdict, item, whole, _messages(first, submitted), _messages(first)) == [1, 0, 0]
    assert _of(shaped, item, whole, _messages(first, submitted), _messages(first)) == [1, 0.5, 0]


def test_an_odd_value_in_a_completion_costs_its_own_reward_alone() -> None:
    """In an answer that is right but for it, at every key; other completions of the batch keep theirs."""
    item = next(item for item in _drawn("causim", 12) if item.task.question.type == "counterfactual")
    gold: dict[str, Any] = benchmark("causim").training.gold(item) or {}
    assert gold
    for key in gold:
        odd = [json.dumps(gold | {key: value}) for value in ([1], {"a": 1}, float("nan"), ["tuple", ["x"]])]
        assert _of(verdict, item, json.dumps(gold), *odd, json.dumps(gold)) == [1.0, *[0.0] * len(odd), 1.0]
        assert all(share < 1 for share in _of(shaped, item, *odd) if share is not None)
