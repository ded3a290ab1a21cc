"""Spaces of detectors, also of those that switch, by moves or with noise, against plain enumeration."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, pairwise, product
from math import comb, log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.blickets.episode import BlicketEpisode, readings
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import (
    BlicketItem,
    Count,
    Form,
    Mechanism,
    OrderReading,
    Rule,
    SwitchBy,
    all_rules,
    names_of,
)
from calibrant.dsl.blickets.item import Count as CountBy
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE, is_active
from calibrant.dsl.blickets.score import grade
from calibrant.solvers.blickets.chains import Chain, ChainSpace
from calibrant.solvers.blickets.conditions import RELIABILITIES, NoiseSpace, OrderSpace, Switching, SwitchSpace
from calibrant.solvers.blickets.exact import Family, UniversalSpace, chain_class, exact_learner
from calibrant.solvers.blickets.learner import conclude_episode
from calibrant.solvers.blickets.space import GradedSpace, StaticSpace
from calibrant.solvers.outcome import Found, Impossible
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


# --- Spaces of detectors: the shared vectors, enumeration over every short trace, and what holds of every space -------
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


# --- Detectors that switch several times, by moves, or with noise: spaces against plain enumeration, and learners -----
LAST = 3  # switch point
Read = tuple[Names, bool | None]  # what is on the detector after a move, and whether it was active; None if refused


@dataclass(frozen=True)
class Listed:
    """One member in plain names."""

    rules: tuple[NamedRule, ...]
    points: tuple[int, ...]
    p: float

    def rule(self, count: int) -> NamedRule:
        return self.rules[sum(point <= count for point in self.points)]


def _listed(objects: Names, switches: int, levels: tuple[float, ...]) -> Iterator[Listed]:
    for rules in product(named_rules(objects), repeat=switches + 1):
        if all(one != other for one, other in pairwise(rules)):
            for points, p in product(combinations(range(1, LAST + 1), switches), levels):
                yield Listed(rules, points, p)


def _told(member: Listed, reads: list[Read], count: Count, switch_by: SwitchBy) -> tuple[float, int]:
    """Return the probability of the readings, and how far the count is afterwards."""
    probability, progress, before = 1.0, 0, False
    for placed, active in reads:
        if active is not None:
            satisfied = lights(member.rule(progress), placed)
            heard = member.p if satisfied else 0.0
            probability *= heard if active else 1 - heard
            if switch_by is SwitchBy.ACTIVATIONS:
                progress += active and (count is Count.LEVEL or not before)
            before = active
        progress += switch_by is SwitchBy.STEPS
    return probability, progress


def _plain(chain: Chain) -> Listed:
    return Listed(tuple(map(_named, chain.rules)), chain.points, chain.p)


@st.composite
def _walks(draw: st.DrawFn, objects: Names) -> list[Read]:
    placed: Names = ()
    reads: list[Read] = []
    for index in draw(st.lists(st.integers(-1, len(objects) - 1), max_size=7)):
        if index < 0:
            reads.append((placed, None))
            continue
        name = objects[index]
        placed = tuple(other for other in placed if other != name) if name in placed else (*placed, name)
        reads.append((placed, draw(st.booleans())))
    return reads


@settings(deadline=None, max_examples=examples(60))
@given(st.data())
def test_members_and_probabilities_are_those_of_plain_enumeration(data: st.DataObject) -> None:
    n, switches = data.draw(st.sampled_from([(2, 1), (2, 2), (3, 1)]))
    objects = tuple(LETTERS[:n])
    count, switch_by = data.draw(st.sampled_from(Count)), data.draw(st.sampled_from(SwitchBy))
    levels = data.draw(st.sampled_from([(1.0,), (0.5, 0.9)]))
    reads = data.draw(_walks(objects))
    space = ChainSpace.full(n, switches, LAST, count_by=count, switch_by=switch_by, levels=levels)
    for placed, active in reads:
        if active is not None:
            space = space.after(tuple(map(objects.index, placed)), ACTIVE if active else INACTIVE)
        space = space.after_moves(1)
    members: dict[Listed, float] = {}
    verdicts: dict[NamedRule, int] = defaultdict(int)
    masses: dict[NamedRule, float] = defaultdict(float)
    heard: dict[NamedRule, float] = defaultdict(float)
    for member in _listed(objects, switches, levels):
        probability, progress = _told(member, reads, count, switch_by)
        if probability:
            members[member] = probability
            verdicts[member.rule(progress)] += 1
            masses[member.rule(progress)] += probability
            heard[member.rule(progress)] += probability * member.p
    assert space.count == len(members)
    assert {_named(rule): k for rule, k in space.verdicts().items()} == verdicts
    total = sum(masses.values())
    found = {_named(rule): share for rule, share in space.posterior().items()}
    assert found == pytest.approx({rule: mass / total for rule, mass in masses.items()}, rel=1e-9)
    for present in range(1 << n):
        shares = [
            (masses[rule] / total, heard[rule] / total * lights(rule, names_of(present, objects))) for rule in masses
        ]
        assert space.information()[present] == pytest.approx(_information(shares), abs=1e-9)
    if members:
        drawn_members = {_plain(chain) for chain in space.sample(np.random.default_rng(1), 20)}
        assert drawn_members <= members.keys()
        assert all(space.fits(chain) for chain in space.sample(np.random.default_rng(2), 5))
    else:
        with pytest.raises(ValueError, match="empty"):
            space.sample(np.random.default_rng(1), 1)


def _count_by_dictionaries(
    objects: Names, switches: int, last: int, reads: list[tuple[Names, bool]], in_force: NamedRule | None = None
) -> int:
    """Return the number of chains in Python integers, by choice of switch points and place; each ACTIVE counts.

    in_force: only chains whose rule after all readings is this one
    """
    rules = list(named_rules(objects))
    number = 0
    for points in combinations(range(1, last + 1), switches):
        possible = [list(rules) for _ in range(switches + 1)]
        activations = 0
        for placed, active in reads:
            place = sum(point <= activations for point in points)
            possible[place] = [rule for rule in possible[place] if lights(rule, placed) == active]
            activations += active
        if in_force is not None:
            now = sum(point <= activations for point in points)
            possible[now] = [rule for rule in possible[now] if rule == in_force]
        ways = dict.fromkeys(possible[0], 1)
        for fitting in possible[1:]:
            every = sum(ways.values())
            ways = {rule: every - ways.get(rule, 0) for rule in fitting}
        number += sum(ways.values())
    return number


def test_counts_beyond_doubles_are_exact() -> None:
    """Seven switches of six objects: 2**60 chains, where sums in doubles are off by hundreds."""
    objects, switches, last = tuple(LETTERS[:6]), 7, 9
    reads: list[tuple[Names, bool]] = [
        (objects[:2], True),
        (objects[3:], False),
        (objects, True),
        (objects[1:4], True),
        (objects[:1], False),
    ]
    space = ChainSpace.full(6, switches, last)
    assert space.count == comb(last, switches) * 120 * 119**switches
    for placed, active in reads:
        space = space.after(tuple(map(objects.index, placed)), ACTIVE if active else INACTIVE)
    assert space.count == _count_by_dictionaries(objects, switches, last, reads)
    verdicts = {_named(rule): k for rule, k in space.verdicts().items()}
    assert sum(verdicts.values()) == space.count
    for rule in list(named_rules(objects))[::17]:
        assert verdicts.get(rule, 0) == _count_by_dictionaries(objects, switches, last, reads, rule)


def test_as_many_switches_as_points_are_counted() -> None:
    assert ChainSpace.full(8, 40, 40).count == 502 * 501**40


def _information(shares: list[tuple[float, float]]) -> float:
    """Of an answer and a reading, in bits.

    shares: of each answer, all of it and what comes with ACTIVE
    """
    active = sum(heard for _, heard in shares)
    found = 0.0
    for mass, heard in shares:
        for part, of_reading in ((heard, active), (mass - heard, 1 - active)):
            if part > 1e-15:
                found += part * log2(part / (mass * of_reading))
    return found


def test_every_member_fits_at_first_and_no_other() -> None:
    space = ChainSpace.full(2, 1, LAST)
    rules = all_rules(2)
    members = [Chain((a, b), (k,), 1.0) for a, b in product(rules, rules) for k in range(1, LAST + 1) if a != b]
    assert space.count == len(members) == len({m for m in members if space.fits(m)})
    a, b = rules[:2]
    for other in (Chain((a, a), (1,), 1.0), Chain((a, b), (4,), 1.0), Chain((a, b), (1,), 0.5), Chain((a,), (), 1.0)):
        assert not space.fits(other)


@settings(deadline=None)
@given(_walks(tuple("ABC")), st.sampled_from(Count))
def test_one_switch_is_the_class_that_has_it_alone(reads: list[Read], count: Count) -> None:
    chains, switch = ChainSpace.full(3, 1, 5, count_by=count), SwitchSpace.full(3, count, 5)
    for placed, active in reads:
        if active is not None:
            on = tuple(map("ABC".index, placed))
            reading = ACTIVE if active else INACTIVE
            assert chains.outcomes(on) == switch.outcomes(on)
            chains, switch = chains.after(on, reading), switch.after(on, reading)
        assert (chains.count, chains.verdicts()) == (switch.count, switch.verdicts())


@pytest.mark.parametrize(
    "suite", sorted(SUITES.keys() - {"order-5-of-5"})
)  # five orders are not won by number of moves
def test_every_suite_has_an_exact_row(suite: str) -> None:
    """Decided, and right in all of these; an unreliable detector is right at 99 % belief."""
    for item in islice(sample_items(SUITES[suite], 4), 4):
        learner = exact_learner(item)
        assert isinstance(learner, Found)
        episode = BlicketEpisode(item)
        learned = conclude_episode(episode, learner.value)
        assert isinstance(learned.outcome, Found)
        if item.sealed.p == 1:
            assert grade(item, episode.steps).correct


def test_the_class_of_an_item_has_its_mechanism_and_keeps_it() -> None:
    for suite in ("several-switches", "switch-by-steps", "noisy-switch"):
        for item in islice(sample_items(SUITES[suite], 8), 5):
            space = chain_class(item)
            assert space is not None
            truth = _truth(item)
            episode = BlicketEpisode(item)
            for number in range(20):
                step = episode.act({"place" if number % 10 < 5 else "remove": item.task.objects[number % 5]})
                assert step.reading
                space = space.after(episode.placed, step.reading).after_moves(1)
                assert space.fits(truth)


def _truth(item: BlicketItem) -> Chain:
    rules = tuple(mechanism.rule.canonical for mechanism in item.sealed.mechanisms)
    return Chain(rules, item.sealed.switches, item.sealed.p)


def test_what_is_in_no_class_has_no_exact_learner() -> None:
    item = next(sample_items(SUITES["several-switches"], 1))
    first, second, third = item.sealed.mechanisms
    for sealed in (
        replace(item.sealed, switches=(3, 13)),  # beyond the last switch point
        replace(item.sealed, p=0.75),
        replace(item.sealed, mechanisms=(first, first, third)),
        replace(item.sealed, mechanisms=(first, second, Mechanism(Rule(Form.CONJUNCTIVE, 3), (1, 0)))),
    ):
        assert isinstance(exact_learner(replace(item, sealed=sealed)), Impossible)
    steps = next(sample_items(SUITES["switch-by-steps"], 1))
    assert chain_class(replace(steps, task=replace(steps.task, budget=100_000))) is None  # too many to weigh
    assert chain_class(next(sample_items(SUITES["conjunctive"], 1))) is None
