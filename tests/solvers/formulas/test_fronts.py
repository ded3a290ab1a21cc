"""Fronts of errors and size: compared with a listing of all formulas, by size, for every measure."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations, combinations_with_replacement, product
from typing import TypeAlias, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.solvers.formulas.fronts import Counting, Patterns, certify_formulas, front
from calibrant.solvers.formulas.least_formulas import Measure, Size, Tree
from tests.support.effort import effort

NAMES = ("a", "b", "c")
FULL = 0xFF
COLUMNS = {"a": 0xAA, "b": 0xCC, "c": 0xF0}
MAX_NODES = 6  # of formulas that are listed
MAX_PRODUCTS = 2
Listed: TypeAlias = dict[Size, dict[str, int]]
"""Size -> text of a formula -> its truth table over three columns."""


def join(operator: str, words: tuple[int, ...]) -> int:
    rows = zip(*([word >> row & 1 for row in range(8)] for word in words), strict=True)
    rules: dict[str, Callable[[tuple[int, ...]], int]] = {
        "not": lambda v: 1 - v[0],
        "and": min,
        "or": max,
        "xor": lambda v: sum(v) % 2,
        "iff": lambda v: int(len(set(v)) == 1),
    }
    return sum(int(rules[operator](values)) << row for row, values in enumerate(rows))


@cache
def list_nodes(measure: Measure) -> Listed:
    """List all formulas of up to `MAX_NODES` nodes: operators over any arguments, in any order the same formula."""
    operators = ("and", "or", "xor", "iff") if measure == "all" else ("and", "or")
    inner: dict[int, dict[str, int]] = {1: dict(COLUMNS)}
    for size in range(2, MAX_NODES + 1):
        formulas = {f"(not {text})": join("not", (word,)) for text, word in inner[size - 1].items()}
        for number in range(2, size):
            for sizes in combinations_with_replacement(range(1, size), number):
                if sum(sizes) != size - 1:
                    continue
                for parts in product(*(inner[s].items() for s in sizes)):
                    texts = " ".join(sorted(text for text, _ in parts))
                    for operator in operators:
                        formulas[f"({operator} {texts})"] = join(operator, tuple(word for _, word in parts))
        inner[size] = formulas
    return {size: ({**formulas, "0": 0, "1": FULL} if size == 1 else formulas) for size, formulas in inner.items()}


@cache
def list_sums(measure: Measure) -> Listed:
    """List all sums of up to `MAX_PRODUCTS` products, or products of sums."""
    outer, inner = ("or", "and") if measure == "sop" else ("and", "or")
    neutral = {"or": ("0", 0), "and": ("1", FULL)}
    terms: list[tuple[str, int, int]] = []
    for signs in product((None, True, False), repeat=3):
        literals = [
            (n, COLUMNS[n]) if s else (f"(not {n})", COLUMNS[n] ^ FULL)
            for n, s in zip(NAMES, signs, strict=True)
            if s is not None
        ]
        text, word = neutral[inner] if not literals else ("", 0)
        if literals:
            texts = sorted(text for text, _ in literals)
            text = texts[0] if len(texts) == 1 else f"({inner} {' '.join(texts)})"
            word = literals[0][1] if len(texts) == 1 else join(inner, tuple(w for _, w in literals))
        terms.append((text, word, len(literals)))
    listed: Listed = {(0, 0): dict([neutral[outer]])}
    for number in range(1, MAX_PRODUCTS + 1):
        for chosen in combinations(terms, number):
            texts = sorted(text for text, _, _ in chosen)
            text = texts[0] if number == 1 else f"({outer} {' '.join(texts)})"
            word = chosen[0][1] if number == 1 else join(outer, tuple(w for _, w, _ in chosen))
            listed.setdefault((number, sum(n for *_, n in chosen)), {})[text] = word
    return listed


@pytest.mark.parametrize("measure", get_args(Measure))
@settings(max_examples=effort(40, 5_000), deadline=None)
@given(rows=st.lists(st.tuples(*[st.integers(0, 1)] * 4), min_size=1, max_size=16))
def test_fronts_are_those_of_all_formulas_by_size(measure: Measure, rows: list[tuple[int, int, int, int]]) -> None:
    listed = list_sums(measure) if measure in ("sop", "pos") else list_nodes(measure)
    counts = {(row, value): 0 for row in range(8) for value in (0, 1)}
    for a, b, c, value in rows:
        counts[a + 2 * b + 4 * c, value] += 1
    expected: list[tuple[int, Size, list[str], int]] = []
    for size in sorted(listed, key=lambda s: s if isinstance(s, tuple) else (s, 0)):
        errors = {
            text: sum(counts[row, 1 - (word >> row & 1)] for row in range(8)) for text, word in listed[size].items()
        }
        least = min(errors.values())
        if not expected or least < expected[-1][0]:
            texts = sorted(text for text, number in errors.items() if number == least)
            expected.append((least, size, texts, len({listed[size][text] for text in texts})))
    occurring = sorted({row for (row, _), number in counts.items() if number})
    codes = np.array([[row >> k & 1 for k in range(3)] for row in occurring], np.int16)
    zeros, ones = (np.array([counts[row, value] for row in occurring], np.int64) for value in (0, 1))
    points = front(Patterns(codes, zeros, ones), measure, 3, NAMES, ties=10_000).points
    largest: Size = (MAX_PRODUCTS, 99) if measure in ("sop", "pos") else MAX_NODES
    stated = [
        (p.errors, p.size, [text for text, _ in p.formulas(10_000)], len(p.functions))
        for p in points
        if p.size <= largest  # type: ignore[operator]
    ]
    assert stated == expected
    assert [p.num_formulas for p in points[: len(expected)]] == [len(texts) for _, _, texts, _ in expected]


@pytest.mark.parametrize(
    ("measure", "tree", "size"),
    [
        ("all", ("xor", 0, ("not", 1), 2), 5),
        ("and-or-not", ("or", 0, ("and", ("not", 1), 2)), 6),
        ("sop", ("or", 0, ("and", ("not", 1), 2)), (2, 3)),
        ("sop", ("and", ("not", 1), 2), (1, 2)),
        ("pos", ("and", ("or", 0, 1), ("not", 2)), (2, 3)),
        ("pos", ("or", 0, 1), (1, 2)),
        ("sop", ("not", 2), (1, 1)),
        ("sop", "0", (0, 0)),
        ("sop", "1", (1, 0)),
        ("pos", "0", (1, 0)),
        ("pos", "1", (0, 0)),
        ("all", "1", 1),
    ],
)
@pytest.mark.parametrize("counting", ["sure", "possible"])
def test_formulas_are_certified_by_errors_and_size(
    measure: Measure, tree: Tree, size: Size, counting: Counting
) -> None:
    """Errors are counted here over listed completions, by Python's own operators."""
    rng = np.random.default_rng(3)
    codes = np.unique(rng.choice([-1, 0, 1], (12, 3), p=[0.2, 0.4, 0.4]), axis=0).astype(np.int16)
    zeros, ones = rng.integers(0, 4, (2, len(codes)))

    def value(part: Tree, row: tuple[int, ...]) -> int:
        if isinstance(part, tuple):
            return join_values(part[0], [value(argument, row) for argument in part[1:]])
        return row[part] if isinstance(part, int) else int(part)

    def join_values(operator: object, values: list[int]) -> int:
        return {"not": 1 - values[0], "and": min(values), "or": max(values), "xor": sum(values) % 2}[str(operator)]

    errors = 0
    for row, zero, one in zip(codes.tolist(), zeros.tolist(), ones.tolist(), strict=True):
        reached = {value(tree, filled) for filled in product(*((0, 1) if c == -1 else (c,) for c in row))}
        wrong = [v not in reached if counting == "sure" else reached != {v} for v in (0, 1)]
        errors += zero * wrong[0] + one * wrong[1]
    patterns = Patterns(codes, zeros.astype(np.int64), ones.astype(np.int64))
    certify_formulas([("shown", tree)], patterns, measure, counting, errors, size)
    larger: Size = size + 1 if isinstance(size, int) else (size[0], size[1] + 1)
    for stated in ((errors + 1, size), (errors, larger)):
        with pytest.raises(AssertionError, match="shown failed its certificate"):
            certify_formulas([("shown", tree)], patterns, measure, counting, *stated)
