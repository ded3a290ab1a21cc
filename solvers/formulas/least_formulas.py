"""All least formulas of a function, by a measure of size: counted and listed, for the fronts of tables.

Measures are those of `calibrant fit --operators`: nodes of formulas with all operators or with not, and, or; (products,
literals) of a sum of products, and its dual. Two formulas are the same if they differ in the order of arguments alone.
Every argument of a least formula is a least formula of its function, and no two arguments are the same function. So a
least formula is an operator, a set of smaller functions, and a least formula of each. Functions are words of 2**4 bits
over four variables (`dsl.formulas.table`); of 5 and 6 variables only those that the catalogue lists are covered.
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
"""The text "0" or "1", the number of a variable, or an operator with its arguments."""
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

NUM_VARS = 4  # the least size of every function of so many variables is available
OPERATORS: dict[str, tuple[str, ...]] = {"all": STANDARD_OPERATORS, "and-or-not": ("not", "and", "or")}
SHIPPED_SIZES = "data/sizes_4_and_or_not.bin"  # 13 s to build: sizes of the 65,536 functions, deflated
LITERALS = 100  # the size code of (products, literals) is products * LITERALS + literals; a number of nodes is its own
MAX_LISTED = 10_000  # formulas listed of a function


def is_dual(measure: Measure) -> bool:
    """Return whether formulas of the measure are those of the complement, with and/or exchanged."""
    return measure == "pos"


def size_of_code(measure: Measure, code: int) -> Size:
    """Return the size that a size code stands for."""
    return divmod(code, LITERALS) if measure in ("sop", "pos") else code


@dataclass(frozen=True, eq=False)
class LeastSizes:
    """Least sizes of functions.

    words: [f] functions in the order of size, then as integers; sizes: [f] their size codes
    _sorted: [f] positions of the words in ascending order
    is_complete: whether every function of `num_vars` variables is listed that has a formula
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
        ranks = np.minimum(np.searchsorted(self.words[self._sorted], words), len(self.words) - 1)
        positions = self._sorted[ranks]
        return np.where(self.words[positions] == words, self.sizes[positions], 0)

    @property
    def _by_word(self) -> I64:
        return _table_of_sizes(self)


@cache
def _table_of_sizes(sizes: LeastSizes) -> I64:
    table = np.zeros(1 << (1 << sizes.num_vars), np.int64)
    table[sizes.words.astype(np.int64)] = sizes.sizes
    return table


def _sort_by_size(num_vars: int, words: U64, sizes: I64, is_complete: bool) -> LeastSizes:
    order = np.lexsort((words, sizes))
    words, sizes = words[order], sizes[order]
    return LeastSizes(num_vars, words, sizes, np.argsort(words), is_complete)


@cache
def least_sizes(measure: Measure, num_vars: int = NUM_VARS) -> LeastSizes:
    """Return the least sizes of all functions of up to four variables; of 5 and 6 those that the catalogue lists."""
    if measure in ("sop", "pos"):
        table = _sums_of_products()[0]
        words = np.arange(len(table), dtype=np.uint64)
        return _sort_by_size(
            NUM_VARS, words ^ np.uint64(full_mask(NUM_VARS)) if is_dual(measure) else words, table, True
        )
    if measure == "and-or-not" and num_vars == NUM_VARS:
        content = files(__package__).joinpath(SHIPPED_SIZES).read_bytes()
        shipped = np.frombuffer(zlib.decompress(content), np.uint8).astype(np.int64)
        return _sort_by_size(num_vars, np.arange(len(shipped), dtype=np.uint64), shipped, True)
    functions = catalogue(num_vars, OPERATORS[measure])
    codes = functions.sizes.astype(np.int64)
    codes[np.isin(functions.words, [0, full_mask(num_vars)])] = 1  # constants stand alone, as 0 and 1
    return _sort_by_size(num_vars, functions.words, codes, functions.is_complete)


# --- Sums of products -------------------------------------------------------------------------------------------------
Cube: TypeAlias = tuple[int, ...]
"""A product: per variable 0, 1, or 2 if it is absent."""


@cache
def cubes(num_vars: int) -> tuple[tuple[Cube, int], ...]:
    """Return all products with their truth tables, the empty product last."""
    products = []
    for cube in product((0, 1, 2), repeat=num_vars):
        bits = full_mask(num_vars)
        for variable, literal in enumerate(cube):
            column = projection(variable, num_vars).bits
            bits &= {0: ~column, 1: column, 2: -1}[literal]
        products.append((cube, bits & full_mask(num_vars)))
    return tuple(products)


@cache
def _sums_of_products() -> tuple[I64, I64]:
    """Return, for each function of four variables, its size code and its number of least sums of products; [f], [f].

    Without any one of its products, a least sum is a least sum of another function. So the sums of p products follow
    from those of p - 1, each counted p times, once for each product that may be the last.
    """
    total = 1 << (1 << NUM_VARS)
    sizes, counts = np.full(total, -1, np.int64), np.zeros(total, np.int64)
    sizes[0], counts[0] = 0, 1
    layer = np.array([0], np.int64)
    num_products = 0
    while len(layer):
        num_products += 1
        best, ways = np.full(total, 1 << 40, np.int64), np.zeros(total, np.int64)
        for cube, bits in cubes(NUM_VARS):
            results, codes = layer | bits, sizes[layer] + LITERALS + sum(literal != 2 for literal in cube)
            order = np.argsort(results, kind="stable")
            results, codes, num_sums = results[order], codes[order], counts[layer][order]
            starts = np.flatnonzero(np.append(True, results[1:] != results[:-1]))
            least = np.minimum.reduceat(codes, starts)
            least_of_each = np.repeat(least, np.diff(np.append(starts, len(results))))
            summed = np.add.reduceat(np.where(codes == least_of_each, num_sums, 0), starts)
            functions = results[starts]
            better, equal = least < best[functions], least == best[functions]
            ways[functions[better]] = summed[better]
            ways[functions[equal]] += summed[equal]
            best[functions[better]] = least[better]
        layer = np.flatnonzero((best < 1 << 40) & (sizes < 0))
        sizes[layer], counts[layer] = best[layer], ways[layer] // num_products
    return sizes, counts


# --- Counting and listing ---------------------------------------------------------------------------------------------


class FormulaBook:
    """Counts and trees of the least formulas of functions, by a measure."""

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
            num_listed = 0
            for operator, parts in self.splits(bits):
                for arguments in product(*map(self.trees, parts)):
                    yield (operator, *arguments)
                    num_listed += 1
                    if num_listed >= MAX_LISTED:
                        return

    def _list_sums(self, bits: int) -> Iterator[Tree]:
        inner = bits ^ self.full if is_dual(self.measure) else bits
        for chosen in self._covers(inner):
            yield sum_tree(chosen, dual=is_dual(self.measure))

    def _covers(self, bits: int) -> Iterator[list[Cube]]:
        """Yield the least sets of products whose disjunction is a function, each once and sorted."""
        sizes, _ = _sums_of_products()
        inside = [(index, cube, word) for index, (cube, word) in enumerate(cubes(self.num_vars)) if not word & ~bits]

        def extend(covered: int, remaining_code: int) -> Iterator[list[Cube]]:
            if covered == bits:
                if not remaining_code:
                    yield []
                return
            row = (bits & ~covered) & -(bits & ~covered)  # the lowest open row has to be covered
            for index, cube, word in inside:
                cost = LITERALS + sum(literal != 2 for literal in cube)
                if word & row and cost <= remaining_code and index not in chosen:
                    chosen.append(index)
                    for others in extend(covered | word, remaining_code - cost):
                        yield [cube, *others]
                    chosen.pop()

        chosen: list[int] = []
        seen_sets = set()
        for cover in extend(0, int(sizes[bits])):
            key = tuple(sorted(cover))
            if key not in seen_sets:
                seen_sets.add(key)
                yield list(key)

    def splits(self, bits: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield, for a function's least formulas, each operator at the root with the functions of its arguments."""
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
            for parts in self._parities(words, sizes, bits, total, pairs_only=False):
                yield "xor", parts
        if "iff" in operators:
            for parts in self._parities(words, sizes, bits ^ self.full, total, pairs_only=True):
                yield "iff", parts
            for parts in _equalities(words, sizes, bits, total, self.full):
                yield "iff", parts

    def _parities(
        self, words: U64, sizes: I64, goal: int, remaining: int, *, pairs_only: bool, first: int = 0
    ) -> Iterator[tuple[int, ...]]:
        """Yield sets of two or more of words[first:] whose exclusive or is `goal`, of total size `remaining`."""
        end = int(np.searchsorted(sizes, remaining // 2, side="right"))
        firsts = np.arange(first, end)
        if not len(firsts):
            return
        partners = words[firsts] ^ np.uint64(goal)
        fits = self._sizes.size_of(partners) == remaining - sizes[firsts]
        # each set once: in the order of size, then of the word
        ordered = (sizes[firsts] < remaining - sizes[firsts]) | (words[firsts] < partners)
        for index in map(int, np.flatnonzero(fits & ordered & (partners != 0) & (partners != np.uint64(self.full)))):
            yield (int(words[firsts[index]]), int(partners[index]))
        if pairs_only:
            return
        # the smallest of three or more functions has at most a third of the size
        for index in range(first, int(np.searchsorted(sizes, remaining // 3, side="right"))):
            word, left_over = int(words[index]), remaining - int(sizes[index])
            for parts in self._parities(words, sizes, goal ^ word, left_over, pairs_only=False, first=index + 1):
                yield (word, *parts)


def _junctions(words: U64, sizes: I64, goal: int, total: int, full: int) -> Iterator[tuple[int, ...]]:
    """Yield sets of two or more of the words, all implied by the goal, with it as conjunction, of that total size."""

    def extend(first: int, conjunction: int, remaining: int, num_chosen: int) -> Iterator[tuple[int, ...]]:
        if num_chosen:
            start = max(first, int(np.searchsorted(sizes, remaining, side="left")))
            end = int(np.searchsorted(sizes, remaining, side="right"))
            if start < end:
                fits = (words[start:end] & np.uint64(conjunction)) == np.uint64(goal)
                for index in map(int, np.flatnonzero(fits)):
                    yield (int(words[start + index]),)
        for index in range(first, int(np.searchsorted(sizes, remaining // 2, side="right"))):
            word, size = int(words[index]), int(sizes[index])
            if num_chosen and conjunction & word == conjunction:
                continue  # an argument that changes nothing
            for parts in extend(index + 1, conjunction & word, remaining - size, num_chosen + 1):
                yield (word, *parts)

    yield from extend(0, full, total, 0)


def _equalities(words: U64, sizes: I64, goal: int, total: int, full: int) -> Iterator[tuple[int, ...]]:
    """Yield sets of three or more of the words that are all equal exactly where the goal is 1, of that total size."""

    def extend(first: int, ones: int, zeros: int, remaining: int, num_chosen: int) -> Iterator[tuple[int, ...]]:
        """Yield the rest of each set; ones, zeros: rows in which all functions so far are 1, 0."""
        if num_chosen >= 2:
            start = max(first, int(np.searchsorted(sizes, remaining, side="left")))
            end = int(np.searchsorted(sizes, remaining, side="right"))
            if start < end:
                layer = words[start:end]
                agreed = (layer & np.uint64(ones)) | (~layer & np.uint64(zeros))
                for index in map(int, np.flatnonzero(agreed == np.uint64(goal))):
                    yield (int(layer[index]),)
        num_missing = 3 if num_chosen == 0 else 2  # at least: the smallest has at most this share of the size
        end = int(np.searchsorted(sizes, remaining // num_missing, side="right"))
        for index in range(first, end):
            word = int(words[index])
            both_one, both_zero = ones & word, zeros & ~word & full
            if goal & ~(both_one | both_zero) or (num_chosen and (both_one, both_zero) == (ones, zeros)):
                continue
            for parts in extend(index + 1, both_one, both_zero, remaining - int(sizes[index]), num_chosen + 1):
                yield (word, *parts)

    yield from extend(0, full, full, total, 0)


@cache
def formula_book(measure: Measure, num_vars: int = NUM_VARS) -> FormulaBook:
    """Return the book of a measure; a process has one for each measure and number of variables."""
    return FormulaBook(measure, num_vars)


# --- Texts ------------------------------------------------------------------------------------------------------------


def sum_tree(chosen: Sequence[Cube], *, dual: bool) -> Tree:
    """Return a sum of products as a tree; dual: its complement, a product of sums."""
    outer, inner = ("and", "or") if dual else ("or", "and")
    terms = [
        _join(inner, [v if (literal == 1) != dual else ("not", v) for v, literal in enumerate(cube) if literal != 2])
        for cube in chosen
    ]
    if not terms or "" in terms:
        return "1" if bool(terms) != dual else "0"
    return _join(outer, terms)


def factored_tree(chosen: Sequence[Cube], *, dual: bool) -> Tree:
    """Return a sum of products with common literals factored out, the most frequent first; dual: as in `sum_tree`.

    Requires one product or more, none without literals. Algebraic factoring as in R. K. Brayton, Factoring logic
    functions, 1987.
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
        product = _flatten(inner, taken, factored_tree(quotient, dual=dual))
    return _flatten(outer, product, factored_tree(remaining, dual=dual)) if remaining else product


def _flatten(operator: str, *parts: Tree) -> Tree:
    """Return an operator on its arguments; an argument of the same operator gives way to its own arguments."""
    arguments: list[Tree] = []
    for part in parts:
        arguments += part[1:] if isinstance(part, tuple) and part[0] == operator else [part]
    return (operator, *arguments)


def _join(operator: str, terms: Sequence[Tree]) -> Tree:
    """Return an operator on its arguments; the argument if it is one, "" if there is none."""
    return "" if not terms else terms[0] if len(terms) == 1 else (operator, *terms)


def tree_text(tree: Tree, names: Sequence[str]) -> str:
    """Return a tree in prefix form, arguments in code point order of their texts; names: names of variables."""
    if isinstance(tree, tuple):
        return f"({tree[0]} {' '.join(sorted(tree_text(part, names) for part in tree[1:]))})"
    return names[tree] if isinstance(tree, int) else tree


def relabel_tree(tree: Tree, variables: Sequence[int]) -> Tree:
    """Return the tree with other numbers for its variables."""
    if isinstance(tree, tuple):
        return (tree[0], *(relabel_tree(part, variables) for part in tree[1:]))
    return variables[tree] if isinstance(tree, int) else tree


def infix_text(tree: Tree, names: Sequence[str]) -> str:
    """Return a tree in infix notation, arguments in the order of `tree_text`."""
    if not isinstance(tree, tuple):
        return tree_text(tree, names)
    parts = sorted(tree[1:], key=lambda part: tree_text(part, names))
    texts = [infix_text(part, names) for part in parts]
    if tree[0] == "iff":
        return f"iff({', '.join(texts)})"
    closed = [f"({t})" if _needs_parentheses(part) else t for part, t in zip(parts, texts, strict=True)]
    return f"not {closed[0]}" if tree[0] == "not" else f" {tree[0]} ".join(closed)


def _needs_parentheses(tree: Tree) -> bool:
    """Return whether a tree as an argument needs parentheses."""
    return isinstance(tree, tuple) and tree[0] not in ("not", "iff")


def tree_formula(tree: Tree, names: Sequence[str]) -> Formula:
    """Return a tree as a formula of the mechanism language, arguments in the order of `tree_text`."""
    if isinstance(tree, tuple):
        parts = sorted(tree[1:], key=lambda part: tree_text(part, names))
        return apply(str(tree[0]), [tree_formula(part, names) for part in parts])
    return var(names[tree]) if isinstance(tree, int) else constant(tree == "1")
