"""Oracles and strategies of structure learning: every DAG of a few variables, frames, scores by definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product
from math import log
from typing import TypeAlias

from hypothesis import strategies as st

from calibrant.baselines.structure_learning.constraints import Constraints, Frame, frame_from_rows, free_constraints

# --- Every DAG of a few variables, orders and classes of them, by plain enumeration: oracles of structure learning ----
# A DAG is a tuple of parent masks. Nothing here uses the package's own search.
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


# --- Hypothesis strategies for frames and DAGs, and local scores written down from their definitions ------------------
Draw = st.DrawFn


@st.composite
def frames(
    draw: Draw, *, min_vars: int = 1, max_vars: int = 5, max_rows: int = 70, interventions: bool = True
) -> Frame:
    """Rows of anything, some variables set in some of them; at the word boundary and beyond."""
    num_vars = draw(st.integers(min_vars, max_vars))
    num_rows = draw(st.sampled_from([0, 1, 2, 7, 20, 63, 64, 65, max_rows]))
    rows = [format(draw(st.integers(0, (1 << num_vars) - 1)), f"0{num_vars}b") for _ in range(num_rows)]
    variables = tuple(f"X{v + 1}" for v in range(num_vars))
    clamped = {}
    if interventions and num_rows:
        clamped = {v: draw(st.sets(st.integers(0, num_rows - 1), max_size=num_rows)) for v in variables}
    return frame_from_rows(variables, rows, clamped)


@st.composite
def dags(draw: Draw, num_vars: int) -> tuple[int, ...]:
    """Parent masks without a cycle."""
    order = draw(st.permutations(range(num_vars)))
    dag = [0] * num_vars
    for index, variable in enumerate(order):
        dag[variable] = sum(1 << u for u in order[:index] if draw(st.booleans()))
    return tuple(dag)


@st.composite
def constraint_sets(draw: Draw, num_vars: int) -> Constraints:
    """Masks of any kind around one order: required parents and what is known of the order agree with it."""
    subsets = st.integers(0, (1 << num_vars) - 1)
    order = draw(st.permutations(range(num_vars)))
    must, earlier, allowed = [0] * num_vars, [0] * num_vars, [0] * num_vars
    for index, variable in enumerate(order):
        before = sum(1 << u for u in order[:index])
        must[variable] = before & draw(subsets) & draw(subsets)
        earlier[variable] = before & draw(subsets) & draw(subsets)
    for variable in range(num_vars):
        children = sum(1 << u for u in range(num_vars) if must[u] >> variable & 1)
        free = free_constraints(num_vars).allowed[variable]
        allowed[variable] = (free & draw(subsets) & ~children) | must[variable]
    return Constraints(tuple(allowed), tuple(must), draw(st.integers(0, num_vars)), tuple(earlier))


def counted(frame: Frame, child: int, parents: int, interventional: bool) -> list[tuple[int, int]]:
    """(parent configuration, value of the child) of every row that counts."""
    return [
        (value & parents, value >> child & 1)
        for value, clamped in zip(frame.values.tolist(), frame.clamped.tolist(), strict=True)
        if not (interventional and clamped >> child & 1)
    ]


def urn_score(rows: list[tuple[int, int]], cell: Fraction) -> float:
    """Log probability of the rows in sequence, if each is drawn in proportion to the cells seen so far plus `cell`.

    This is the marginal likelihood under a Dirichlet prior, without any gamma function.
    """
    cells: Counter[tuple[int, int]] = Counter()
    configurations: Counter[int] = Counter()
    total = 0.0
    for configuration, value in rows:
        chance = (cells[configuration, value] + cell) / (configurations[configuration] + 2 * cell)
        total += log(chance)
        cells[configuration, value] += 1
        configurations[configuration] += 1
    return total


def likelihood_score(rows: list[tuple[int, int]]) -> float:
    """Log probability of the rows under the frequencies observed in them."""
    cells, configurations = Counter(rows), Counter(configuration for configuration, _ in rows)
    return sum(log(cells[row] / configurations[row[0]]) for row in rows)
