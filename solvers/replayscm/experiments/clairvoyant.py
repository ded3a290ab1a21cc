"""The fewest worlds that leave the same members as all candidates together: covering programs, with lower bounds.

Covering program: min sum of x over worlds, subject to rows with right sides 1 or 0, x and y not negative. If no
column's weighted sum exceeds its cost (1 for a world, 0 for a y), the sum of weights times right sides is a bound, and
so is its ceiling.

Without HiGHS (extra `large`), MaxSAT by RC2 proves the same minimum, more slowly where many worlds are candidates.

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
from fractions import Fraction
from itertools import combinations
from math import ceil
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.episode import clean_rows
from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms
from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.highs import empty_program, has_highs, require_highs, run
from calibrant.solvers.outcome import Budget
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, ParentSets, draw
from calibrant.solvers.replayscm.experiments.candidates import candidate_rows, version_space
from calibrant.solvers.sat import Cnf, CoreGuided

if TYPE_CHECKING:
    from highspy import Highs


# --- Lower bounds of covering programs that anyone can add up: rational weights of rows -------------------------------
DENOMINATOR = 10**6  # to which the solver's weights are rounded before they are made feasible


@dataclass(frozen=True)
class CoverRow:
    """One requirement.

    label: what it stands for; alternatives: pairs or single sets of worlds. One set: at least one of its worlds. Pairs:
    for one of them, a world of either set.
    """

    label: str
    alternatives: tuple[tuple[frozenset[int], ...], ...]

    @property
    def is_plain(self) -> bool:
        return len(self.alternatives) == 1 and len(self.alternatives[0]) == 1

    def is_met(self, chosen: frozenset[int]) -> bool:
        """Return whether these worlds meet it."""
        return any(all(part & chosen for part in parts) for parts in self.alternatives)


@dataclass(frozen=True)
class RowWeight:
    """Dual weights of one requirement: of itself, and of each set of each alternative (empty where it is plain)."""

    weight: Fraction
    parts: tuple[tuple[Fraction, ...], ...] = ()


def certified_bound(rows: Sequence[CoverRow], weights: Sequence[RowWeight]) -> int:
    """Return the bound that weights prove; `ValueError` if a weight is negative or a column exceeds its cost."""
    loads: dict[int, Fraction] = {}
    total = Fraction(0)
    for row, weight in zip(rows, weights, strict=True):
        if weight.weight < 0 or any(part < 0 for parts in weight.parts for part in parts):
            raise ValueError(f"a negative weight at {row.label}")
        total += weight.weight
        if row.is_plain:
            sets = [(row.alternatives[0][0], weight.weight)]
        else:
            if [len(parts) for parts in weight.parts] != [len(parts) for parts in row.alternatives]:
                raise ValueError(f"weights of other sets at {row.label}")
            if any(weight.weight > sum(parts) for parts in weight.parts):
                raise ValueError(f"an alternative weighs more than its sets at {row.label}")
            sets = [
                (worlds, part)
                for alternative, parts in zip(row.alternatives, weight.parts, strict=True)
                for worlds, part in zip(alternative, parts, strict=True)
            ]
        for worlds, part in sets:
            if part:
                for world in worlds:
                    loads[world] = loads.get(world, Fraction(0)) + part
    heavy = [world for world, load in loads.items() if load > 1]
    if heavy:
        raise ValueError(f"world {min(heavy)} weighs {loads[min(heavy)]}, more than 1")
    # numbers of worlds are integers, so the bound may be rounded up
    return ceil(total)


def feasible_weights(
    rows: Sequence[CoverRow], single: Sequence[float], parts: Sequence[Sequence[Sequence[float]]]
) -> list[RowWeight]:
    """Return rational weights near those of a solver in doubles, scaled so that no column exceeds its cost."""
    rounded = []
    for row, weight, pieces in zip(rows, single, parts, strict=True):
        exact = tuple(tuple(_rational(piece) for piece in part) for part in pieces)
        bound = _rational(weight)
        if not row.is_plain:
            # a column y costs 0: its row may weigh no more than the sets of each alternative together
            bound = min([bound, *(sum(part, start=Fraction(0)) for part in exact)])
        rounded.append(RowWeight(bound, () if row.is_plain else exact))
    loads: dict[int, Fraction] = {}
    for row, weighed in zip(rows, rounded, strict=True):
        pieces_of = ((weighed.weight,),) if row.is_plain else weighed.parts
        for alternative, part in zip(row.alternatives, pieces_of, strict=True):
            for worlds, piece in zip(alternative, part, strict=True):
                for world in worlds:
                    loads[world] = loads.get(world, Fraction(0)) + piece
    # one factor for all: world columns fall to at most 1, and columns y, of cost 0, stay feasible
    scale = max([Fraction(1), *loads.values()])
    return [
        RowWeight(w.weight / scale, tuple(tuple(piece / scale for piece in part) for part in w.parts)) for w in rounded
    ]


def _rational(weight: float) -> Fraction:
    return max(Fraction(0), Fraction(weight).limit_denominator(DENOMINATOR))


# --- Fewest worlds that meet all requirements: an integer program by HiGHS, its relaxation for dual weights -----------
# HiGHS returns integers as doubles, off by up to its tolerance of 1e-6
CHOSEN = 0.5


def fewest_worlds(rows: Sequence[CoverRow], num_worlds: int) -> list[int]:
    """Return a smallest set of worlds that meets all rows; which of several depends on the engine."""
    return _fewest_by_program(rows, num_worlds) if has_highs() else _fewest_by_maxsat(rows)


def _fewest_by_program(rows: Sequence[CoverRow], num_worlds: int) -> list[int]:
    program, _ = _program(rows, num_worlds, is_integer=True)
    if not run(program):
        raise AssertionError("a covering program without limits was not solved")
    values = program.getSolution().col_value[:num_worlds]
    return [world for world, value in enumerate(values) if value > CHOSEN]


def _fewest_by_maxsat(rows: Sequence[CoverRow]) -> list[int]:
    usable = sorted({world for row in rows for parts in row.alternatives for part in parts for world in part})
    cnf = Cnf()
    literals = {world: cnf.variable(f"x{world}") for world in usable}
    picked = [[cnf.variable(f"y{index}.{i}") for i in range(len(row.alternatives))] for index, row in enumerate(rows)]
    solver = CoreGuided(cnf, Budget())
    try:
        for literal in literals.values():
            solver.prefer(-literal, 1)
        for row, pieces in zip(rows, picked, strict=True):
            solver.add(pieces)
            for piece, parts in zip(pieces, row.alternatives, strict=True):
                for part in parts:
                    solver.add([-piece, *(literals[world] for world in sorted(part))])
        model = solver.cheapest_model()
    finally:
        solver.close()
    if model is None:
        raise AssertionError("a covering problem without a solution")
    chosen = [world for world, literal in literals.items() if literal in model]
    assert all(row.is_met(frozenset(chosen)) for row in rows)
    return chosen


def dual_weights(rows: Sequence[CoverRow], num_worlds: int) -> list[RowWeight]:
    """Return rational weights of the rows, feasible, from the relaxation's duals; `MissingExtraError` without HiGHS."""
    program, places = _program(rows, num_worlds, is_integer=False)
    run(program)
    duals = program.getSolution().row_dual
    single = [duals[first] for first, _ in places]
    parts = [[[duals[place] for place in piece] for piece in pieces] for _, pieces in places]
    return feasible_weights(rows, single, parts)


def _program(
    rows: Sequence[CoverRow], num_worlds: int, *, is_integer: bool
) -> tuple[Highs, list[tuple[int, list[list[int]]]]]:
    """Return the program, and of each requirement its row and those of its alternatives' sets."""
    require_highs()
    import highspy

    program = empty_program(random_seed=0)
    num_extra = sum(len(row.alternatives) for row in rows if not row.is_plain)
    for column in range(num_worlds + num_extra):
        # the relaxation has no upper bounds: their duals would be missing from the rows' certificate
        program.addVar(0.0, 1.0 if is_integer else highspy.kHighsInf)
        if column < num_worlds:
            program.changeColCost(column, 1.0)
        if is_integer:
            program.changeColIntegrality(column, highspy.HighsVarType.kInteger)
    places: list[tuple[int, list[list[int]]]] = []
    extra, number = num_worlds, 0
    for row in rows:
        if row.is_plain:
            _add(program, 1.0, sorted(row.alternatives[0][0]))
            places.append((number, []))
            number += 1
            continue
        columns = list(range(extra, extra + len(row.alternatives)))
        extra += len(columns)
        # some y is at least 1, and a y needs a world of each of its sets: y <= sum of x
        _add(program, 1.0, columns)
        first, number = number, number + 1
        pieces = []
        for column, alternative in zip(columns, row.alternatives, strict=True):
            pieces.append(list(range(number, number + len(alternative))))
            for worlds in alternative:
                _add(program, 0.0, sorted(worlds), column)
                number += 1
        places.append((first, pieces))
    return program, places


def _add(program: Highs, at_least: float, columns: Sequence[int], less: int | None = None) -> None:
    import highspy

    indices = np.array([*columns, *_optional(less)], np.int32)
    values = np.array([1.0] * len(columns) + [-1.0] * (less is not None))
    program.addRow(at_least, highspy.kHighsInf, len(indices), indices, values)


def _optional(column: int | None) -> Iterator[int]:
    if column is not None:
        yield column


# --- The fewest worlds that leave the same members as all candidates together, for one who knows the truth ------------
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
