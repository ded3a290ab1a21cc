"""The fewest worlds that leave the same members as all candidates together, for one who knows the truth.

Noise-free, without hidden variables, all contexts. Implicit hitting sets, in rounds: an integer program or MaxSAT
finds a smallest set of worlds that meets all requirements so far; counting says whether it leaves as few members as all
candidates do; if not, members are drawn that it leaves, and each adds the requirement that some world refutes it.

For a variable v and a parent set U of the largest size, a pattern is the values of U, and a conflict a pattern that is
shown with both values of v. If all candidates together show no conflict, every reachable (pattern, value) has to be
shown by a chosen world with v free; else some pattern has to be shown with both values. In Ordered items the class is a
product, so equal spaces means equal on every U. Otherwise U ranges over the non-descendants of v in the truth, where a
change of v alone stays acyclic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

import numpy as np
import numpy.typing as npt

from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.episode import clean_rows
from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms
from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.highs import require_highs
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, ParentSets
from calibrant.solvers.replayscm.drawn_members import draw
from calibrant.solvers.replayscm.experiments.covering import dual_weights, fewest_worlds
from calibrant.solvers.replayscm.experiments.duals import CoverRow, RowWeight, certified_bound
from calibrant.solvers.replayscm.experiments.readings import candidate_rows, version_space

U64 = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

REFUTED = "refute"  # label of a requirement from a drawn member
DRAWS = 32  # members that are refuted at a time
MAX_NEW_ROWS = 200  # unmet requirements that are added at a time, those of fewest worlds


@dataclass(frozen=True)
class FewestWorlds:
    """A minimum that a search proves: indices of the candidates, and the members that all candidates together leave."""

    worlds: tuple[int, ...]
    floor: int


@dataclass(frozen=True)
class ClairvoyantMinimum:
    """A proven minimum with its certificate.

    worlds: indices of the candidates; floor: members that all candidates together leave
    rows: local requirements, which every set that leaves the floor meets; weights: duals; bound: what these prove
    num_refutations: requirements that came from drawn members, which are not among the rows
    """

    worlds: tuple[int, ...]
    floor: int
    rows: tuple[CoverRow, ...]
    weights: tuple[RowWeight, ...]
    bound: int
    num_refutations: int

    @property
    def is_certified(self) -> bool:
        """Return whether the rational weights prove the minimum; else the integer program's search does."""
        return self.bound == len(self.worlds)


class ClairvoyantSearch:
    """The requirements and counts of one truth.

    worlds: constants of each candidate; every world shows all contexts
    """

    def __init__(
        self, task: Task, scm_class: MechanismClass, truth: Mechanisms, worlds: Sequence[Mapping[str, int]]
    ) -> None:
        self.task, self.scm_class, self.truth, self.worlds = task, scm_class, truth, worlds
        self.contexts = tuple(range(1 << len(scm_class.roots)))
        self.evidence = [EvidenceWorld(do, clean_rows(scm_class, truth, do, self.contexts)) for do in worlds]
        self.start = EvidenceWorld({}, clean_rows(scm_class, truth, {}, self.contexts))
        self.variables = natural(scm_class.observed)
        self.index = {v: i for i, v in enumerate(self.variables)}

    def fewest(self) -> FewestWorlds:
        """Return the minimum alone, by HiGHS or, without it, by MaxSAT."""
        worlds, floor, _, _ = self._search()
        return FewestWorlds(worlds, floor)

    def solve(self) -> ClairvoyantMinimum:
        """Return the minimum with its certificate; `MissingExtraError` without HiGHS, whose duals it needs."""
        require_highs()
        worlds, floor, rows, num_refutations = self._search()
        rows = [row for row in rows if not row.label.startswith(REFUTED)]  # others check those without the draws
        weights = dual_weights(rows, len(self.worlds)) if rows else []
        bound = certified_bound(rows, weights)
        return ClairvoyantMinimum(worlds, floor, tuple(rows), tuple(weights), bound, num_refutations)

    def _search(self) -> tuple[tuple[int, ...], int, list[CoverRow], int]:
        """Return the worlds, the floor, the requirements that were needed, and how many came from drawn members."""
        floor = self.count(range(len(self.worlds)))
        requirements = list(self.local_requirements())
        rows: list[CoverRow] = []
        num_refutations = 0
        rng = Random(0)
        while True:
            chosen = fewest_worlds(rows, len(self.worlds)) if rows else []
            unmet = [row for row in requirements if not row.is_met(frozenset(chosen))]
            if unmet:
                unmet.sort(key=lambda row: (sum(len(part) for parts in row.alternatives for part in parts), row.label))
                # violated requirements alone, those that fewest worlds meet first: the program stays small
                rows += unmet[:MAX_NEW_ROWS]
                continue
            # every program is a relaxation, so that the first solution at the floor is minimal (implicit hitting set)
            if self.count(chosen) == floor:
                return tuple(chosen), floor, rows, num_refutations
            refutations = self._refutations(chosen, rng)
            num_refutations += len(refutations)
            requirements += refutations

    def count(self, chosen: Sequence[int]) -> int:
        """Return how many members the start and these worlds leave."""
        worlds = [self.start, *(self.evidence[place] for place in chosen)]
        return version_space(self.task, self.scm_class, worlds).count

    def local_requirements(self) -> Iterator[CoverRow]:
        """Yield the requirements of every variable and parent set, without those that the start meets."""
        words = np.array([[self._word(row) for row in world.rows] for world in self.evidence], np.uint64)
        start = np.array([[self._word(row) for row in self.start.rows]], np.uint64)
        merged: dict[tuple[tuple[frozenset[int], ...], ...], str] = {}
        for variable in self.scm_class.endogenous:
            free = np.array([variable not in do for do in self.worlds])
            for parents in self._parent_sets(variable):
                places = [self.index[u] for u in (*parents, variable)]
                by_pattern = _met_patterns(words, places) & free[:, None]
                at_start = _met_patterns(start, places)[0]
                label = f"{variable}({','.join(parents)})"
                for alternatives, detail in _requirements(by_pattern, at_start):
                    merged.setdefault(alternatives, f"{label} {detail}")
        # equal requirements of different sets are one row, named after the first
        for alternatives, label in merged.items():
            yield CoverRow(label, alternatives)

    def _parent_sets(self, variable: str) -> Iterator[tuple[str, ...]]:
        candidates = self.scm_class.admissible_parents(variable)
        # a set with descendants would make a cycle: what it seems to need is not necessary, and would prove nothing
        if self.scm_class.disclosure.order is None:
            below = self._descendants(variable)
            candidates = tuple(u for u in candidates if u not in below)
        # largest sets only: what is shown of a set is shown of its subsets
        yield from combinations(candidates, min(self.scm_class.max_parents, len(candidates)))

    def _descendants(self, variable: str) -> set[str]:
        below, waiting = set[str](), [variable]
        while waiting:
            parent = waiting.pop()
            children = [v for v, f in self.truth.items() if parent in f.parents and v not in below]
            below.update(children)
            waiting += children
        return below

    def _refutations(self, chosen: Sequence[int], rng: Random) -> list[CoverRow]:
        """Return a requirement for each of some drawn members that the chosen worlds leave: a world that refutes it."""
        evidence = [self.start, *(self.evidence[place] for place in chosen)]
        space = version_space(self.task, self.scm_class, evidence)
        (roots,) = space.root_sets  # one: the roots are disclosed in all items that this is for
        members = draw(ConditionedSpace(ParentSets(space, None), roots), rng, DRAWS)
        rows, spans = candidate_rows(self.scm_class, [(do, self.contexts) for do in self.worlds])
        readings = members.outcomes(rows)
        truth = np.array([self._word(row) for world in self.evidence for row in world.rows], np.uint64)
        differs = np.logical_or.reduceat(readings != truth, spans[:-1], axis=1)
        # a drawn member that some candidate refutes has to be refuted by the answer: any such world will do
        refuted = {frozenset(np.flatnonzero(row).tolist()) for row in differs if row.any()}
        return [
            CoverRow(f"{REFUTED} member {sorted(worlds)[:3]}", ((worlds,),)) for worlds in sorted(refuted, key=sorted)
        ]

    def _word(self, row: str) -> int:
        return sum(1 << self.index[v] for v, bit in zip(self.scm_class.observed, row, strict=True) if bit == "1")


def _met_patterns(words: U64, places: Sequence[int]) -> Flags:
    """[w, 2**(k + 1)] which values of some variables each world shows, the last one the highest bit."""
    patterns = np.zeros(words.shape, np.int64)
    for i, place in enumerate(places):
        patterns |= (words >> np.uint64(place) & np.uint64(1)).astype(np.int64) << i
    met = np.zeros((len(words), 1 << len(places)), np.bool_)
    met[np.arange(len(words))[:, None], patterns] = True
    return met


def _requirements(by_pattern: Flags, at_start: Flags) -> Iterator[tuple[tuple[tuple[frozenset[int], ...], ...], str]]:
    """Yield the requirements of one variable and parent set, with the pattern that each is about."""
    size = by_pattern.shape[1] // 2
    reachable = by_pattern.any(axis=0) | at_start
    conflicts = reachable[:size] & reachable[size:]
    if not conflicts.any():
        for key in np.flatnonzero(reachable & ~at_start).tolist():
            yield ((frozenset(np.flatnonzero(by_pattern[:, key]).tolist()),),), f"shows {key:b}"
        return
    if (at_start[:size] & at_start[size:]).any():
        return
    alternatives = []
    for pattern in np.flatnonzero(conflicts).tolist():
        # both values of one pattern refute the set; values that the start shows need no world
        keys = [key for key in (pattern, pattern + size) if not at_start[key]]
        alternatives.append(tuple(frozenset(np.flatnonzero(by_pattern[:, key]).tolist()) for key in keys))
    yield tuple(alternatives), "conflict"
