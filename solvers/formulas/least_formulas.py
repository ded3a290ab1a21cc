"""All least formulas of a function, by a measure of size: counted and listed, for the fronts of tables.

Measures are those of `calibrant fit --operators`: nodes of formulas with all operators or with not, and, or; (products,
literals) of a sum of products, and its dual. Two formulas are the same if they differ in the order of arguments alone.
Every part of a least formula is a least formula of its function, and no two arguments are the same function, so a
formula is a choice of an operator, of a set of smaller functions, and of a least formula of each. Functions are words
of 2**4 bits over four variables (`dsl.formulas.table`), those of 5 and 6 variables as far as the catalogue goes.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from math import prod
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS, Formula, apply, constant, var
from calibrant.dsl.formulas.table import full_mask, projection
from calibrant.solvers.formulas.catalogue import catalogue

Measure: TypeAlias = Literal["all", "and-or-not", "sop", "pos"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
Size: TypeAlias = int | tuple[int, int]
"""Nodes, or (products, literals)."""
Tree: TypeAlias = str | int | tuple["str | Tree", ...]
"""`0`, `1`, a variable's number, or an operator with its arguments."""
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

NUM_VARS = 4  # variables of functions that are known completely
OPERATORS: dict[str, tuple[str, ...]] = {"all": STANDARD_OPERATORS, "and-or-not": ("not", "and", "or")}
SHIPPED_SIZES = "data/sizes_4_and_or_not.bin"  # 13 s to build: sizes of the 65,536 functions, deflated
LITERALS = 100  # a size in products and literals is products * LITERALS + literals inside this module
MAX_LISTED = 10_000  # formulas of a function that are listed


def is_dual(measure: Measure) -> bool:
    """Return whether formulas of the measure are those of the complement, with and/or exchanged."""
    return measure == "pos"


def size_of_code(measure: Measure, code: int) -> Size:
    """Return a size from its number inside this module."""
    return divmod(code, LITERALS) if measure in ("sop", "pos") else code


@dataclass(frozen=True, eq=False)
class LeastSizes:
    """Least sizes of functions.

    words: [f] functions in the order of size, then as integers; sizes: [f] their size codes
    """

    num_vars: int
    words: U64
    sizes: I64
    _sorted: I64
    is_complete: bool

    def size_of(self, words: U64) -> I64:
        """Return the size codes of functions, 0 for one that is not listed."""
        if self.num_vars <= NUM_VARS:
            return self._by_word[words.astype(np.int64)]
        places = np.minimum(np.searchsorted(self.words[self._sorted], words), len(self.words) - 1)
        positions = self._sorted[places]
        return np.where(self.words[positions] == words, self.sizes[positions], 0)

    @property
    def _by_word(self) -> I64:
        return _table_of_sizes(self)


@cache
def _table_of_sizes(sizes: LeastSizes) -> I64:
    table = np.zeros(1 << (1 << sizes.num_vars), np.int64)
    table[sizes.words.astype(np.int64)] = sizes.sizes
    return table


def _ordered(num_vars: int, words: U64, sizes: I64, is_complete: bool) -> LeastSizes:
    order = np.lexsort((words, sizes))
    words, sizes = words[order], sizes[order]
    return LeastSizes(num_vars, words, sizes, np.argsort(words), is_complete)


@cache
def least_sizes(measure: Measure, num_vars: int = NUM_VARS) -> LeastSizes:
    """Return the least sizes of all functions of up to four variables; of 5 and 6 those that the catalogue lists."""
    if measure in ("sop", "pos"):
        table = _sums_of_products()[0]
        words = np.arange(len(table), dtype=np.uint64)
        return _ordered(NUM_VARS, words ^ np.uint64(full_mask(NUM_VARS)) if is_dual(measure) else words, table, True)
    if measure == "and-or-not" and num_vars == NUM_VARS:
        content = files(__package__).joinpath(SHIPPED_SIZES).read_bytes()
        shipped = np.frombuffer(zlib.decompress(content), np.uint8).astype(np.int64)
        return _ordered(num_vars, np.arange(len(shipped), dtype=np.uint64), shipped, True)
    functions = catalogue(num_vars, OPERATORS[measure])
    codes = functions.sizes.astype(np.int64)
    codes[np.isin(functions.words, [0, full_mask(num_vars)])] = 1  # constants stand alone, as 0 and 1
    return _ordered(num_vars, functions.words, codes, functions.is_complete)


# --- Sums of products -------------------------------------------------------------------------------------------------
Cube: TypeAlias = tuple[int, ...]
"""A product: per variable 0, 1, or 2 if it is absent."""


@cache
def cubes(num_vars: int) -> tuple[tuple[Cube, int], ...]:
    """Return all products with their functions, the empty product last."""
    products_by_rows = []
    for cube in product((0, 1, 2), repeat=num_vars):
        bits = full_mask(num_vars)
        for variable, literal in enumerate(cube):
            column = projection(variable, num_vars).bits
            bits &= {0: ~column, 1: column, 2: -1}[literal]
        products_by_rows.append((cube, bits & full_mask(num_vars)))
    return tuple(products_by_rows)


@cache
def _sums_of_products() -> tuple[I64, I64]:
    """Return per function of four variables its size code and number of least sums of products.

    Without any one of its products, a least sum is a least sum of another function: so each number of products follows
    from the one before, and a sum of p products is counted p times.
    """
    total = 1 << (1 << NUM_VARS)
    sizes, counts = np.full(total, -1, np.int64), np.zeros(total, np.int64)
    sizes[0], counts[0] = 0, 1
    layer = np.array([0], np.int64)
    number = 0
    while len(layer):
        number += 1
        best, ways = np.full(total, 1 << 40, np.int64), np.zeros(total, np.int64)
        for cube, bits in cubes(NUM_VARS):
            results, codes = layer | bits, sizes[layer] + LITERALS + sum(literal != 2 for literal in cube)
            order = np.argsort(results, kind="stable")
            results, codes, numbers = results[order], codes[order], counts[layer][order]
            starts = np.flatnonzero(np.append(True, results[1:] != results[:-1]))
            least = np.minimum.reduceat(codes, starts)
            least_of_each = np.repeat(least, np.diff(np.append(starts, len(results))))
            summed = np.add.reduceat(np.where(codes == least_of_each, numbers, 0), starts)
            functions = results[starts]
            better, equal = least < best[functions], least == best[functions]
            ways[functions[better]] = summed[better]
            ways[functions[equal]] += summed[equal]
            best[functions[better]] = least[better]
        layer = np.flatnonzero((best < 1 << 40) & (sizes < 0))
        sizes[layer], counts[layer] = best[layer], ways[layer] // number
    return sizes, counts


# --- Counting and listing ---------------------------------------------------------------------------------------------


class FormulaBook:
    """Numbers and trees of the least formulas of functions, by a measure."""

    def __init__(self, measure: Measure, num_vars: int = NUM_VARS) -> None:
        self.measure = measure
        self.num_vars = num_vars
        self.full = full_mask(num_vars)
        self._sizes = least_sizes(measure, num_vars)
        self._counts: dict[int, int] = {}
        self._trees: dict[int, list[Tree]] = {}
        self._variables = {projection(k, num_vars).bits: k for k in range(num_vars)}

    def size(self, bits: int) -> int:
        """Return the size code of a function."""
        return int(self._sizes.size_of(np.array([bits], np.uint64))[0])

    def count(self, bits: int) -> int:
        """Return the number of least formulas of a function."""
        if bits not in self._counts:
            self._counts[bits] = self._count(bits)
        return self._counts[bits]

    def _count(self, bits: int) -> int:
        if self.measure in ("sop", "pos"):
            return int(_sums_of_products()[1][bits ^ (self.full if is_dual(self.measure) else 0)])
        if bits in (0, self.full) or bits in self._variables:
            return 1
        return sum(prod(map(self.count, parts)) for _, parts in self.splits(bits))

    def trees(self, bits: int) -> list[Tree]:
        """Return the least formulas of a function, `MAX_LISTED` at most."""
        if bits not in self._trees:
            self._trees[bits] = list(self._list(bits))
        return self._trees[bits]

    def _list(self, bits: int) -> Iterator[Tree]:
        if bits in (0, self.full):
            yield "1" if bits else "0"
        elif self.measure in ("sop", "pos"):
            yield from self._list_sums(bits)
        elif bits in self._variables:
            yield self._variables[bits]
        else:
            number = 0
            for operator, parts in self.splits(bits):
                for arguments in product(*map(self.trees, parts)):
                    yield (operator, *arguments)
                    number += 1
                    if number >= MAX_LISTED:
                        return

    def _list_sums(self, bits: int) -> Iterator[Tree]:
        inner = bits ^ self.full if is_dual(self.measure) else bits
        for chosen in self._covers(inner):
            yield sum_tree(chosen, dual=is_dual(self.measure))

    def _covers(self, bits: int) -> Iterator[list[Cube]]:
        """Yield the least sets of products of a function, each once: the last product is the first of their order."""
        sizes, _ = _sums_of_products()
        inside = [(index, cube, word) for index, (cube, word) in enumerate(cubes(self.num_vars)) if not word & ~bits]

        def extend(covered: int, code: int, last: int) -> Iterator[list[Cube]]:
            if covered == bits:
                if not code:
                    yield []
                return
            row = (bits & ~covered) & -(bits & ~covered)  # the lowest open row has to be covered
            for place, cube, word in inside:
                cost = LITERALS + sum(literal != 2 for literal in cube)
                if word & row and cost <= code and place not in used:
                    used.append(place)
                    for others in extend(covered | word, code - cost, place):
                        yield [cube, *others]
                    used.pop()

        used: list[int] = []
        seen_sets = set()
        for cover in extend(0, int(sizes[bits]), -1):
            key = tuple(sorted(cover))
            if key not in seen_sets:
                seen_sets.add(key)
                yield list(key)

    def splits(self, bits: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the operators and the sets of argument functions of least formulas."""
        size = self.size(bits)
        total = size - 1
        operators = OPERATORS[self.measure]
        if "not" in operators and self.size(bits ^ self.full) == total:
            yield "not", (bits ^ self.full,)
        smaller = self._sizes.sizes < total
        words, sizes = self._sizes.words[smaller], self._sizes.sizes[smaller]
        plain = (words != 0) & (words != np.uint64(self.full))
        words, sizes = words[plain], sizes[plain]
        if "and" in operators:
            above = (words & np.uint64(bits)) == np.uint64(bits)
            for parts in _junctions(words[above], sizes[above], bits, total, self.full):
                yield "and", parts
        if "or" in operators:
            low = bits ^ self.full
            below = (words & np.uint64(low)) == 0
            for parts in _junctions(words[below] ^ np.uint64(self.full), sizes[below], low, total, self.full):
                yield "or", tuple(part ^ self.full for part in parts)
        if "xor" in operators:
            for parts in self._parities(words, sizes, 0, bits, 0, total, 2):
                yield "xor", parts
        if "iff" in operators:
            for parts in self._parities(words, sizes, 0, bits ^ self.full, 0, total, 0):
                yield "iff", parts
            for parts in _equalities(words, sizes, bits, total, self.full):
                yield "iff", parts

    def _parities(
        self, words: U64, sizes: I64, first: int, goal: int, depth: int, remaining: int, more: int
    ) -> Iterator[tuple[int, ...]]:
        """Yield sets of functions with that exclusive or and total size; of two if `more` is 0, else of two or more."""
        end = int(np.searchsorted(sizes, remaining // 2, side="right"))
        firsts = np.arange(first, end)
        if not len(firsts):
            return
        partners = words[firsts] ^ np.uint64(goal)
        fits = self._sizes.size_of(partners) == remaining - sizes[firsts]
        # each set once: in the order of size, then of the word
        ordered = (sizes[firsts] < remaining - sizes[firsts]) | (words[firsts] < partners)
        for place in map(int, np.flatnonzero(fits & ordered & (partners != 0) & (partners != np.uint64(self.full)))):
            yield (int(words[firsts[place]]), int(partners[place]))
        if not more:
            return
        for place in range(first, int(np.searchsorted(sizes, remaining // 3, side="right"))):
            left_over = remaining - int(sizes[place])
            for parts in self._parities(words, sizes, place + 1, goal ^ int(words[place]), depth + 1, left_over, more):
                yield (int(words[place]), *parts)


def _junctions(words: U64, sizes: I64, goal: int, total: int, full: int) -> Iterator[tuple[int, ...]]:
    """Yield sets of two or more functions, each above the goal, whose conjunction is the goal, of that total size."""

    def extend(first: int, conjunction: int, remaining: int, number: int) -> Iterator[tuple[int, ...]]:
        if number:
            start = max(first, int(np.searchsorted(sizes, remaining, side="left")))
            end = int(np.searchsorted(sizes, remaining, side="right"))
            if start < end:
                fits = (words[start:end] & np.uint64(conjunction)) == np.uint64(goal)
                for place in map(int, np.flatnonzero(fits)):
                    yield (int(words[start + place]),)
        for place in range(first, int(np.searchsorted(sizes, remaining // 2, side="right"))):
            word, size = int(words[place]), int(sizes[place])
            if number and conjunction & word == conjunction:
                continue  # an argument that changes nothing
            for parts in extend(place + 1, conjunction & word, remaining - size, number + 1):
                yield (word, *parts)

    yield from extend(0, full, total, 0)


def _equalities(words: U64, sizes: I64, goal: int, total: int, full: int) -> Iterator[tuple[int, ...]]:
    """Yield sets of three or more functions that are equal exactly where the goal is 1, of that total size."""

    def extend(first: int, ones: int, zeros: int, remaining: int, number: int) -> Iterator[tuple[int, ...]]:
        """`ones`, `zeros`: where all arguments so far are 1, 0."""
        if number >= 2:
            start = max(first, int(np.searchsorted(sizes, remaining, side="left")))
            end = int(np.searchsorted(sizes, remaining, side="right"))
            if start < end:
                layer = words[start:end]
                agreed = (layer & np.uint64(ones)) | (~layer & np.uint64(zeros))
                for place in map(int, np.flatnonzero(agreed == np.uint64(goal))):
                    yield (int(layer[place]),)
        needed = 3 if number == 0 else 2
        end = int(np.searchsorted(sizes, remaining // needed, side="right"))
        for place in range(first, end):
            word = int(words[place])
            both_one, both_zero = ones & word, zeros & ~word & full
            if goal & ~(both_one | both_zero) or (number and (both_one, both_zero) == (ones, zeros)):
                continue
            for parts in extend(place + 1, both_one, both_zero, remaining - int(sizes[place]), number + 1):
                yield (word, *parts)

    yield from extend(0, full, full, total, 0)


@cache
def formula_book(measure: Measure, num_vars: int = NUM_VARS) -> FormulaBook:
    """Return the book of a measure, one a process."""
    return FormulaBook(measure, num_vars)


# --- Texts ------------------------------------------------------------------------------------------------------------


def sum_tree(chosen: Sequence[Cube], *, dual: bool) -> Tree:
    """Return a sum of products as a tree; dual: a product of sums, of the complements."""
    outer, inner = ("and", "or") if dual else ("or", "and")
    terms = [
        _joined(inner, [v if (literal == 1) != dual else ("not", v) for v, literal in enumerate(cube) if literal != 2])
        for cube in chosen
    ]
    if not terms or "" in terms:
        return "1" if bool(terms) != dual else "0"
    return _joined(outer, terms)


def factored_tree(chosen: Sequence[Cube], *, dual: bool) -> Tree:
    """Return a sum of products with common literals taken out, the most frequent first; dual: as `sum_tree`.

    One sum or product of literals at least; no product is without literals. Algebraic factoring as in R. K. Brayton,
    Factoring logic functions, 1987.
    """
    outer, inner = ("and", "or") if dual else ("or", "and")
    counts = Counter((v, literal) for cube in chosen for v, literal in enumerate(cube) if literal != 2)
    (v, literal), count = min(counts.items(), key=lambda item: (-item[1], item[0]))
    if count == 1 or len(chosen) == 1:
        return sum_tree(chosen, dual=dual)
    quotient = [(*cube[:v], 2, *cube[v + 1 :]) for cube in chosen if cube[v] == literal]
    remaining = [cube for cube in chosen if cube[v] != literal]
    taken: Tree = v if (literal == 1) != dual else ("not", v)
    if any(set(cube) == {2} for cube in quotient):  # x + x y = x
        product = taken
    else:
        product = _nested(inner, taken, factored_tree(quotient, dual=dual))
    return _nested(outer, product, factored_tree(remaining, dual=dual)) if remaining else product


def _nested(operator: str, *parts: Tree) -> Tree:
    """Return an operator on its arguments, those of the same operator taken up."""
    arguments: list[Tree] = []
    for part in parts:
        arguments += part[1:] if isinstance(part, tuple) and part[0] == operator else [part]
    return (operator, *arguments)


def _joined(operator: str, terms: Sequence[Tree]) -> Tree:
    return "" if not terms else terms[0] if len(terms) == 1 else (operator, *terms)


def tree_text(tree: Tree, names: Sequence[str]) -> str:
    """Return a tree in prefix form, arguments in code point order of their texts; names: of the variables."""
    if isinstance(tree, tuple):
        return f"({tree[0]} {' '.join(sorted(tree_text(part, names) for part in tree[1:]))})"
    return names[tree] if isinstance(tree, int) else tree


def relabel_tree(tree: Tree, variables: Sequence[int]) -> Tree:
    """Return the tree with other numbers for its variables."""
    if isinstance(tree, tuple):
        return (tree[0], *(relabel_tree(part, variables) for part in tree[1:]))
    return variables[tree] if isinstance(tree, int) else tree


def infix_text(tree: Tree, names: Sequence[str]) -> str:
    """Return a tree as people write it, arguments in the order of `tree_text`."""
    if not isinstance(tree, tuple):
        return tree_text(tree, names)
    parts = sorted(tree[1:], key=lambda part: tree_text(part, names))
    texts = [infix_text(part, names) for part in parts]
    if tree[0] == "iff":
        return f"iff({', '.join(texts)})"
    closed = [f"({t})" if _is_open(part) else t for part, t in zip(parts, texts, strict=True)]
    return f"not {closed[0]}" if tree[0] == "not" else f" {tree[0]} ".join(closed)


def _is_open(tree: Tree) -> bool:
    """Return whether a tree as an argument needs parentheses."""
    return isinstance(tree, tuple) and tree[0] not in ("not", "iff")


def tree_formula(tree: Tree, names: Sequence[str]) -> Formula:
    """Return a tree as a formula of the mechanism language, arguments in the order of `tree_text`."""
    if isinstance(tree, tuple):
        parts = sorted(tree[1:], key=lambda part: tree_text(part, names))
        return apply(str(tree[0]), [tree_formula(part, names) for part in parts])
    return var(names[tree]) if isinstance(tree, int) else constant(tree == "1")
