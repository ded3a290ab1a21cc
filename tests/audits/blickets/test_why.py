"""What readings of a detector leave, against every rule read by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from calibrant.audits.blickets.why import DetectorWhy, explain
from calibrant.bench.core.registry import benchmark, bundled_sample
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import BlicketItem

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
