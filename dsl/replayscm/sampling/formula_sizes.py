"""Sizes of the shortest formulas of Boolean functions, exactly and as the published generator knows them.

Both tables map a function, as the bits of its truth table, to a size; operators are those of the benchmark with at
most three arguments. The published table is incomplete: it combines arguments only where the order of their sizes
agrees with the order of their texts, and since "(" sorts before "X" a variable never stands beside a larger formula. So
it holds size 6 for (and X1 (not X2)), and the generator draws redundant formulas such as (and X1 (xor X1 X2)). That the
table here is the published one is inferred from pools drawn by that generator: no formula in them is longer than it
says, and many are longer than the exact size.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

from calibrant.dsl.formulas.formula import OPERATORS, STANDARD_OPERATORS
from calibrant.dsl.formulas.table import full_mask, projection

JOINS = tuple(name for name in STANDARD_OPERATORS if name != "not")
FLATTENED = ("and", "or", "xor")  # an argument of the same operator would be merged by the normal form

Sizes = MappingProxyType[int, int]


@cache
def shortest_sizes(num_vars: int, max_size: int) -> Sizes:
    """Every function that has a formula of at most `max_size` nodes, with the size of its shortest one."""
    full = full_mask(num_vars)
    sizes: dict[int, int] = {}
    levels: list[list[int]] = [[]]
    for size in range(1, max_size + 1):
        functions = {projection(i, num_vars).bits for i in range(num_vars)} if size == 1 else set()
        functions.update(bits ^ full for bits in levels[size - 1])
        for shape in _shapes(size - 1):
            for arguments in product(*(levels[part] for part in shape)):
                functions.update(OPERATORS[name].bits(arguments, full) for name in JOINS)
        levels.append(sorted(functions - sizes.keys()))
        sizes.update(dict.fromkeys(levels[size], size))
    return MappingProxyType(sizes)


def _shapes(total: int) -> Iterator[tuple[int, ...]]:
    """Sizes of two or three arguments that sum to `total`, ascending."""
    for first in range(1, total):
        for second in range(first, total - first + 1):
            third = total - first - second
            if third == 0:
                yield first, second
            elif third >= second:
                yield first, second, third


class _Entry(NamedTuple):
    """A function of the published table with the text that stands for it; a level is sorted by text."""

    text: str
    bits: int


_FIRST = _Entry("", 0)  # sorts before every entry
_LAST_TEXT = "~"  # sorts behind every text


@cache
def published_sizes(num_vars: int, max_size: int) -> Sizes:
    """Return the sizes that the published generator compares a drawn formula with, up to `max_size`."""
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
    """Arguments of the given sizes, smallest first, whose texts ascend as well."""
    level = levels[shape[0]]
    for entry in level[bisect_left(level, earlier) :]:
        if len(shape) == 1:
            yield (entry,)
        else:
            for later in _in_text_order(levels, shape[1:], entry):
                yield entry, *later
