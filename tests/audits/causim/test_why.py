"""Why a question has several answers, against all worlds run one by one by the reference."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import pytest

from calibrant.audits.causim.why import MAX_WORLDS, explain
from calibrant.bench.core.registry import benchmark
from calibrant.bench.pools.bundled import bundled_sample
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import run
from calibrant.dsl.causim.question import project
from calibrant.dsl.causim.reference import worlds

POOL = benchmark("causim").items.read_pool(bundled_sample("causim"))


def fitting(item: CausimItem) -> list[tuple[dict[str, str], tuple[tuple[str, str], ...]]]:
    """Every world that fits, with its answer."""
    model, question = item.task.model, item.task.question
    listed = []
    for world, _ in worlds(model, question.fixed):
        factual = run(model, world, {})
        if all(factual[name] == value for name, value in question.observed.items()):
            answer = project(question, model, world, run(model, world, question.do))
            listed.append((world, tuple(sorted(answer.items()))))
    return listed


@pytest.mark.parametrize("item", POOL.items[::2], ids=lambda item: str(item.id))
def test_answers_and_what_decides_are_those_of_all_worlds(item: CausimItem) -> None:
    why, listed = explain(item), fitting(item)
    answers = {answer for _, answer in listed}
    assert (int(why.count.lower), int(why.num_worlds)) == (len(answers), len(listed))
    if len(listed) > MAX_WORLDS:
        assert why.groups == ()
        return
    assert {tuple(sorted(group.answer.items())): int(group.worlds) for group in why.groups} == {
        answer: sum(other == answer for _, other in listed) for answer in answers
    }
    assert set(why.open) == {key for key in dict(next(iter(answers))) if len({dict(a)[key] for a in answers}) > 1}

    def leaves_one(names: tuple[str, ...]) -> bool:
        by_value = defaultdict(set)
        for world, answer in listed:
            by_value[tuple(world[name] for name in names)].add(answer)
        return all(len(group) == 1 for group in by_value.values())

    if why.reveal:
        assert leaves_one(why.reveal)
        fewer = [c for k in range(len(why.reveal)) for c in combinations(item.task.question.unknown, k)]
        assert not any(map(leaves_one, fewer))
    for one in why.experiments:
        name = one.in_words.removeprefix("reveal ")
        values = defaultdict(list)
        for world, answer in listed:
            values[world[name]].append(answer)
        promised = {o.reading: (int(o.remaining), o.answers) for o in one.outcomes}
        assert promised == {value: (len(group), len(set(group))) for value, group in values.items()}


def test_the_one_value_that_decides_is_named() -> None:
    why = explain(next(item for item in POOL.items if item.id == "tree-0001-s20-v04-intervention-000"))
    assert why.reason_text == "U_Gadi is not given, and its value decides Gadi."
    assert why.reveal == ("U_Gadi",)
