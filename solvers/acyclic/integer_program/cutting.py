"""Cluster cuts that a fractional choice of parent sets violates.

A k-cluster cut of a group C of variables says that at least k of them have fewer than k parents in C: the first k of
C in a topological order (T. Jaakkola and others, Learning Bayesian network structure using LP relaxations, 2010, for
k = 1; J. Cussens, Bayesian network learning with cutting planes, 2011, for larger k). Sought along shortest cycles, by
tabu search from every variable, and at last by a small integer program for k = 1. Cuts that none of these finds may
still be violated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.solvers.acyclic.integer_program._kernels_cuts import tabu_search
from calibrant.solvers.acyclic.least_cost import members_of
from calibrant.solvers.highs import empty_program, run

VIOLATION = 1e-4  # below which a cut is taken to be met
MAX_LEVEL = 3
STEPS = 40  # of a walk
MOST_IN_COMMON = 3  # cuts of a variable, if every member of the next has as many
PROGRAM_GAP = 0.05  # so that the program need not find the most violated cut
PROGRAM_NODES = 200

Places: TypeAlias = npt.NDArray[np.int64]
F64: TypeAlias = npt.NDArray[np.float64]
Bits: TypeAlias = npt.NDArray[np.bool_]


class Cluster(NamedTuple):
    """At least `level` of the members (places, ascending) take a set with fewer than `level` parents among them."""

    members: tuple[int, ...]
    level: int = 1


class Support(NamedTuple):
    """The parent sets that a fractional choice takes.

    owner: shape (sets,), ascending: whose it is, as a place from 0, none left out; parents: shape (sets, variables)
    share: shape (sets,), above 0; those of each variable add up to one
    """

    owner: Places
    parents: Bits
    share: F64

    @property
    def num_variables(self) -> int:
        return int(self.parents.shape[1])


def violated(support: Support) -> set[Cluster]:
    """Cuts that are violated; none if searches from every variable find none."""
    found = {one for level in range(1, MAX_LEVEL + 1) for one in _met(support, level)}
    circles = {Cluster(circle) for circle in _circles(support)}
    return found | {one for one in circles if _short(support, one) > VIOLATION}


def most_violated(support: Support, seconds: float | None = None) -> set[Cluster]:
    """A cut of level 1 that is violated by nearly the most, by an integer program of few nodes.

    None if it finds none: one that is violated by less than PROGRAM_GAP may be missed, or one that takes more nodes.
    """
    members = _by_program(support, seconds)
    if members is None:
        return set()
    cluster = Cluster(members)
    return {cluster} if _short(support, cluster) > VIOLATION else set()


def _short(support: Support, cluster: Cluster) -> float:
    """By how much the cut is violated."""
    within = np.zeros(support.num_variables, np.bool_)
    within[list(cluster.members)] = True
    few = support.parents[:, within].sum(axis=1) < cluster.level
    return float(cluster.level - support.share[few & within[support.owner]].sum())


def _met(support: Support, level: int) -> Iterable[Cluster]:
    """Return the most violated clusters that tabu search meets from each variable; few overlap."""
    num = support.num_variables
    words = (support.parents.astype(np.uint64) << np.arange(num, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    met, short = np.empty(STEPS, np.uint64), np.empty(STEPS)
    groups = dict[int, float]()
    for start in range(num):
        number = tabu_search(
            np.uint64(1 << start), level, STEPS, VIOLATION, support.owner, words, support.share, num, met, short
        )
        groups |= zip(met[:number].tolist(), short[:number].tolist(), strict=True)
    times = [0] * num
    for group in sorted(groups, key=lambda group: (-groups[group], group)):
        members = tuple(members_of(group))
        if min(times[v] for v in members) < MOST_IN_COMMON:
            for v in members:
                times[v] += 1
            yield Cluster(members, level)


def _circles(support: Support) -> Iterable[tuple[int, ...]]:
    """Shortest cycles through each variable of which the arcs lack less than one in all."""
    num = support.num_variables
    lacking = np.ones((num, num))  # from parent to child
    np.subtract.at(lacking.T, support.owner, support.parents * support.share[:, None])
    far = np.maximum(lacking, 0.0)
    np.fill_diagonal(far, np.inf)
    after = np.tile(np.arange(num), (num, 1))
    for via in range(num):
        through = far[:, via, None] + far[None, via, :]
        shorter = through < far - 1e-12
        far = np.where(shorter, through, far)
        after = np.where(shorter, after[:, via, None], after)
    for start in np.flatnonzero(far.diagonal() < 1 - VIOLATION).tolist():
        way = [start]
        at = int(after[start, start])
        while at != start and at not in way:
            way.append(at)
            at = int(after[at, start])
        if at == start and len(way) > 1:
            yield tuple(sorted(way))


def _by_program(support: Support, seconds: float | None) -> tuple[int, ...] | None:
    """The group for which sets with a parent in it exceed its size less one by the most; None if none is found."""
    import highspy

    num, sets = support.num_variables, len(support.owner)
    highs = empty_program(mip_rel_gap=0.0, mip_abs_gap=PROGRAM_GAP, mip_max_nodes=PROGRAM_NODES)
    if seconds is not None:
        highs.setOptionValue("time_limit", max(seconds, 0.01))
    highs.addVars(num + sets, np.zeros(num + sets), np.ones(num + sets))
    costs = np.concatenate([np.ones(num), -support.share])
    highs.changeColsCost(num + sets, np.arange(num + sets, dtype=np.int32), costs)
    highs.changeColsIntegrality(num, np.arange(num, dtype=np.int32), np.full(num, highspy.HighsVarType.kInteger))
    for place, (owner, parents) in enumerate(zip(support.owner.tolist(), support.parents, strict=True)):
        highs.addRow(-np.inf, 0.0, 2, np.array([num + place, owner], np.int32), np.array([1.0, -1.0]))
        among = np.flatnonzero(parents)
        places = np.array([num + place, *among], np.int32)
        highs.addRow(-np.inf, 0.0, len(places), places, np.concatenate([[1.0], -np.ones(len(among))]))
    highs.addRow(2.0, np.inf, num, np.arange(num, dtype=np.int32), np.ones(num))
    run(highs)  # of an unfinished one too, what it has found is looked at
    solution = highs.getSolution().col_value
    chosen_ones = tuple(place for place in range(num) if solution and solution[place] > 1 / 2)
    return chosen_ones if len(chosen_ones) > 1 else None
