"""Every DAG of a few variables, orders and classes of them, by plain enumeration: oracles of structure learning.

A DAG is a tuple of parent masks. Nothing here uses the package's own search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, permutations, product
from typing import TypeAlias

Dag: TypeAlias = tuple[int, ...]


@cache
def all_dags(num_vars: int) -> tuple[Dag, ...]:
    """All labelled DAGs: 1, 3, 25, 543, 29281 of them for 1 to 5 variables."""
    found: set[Dag] = set()
    for order in permutations(range(num_vars)):
        choices = [_subsets(order[:place]) for place in range(num_vars)]
        for chosen in product(*choices):
            dag = [0] * num_vars
            for variable, parents in zip(order, chosen, strict=True):
                dag[variable] = parents
            found.add(tuple(dag))
    return tuple(sorted(found))


def _subsets(members: Sequence[int]) -> list[int]:
    return [sum(1 << m for m in c) for size in range(len(members) + 1) for c in combinations(members, size)]


def num_orders(dag: Dag) -> int:
    """In how many orders every variable comes after its parents."""
    count = 0
    for order in permutations(range(len(dag))):
        placed = 0
        for variable in order:
            if dag[variable] & ~placed:
                break
            placed |= 1 << variable
        else:
            count += 1
    return count


def arcs(dag: Dag) -> set[tuple[int, int]]:
    return {(i, j) for j, parents in enumerate(dag) for i in range(len(dag)) if parents >> i & 1}


def skeleton(dag: Dag) -> frozenset[frozenset[int]]:
    return frozenset(frozenset(arc) for arc in arcs(dag))


def colliders(dag: Dag) -> frozenset[tuple[int, int, int]]:
    """Return (a, child, b) with a < b both parents of the child and not adjacent."""
    joined = skeleton(dag)
    return frozenset(
        (a, child, b)
        for child in range(len(dag))
        for a, b in combinations(range(len(dag)), 2)
        if dag[child] >> a & 1 and dag[child] >> b & 1 and frozenset((a, b)) not in joined
    )


def mutilated(dag: Dag, targets: int) -> Dag:
    """Return the DAG without the arcs into the targets of an intervention."""
    return tuple(0 if targets >> v & 1 else parents for v, parents in enumerate(dag))


def class_of(dag: Dag, family: Sequence[int]) -> frozenset[object]:
    """Return the invariants of the Markov equivalence class under a family of targets.

    Hauser and Buehlmann 2012, theorem 10.
    """
    views = [mutilated(dag, targets) for targets in (0, *family)]
    return frozenset((i, skeleton(view), colliders(view)) for i, view in enumerate(views))


def covered_arcs(dag: Dag) -> Iterator[tuple[int, int]]:
    """Arcs whose reversal leads to an equivalent DAG (Chickering 1995): both ends have the same other parents."""
    return ((i, j) for i, j in arcs(dag) if dag[j] ^ (1 << i) == dag[i])


def reversed_arc(dag: Dag, i: int, j: int) -> Dag:
    changed = list(dag)
    changed[j] ^= 1 << i
    changed[i] ^= 1 << j
    return tuple(changed)
