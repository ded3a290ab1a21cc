"""Kinds of blicket answers, and what readings of a detector leave, against every rule read by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice, product

import pytest

from calibrant.audits.attribution import DECIDED_AT, Kind
from calibrant.audits.blickets.attribution import attribute_episode
from calibrant.audits.blickets.why import DetectorWhy, explain
from calibrant.bench.core.registry import benchmark, bundled_sample
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import BlicketItem, Form, Rule
from calibrant.dsl.episode import TranscriptError
from calibrant.solvers.blickets.exact import class_of, exact_learner, space_after
from calibrant.solvers.blickets.learner import conclude_episode
from calibrant.solvers.blickets.space import StaticSpace
from calibrant.solvers.outcome import Found
from tests.support.benchmarks.blickets import opened, static_item

# --- Attribution of episodes: the four kinds, from transcripts made to be of that kind --------------------------------
ITEM = static_item(Rule(Form.CONJUNCTIVE, 0b011), 3)
DECIDING = [{"place": "A"}, {"place": "B"}, {"remove": "A"}]
RIGHT = {"check": {"rule": "conjunctive", "blickets": ["B", "A"]}}
WRONG = {"check": {"rule": "disjunctive", "blickets": ["A", "B"]}}


@pytest.mark.parametrize(
    ("moves", "check", "kind", "decided_at", "fits"),
    [
        (DECIDING, RIGHT, Kind.EARNED, 3, True),
        (DECIDING, WRONG, Kind.MISSED, 3, False),
        (DECIDING[:2], RIGHT, Kind.LUCKY, None, True),
        (DECIDING[:2], WRONG, Kind.SHORT, None, False),
        ([*DECIDING, {"place": "C"}, {"place": "C"}], RIGHT, Kind.EARNED, 3, True),
    ],
)
def test_an_answer_is_of_the_kind_that_its_readings_say(
    moves: list[dict[str, str]], check: dict[str, object], kind: Kind, decided_at: int | None, fits: bool
) -> None:
    found = attribute_episode(ITEM, opened(ITEM, [*moves, check]).steps)
    assert (found.attribution.kind, found.attribution.fits) == (kind, fits)
    assert (found.decided_at, found.submitted_at) == (decided_at, len(moves))


def test_without_an_answer_nothing_fits() -> None:
    found = attribute_episode(ITEM, opened(ITEM, DECIDING).steps)
    assert (found.attribution.kind, found.attribution.fits, found.submitted_at) == (Kind.MISSED, None, None)


@pytest.mark.parametrize("suite", ["conjunctive", "disjunctive", "graded", "order", "order-3-of-4"])
def test_what_an_exact_learner_answers_is_earned(suite: str) -> None:
    for item in islice(sample_items(SUITES[suite], 2), 4):
        learner = exact_learner(item)
        assert isinstance(learner, Found)
        episode = BlicketEpisode(item)
        conclude_episode(episode, learner.value)
        found = attribute_episode(item, episode.steps)
        assert found.attribution.kind is Kind.EARNED
        assert found.decided_at == found.submitted_at


@pytest.mark.parametrize("suite", ["stochastic", "noisy-switch"])
def test_an_unreliable_detector_is_decided_by_a_posterior(suite: str) -> None:
    kinds = Counter[Kind]()
    for item in islice(sample_items(SUITES[suite], 2), 8):
        learner = exact_learner(item)
        assert isinstance(learner, Found)
        episode = BlicketEpisode(item)
        conclude_episode(episode, learner.value)
        found = attribute_episode(item, episode.steps)
        posterior = max(space_after(class_of(item), item.task, episode.steps).posterior().values())
        assert found.attribution.posterior == posterior
        assert found.attribution.decided == (posterior >= DECIDED_AT)
        assert (found.decided_at is not None) or not found.attribution.decided
        kinds[found.attribution.kind] += 1
    assert kinds[Kind.EARNED] > 0


def test_a_reliable_detector_has_no_posterior() -> None:
    assert attribute_episode(ITEM, opened(ITEM, [*DECIDING, RIGHT]).steps).attribution.posterior is None


def test_the_class_decides_what_is_decided_and_is_named() -> None:
    """The static learner stops at a rule that is unique in its class, which the class with switches leaves open."""
    (item,) = islice(sample_items(SUITES["easy-9"], 2), 1)
    episode = BlicketEpisode(item)
    static = exact_learner(ITEM)
    assert isinstance(static, Found)
    conclude_episode(episode, static.value)
    knowing = attribute_episode(item, episode.steps).attribution
    unaware = attribute_episode(item, episode.steps, StaticSpace.full(5)).attribution
    assert (knowing.kind, unaware.kind) == (Kind.LUCKY, Kind.EARNED)
    assert "one rule throughout" in unaware.in_words
    assert "the second in force" in knowing.in_words


def test_a_transcript_that_lies_is_not_attributed() -> None:
    with pytest.raises(TranscriptError, match="step 1"):
        attribute_episode(ITEM, opened(static_item(Rule(Form.CONJUNCTIVE, 0b111), 3), DECIDING).steps)


# --- What readings of a detector leave, against every rule read by hand -----------------------------------------------
POOL = benchmark("blickets").items.read_pool(bundled_sample("blickets"))
ITEMS = [item for item in POOL.items if item.setting in ("conjunctive", "disjunctive")][:4]
WALKS = ("A", "ABCD", "ABCDE", "EAB", "ABCDEDC")  # objects that are toggled one after the other


def played(item: BlicketItem, walk: str) -> DetectorWhy:
    """Return the reason after toggling these objects."""
    episode, on = BlicketEpisode(item), set[str]()
    for letter in walk:
        name = item.task.objects["ABCDE".index(letter)]
        episode.act({"remove" if name in on else "place": name})
        on ^= {name}
    return explain(item, episode.steps)


def rules(objects: tuple[str, ...]) -> list[tuple[str, frozenset[str]]]:
    """Every rule by hand; rules of one object once."""
    sets = [
        frozenset(o for o, bit in zip(objects, bits, strict=True) if bit)
        for bits in product((0, 1), repeat=len(objects))
    ]
    one = [("disjunctive", s) for s in sets if len(s) == 1]
    return one + [(form, s) for s in sets if len(s) > 1 for form in ("conjunctive", "disjunctive")]


def active(rule: tuple[str, frozenset[str]], present: frozenset[str]) -> bool:
    form, blickets = rule
    return blickets <= present if form == "conjunctive" else bool(blickets & present)


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: str(item.id))
@pytest.mark.parametrize("walk", WALKS)
def test_counts_witness_and_moves_are_those_of_every_rule(item: BlicketItem, walk: str) -> None:
    why, objects = played(item, walk), item.task.objects
    read = [(frozenset(move.placed), move.reading == "ACTIVE") for move in why.moves]
    fitting = [rule for rule in rules(objects) if all(active(rule, present) is light for present, light in read)]
    assert int(why.count.lower) == len(fitting)
    assert len(why.answers) == len(fitting)
    same = [o for o in objects if len({o in blickets for _, blickets in fitting}) == 1]
    assert list(why.decided) == same
    if why.state != "open":
        assert len(fitting) == 1
        return
    for one in why.experiments:
        verb, name = one.in_words.split()
        present = read[-1][0] - {name} if verb == "remove" else read[-1][0] | {name}
        lights = Counter(active(rule, present) for rule in fitting)
        assert {outcome.reading == "ACTIVE": int(outcome.remaining) for outcome in one.outcomes} == dict(lights)
        assert one.decides == all(number == 1 for number in lights.values())
    assert {one.in_words.split()[1] for one in why.experiments} == set(objects)
    assert why.witness is not None
    present = frozenset(why.witness)
    assert present not in [seen for seen, _ in read]
    named = {f"{form} {', '.join(o for o in objects if o in blickets)}": (form, blickets) for form, blickets in fitting}
    first, second = (named[text] for text in why.pair or ())
    assert active(first, present) is not active(second, present)


def _walked(item: BlicketItem, mechanism: BlicketItem) -> DetectorWhy:
    """Return the reason for an item after moves that another item's detector reads alike."""
    episode = BlicketEpisode(mechanism)
    episode.act({"place": item.task.objects[0]})
    return explain(item, episode.steps)


def test_the_condition_is_not_told_where_the_task_keeps_it_sealed() -> None:
    """Same task, same readings: the reason is the same for every sealed mechanism, and at the start too."""
    by_size: dict[int, list[BlicketItem]] = {}
    for item in POOL.items:
        if item.task.condition is None and not item.task.graded:
            by_size.setdefault(item.task.n, []).append(item)
    items = max(by_size.values(), key=len)
    assert len({item.setting for item in items}) > 3
    first = items[0]
    for item in items:
        twin = replace(item, id=first.id, task=first.task)
        assert explain(twin, ()) == explain(first, ())
        assert _walked(twin, first) == _walked(first, first)


def test_an_informed_item_is_explained_in_its_condition() -> None:
    item = next(item for item in POOL.items if item.setting == "moderator")
    informed = replace(item, task=replace(item.task, condition=item.condition))
    assert "two different rules" in explain(informed, ()).class_in_words
    assert "two different rules" not in explain(item, ()).class_in_words
