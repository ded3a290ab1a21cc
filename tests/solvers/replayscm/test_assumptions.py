"""Assumptions: counts and least SCMs under every kind of statement, and mixtures, against brute force."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations, pairwise, product
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.knowledge import parse_knowledge
from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.acyclic.optimum import ENGINES
from calibrant.solvers.outcome import Found, Impossible
from calibrant.solvers.replayscm.exact import conflicting_statements, solve
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.effort import cases, effort, examples
from tests.support.packages import needs
from tests.support.replayscm.brute_force import (
    Parents,
    Structure,
    families,
    function_size,
    is_acyclic,
    local_functions,
    parent_sets,
    root_hypotheses,
    seen,
)
from tests.support.replayscm.random_problems import SETTINGS, Limits, small_problem

needs("z3", "highspy")  # all engines are compared

MAX_PARENTS = 3
WORDS = ("require", "forbid", "tiers", "order", "roots", "max-parents", "max-parents-of", "increasing", "decreasing")
RELATIONS = ("no-common-parent", "assert")


class Line(NamedTuple):
    """A line of a file, with its meaning.

    graph: whether parent sets satisfy it; direction: (parent, child, sign) of a monotone mechanism
    """

    text: str
    graph: Callable[[Structure], bool]
    direction: tuple[str, str, int] | None = None

    @property
    def is_relation(self) -> bool:
        return self.text.startswith(("no-common-parent", "("))


def _has(structure: Structure, parent: str, child: str) -> bool:
    return parent in structure.get(child, ())


def _line(rng: Random, word: str, names: tuple[str, ...]) -> Line:
    shuffled = rng.sample(names, len(names))
    a, b, c = shuffled[:3]
    cut, limit = rng.randint(1, len(names) - 1), rng.randint(0, 2)
    match word:
        case "require":
            return Line(f"require {a} -> {b}", lambda s: _has(s, a, b))
        case "forbid":
            return Line(f"forbid {a} -> {b}, {b} -> {c}", lambda s: not _has(s, a, b) and not _has(s, b, c))
        case "tiers":
            early, late = shuffled[:cut], shuffled[cut:]
            text = f"tiers {', '.join(early)} < {', '.join(late)}"
            return Line(text, lambda s: not any(_has(s, u, v) for u, v in product(late, early)))
        case "order":
            return Line(f"order {a}, {b}, {c}", lambda s: not any(_has(s, v, u) for u, v in combinations((a, b, c), 2)))
        case "roots":
            return Line(f"roots {a}", lambda s: not s.get(a, ()))
        case "max-parents":
            return Line(f"max-parents {limit}", lambda s: all(len(parents) <= limit for parents in s.values()))
        case "max-parents-of":
            return Line(f"max-parents-of {a}={limit}", lambda s: len(s.get(a, ())) <= limit)
        case "increasing":
            return Line(f"increasing {a} -> {b}", lambda s: True, (a, b, 1))
        case "decreasing":
            return Line(f"decreasing {a} -> {b}", lambda s: True, (a, b, -1))
        case "no-common-parent":
            return Line(f"no-common-parent {a}, {b}", lambda s: not set(s.get(a, ())) & set(s.get(b, ())))
    first, second, third = (rng.sample(names, 2) for _ in range(3))
    x, y, z = (f"|{u} -> {v}|" for u, v in (first, second, third))
    formulas: list[tuple[str, Callable[[bool, bool, bool], bool]]] = [
        (f"(=> {x} (not {y}))", lambda p, q, r: not p or not q),
        (f"(xor {x} {y} {z})", lambda p, q, r: (p + q + r) % 2 == 1),
        (f"(= {x} {y} {z})", lambda p, q, r: p == q == r),
        (f"(or {x} (and {y} {z}))", lambda p, q, r: p or (q and r)),
        (f"(ite {x} {y} (not {z}))", lambda p, q, r: q if p else not r),
        (f"(=> {x} {y} {z})", lambda p, q, r: not (p and q) or r),
        (f"(and true (or false {x}))", lambda p, q, r: p),
    ]
    text, meaning = rng.choice(formulas)
    return Line(f"(assert {text})", lambda s: meaning(_has(s, *first), _has(s, *second), _has(s, *third)))


def _is_directed(lines: list[Line], child: str, parents: Parents, bits: int) -> bool:
    for line in lines:
        if line.direction is not None and line.direction[1] == child and line.direction[0] in parents:
            i, sign = parents.index(line.direction[0]), line.direction[2]
            for row in range(1 << len(parents)):
                if not row >> i & 1 and (bits >> (row | 1 << i) & 1) - (bits >> row & 1) == -sign:
                    return False
    return True


def _count(task: Task, lines: list[Line]) -> int:
    total = 0
    for family in families(task, MAX_PARENTS, root_hypotheses(task)):
        if all(line.graph(family.structure) for line in lines):
            number = 1
            for v, tables in family.functions.items():
                number *= sum(_is_directed(lines, v, family.structure[v], bits) for bits in tables)
            total += number
    return total


def _sizes(task: Task, lines: list[Line], v: str) -> dict[Parents, int]:
    """Least size of a formula that mentions exactly these variables; only a constant ignores one that it mentions."""
    sizes = {}
    for parents, tables in local_functions(task, v, MAX_PARENTS).items():
        listed = [
            size
            for bits in tables
            if parents and _is_directed(lines, v, parents, bits)
            if (size := function_size(bits, len(parents), task.grammar)) is not None
        ]
        if listed:
            sizes[parents] = min(listed)
    values = set((seen(task, v, ()) or {}).values())
    if seen(task, v, ()) is not None:
        constants = [bit for bit in (0, 1) if values <= {bit}]
        for parents in parent_sets(task, v, 1):
            if task.grammar.allow_constants != (not parents):
                continue
            given = [1 if task.grammar.allow_constants else function_size(bit, 0, task.grammar) for bit in constants]
            known = [size for size in given if size is not None]
            if known and not any(line.text.startswith("require") and line.text.endswith(f"-> {v}") for line in lines):
                sizes[parents] = min([*known, *([sizes[parents]] if parents in sizes else [])])
    return sizes


def _least(task: Task, lines: list[Line]) -> tuple[int, int, int, tuple[int, ...]] | None:
    sizes = {v: _sizes(task, lines, v) for v in task.variables}

    def number(names: Parents) -> int:
        return sum(1 << task.variables.index(name) for name in names)

    best = None
    for roots in root_hypotheses(task):
        inner = [v for v in task.variables if v not in roots]
        for chosen in product(*(sizes[v] for v in inner)):
            structure = dict(zip(inner, chosen, strict=True))
            if is_acyclic(structure) and all(line.graph(structure) for line in lines):
                size = sum(sizes[v][parents] for v, parents in structure.items())
                masks = tuple(number(structure.get(v, ())) for v in task.variables)
                key = size, sum(map(len, chosen)), number(roots), masks
                best = key if best is None else min(best, key)
    return best


def _drawn(seed: int, words: tuple[str, ...]) -> tuple[Task, list[Line]]:
    rng = Random(seed)
    limits = Limits(rows=12, allow_constants=rng.random() < 0.3, thresholds=False)
    task = small_problem(rng, rng.choice(SETTINGS), limits, "small").task
    return task, [_line(rng, word, task.variables) for word in words]


def _assumed(task: Task, lines: list[Line]) -> Task | None:
    """None where the lines clash with each other, which is refused."""
    knowledge = parse_knowledge("\n".join(line.text for line in lines), "a.txt")
    try:
        knowledge.check(task.variables)
    except CalibrantError:
        return None
    return replace(task, assumption=knowledge)


def _compare(task: Task, lines: list[Line]) -> bool:
    """Compare count, satisfiability and the least SCM of every engine; return whether some SCM satisfies the lines."""
    assumed = _assumed(task, lines)
    number = _count(task, lines)
    if assumed is None:
        assert number == 0, [line.text for line in lines]
        return False
    space = VersionSpace(assumed, ModelClass(MAX_PARENTS))
    assert space.count == number, [line.text for line in lines]
    assert space.has_member() == (number > 0)
    expected = _least(task, lines)
    is_related = any(line.is_relation for line in lines)
    for engine in ("auto", "smt") if is_related else ENGINES:
        outcome = solve(assumed, max_parents=MAX_PARENTS, nested_roots=False, engine=engine)
        if expected is None:
            assert isinstance(outcome, Impossible), (engine, [line.text for line in lines])
            continue
        assert isinstance(outcome, Found), (engine, [line.text for line in lines], outcome)
        model = outcome.value.model
        masks = tuple(
            sum(1 << task.variables.index(u) for u in model.mechanisms[v].mentioned) if v in model.mechanisms else 0
            for v in task.variables
        )
        roots = sum(1 << task.variables.index(root) for root in model.roots)
        key = outcome.value.size, sum(mask.bit_count() for mask in masks), roots, masks
        assert key == expected, (engine, [line.text for line in lines])
    return number > 0


@pytest.mark.soak
@pytest.mark.parametrize("word", [*WORDS, *RELATIONS])
def test_each_kind_of_statement_is_exact(word: str) -> None:
    satisfied = [_compare(*_drawn(seed, (word,))) for seed in range(effort(12, 200))]
    assert any(satisfied)
    assert word in ("max-parents", "increasing", "decreasing") or not all(satisfied)


@pytest.mark.soak
@settings(max_examples=examples(200), deadline=None)
@given(seed=st.integers(0, 10**6), words=st.lists(st.sampled_from([*WORDS, *RELATIONS]), min_size=1, max_size=4))
def test_mixtures_of_statements_are_exact(seed: int, words: list[str]) -> None:
    _compare(*_drawn(seed, tuple(words)))


def _conflicts(seeds: range) -> Iterator[tuple[Task, list[Line]]]:
    for seed in seeds:
        rng = Random(f"conflict {seed}")
        task, lines = _drawn(seed, tuple(rng.sample([*WORDS, *RELATIONS], 3)))
        if _count(task, []) and not _count(task, lines) and _assumed(task, lines) is not None:
            yield task, lines


@pytest.mark.soak
def test_a_smallest_set_of_lines_that_conflict_is_named() -> None:
    num_compared = 0
    for task, lines in _conflicts(range(cases(300))):
        assumed = _assumed(task, lines)
        assert assumed is not None
        conflict = conflicting_statements([assumed], ModelClass(MAX_PARENTS))
        subsets: Mapping[int, list[tuple[Line, ...]]] = {
            size: [part for part in combinations(lines, size) if not _count(task, list(part))] for size in (1, 2, 3)
        }
        least = next(size for size in (1, 2, 3) if subsets[size])
        numbers = [int(one.source.rpartition(" ")[2]) - 1 for one in conflict]
        assert tuple(lines[number] for number in numbers) in subsets[least]
        assert all(first < second for first, second in pairwise(numbers))
        num_compared += 1
    assert num_compared >= 3
