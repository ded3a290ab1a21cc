"""Least formula sizes by naive bottom-up enumeration over argument lists: what exact synthesis is compared with.

Nothing here uses symmetry, list costs, tables of functions or the package's own evaluation. A function is the integer
of its values on the rows that matter, in any order of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from calibrant.dsl.formulas.table import PartialTable

Combined: TypeAlias = tuple[int, int, int]
"""What a list of arguments gives under each operator that takes two or more: conjunction, disjunction and parity."""


def least_sizes(atoms: Sequence[int], everywhere: int, operators: Sequence[str], limit: int) -> dict[int, int]:
    """Least size of every function that formulas of at most `limit` nodes over the atoms give."""
    layers: list[list[int]] = [[], sorted(set(atoms))]
    sizes = dict.fromkeys(layers[1], 1)
    for size in range(2, limit + 1):
        new: set[int] = set()
        if "not" in operators:
            new.update(everywhere ^ argument for argument in layers[size - 1])
        for conjunction, disjunction, parity in argument_lists(layers, size - 1):
            if "and" in operators:
                new.add(conjunction)
            if "or" in operators:
                new.add(disjunction)
            if "xor" in operators:
                new.add(parity)
            if "iff" in operators:  # all arguments 1, or all 0
                new.add(conjunction | (everywhere ^ disjunction))
        layers.append(sorted(new - sizes.keys()))
        sizes.update(dict.fromkeys(layers[size], size))
    return sizes


def argument_lists(layers: Sequence[Sequence[int]], total: int) -> Iterator[Combined]:
    """Every multiset of two or more functions whose sizes add up to `total`, combined."""

    def extend(chosen: Combined, size: int, start: int, left: int) -> Iterator[Combined]:
        """With one more argument, the start-th of that size or a later one, and so on until nothing is left."""
        conjunction, disjunction, parity = chosen
        for last in layers[left][start:] if left == size else layers[left] if left > size else ():
            yield conjunction & last, disjunction | last, parity ^ last
        for next_size in range(size, left // 2 + 1):
            first = start if next_size == size else 0
            for index, more in enumerate(layers[next_size][first:], first):
                both = conjunction & more, disjunction | more, parity ^ more
                yield from extend(both, next_size, index, left - next_size)

    for size in range(1, total // 2 + 1):
        for index, argument in enumerate(layers[size]):
            yield from extend((argument, argument, argument), size, index, total - size)


def least_size_by_enumeration(partial: PartialTable, operators: Sequence[str], limit: int) -> int | None:
    """Least size of a formula that agrees with the table, None if it exceeds `limit`."""
    rows = [row for row in range(2**partial.num_vars) if partial.care >> row & 1]
    atoms = [sum((row >> index & 1) << place for place, row in enumerate(rows)) for index in range(partial.num_vars)]
    wanted = sum((partial.value >> row & 1) << place for place, row in enumerate(rows))
    return least_sizes(atoms, 2 ** len(rows) - 1, operators, limit).get(wanted)
