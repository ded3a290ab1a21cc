"""Spaces of detectors: the shared vectors, enumeration over every short trace, and what holds of every space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.blickets.episode import readings
from calibrant.dsl.blickets.item import Count as CountBy
from calibrant.dsl.blickets.item import Form, OrderReading, Rule, all_rules, names_of
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE, is_active
from calibrant.solvers.blickets.conditions import RELIABILITIES, NoiseSpace, OrderSpace, Switching, SwitchSpace
from calibrant.solvers.blickets.exact import Family, UniversalSpace
from calibrant.solvers.blickets.space import GradedSpace, StaticSpace
from tests.support.benchmarks.blickets import (
    LETTERS,
    NamedRule,
    Names,
    actions,
    all_orders,
    items,
    lights,
    lights_in_order,
    named_rules,
    opened,
    switchers,
    toggles,
    vectors,
)
from tests.support.effort import examples


def _space(vector: dict[str, Any]) -> StaticSpace | SwitchSpace | OrderSpace:
    n = vector["n"]
    match vector["family"]:
        case "static":
            return StaticSpace.full(n)
        case "switch":
            return SwitchSpace.full(n, CountBy(vector["count"]), vector["max_switch"])
        case _:
            return OrderSpace.full(n, OrderReading(vector["order_reading"]))


def test_every_shared_space_has_the_members_and_answers_expected() -> None:
    seen = 0
    for vector in vectors("space"):
        space = _space(vector)
        for placed, reading in vector["evidence"]:
            space = space.after(tuple(vector["objects"].index(name) for name in placed), reading)
        found = {"members": space.count, "answers": len(space.verdicts())}
        assert found == vector["expect"], vector["id"]
        seen += 1
    assert seen >= 150


OBJECTS: Names = ("A", "B", "C")
Trace = list[tuple[tuple[int, ...], str]]


def _named(rule: Rule) -> NamedRule:
    return ("all" if rule.form is Form.CONJUNCTIVE else "any", frozenset(names_of(rule.blickets, LETTERS)))


def _compare_everywhere(
    space: Any,
    members: Sequence[Any],
    lit: Callable[[Any, Names, int], bool],
    answer: Callable[[Any, int], Any],
    longest: int,
    *,
    edge: bool = False,
) -> int:
    """Walk every sequence of moves and readings that some member gives; compare counts and answers at each."""
    compared = 0

    def walk(space: Any, members: Sequence[Any], placed: Names, activations: int, active: bool, length: int) -> None:
        nonlocal compared
        assert space.count == len(members)
        assert {_named(rule): k for rule, k in space.verdicts().items()} == Counter(
            answer(member, activations) for member in members
        )
        compared += 1
        if length == longest:
            return
        for target in toggles(OBJECTS, placed):
            numbers = tuple(OBJECTS.index(name) for name in target)
            on = [member for member in members if lit(member, target, activations)]
            off = [member for member in members if not lit(member, target, activations)]
            outcomes = {ACTIVE: len(on), INACTIVE: len(off)}
            assert space.outcomes(numbers) == {reading: k for reading, k in outcomes.items() if k}
            for left, reading in ((on, ACTIVE), (off, INACTIVE)):
                now = reading == ACTIVE
                counted = activations + (now and not (edge and active))
                if left:
                    walk(space.after(numbers, reading), left, target, counted, now, length + 1)
                else:
                    assert space.after(numbers, reading).count == 0

    walk(space, members, (), 0, False, 0)
    return compared


def test_static_counts_equal_enumeration_over_every_trace_of_up_to_six_moves() -> None:
    compared = _compare_everywhere(
        StaticSpace.full(3), named_rules(OBJECTS), lambda m, on, _: lights(m, on), lambda m, _: m, 6
    )
    assert compared > 2_000


def test_graded_counts_equal_enumeration_over_every_trace_of_up_to_four_moves() -> None:
    def level(rule: NamedRule, placed: Names) -> int:
        return len(rule[1] & set(placed)) if lights(rule, placed) else 0

    def walk(space: GradedSpace, members: list[NamedRule], placed: Names, length: int) -> None:
        assert {_named(rule) for rule in space.verdicts()} == set(members)
        for target in toggles(OBJECTS, placed) if length < 4 else ():
            numbers = tuple(OBJECTS.index(name) for name in target)
            read = Counter(level(member, target) for member in members)
            told = {k: f"{ACTIVE} {k}" if k else INACTIVE for k in read}
            assert space.outcomes(numbers) == {told[k]: number for k, number in read.items()}
            for k, reading in told.items():
                left = [member for member in members if level(member, target) == k]
                walk(space.after(numbers, reading), left, target, length + 1)

    walk(GradedSpace.full(3), named_rules(OBJECTS), (), 0)


@pytest.mark.parametrize("reading", OrderReading)
def test_order_counts_equal_enumeration_over_every_trace_of_up_to_six_moves(reading: OrderReading) -> None:
    contiguous = reading is OrderReading.CONTIGUOUS
    compared = _compare_everywhere(
        OrderSpace.full(3, reading),
        all_orders(OBJECTS),
        lambda m, on, _: lights_in_order(m, on, contiguous=contiguous),
        lambda m, _: ("all", frozenset(m)),
        6,
    )
    assert compared > 2_000


@pytest.mark.parametrize("count_by", CountBy)
def test_switch_counts_equal_enumeration_over_every_trace_of_up_to_six_moves(count_by: CountBy) -> None:
    compared = _compare_everywhere(
        SwitchSpace.full(3, count_by, 4),
        switchers(OBJECTS, 4),
        lambda m, on, activations: lights(m.rule(activations), on),
        lambda m, activations: m.rule(activations),
        6,
        edge=count_by is CountBy.EDGE,
    )
    assert compared > 10_000


def _walk(n: int) -> st.SearchStrategy[list[Any]]:
    return actions(n).map(lambda taken: [a for a in taken if isinstance(a, dict) and "check" not in a])


def _spaces_that_know(item: Any) -> Iterator[tuple[Any, Any]]:
    """(space of a class that the item belongs to, its truth)."""
    n, sealed = item.task.n, item.sealed
    first = sealed.mechanisms[0]
    if sealed.p < 1 and not sealed.switches and first.order is None:
        yield NoiseSpace.full(n), (first.rule, sealed.p)
    if sealed.p < 1:
        return
    if not sealed.switches and first.order is None:
        yield StaticSpace.full(n), first.rule
        if item.task.graded:
            yield GradedSpace.full(n), first.rule
        yield UniversalSpace.full(n, item.task.count, item.task.order_reading), (Family.STATIC, first.rule)
    if not sealed.switches and first.order is not None and len(first.order) > 1:
        yield OrderSpace.full(n, item.task.order_reading), first.order
    if len(sealed.switches) == 1 and sealed.switch_by == "activations" and not any(m.order for m in sealed.mechanisms):
        first_rule, second = (m.rule.canonical for m in sealed.mechanisms)
        if first_rule != second:
            yield SwitchSpace.full(n, item.task.count), Switching(first_rule, second, sealed.switches[0])


@settings(deadline=None, max_examples=examples(300))
@given(st.data())
def test_the_truth_stays_a_member_and_spaces_never_grow(data: st.DataObject) -> None:
    item = data.draw(items())
    steps = opened(item, data.draw(_walk(item.task.n))).steps
    if item.sealed.p < 1 and item.sealed.p not in RELIABILITIES:
        return
    for space, truth in _spaces_that_know(item):
        for placed, reading in readings(item.task, steps):
            if item.task.graded and not isinstance(space, GradedSpace):
                reading = ACTIVE if is_active(reading) else INACTIVE  # all that this class reads of it
            outcomes, before = space.outcomes(placed), space.count
            assert outcomes[reading] > 0
            if not isinstance(space, NoiseSpace | UniversalSpace):
                assert sum(outcomes.values()) == before
            space = space.after(placed, reading)
            assert space.count == outcomes[reading] <= before
            assert space.fits(truth)
        assert sum(space.verdicts().values()) == space.count
        assert sum(space.posterior().values()) == pytest.approx(1)
        assert all(space.fits(member) for member in space.sample(np.random.default_rng(0), 5))


def test_no_member_can_be_drawn_from_an_empty_space() -> None:
    for space in (
        StaticSpace.full(3),
        SwitchSpace.full(3),
        OrderSpace.full(3),
        NoiseSpace.full(3),
        UniversalSpace.full(3),
    ):
        empty = space.after((), ACTIVE)  # nothing on the detector
        assert empty.count == 0
        assert empty.verdicts() == {}
        assert empty.posterior() == {}
        with pytest.raises(ValueError, match="the space is empty"):
            empty.sample(np.random.default_rng(0), 1)


def test_sampling_is_uniform_over_members() -> None:
    space = SwitchSpace.full(2, CountBy.LEVEL, 2).after((0,), ACTIVE)
    members = [
        Switching(first, second, n)
        for first in all_rules(2)
        for second in all_rules(2)
        for n in (1, 2)
        if first != second
    ]
    fitting = [member for member in members if space.fits(member)]
    assert len(fitting) == space.count
    drawn = Counter(space.sample(np.random.default_rng(1), 4_000))
    assert set(drawn) == set(fitting)
    expected = 4_000 / len(fitting)
    assert sum((k - expected) ** 2 / expected for k in drawn.values()) < 3 * len(fitting)


def test_the_posterior_under_noise_is_bayes_rule() -> None:
    evidence: Trace = [((0, 1), INACTIVE), ((0, 1, 2), ACTIVE), ((0, 2), INACTIVE), ((0, 1), ACTIVE), ((1,), INACTIVE)]
    space = NoiseSpace.full(3)
    for placed, reading in evidence:
        space = space.after(placed, reading)
    weight = dict.fromkeys(all_rules(3), 0.0)
    for rule in weight:
        for p in RELIABILITIES:
            likelihood = 1.0
            for placed, reading in evidence:
                heard = p if rule.active(sum(1 << i for i in placed)) else 0.0
                likelihood *= heard if reading == ACTIVE else 1 - heard
            weight[rule] += likelihood
    total = sum(weight.values())
    assert space.posterior() == pytest.approx({rule: w / total for rule, w in weight.items() if w})


def test_the_families_of_the_mixture_are_weighed_equally_beforehand() -> None:
    space = UniversalSpace.full(4)
    assert space.families() == pytest.approx(dict.fromkeys(Family, 0.25))
    turned = space.after((0, 1), INACTIVE).after((0,), INACTIVE).after((1, 0), ACTIVE)
    assert set(turned.families()) == {Family.ORDER, Family.NOISE}
    assert turned.counts[Family.STATIC] == turned.counts[Family.SWITCH] == 0


def test_thousands_of_noisy_readings_do_not_vanish() -> None:
    """The likelihoods of 4,000 readings are below the smallest float; the posterior is what their ratio says."""
    noise, universal = NoiseSpace.full(3), UniversalSpace.full(3)
    for _ in range(1_000):
        for reading in (ACTIVE, ACTIVE, INACTIVE, ACTIVE):
            noise, universal = noise.after((0, 1), reading), universal.after((0, 1), reading)
    for space in (noise, universal):
        posterior = space.posterior()
        assert sum(posterior.values()) == pytest.approx(1)
        assert set(posterior) == {rule for rule in all_rules(3) if rule.active(0b011)}
    assert np.isfinite(noise.information()).all()
    assert set(universal.families()) == {Family.NOISE}
