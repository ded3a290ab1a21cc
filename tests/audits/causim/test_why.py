"""Why a question has several answers, against all worlds run one by one by the reference."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import prod
from types import FrameType
from typing import Any

import pytest

from calibrant.audits.causim.why import MAX_WORLDS, explain
from calibrant.bench.core.registry import benchmark, bundled_sample
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import run, shown_value, value_of
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
    assert why.reason_text == "U_Gadi is not given, and whether 'a' in str(item) decides Gadi."
    assert why.reveal == ("U_Gadi",)


def python_lines(code: str, name: str, arguments: list[object]) -> tuple[object, list[int]]:
    """Run a function of a program by Python itself; return its result and the lines that it passes, from 0."""
    names: dict[str, Any] = {}
    exec(compile(code, "program", "exec"), names)  # the test's own code of a bundled program
    passed: list[int] = []

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_name == name and event == "line":
            passed.append(frame.f_lineno - 1)
        return trace if frame.f_code.co_filename == "program" else None

    sys.settrace(trace)
    try:
        result = names[name](*arguments)
    finally:
        sys.settrace(None)
    return result, passed


@pytest.mark.parametrize("item", POOL.items, ids=lambda item: str(item.id))
def test_the_line_that_branches_is_where_python_parts(item: CausimItem) -> None:
    """Python's own tracing of the function, with every value of the noise: last common line, and where each ends."""
    why = explain(item)
    if why.branch is None:
        return
    code = "\n".join(line.text for line in why.branch.code)
    place = next(k for k, line in enumerate(why.branch.code) if line.branches)
    node = next(n for n in item.task.model.nodes if n.name == why.branch.node)
    world, _ = fitting(item)[0]
    values = {name: value_of(v) for name, v in run(item.task.model, world, item.task.question.do).items()}
    definition = ast.parse(code).body[0]
    assert isinstance(definition, ast.FunctionDef)
    paths: dict[str, tuple[object, list[int]]] = {}
    ends = {value: k for k, line in enumerate(why.branch.code) for value in line.ends}
    for value in ends:
        noise = next(value_of(v) for v in node.support if shown_value(v) == value)
        by_parameter = {parent.lower(): values[parent] for parent in node.parents}
        arguments = [by_parameter.get(p.arg, noise) for p in definition.args.args]
        paths[value] = python_lines(code, definition.name, arguments)
        assert paths[value][1][-1] == ends[value]
    first, *others = paths.values()
    other = next(entry for entry in others if entry[0] != first[0])
    common = 0
    while common < min(len(first[1]), len(other[1])) and first[1][common] == other[1][common]:
        common += 1
    assert place == first[1][common - 1]


@pytest.mark.parametrize("item", POOL.items[::3], ids=lambda item: str(item.id))
def test_probabilities_and_pair_are_those_of_all_worlds(item: CausimItem) -> None:
    why, listed = explain(item), fitting(item)
    if not why.groups:
        return
    chances = {node.noise: dict(zip(node.support, node.weights, strict=True)) for node in item.task.model.nodes}
    masses: dict[tuple[tuple[str, str], ...], Fraction] = defaultdict(Fraction)
    for world, answer in listed:
        masses[answer] += prod((chances[u][v] for u, v in world.items()), start=Fraction(1))
    total = sum(masses.values())
    assert {tuple(sorted(g.answer.items())): Fraction(g.probability) for g in why.groups} == {
        answer: mass / total for answer, mass in masses.items()
    }
    if why.state != "open":
        assert why.pair is None
        return
    assert why.pair is not None
    shown = [({u: shown_value(v) for u, v in world.items()}, answer) for world, answer in listed]
    answers = [next(answer for world, answer in shown if world == one) for one in why.pair]
    assert answers[0] != answers[1]
    distance = sum(why.pair[0][u] != why.pair[1][u] for u in why.pair[0])
    if len(listed) <= 100:
        assert distance == min(
            sum(a[u] != b[u] for u in a) for (a, one), (b, other) in combinations(shown, 2) if one != other
        )


def test_nothing_sealed_is_in_a_reason_without_gold() -> None:
    item = next(item for item in POOL.items if item.id == "tree-0001-s20-v04-intervention-000")
    twin = replace(item, sealed=replace(item.sealed, world=dict.fromkeys(item.sealed.world, '"x"')))
    assert explain(item) == explain(twin)
    revealed = explain(item, reveal_sealed=True)
    assert revealed.true_world is not None
    (entry,) = revealed.experiments
    assert entry.sealed == "1"
