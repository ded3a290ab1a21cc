"""Kernels: which arcs of a DAG every equivalent DAG has, and how often arcs occur in many DAGs.

Dimension letters: v = variables, r = DAGs. A DAG is an array [v] of parent masks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.baselines.structure_learning._kernels_scores import lowest
from calibrant.dsl._jit import kernel

I64 = npt.NDArray[np.int64]


@kernel
def compelled_arcs(parents: I64, protected: I64, compelled: I64) -> None:
    """Per variable the parents whose arcs are shared by the whole class: compelled [v], masks.

    protected: [v] parents whose arcs cannot be reversed whatever the data say. With them, colliders and the four rules
    of Meek 1995 (background knowledge) applied until nothing changes; every rule can only confirm an arc of the DAG.
    """
    num_vars = parents.shape[0]
    adjacent = parents.copy()
    for j in range(num_vars):
        unvisited = parents[j]
        while unvisited:
            adjacent[lowest(unvisited)] |= np.int64(1) << j
            unvisited &= unvisited - 1
    for j in range(num_vars):
        compelled[j] = parents[j] & protected[j]
        for i in range(num_vars):
            apart = parents[j] & ~adjacent[i] & ~(np.int64(1) << i)
            if parents[j] >> i & 1 and apart:
                compelled[j] |= np.int64(1) << i
    changed = True
    while changed:
        changed = False
        for j in range(num_vars):
            unvisited = parents[j] & ~compelled[j]
            while unvisited:
                i = lowest(unvisited)
                unvisited &= unvisited - 1
                if _follows(i, j, adjacent, compelled):
                    compelled[j] |= np.int64(1) << i
                    changed = True


@kernel
def _follows(i: int, j: int, adjacent: I64, compelled: I64) -> bool:
    """Return whether one of Meek's rules forces i -> j."""
    if compelled[i] & ~adjacent[j] & ~(np.int64(1) << j):  # 1: a -> i, a and j apart
        return True
    into = compelled[j]
    unvisited = into
    while unvisited:  # 2: i -> a -> j
        a = lowest(unvisited)
        unvisited &= unvisited - 1
        if compelled[a] >> i & 1:
            return True
    unvisited = into & adjacent[i]
    between = unvisited & ~compelled[i]
    while unvisited:
        a = lowest(unvisited)
        unvisited &= unvisited - 1
        if between >> a & 1 and between & ~adjacent[a] & ~(np.int64(1) << a):  # 3: i - a -> j, i - b -> j, a, b apart
            return True
        if compelled[a] & adjacent[i] & ~adjacent[j] & ~(np.int64(1) << j):  # 4: i - b -> a -> j, b and j apart
            return True
    return False


@kernel
def count_arcs(dags: I64, protected: I64, counts: I64) -> None:
    """Add up arcs over the classes of DAGs [r, v]: counts [v, v] of from, to, 2 if compelled and else 1 each way.

    protected: [v] as for `compelled_arcs`; with every arc protected DAGs are counted as they are
    """
    compelled = np.empty(dags.shape[1], np.int64)
    for r in range(dags.shape[0]):
        compelled_arcs(dags[r], protected, compelled)
        for j in range(dags.shape[1]):
            unvisited = dags[r, j]
            while unvisited:
                i = lowest(unvisited)
                unvisited &= unvisited - 1
                if compelled[j] >> i & 1:
                    counts[i, j] += 2
                else:
                    counts[i, j] += 1
                    counts[j, i] += 1


@kernel
def essential_graphs(dags: I64, separated: I64, graphs: I64) -> None:
    """Fill in the essential graphs of many DAGs [r, v]: graphs [r, 2 v], masks of directed parents, then of neighbours.

    separated: [v] columns that were set without v, or v without them: such arcs cannot be reversed
    """
    num_vars = dags.shape[1]
    compelled = np.empty(num_vars, np.int64)
    for r in range(dags.shape[0]):
        compelled_arcs(dags[r], separated, compelled)
        for v in range(num_vars):
            graphs[r, v] = compelled[v]
            graphs[r, num_vars + v] = 0
        for v in range(num_vars):
            unvisited = dags[r, v] & ~compelled[v]
            while unvisited:
                u = lowest(unvisited)
                unvisited &= unvisited - 1
                graphs[r, num_vars + v] |= np.int64(1) << u
                graphs[r, num_vars + u] |= np.int64(1) << v
