"""Statistics of a generator: sizes, treewidths, and mechanisms that differ beyond their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, prod
from typing import Final

import numpy as np

from calibrant.dsl.causim.model import Local, Model
from calibrant.solvers.causim.elimination import treewidth

MAX_RENAMINGS: Final = 2_000  # orders of the parents' values that are tried; a table with more counts as it stands


@dataclass(frozen=True)
class ProgramStatistics:
    """Statistics of the mechanisms of a program.

    tables: number of mechanisms; different: how many differ up to the names of all values
    domains, supports, treewidths: how often each size occurs
    """

    programs: int
    tables: int
    different: int
    domains: dict[int, int]
    supports: dict[int, int]
    treewidths: dict[int, int]


def program_statistics(models: Iterable[Model]) -> ProgramStatistics:
    """Return counts over all nodes of all models."""
    domains, supports, widths, table_counts = Counter[int](), Counter[int](), Counter[int](), Counter[bytes]()
    for model in models:
        widths[treewidth(model.system)] += 1
        for node, local in zip(model.nodes, model.system, strict=True):
            domains[len(local.domain)] += 1
            supports[len(node.support)] += 1
            table_counts[nameless(local)] += 1
    return ProgramStatistics(
        sum(widths.values()),
        sum(table_counts.values()),
        len(table_counts),
        dict(sorted(domains.items())),
        dict(sorted(supports.items())),
        dict(sorted(widths.items())),
    )


def nameless(local: Local) -> bytes:
    """Return a key that is equal for tables equal up to the names of the values of parents, noise and node.

    The order of the parents counts; noise values are sorted by what they do, and outputs are numbered as they come.
    """
    shape = local.table.shape
    orders = [list(permutations(range(size))) for size in shape[:-1] if factorial(size) <= MAX_RENAMINGS]
    if len(orders) < len(shape) - 1 or prod(map(len, orders)) > MAX_RENAMINGS:
        orders = [[tuple(range(size))] for size in shape[:-1]]
    forms = []
    for order in product(*orders):
        table = local.table[np.ix_(*order, range(shape[-1]))] if order else local.table
        forms.append(min(_table_key(table, outputs) for outputs in permutations(range(len(local.domain)))))
    return repr(shape).encode() + min(forms)


def _table_key(table: np.ndarray[tuple[int, ...], np.dtype[np.int64]], outputs: tuple[int, ...]) -> bytes:
    renamed = np.array(outputs, dtype=np.uint8)[table]
    return b"|".join(sorted(np.ascontiguousarray(renamed[..., k]).tobytes() for k in range(table.shape[-1])))
