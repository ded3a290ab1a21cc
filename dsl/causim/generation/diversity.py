"""Diversity of generated programs: motifs, sizes of noise supports, and tables up to renaming of values.

Whether two tables are equal up to renaming takes a search. Two bounds on the number of different ones are counted
instead: tables of different profile differ under any renaming, tables of equal text after renaming the node's values
are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import comb
from typing import Any

import numpy as np

from calibrant.dsl.causim.model import Local, Model


@dataclass
class Diversity:
    """Totals over models.

    motifs: by number of nodes, models, forks (pairs of children of a node) and colliders (pairs of parents)
    supports: nodes by the number of values of their noise; tables, profiles: digests, with how often each occurs
    """

    motifs: dict[int, list[int]] = field(default_factory=dict)
    supports: Counter[int] = field(default_factory=Counter)
    tables: Counter[bytes] = field(default_factory=Counter)
    profiles: Counter[bytes] = field(default_factory=Counter)

    def add_graph(self, model: Model) -> None:
        """Count the motifs of a model; children and parents that are joined count too."""
        totals = self.motifs.setdefault(len(model), [0, 0, 0])
        totals[0] += 1
        totals[1] += sum(comb(len(children), 2) for children in model.children)
        totals[2] += sum(comb(len(node.parents), 2) for node in model.nodes)

    def add_tables(self, model: Model) -> None:
        """Count the mechanisms of a model."""
        for node, local in zip(model.nodes, model.system, strict=True):
            self.supports[len(node.support)] += 1
            self.tables[_digest(_renamed(local))] += 1
            self.profiles[_digest(_profile(local))] += 1

    def add(self, diversity: Diversity) -> None:
        """Add the totals of further models."""
        for nodes, totals in diversity.motifs.items():
            before = self.motifs.setdefault(nodes, [0, 0, 0])
            self.motifs[nodes] = [a + b for a, b in zip(before, totals, strict=True)]
        self.supports += diversity.supports
        self.tables += diversity.tables
        self.profiles += diversity.profiles

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "motifs": {str(nodes): _means(totals) for nodes, totals in sorted(self.motifs.items())},
            "support_sizes": {str(size): number for size, number in sorted(self.supports.items())},
            "mechanisms": self.tables.total(),
            "distinct_tables": {"at_least": len(self.profiles), "at_most": len(self.tables)},
        }


def _means(totals: Iterable[int]) -> Mapping[str, float]:
    models, forks, colliders = totals
    return {"models": models, "forks": forks / models, "colliders": colliders / models}


def _renamed(local: Local) -> tuple[object, ...]:
    """Return the table with the node's values numbered in the order in which its rows have them."""
    flat = local.table.ravel()
    values, first = np.unique(flat, return_index=True)
    numbers = np.empty(int(flat.max(initial=0)) + 1, dtype=np.int64)
    numbers[values[np.argsort(first)]] = np.arange(len(values))
    return local.table.shape, numbers[flat].tobytes()


def _profile(local: Local) -> tuple[object, ...]:
    """Return counts that no renaming of values and no order of the parents changes: of each value, by axis."""
    per_value = []
    for value in range(len(local.domain)):
        is_value = local.table == value
        axes = range(is_value.ndim)
        margins = [tuple(sorted(is_value.sum(axis=tuple(k for k in axes if k != axis)).tolist())) for axis in axes]
        per_value.append((*sorted(margins[:-1]), margins[-1]))
    return tuple(sorted(per_value))


def _digest(value: tuple[object, ...]) -> bytes:
    return sha256(repr(value).encode()).digest()[:16]
