"""Prompts in other words: every sentence is replaced, and what an item states stays."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from calibrant.bench.core.registry import benchmark, benchmark_of, bundled_sample
from calibrant.dsl.blickets import prompt as blickets
from calibrant.dsl.blickets.item import Condition
from calibrant.dsl.causalab import prompt as causalab
from calibrant.dsl.causalab.item import Family, Traced
from calibrant.dsl.causalab.reference import Reading
from calibrant.dsl.logic import prompt as logic
from calibrant.dsl.replayscm import prompt as replayscm
from calibrant.dsl.replayscm.extensions.extension import Extension, parse_noise
from calibrant.dsl.replayscm.item import TaskKind

PHRASES = {
    "replayscm": replayscm.PHRASES,
    "blickets": blickets.PHRASES,
    "causalab": causalab.PHRASES,
    "logic": logic.PHRASES,
}
_STATED = re.compile(r"X[0-9]+|[0-9]+(?:\.[0-9]+)?|[\"{}]")  # names, numbers and marks of JSON


def _tasks(name: str) -> list[Any]:
    """Return tasks of bundled pools, and some with what these pools lack."""
    samples = ["ordered", "block", "hidden_order", "hidden_roots"] if name == "replayscm" else [name]
    items = [item for sample in samples for item in _items(sample)[::4]]
    first = items[0]
    tasks = [item.task for item in items]
    if name == "replayscm":
        grammar = replace(first.task.grammar, allow_constants=True, operators=("not", "if"))
        tasks += [replace(first.task, grammar=grammar), replace(first.task, kind=TaskKind.ALTERNATIVE)]
        tasks += [replace(first.task, reference=first.sealed.gold)]
        extension = Extension(first.task.variables, ("X1",), 3, noise=parse_noise("1/20"))
        tasks += [replace(first.task, extension=extension)]
    if name == "blickets":
        tasks += [replace(first.task, graded=True), *(replace(first.task, condition=c) for c in Condition)]
    if name == "causalab":
        tasks += [replace(first.task, family=Family.QUADRATIC, allowance=0), replace(first.task, noise=True)]
        trace = (Traced(first.task.baseline), Traced(first.task.baseline, "p", 1.0))
        tasks += [replace(first.task, reading=Reading.BASE), replace(first.task, trace=trace)]
    if name == "logic":
        tasks += [replace(first.task, questions=())]
    return tasks


def _items(sample: str) -> Any:
    path = bundled_sample(sample)
    return benchmark_of(path).items.read_pool(path).items


def _prompt(name: str, task: Any, item: Any) -> str:
    return "\n".join(message["content"] for message in benchmark(name).items.messages(replace(item, task=task)))


@pytest.mark.parametrize("name", PHRASES)
def test_every_phrase_occurs_and_is_replaced(name: str) -> None:
    item = _items("ordered" if name == "replayscm" else name)[0]
    rest = dict(PHRASES[name])
    for task in _tasks(name):
        standard, other = (_prompt(name, replace(task, wording=w), item) for w in ("standard", "rephrased"))
        for phrase in list(rest):
            if phrase in standard:
                assert rest.pop(phrase) in other
        assert set(_STATED.findall(standard)) == set(_STATED.findall(other))
    assert not rest
