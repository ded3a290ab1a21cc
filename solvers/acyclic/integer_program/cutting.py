"""Separation of cluster cuts that a fractional solution violates.

A k-cluster cut of a group C of variables demands that at least k of them have fewer than k parents in C: the first k of
C in a topological order (T. Jaakkola and others, Learning Bayesian network structure using LP relaxations, 2010, for
k = 1; J. Cussens, Bayesian network learning with cutting planes, 2011, for larger k). Separation is heuristic: along
shortest cycles, by tabu search from every variable, and last by a small integer program for k = 1. Violated cuts may
be missed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.integer_program._kernels import tabu_search
from calibrant.solvers.acyclic.least import members_of
from calibrant.solvers.highs import empty_program, run

MIN_VIOLATION = 1e-4  # below which a cut counts as satisfied
MAX_LEVEL = 3
TABU_STEPS = 40  # steps of a walk
MAX_CUTS_PER_VARIABLE = 3  # a cluster is skipped if each of its members is in as many cuts of this round
MIP_GAP = 0.05  # absolute: a nearly most violated cut is good enough
MAX_MIP_NODES = 200

Indices: TypeAlias = npt.NDArray[np.int64]
F64: TypeAlias = npt.NDArray[np.float64]
Bits: TypeAlias = npt.NDArray[np.bool_]


class Cluster(NamedTuple):
    """Cut: at least `level` of the members (positions, ascending) have fewer than `level` parents among them."""

    members: tuple[int, ...]
    level: int = 1


class Support(NamedTuple):
    """Parent sets with a positive share in a fractional solution.

    owner: shape (sets,), ascending: position of the set's variable, each at least once
    parents: shape (sets, variables); share: shape (sets,), above 0; those of each variable add up to one
    """

    owner: Indices
    parents: Bits
    share: F64

    @property
    def num_variables(self) -> int:
        return int(self.parents.shape[1])


def find_violated_cuts(support: Support) -> set[Cluster]:
    """Return violated cuts, by tabu search from every variable and along short cycles; may miss some."""
    tabu_cuts = {cluster for level in range(1, MAX_LEVEL + 1) for cluster in _search_by_tabu(support, level)}
    cycle_cuts = {Cluster(circle) for circle in _find_short_cycles(support)}
    return tabu_cuts | {cluster for cluster in cycle_cuts if _violation(support, cluster) > MIN_VIOLATION}


def find_most_violated_cut(support: Support, seconds: float | None = None) -> set[Cluster]:
    """Return a nearly most violated cut of level 1, by an integer program of few nodes; empty if it finds none.

    It may miss cuts that are violated by less than MIP_GAP or need more than MAX_MIP_NODES nodes.
    """
    members = _search_by_program(support, seconds)
    if members is None:
        return set()
    cluster = Cluster(members)
    return {cluster} if _violation(support, cluster) > MIN_VIOLATION else set()


def _violation(support: Support, cluster: Cluster) -> float:
    """Return by how much the cut is violated; negative if it is satisfied."""
    within = np.zeros(support.num_variables, np.bool_)
    within[list(cluster.members)] = True
    few_parents = support.parents[:, within].sum(axis=1) < cluster.level
    return float(cluster.level - support.share[few_parents & within[support.owner]].sum())


def _search_by_tabu(support: Support, level: int) -> Iterable[Cluster]:
    """Yield the most violated clusters that tabu search meets from each variable, with limited overlap."""
    num_vars = support.num_variables
    words = (support.parents.astype(np.uint64) << np.arange(num_vars, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    groups_met, violations = np.empty(TABU_STEPS, np.uint64), np.empty(TABU_STEPS)
    groups = dict[int, float]()
    for start in range(num_vars):
        num_groups = tabu_search(
            np.uint64(1 << start),
            level,
            TABU_STEPS,
            MIN_VIOLATION,
            support.owner,
            words,
            support.share,
            num_vars,
            groups_met,
            violations,
        )
        groups |= zip(groups_met[:num_groups].tolist(), violations[:num_groups].tolist(), strict=True)
    cuts_per_variable = [0] * num_vars
    # similar cuts add little to the bound and slow every later relaxation down
    for group in sorted(groups, key=lambda group: (-groups[group], group)):
        members = tuple(members_of(group))
        if min(cuts_per_variable[v] for v in members) < MAX_CUTS_PER_VARIABLE:
            for v in members:
                cuts_per_variable[v] += 1
            yield Cluster(members, level)


def _find_short_cycles(support: Support) -> Iterable[tuple[int, ...]]:
    """Yield shortest cycles through each variable whose arcs lack less than 1 in total: their cuts are violated.

    An arc lacks 1 less the share of the child's sets with the parent. O(m**3), by Floyd and Warshall.
    """
    num_vars = support.num_variables
    lacking = np.ones((num_vars, num_vars))  # from parent to child
    np.subtract.at(lacking.T, support.owner, support.parents * support.share[:, None])
    distance = np.maximum(lacking, 0.0)
    np.fill_diagonal(distance, np.inf)
    successor = np.tile(np.arange(num_vars), (num_vars, 1))
    for via in range(num_vars):
        through = distance[:, via, None] + distance[None, via, :]
        # a margin above rounding, so that paths of equal length do not replace each other
        shorter = through < distance - 1e-12
        distance = np.where(shorter, through, distance)
        successor = np.where(shorter, successor[:, via, None], successor)
    for start in np.flatnonzero(distance.diagonal() < 1 - MIN_VIOLATION).tolist():
        cycle = [start]
        node = int(successor[start, start])
        while node != start and node not in cycle:
            cycle.append(node)
            node = int(successor[node, start])
        if node == start and len(cycle) > 1:
            yield tuple(sorted(cycle))


def _search_by_program(support: Support, seconds: float | None) -> tuple[int, ...] | None:
    """Return the most violated group of level 1; None without a solution.

    A binary column for each variable: it is in the group. A continuous one for each parent set: its variable and one of
    its parents are in the group. Minimised is the size of the group less the shares of such sets, which is the share of
    its members' sets without a parent in it. The cut is violated if that is below 1.
    """
    import highspy

    num_vars, num_sets = support.num_variables, len(support.owner)
    highs = empty_program(mip_rel_gap=0.0, mip_abs_gap=MIP_GAP, mip_max_nodes=MAX_MIP_NODES)
    if seconds is not None:
        highs.setOptionValue("time_limit", max(seconds, 0.01))
    highs.addVars(num_vars + num_sets, np.zeros(num_vars + num_sets), np.ones(num_vars + num_sets))
    costs = np.concatenate([np.ones(num_vars), -support.share])
    highs.changeColsCost(num_vars + num_sets, np.arange(num_vars + num_sets, dtype=np.int32), costs)
    highs.changeColsIntegrality(
        num_vars, np.arange(num_vars, dtype=np.int32), np.full(num_vars, highspy.HighsVarType.kInteger)
    )
    for index, (owner, parents) in enumerate(zip(support.owner.tolist(), support.parents, strict=True)):
        highs.addRow(-np.inf, 0.0, 2, np.array([num_vars + index, owner], np.int32), np.array([1.0, -1.0]))
        parent_indices = np.flatnonzero(parents)
        columns = np.array([num_vars + index, *parent_indices], np.int32)
        highs.addRow(-np.inf, 0.0, len(columns), columns, np.concatenate([[1.0], -np.ones(len(parent_indices))]))
    highs.addRow(2.0, np.inf, num_vars, np.arange(num_vars, dtype=np.int32), np.ones(num_vars))
    run(highs)  # an unfinished run may still have an incumbent, and any violated cut will do
    solution = highs.getSolution().col_value
    members = tuple(index for index in range(num_vars) if solution and solution[index] > 1 / 2)
    return members if len(members) > 1 else None
