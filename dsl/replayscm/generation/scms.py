"""Latent SCMs, sampled as by the published generator, and sizes of the shortest formulas of Boolean functions.

Both tables of sizes map a function, as the bits of its truth table, to a size; operators are those of the benchmark
with at most three arguments. The published table is incomplete: it combines arguments only if the order of their sizes
agrees with the order of their texts, and since "(" sorts before "X", a variable is never combined with a larger
formula. So it has size 6 for (and X1 (not X2)), and the generator samples redundant formulas such as (and X1 (xor X1
X2)). That the table here is the published one is inferred from pools of that generator: no formula in them is larger
than its size here, and many are larger than the exact size.

The first three slots are roots. Every later slot draws its parents from the window of the last predecessors and a
random formula over them; where no formula is accepted the mechanism is the exclusive or of the first two parents.

Departures: labels are permuted before the formulas are sampled, which changes no distribution; the table of known sizes
ends at KNOWN_SIZE_BOUNDS; and an SCM that the generator could never accept, because a shortcut is equivalent to its
mechanism, is dropped before worlds are sampled.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import product
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from calibrant.dsl.formulas.formula import OPERATORS, STANDARD_OPERATORS, Apply, Formula, Node, apply, var
from calibrant.dsl.formulas.table import TruthTable, from_formula, full_mask, projection, support
from calibrant.dsl.formulas.text import canonical_formula
from calibrant.dsl.replayscm.generation.strata import NUM_ROOTS, SHORTCUT_CAP, Stratum
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.text import natural_key

# --- Sizes of the shortest formulas of Boolean functions, exact ones and those of the published generator -------------
JOINS = tuple(name for name in STANDARD_OPERATORS if name != "not")
FLATTENED = ("and", "or", "xor")  # an argument of the same operator would be merged by the normal form

Sizes = MappingProxyType[int, int]


@cache
def shortest_sizes(num_vars: int, max_size: int) -> Sizes:
    """Return function -> size of its shortest formula, for functions with a formula of at most `max_size` nodes."""
    full = full_mask(num_vars)
    sizes: dict[int, int] = {}
    levels: list[list[int]] = [[]]
    for size in range(1, max_size + 1):
        functions = {projection(i, num_vars).bits for i in range(num_vars)} if size == 1 else set()
        functions.update(bits ^ full for bits in levels[size - 1])
        for shape in _shapes(size - 1):
            for arguments in product(*(levels[argument_size] for argument_size in shape)):
                functions.update(OPERATORS[name].bits(arguments, full) for name in JOINS)
        levels.append(sorted(functions - sizes.keys()))
        sizes.update(dict.fromkeys(levels[size], size))
    return MappingProxyType(sizes)


def _shapes(total: int) -> Iterator[tuple[int, ...]]:
    """Yield the ascending sizes of two or three arguments that sum to `total`."""
    for first in range(1, total):
        for second in range(first, total - first + 1):
            third = total - first - second
            if third == 0:
                yield first, second
            elif third >= second:
                yield first, second, third


class _Entry(NamedTuple):
    """A function of the published table, with its smallest formula's text; a level is sorted by text."""

    text: str
    bits: int


_FIRST = _Entry("", 0)  # sorts before every entry
_LAST_TEXT = "~"  # sorts behind every text


@cache
def published_sizes(num_vars: int, max_size: int) -> Sizes:
    """Return function -> size by the published table, up to `max_size`."""
    full = full_mask(num_vars)
    sizes: dict[int, int] = {}
    levels: list[list[_Entry]] = [[]]
    for size in range(1, max_size + 1):
        texts: dict[int, str] = {}
        for text, bits in _published_entries(levels, size, num_vars, full):
            if bits not in sizes and text < texts.get(bits, _LAST_TEXT):
                texts[bits] = text
        levels.append(sorted(_Entry(text, bits) for bits, text in texts.items()))
        sizes.update(dict.fromkeys(texts, size))
    return MappingProxyType(sizes)


def _published_entries(levels: list[list[_Entry]], size: int, num_vars: int, full: int) -> Iterator[_Entry]:
    if size == 1:
        yield from (_Entry(f"X{i + 1}", projection(i, num_vars).bits) for i in range(num_vars))
    yield from (_Entry(f"(not {text})", bits ^ full) for text, bits in levels[size - 1])
    for shape in _shapes(size - 1):
        for arguments in _in_text_order(levels, shape):
            texts = " ".join(argument.text for argument in arguments)
            values = [argument.bits for argument in arguments]
            for name in JOINS:
                if name not in FLATTENED or not any(argument.text.startswith(f"({name}") for argument in arguments):
                    yield _Entry(f"({name} {texts})", OPERATORS[name].bits(values, full))


def _in_text_order(
    levels: list[list[_Entry]], shape: tuple[int, ...], earlier: _Entry = _FIRST
) -> Iterator[tuple[_Entry, ...]]:
    """Yield arguments of the given sizes, smallest first, whose texts ascend too."""
    level = levels[shape[0]]
    for entry in level[bisect_left(level, earlier) :]:
        if len(shape) == 1:
            yield (entry,)
        else:
            for later in _in_text_order(levels, shape[1:], entry):
                yield entry, *later


# --- Sampling of latent SCMs: Algorithm 1 of the paper as the published generator implements it -----------------------
MIN_PARENTS = 2
DEPTH_LIMITS = (3, 7)  # depth in nodes, as Formula.depth counts it
LEAF_PROBABILITY = 0.35
BINARY_PROBABILITY = 0.8  # of an operator other than `not`; ternary otherwise
DRAWS_PER_SLOT = 1400
APPLIED = {(operator, arity): Apply(operator, arity) for operator in STANDARD_OPERATORS for arity in (1, 2, 3)}

KNOWN_SIZE_BOUNDS = {2: 9, 3: 10, 4: 12, 5: 10}  # complete for 2 and 3 parents; together half a second, once


class LatentScm(NamedTuple):
    """A sampled SCM with its latent order, which only the evaluator may use."""

    model: Scm
    order: tuple[str, ...]

    def windows(self, length: int) -> dict[str, tuple[str, ...]]:
        """Return endogenous variable -> its parents and its last predecessors, `length` in all."""
        mechanisms = self.model.mechanisms
        return {
            v: window(self.order, slot, length, mechanisms[v].mentioned)
            for slot, v in enumerate(self.order)
            if v in mechanisms
        }


def window(
    order: Sequence[str], slot: int, length: int | None, parents: Collection[str] = frozenset()
) -> tuple[str, ...]:
    """Return the `parents` of a slot and its nearest other predecessors, `length` in all, farthest first.

    length: None for all predecessors. Sampled SCMs have their parents among the nearest; published networks need not.
    """
    before = tuple(order[:slot])
    if length is None or len(before) <= length:
        return before
    nearest = sorted(before, key=lambda v: (v in parents, before.index(v)))[len(before) - length :]
    return tuple(sorted(nearest, key=before.index))


def sample_scm(stratum: Stratum, rng: Random) -> LatentScm:
    """Sample an SCM of the stratum of which at most `max_survivors` mechanisms are equivalent to a shortcut."""
    while True:
        order = sample_labels(stratum.num_variables, rng)
        mechanisms: dict[str, Formula] = {}
        for slot in range(NUM_ROOTS, stratum.num_variables):
            candidates = window(order, slot, stratum.max_parents)
            mechanisms[order[slot]] = _sample_slot(stratum, candidates, rng)
        num_shortcuts = sum(has_equivalent_shortcut(stratum, mechanism) for mechanism in mechanisms.values())
        if num_shortcuts <= stratum.max_survivors:
            return LatentScm(scm(order[:NUM_ROOTS], mechanisms), order)


def sample_labels(num_variables: int, rng: Random) -> tuple[str, ...]:
    """Return X1, X2, ... in a random order other than the natural one."""
    labels = [f"X{i + 1}" for i in range(num_variables)]
    order = list(labels)
    while order == labels:
        rng.shuffle(order)
    return tuple(order)


def has_equivalent_shortcut(stratum: Stratum, mechanism: Formula) -> bool:
    """Return whether some formula under the stratum's shortcut cap is equivalent to the mechanism."""
    parents = mechanism.variables
    shortest = shortest_sizes(len(parents), SHORTCUT_CAP).get(from_formula(mechanism, parents).bits)
    return shortest is not None and shortest <= stratum.shortcut_cap(mechanism.size)


def _sample_slot(stratum: Stratum, candidates: tuple[str, ...], rng: Random) -> Formula:
    """Sample a mechanism over at least two of the candidate parents.

    If the stratum tolerates no shortcut, the slot is sampled again instead of the SCM: slots are independent.
    """
    while True:
        num_parents = rng.randint(MIN_PARENTS, min(stratum.max_parents, len(candidates)))
        mechanism = sample_mechanism(stratum, tuple(rng.sample(candidates, num_parents)), rng)
        if stratum.max_survivors or not has_equivalent_shortcut(stratum, mechanism):
            return mechanism


def sample_mechanism(stratum: Stratum, parents: tuple[str, ...], rng: Random) -> Formula:
    """Sample an accepted formula that depends on exactly the parents, or the fallback on the first two of them."""
    draw = _FormulaDraw(stratum, parents, rng)
    for _ in range(DRAWS_PER_SLOT if draw.can_succeed else 0):
        formula = draw.formula()
        if formula is not None:
            return formula
    return canonical_formula(apply("xor", [var(parent) for parent in parents[:2]]))


class _FormulaDraw:
    """Random formulas over given parents, rejected by conditions in the order of their cost."""

    def __init__(self, stratum: Stratum, parents: tuple[str, ...], rng: Random) -> None:
        self.rng = rng
        self.parents = tuple(sorted(parents, key=natural_key))
        self.columns = {parent: projection(i, len(parents)).bits for i, parent in enumerate(self.parents)}
        self.full = full_mask(len(parents))
        self.known = published_sizes(len(parents), KNOWN_SIZE_BOUNDS[len(parents)])
        self.min_size, self.max_size = stratum.sizes

    @property
    def can_succeed(self) -> bool:
        """Whether some function may have no formula below the size range; if not, every sample would be rejected."""
        return len(self.known) <= self.full or max(self.known.values()) >= self.min_size

    def formula(self) -> Formula | None:
        """Sample a formula; return its normal form, or None if it is rejected."""
        nodes: list[Node] = []
        bits = self._grow(nodes, self.rng.randint(*DEPTH_LIMITS))
        known_size = self.known.get(bits, self.max_size)
        if len(nodes) < self.min_size or known_size < self.min_size:  # the normal form is never longer
            return None
        if len(support(TruthTable(len(self.parents), bits))) < len(self.parents):
            return None
        formula = canonical_formula(Formula(tuple(nodes)))
        if not self.min_size <= formula.size <= min(self.max_size, known_size):
            return None
        return None if any(isinstance(node, bool) for node in formula.nodes) else formula

    def _grow(self, nodes: list[Node], depth: int) -> int:
        """Append a random subformula of at most that depth in postfix order; return the bits of its truth table."""
        rng = self.rng
        if depth == 1 or rng.random() < LEAF_PROBABILITY:
            leaf = rng.choice(self.parents)
            nodes.append(leaf)
            return self.columns[leaf]
        operator = rng.choice(STANDARD_OPERATORS)
        if operator == "not":
            bits = self._grow(nodes, depth - 1) ^ self.full
            nodes.append(APPLIED["not", 1])
            return bits
        if rng.random() < BINARY_PROBABILITY:
            arguments = [self._grow(nodes, depth - 1), self._grow(nodes, depth - 1)]
        else:
            arguments = [self._grow(nodes, depth - 1) for _ in range(3)]
        nodes.append(APPLIED[operator, len(arguments)])
        return OPERATORS[operator].bits(arguments, self.full)
