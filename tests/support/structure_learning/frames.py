"""Hypothesis strategies for frames and DAGs, and local scores written down from their definitions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import log

from hypothesis import strategies as st

from calibrant.baselines.structure_learning.graph import Constraints, Frame, frame_from_rows, free_constraints

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
    for place, variable in enumerate(order):
        dag[variable] = sum(1 << u for u in order[:place] if draw(st.booleans()))
    return tuple(dag)


@st.composite
def constraint_sets(draw: Draw, num_vars: int) -> Constraints:
    """Masks of any kind around one order: required parents and what is known of the order agree with it."""
    subsets = st.integers(0, (1 << num_vars) - 1)
    order = draw(st.permutations(range(num_vars)))
    must, earlier, allowed = [0] * num_vars, [0] * num_vars, [0] * num_vars
    for place, variable in enumerate(order):
        before = sum(1 << u for u in order[:place])
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
