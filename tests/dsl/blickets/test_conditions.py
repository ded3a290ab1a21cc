"""Condition and mechanism: the whole relation in both directions, and what is done where they contradict each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from pathlib import Path

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import BlicketItem, Condition, Form, Mechanism, Rule, Sealed, Task, contradiction
from calibrant.dsl.blickets.records import write_pool

CONJUNCTIVE, DISJUNCTIVE = Mechanism(Rule(Form.CONJUNCTIVE, 3)), Mechanism(Rule(Form.DISJUNCTIVE, 3))
ORDERED, ORDER_OF_ONE = replace(CONJUNCTIVE, order=(1, 0)), Mechanism(Rule(Form.CONJUNCTIVE, 1), (0,))
SINGLE, SAME_SINGLE = Mechanism(Rule(Form.DISJUNCTIVE, 4)), Mechanism(Rule(Form.CONJUNCTIVE, 4))
C = Condition


def _item(
    condition: Condition, mechanisms: tuple[Mechanism, ...], p: float = 1.0, *, strict: bool = False
) -> BlicketItem:
    switches = tuple(3 * k for k in range(1, len(mechanisms)))
    sealed = Sealed(mechanisms, switches, p=p, strict_singleton=strict)
    return BlicketItem("x", condition, Task(tuple("ABCDE"), 75), sealed)


# Mechanisms without p, the condition of each with p = 1 and with p = .7; None where the specification has none.
RELATION: list[tuple[tuple[Mechanism, ...], set[Condition], set[Condition]]] = [
    ((CONJUNCTIVE,), {C.CONJUNCTIVE}, {C.STOCHASTIC}),
    ((DISJUNCTIVE,), {C.DISJUNCTIVE}, {C.STOCHASTIC}),
    ((SINGLE,), {C.DISJUNCTIVE, C.CONJUNCTIVE}, {C.STOCHASTIC}),
    ((SAME_SINGLE,), {C.DISJUNCTIVE, C.CONJUNCTIVE}, {C.STOCHASTIC}),
    ((ORDERED,), {C.ORDER}, set()),
    ((ORDER_OF_ONE,), set(), set()),
    ((CONJUNCTIVE, SINGLE), {C.MODERATOR}, {C.NOISY_MODERATOR}),
    ((CONJUNCTIVE, DISJUNCTIVE, CONJUNCTIVE), {C.MODERATOR}, {C.NOISY_MODERATOR}),
    ((CONJUNCTIVE, CONJUNCTIVE), set(), set()),
    ((SINGLE, SAME_SINGLE), set(), set()),
    ((CONJUNCTIVE, SINGLE, SAME_SINGLE), set(), set()),
    ((ORDERED, SINGLE), set(), set()),
    ((CONJUNCTIVE, ORDERED), set(), set()),
]


def _cases() -> Iterator[tuple[BlicketItem, bool]]:
    for (mechanisms, certain, noisy), condition in product(RELATION, Condition):
        yield _item(condition, mechanisms), condition in certain
        yield _item(condition, mechanisms, 0.7), condition in noisy


def test_every_condition_goes_with_its_mechanisms_and_with_no_others() -> None:
    for item, holds in _cases():
        assert (contradiction(item) == "") is holds, contradiction(item)
        assert "\n" not in contradiction(item)


def test_a_singleton_that_must_be_called_by_its_word_is_of_one_condition() -> None:
    for mechanism, condition in product((SINGLE, SAME_SINGLE), (C.CONJUNCTIVE, C.DISJUNCTIVE)):
        holds = mechanism.rule.form.value == condition.value
        assert (contradiction(_item(condition, (mechanism,), strict=True)) == "") is holds


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_items_of_every_suite_are_of_their_condition_and_of_no_other(suite: str) -> None:
    for item in islice(sample_items(SUITES[suite], 8), 5):
        assert contradiction(item) == ""
        single = item.sealed.mechanisms[0].rule.blickets.bit_count() == 1
        for condition in set(Condition) - {item.condition}:
            assert contradiction(replace(item, condition=condition)) or single


def test_pool_check_refuses_what_contradicts_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [(replace(item, id=f"{place}"), holds) for place, (item, holds) in enumerate(_cases())][::5]
    items = [item for item, _ in cases]
    wrong = {item.id for item, holds in cases if not holds}
    assert len(wrong) < len(items)
    pool = tmp_path / "pool.jsonl"
    write_pool(pool, "made", items)
    assert main(["pool", "check", str(pool), "--json"]) == 1
    (report,) = json.loads(capsys.readouterr().out)
    name = "the condition is that of the mechanism"
    assert {failure["instance"] for failure in report["failures"] if failure["check"] == name} == wrong


def test_attribution_is_of_the_class_that_has_the_mechanism_or_there_is_none() -> None:
    """The class of a mechanism is that of the item with its own condition, whatever condition the item names."""
    of = benchmark("blickets")
    for (mechanisms, certain, noisy), condition in product(RELATION, Condition):
        for p, conditions in ((1.0, certain), (0.7, noisy)):
            item = _item(condition, mechanisms, p)
            steps = of.play.open(item).steps
            said = of.attribution(item, {}, steps, of.scoring.score(item, {}, steps))
            if not conditions:
                assert said is None
                continue
            right = replace(item, condition=min(conditions))
            expected = of.attribution(right, {}, steps, of.scoring.score(right, {}, steps))
            assert said is not None
            assert expected is not None
            assert said["class"] == expected["class"]
