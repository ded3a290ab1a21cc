"""Answers and records of CauSim with odd JSON values in every place: a verdict or one line for each.

Rewards are compared with the answers that running every world gives, by their JSON text alone.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from calibrant.bench.causim.benchmark import BENCHMARK
from calibrant.bench.training import attributed, lesson, shaped, verdict
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.reference import work_out
from calibrant.dsl.errors import MAX_MESSAGE_CHARS, CalibrantError, short_repr
from calibrant.solvers.causim.generation import built_in_items, sampled_items
from tests.fuzz.corruption import damaged
from tests.oracles.independent import require

ODD_VALUES: tuple[Any, ...] = (
    [], [1], ["x"], [[]], [None], {}, {"a": 1}, {"x": {}}, [{"x": 1}], {"tuple": []},
    float("nan"), float("inf"), -float("inf"), [float("nan")], 1e308, -1e308, 5e-324, -0.0, 0.0,
    ["tuple"], ["tuple", "x"], ["tuple", 1, True], ["tuple", ["x"]], ["tuple", ["tuple", ["tuple"]]],
    ["tuple", {"a": 1}], ["tuple", float("nan")], ["tuple", ["tuple", [1]]], ["TUPLE", 1], ["tuple", None],
    10**12, 10**13, -(10**18), 2**63, 2**64, 10**400, int("9" * 4_000), 10**5_000, ["tuple", 10**5_000],
    "", " ", "\0", "\n", "\ud800", "\U0001f600", "\u0661", "x" * 9_999, "x" * 10_001, "x" * 200_000, "<list>",
    '{"not a value":"list"}', "null", "NaN", "1", "[]", "tuple", "True", "__class__", "%s", "{0}",
    None, True, False, 0, 1, -1, 2, 1.0, 0.5, 1e22, 7,
)  # fmt: skip
NESTED_VALUES = (19, 20, 21, 50, 300, 499, 2_000)  # containers around a value
NUM_ITEMS = 20  # of each topology


class Target(NamedTuple):
    """An item, its record as JSON, its right answers by their texts, and one of them (or of its keys alone)."""

    item: CausimItem
    record: str
    keys: tuple[str, ...]
    answers: frozenset[str]
    base: Mapping[str, Any]


def case(rng: random.Random) -> str:
    """One input of a kind drawn by the generator; the outcome tells the kind and what became of it."""
    kind: Callable[[random.Random], str] = rng.choices([_object, _reply, _reward, _record], weights=[8, 5, 2, 1])[0]
    return kind(rng)


@cache
def targets() -> tuple[Target, ...]:
    """Items of every topology and of the built-in models whose worlds are few enough to run all of them."""
    drawn = [item for topology in TOPOLOGIES for item in islice(sampled_items(5, topology), NUM_ITEMS)]
    drawn += [item for name in ("cancer", "asia") for item in islice(built_in_items(5, name), 4)]
    return tuple(_target(item) for item in drawn if item.task.model.worlds <= 2_000)


def _target(item: CausimItem) -> Target:
    model, question = item.task.model, item.task.question
    worked, keys = work_out(model, question), question.required_keys(model)
    first = next(iter(worked.answers), None)
    base = json.loads(first) if first is not None else dict.fromkeys(keys, "x")
    return Target(item, json.dumps(BENCHMARK.items.record(item)), keys, frozenset(worked.answers), base)


def odd_value(rng: random.Random) -> Any:
    """One of ODD_VALUES, sometimes inside containers."""
    value = rng.choice(ODD_VALUES)
    if rng.random() < 0.1:
        tag = rng.random() < 0.5
        for _ in range(rng.choice([1, 1, 2, *NESTED_VALUES])):
            value = ["tuple", value] if tag else [value] if rng.random() < 0.8 else {"a": value}
    return value


def odd_answer(rng: random.Random, target: Target) -> dict[str, Any]:
    """Return an answer with odd values at some of its keys, at one of them most often."""
    answer = dict(target.base)
    if target.keys and rng.random() < 0.95:
        for key in rng.sample(target.keys, min(len(target.keys), rng.choice([1, 1, 1, 2, len(target.keys)]))):
            answer[key] = odd_value(rng)
    return answer


def is_right(target: Target, answer: Mapping[str, Any]) -> bool:
    """Return whether running every world gives the answer, by its JSON text."""
    try:
        text = json.dumps(answer, separators=(",", ":"), sort_keys=True)
    except (ValueError, RecursionError):  # an integer beyond the digit limit, or nested too deeply: never a value
        return False
    return text in target.answers


def _object(rng: random.Random) -> str:
    target = rng.choice(targets())
    return "object " + check_answer(target, odd_answer(rng, target))


def check_answer(target: Target, answer: dict[str, Any]) -> str:
    """Compare the verdict on an answer with what running every world says; the outcome in a word."""
    record = BENCHMARK.scoring.score(target.item, answer, ())
    _, remark = BENCHMARK.scoring.read_answer(target.item, answer)
    require(record["correct"] is is_right(target, answer), f"reward {record['correct']} for {short_repr(answer)}")
    require(record["answered"] is True, "an answer with exactly the required keys is none")
    require(not (record["correct"] and remark), f"a right answer has a remark: {remark}")
    require(len(remark) < MAX_MESSAGE_CHARS and (not remark or remark.isprintable()), f"a remark of lines: {remark!a}")
    require(BENCHMARK.scoring.same_answer(target.item, answer, answer) is True, "an answer is not the same as itself")
    json.loads(json.dumps(record, allow_nan=False))
    json.loads(record["meaning"])
    if record["nodes"] is not None:
        require(record["correct"] is (set(record["nodes"]) == {"ok"}), f"reasons {record['nodes']} for this reward")
    return "right" if record["correct"] else "odd" if remark else "wrong"


def _reply(rng: random.Random) -> str:
    """Return the answer as a text, plain or inside something."""
    target = rng.choice(targets())
    answer = odd_answer(rng, target)
    try:
        text = json.dumps(answer, ensure_ascii=rng.random() < 0.5)
    except (ValueError, RecursionError):
        return "reply not written"
    is_wrapped = rng.random() < 0.3
    if is_wrapped:
        text = rng.choice(['{"answer": %s}', '{"memory": "m", "value": [%s]}', '%s {"confidence": 1}']) % text
    score = BENCHMARK.functions.score(target.item, f"so: {text}\n")
    expected = not is_wrapped and is_right(target, answer)
    require(score.correct is expected, f"reward {score.correct} for {short_repr(text)}")
    require(score.correct is (score.failure is None), "a wrong reply without a reason")
    require(score.failure is None or score.failure.isprintable(), f"a reason of more than a line: {score.failure!a}")
    return f"reply {'wrapped' if is_wrapped else 'right' if score.correct else 'wrong'}"


def _reward(rng: random.Random) -> str:
    """Return the rewards of a completion."""
    target = rng.choice(targets())
    answer = odd_answer(rng, target)
    try:
        completion = json.dumps(answer)
    except (ValueError, RecursionError):
        return "completion not written"
    asked = lesson("causim", target.record)
    response = asked.score_completion(completion)
    require(response is not None, "a text is no completion")
    assert response is not None
    reward, share, worth = (reward(asked, response) for reward in (verdict, shaped, attributed))
    require(reward == float(is_right(target, answer)), f"reward {reward} for {short_repr(answer)}")
    require(share is not None and 0 <= share <= 1 and (share == 1) >= (reward == 1), f"share {share}")
    require(worth in (None, 0.0, 0.5, 1.0), f"attributed reward {worth}")
    return "completion rewarded"


def _record(rng: random.Random) -> str:
    """Read an item's record with an odd value somewhere; it may be refused in one line."""
    target = rng.choice(targets())
    record: dict[str, Any] = json.loads(target.record)
    field = rng.choice(["fixed_exogenous", "do", "observed_endogenous", "sealed", ""])
    if field == "sealed":
        record["sealed"]["world"][rng.choice(target.item.task.model.noises)] = odd_value(rng)
    elif field:
        values = record.setdefault(field, {})
        values[rng.choice([*values, *target.keys, "x"])] = odd_value(rng)
    else:
        record = damaged(rng, record)
    try:
        item = BENCHMARK.items.item_of_record(record)
        BENCHMARK.scoring.score(item, BENCHMARK.scoring.no_answer(item), ())
    except CalibrantError as error:
        message = str(error)
        require(message.isprintable() and len(message) <= MAX_MESSAGE_CHARS, f"not one line: {message!a}")
        return "record refused"
    return "record read"
