"""Local predecessor-pattern coverage: against counting rows, by hand, and against what the released code stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
import yaml

from calibrant.audits.replayscm.coverage import (
    latent_scm,
    pattern_coverage,
    probes,
    released_coverage,
    seen_patterns,
    windows,
)
from calibrant.dsl.replayscm.disclosure import Ordered
from calibrant.dsl.replayscm.item import Problem
from tests.support.replayscm.pools import dev_problems
from tests.support.replayscm.random_problems import SETTINGS, Shape, gold_problem
from tests.support.replayscm.written import written_problem, written_scm, written_world
from tests.support.shared import shared_file


def counted(problem: Problem) -> dict[str, tuple[int, int]]:
    """Local support as the paper's section B.2.3 words it, over all subsets, a row at a time."""
    gold, order = latent_scm(problem), problem.sealed.latent_order
    bound = problem.sealed.max_predecessors or len(order)
    result = {}
    for place, variable in enumerate(order):
        if variable in gold.roots:
            continue
        nearest = order[max(0, place - bound) : place]
        shown: set[tuple[tuple[str, ...], tuple[int, ...]]] = set()
        subsets = list(combinations(nearest, min(3, len(nearest))))
        for world in problem.task.training.worlds:
            if variable not in world.intervention.targets:
                shown |= {(s, tuple(row[v] for v in s)) for row in world.rows() for s in subsets}
        result[variable] = (len(shown), sum(2 ** len(s) for s in subsets))
    return result


@pytest.mark.parametrize("window", [None, 1, 2, 4])
def test_coverage_equals_a_count_of_rows(window: int | None) -> None:
    shares = set()
    for seed in range(12):
        shape = Shape(roots=2, endogenous=4, units=5, training=3, window=window)
        problem = gold_problem(seed, SETTINGS[seed % 4], shape)
        coverage = pattern_coverage(problem)
        assert {part.variable: (part.num_seen, part.total) for part in coverage.by_variable} == counted(problem)
        assert coverage.share == Fraction(*map(sum, zip(*counted(problem).values(), strict=True)))
        shares.add(coverage.share)
    assert len(shares) >= 3


def test_coverage_of_the_shared_instances_equals_a_count_of_rows() -> None:
    for problem in dev_problems("hidden_order")[::4]:
        measured = pattern_coverage(problem).by_variable
        assert {part.variable: (part.num_seen, part.total) for part in measured} == counted(problem)


def test_a_written_example() -> None:
    """A, B roots; C of A, B; D of all. C is a target in the second world, so only its first two rows count for C."""
    gold = written_scm("A B", C="(and A B)", D="(xor A C)")
    worlds = [
        written_world("w0", "A B C D", "0000 1110"),
        written_world("w1", "A B C D", "0011 0100", assigned="C"),
    ]
    problem = written_problem(Ordered(tuple("ABCD"), ("A", "B")), gold, worlds)
    assert windows(problem) == {"C": ("A", "B"), "D": ("A", "B", "C")}
    assert [(part.variable, part.num_seen, part.total) for part in pattern_coverage(problem).by_variable] == [
        ("C", 2, 4),
        ("D", 4, 8),
    ]
    listed = probes(problem)
    assert seen_patterns(worlds[1:], listed) == (0, 1 << 0b100 | 1 << 0b010)


def stored_coverage(record: Any) -> Iterator[dict[str, float]]:
    if isinstance(record, dict):
        for key, value in record.items():
            if key == "stage3_lite_final_coverage_by_var":
                yield value
            else:
                yield from stored_coverage(value)


def test_the_released_figure_is_reproduced_and_understates_coverage() -> None:
    """The generator stored its own figure; its mask lets a probe of three variables show 3 of 8 patterns at most."""
    text = shared_file("pool_dev_hidden_order.runtime.yaml").read_text(encoding="utf-8")
    records = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))["problems"]
    compared = 0
    for problem, record in zip(dev_problems("hidden_order"), records, strict=True):
        stored = next(stored_coverage(record))
        assert {v: float(share) for v, share in released_coverage(problem).items()} == pytest.approx(stored)
        assert max(stored.values()) <= (0.5 if problem.sealed.max_predecessors == 2 else 0.375)
        compared += pattern_coverage(problem).share > Fraction(4, 5)
    assert compared >= 70


def test_gold_is_needed() -> None:
    problem = gold_problem(0)
    without = replace(problem, sealed=replace(problem.sealed, gold=None))
    with pytest.raises(ValueError, match="'gold_0' has no gold SCM"):
        pattern_coverage(without)
