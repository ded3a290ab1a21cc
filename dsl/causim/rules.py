"""Tables as few rules: the outcomes of a node, each with the cases in which it occurs, the commonest one left for last.

A case allows a set of values for each parent and for the noise; the cases of a table exclude each other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.dsl.causim.model import Model
from calibrant.dsl.causim.values import Symbol

Case: TypeAlias = tuple[tuple[Symbol, ...] | None, ...]  # per parent, then the noise; None allows every value


@dataclass(frozen=True, slots=True)
class Rules:
    """branches: outcome and its cases, in order of the outcomes' texts; `otherwise` in every other case."""

    branches: tuple[tuple[Symbol, tuple[Case, ...]], ...]
    otherwise: Symbol


def rules_of(model: Model, i: int) -> Rules:
    """Return the rules of node i: no outcome has more cases than `otherwise`."""
    local, node = model.system[i], model.nodes[i]
    axes = [*(model.system[parent].domain for parent in local.parents), node.support]
    cases: dict[Symbol, list[Case]] = {}
    for positions, outcome in cubes(local.table):
        case = tuple(
            None if len(chosen) == len(axis) else tuple(axis[k] for k in chosen)
            for chosen, axis in zip(positions, axes, strict=True)
        )
        cases.setdefault(local.domain[outcome], []).append(case)
    rows = Counter(int(k) for k in local.table.flat)
    otherwise = min(cases, key=lambda symbol: (-len(cases[symbol]), -rows[local.index[symbol]], symbol))
    branches = tuple((symbol, tuple(cases[symbol])) for symbol in sorted(cases) if symbol != otherwise)
    return Rules(branches, otherwise)


def cubes(table: NDArray[np.int64]) -> list[tuple[tuple[tuple[int, ...], ...], int]]:
    """Disjoint products of positions with one outcome each; values of an axis that lead to the same are together."""
    if table.ndim == 0:
        return [((), int(table))]
    alike: dict[bytes, list[int]] = {}
    for k in range(table.shape[0]):
        alike.setdefault(np.ascontiguousarray(table[k]).tobytes(), []).append(k)
    return [
        ((tuple(together), *inner_cube), outcome)
        for together in alike.values()
        for inner_cube, outcome in cubes(table[together[0]])
    ]


def holds(case: Case, values: tuple[Symbol, ...]) -> bool:
    """Return whether a case allows these values of parents and noise."""
    return all(allowed is None or value in allowed for allowed, value in zip(case, values, strict=True))


def outcome(rules: Rules, values: tuple[Symbol, ...]) -> Symbol:
    """Return the outcome of the rules for values of the parents and the noise."""
    for symbol, cases in rules.branches:
        if any(holds(case, values) for case in cases):
            return symbol
    return rules.otherwise
