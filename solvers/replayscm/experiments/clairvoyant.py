"""The fewest worlds that leave the same members as all candidates together: covering programs, with lower bounds.

Covering program: minimise the sum of x over worlds, subject to rows with right sides 1 or 0; x and the auxiliary
columns y are not negative. By weak duality, if no column's weighted sum exceeds its cost (1 for a world, 0 for a y),
the sum of weights times right sides is a lower bound, and so is its ceiling. Without HiGHS (extra `large`), MaxSAT by
RC2 proves the same minimum, more slowly with many candidates.

Noise-free, without hidden variables, all contexts. Implicit hitting sets, in rounds: an integer program or MaxSAT has a
smallest set of worlds that meets all requirements so far. If it leaves more members than all candidates do, some of the
members that it leaves are drawn, and each adds the requirement that some world refutes it.

Local requirements: for a variable v and a parent set U of the largest size, a pattern is the values of U, and a
conflict is a pattern that occurs with both values of v. If all candidates together have no conflict, every reachable
(pattern, value) has to occur in a chosen world that does not set v; else some pattern has to occur with both values. In
Ordered items the class is a product over variables, so that equal spaces are equal on every U. Otherwise U ranges over
the non-descendants of v in the truth, where a change of v alone stays acyclic.
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


# --- Lower bounds of covering programs that can be checked by addition: rational weights of rows ----------------------
DENOMINATOR = 10**6  # largest denominator to which the solver's weights are rounded before they are made feasible


@dataclass(frozen=True)
class CoverRow:
    """Requirement of a covering program: for one of the alternatives, a world of each of its sets is chosen.

    label: meaning, in words; alternatives: one or more, each of one or two sets of worlds
    """

    label: str
    alternatives: tuple[tuple[frozenset[int], ...], ...]

    @property
    def is_plain(self) -> bool:
        """Whether there is a single alternative of one set."""
        return len(self.alternatives) == 1 and len(self.alternatives[0]) == 1

    def is_met(self, chosen: frozenset[int]) -> bool:
        """Return whether these worlds meet the requirement."""
        return any(all(worlds & chosen for worlds in sets) for sets in self.alternatives)


@dataclass(frozen=True)
class RowWeight:
    """Dual weights of one requirement.

    weight: weight of its own row; parts: weights of the rows of each alternative's sets, empty if it is plain
    """

    weight: Fraction
    parts: tuple[tuple[Fraction, ...], ...] = ()


def certified_bound(rows: Sequence[CoverRow], weights: Sequence[RowWeight]) -> int:
    """Return the lower bound that weights prove; `ValueError` if a weight is negative or a column exceeds its cost."""
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
    # the number of worlds is an integer, so the bound is rounded up
    return ceil(total)


def feasible_weights(
    rows: Sequence[CoverRow], single: Sequence[float], parts: Sequence[Sequence[Sequence[float]]]
) -> list[RowWeight]:
    """Return rational weights near a solver's doubles, scaled so that no column exceeds its cost.

    single: [rows] weight of each requirement's own row; parts: weights of the rows of each alternative's sets
    """
    rounded = []
    for row, weight, pieces in zip(rows, single, parts, strict=True):
        exact = tuple(tuple(_rational(piece) for piece in part) for part in pieces)
        bound = _rational(weight)
        if not row.is_plain:
            # a column y costs 0: the row may weigh no more than the sets of each alternative together
            bound = min([bound, *(sum(part, start=Fraction(0)) for part in exact)])
        rounded.append(RowWeight(bound, () if row.is_plain else exact))
    loads: dict[int, Fraction] = {}
    for row, row_weight in zip(rows, rounded, strict=True):
        pieces_of = ((row_weight.weight,),) if row.is_plain else row_weight.parts
        for alternative, part in zip(row.alternatives, pieces_of, strict=True):
            for worlds, piece in zip(alternative, part, strict=True):
                for world in worlds:
                    loads[world] = loads.get(world, Fraction(0)) + piece
    # one factor for all: columns of worlds fall to at most 1, and columns y, of cost 0, stay feasible
    scale = max([Fraction(1), *loads.values()])
    return [
        RowWeight(w.weight / scale, tuple(tuple(piece / scale for piece in part) for part in w.parts)) for w in rounded
    ]


def _rational(weight: float) -> Fraction:
    return max(Fraction(0), Fraction(weight).limit_denominator(DENOMINATOR))


# --- Fewest worlds that meet all requirements: an integer program by HiGHS, its relaxation for dual weights -----------
CHOSEN = 0.5  # value from which a world is chosen: HiGHS returns integers as doubles, off by up to 1e-6


def fewest_worlds(rows: Sequence[CoverRow], num_worlds: int) -> list[int]:
    """Return a smallest set of worlds that meets all rows; which one in a tie depends on the engine."""
    return _fewest_by_program(rows, num_worlds) if has_highs() else _fewest_by_maxsat(rows)


def _fewest_by_program(rows: Sequence[CoverRow], num_worlds: int) -> list[int]:
    program, _ = _program(rows, num_worlds, is_integer=True)
    if not run(program):
        raise AssertionError("a covering program without limits was not solved")
    values = program.getSolution().col_value[:num_worlds]
    return [world for world, value in enumerate(values) if value > CHOSEN]


def _fewest_by_maxsat(rows: Sequence[CoverRow]) -> list[int]:
    """Return the fewest worlds that meet all rows, found by MaxSAT."""
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
    program, row_indices = _program(rows, num_worlds, is_integer=False)
    run(program)
    duals = program.getSolution().row_dual
    single = [duals[own_row] for own_row, _ in row_indices]
    parts = [[[duals[index] for index in indices] for indices in alternatives] for _, alternatives in row_indices]
    return feasible_weights(rows, single, parts)


def _program(
    rows: Sequence[CoverRow], num_worlds: int, *, is_integer: bool
) -> tuple[Highs, list[tuple[int, list[list[int]]]]]:
    """Return the program, and the row index of each requirement itself and of the sets of its alternatives."""
    require_highs()
    import highspy

    program = empty_program(random_seed=0)
    num_extra = sum(len(row.alternatives) for row in rows if not row.is_plain)
    for column in range(num_worlds + num_extra):
        # no upper bounds in the relaxation: their duals would be missing in the certificate
        program.addVar(0.0, 1.0 if is_integer else highspy.kHighsInf)
        if column < num_worlds:
            program.changeColCost(column, 1.0)
        if is_integer:
            program.changeColIntegrality(column, highspy.HighsVarType.kInteger)
    row_indices: list[tuple[int, list[list[int]]]] = []
    next_column, next_row = num_worlds, 0
    for row in rows:
        if row.is_plain:
            _add(program, 1.0, sorted(row.alternatives[0][0]))
            row_indices.append((next_row, []))
            next_row += 1
            continue
        columns = list(range(next_column, next_column + len(row.alternatives)))
        next_column += len(columns)
        # the y of the alternatives add up to at least 1, and y <= sum of x over each set of its alternative
        _add(program, 1.0, columns)
        own_row, next_row = next_row, next_row + 1
        alternatives = []
        for column, alternative in zip(columns, row.alternatives, strict=True):
            alternatives.append(list(range(next_row, next_row + len(alternative))))
            for worlds in alternative:
                _add(program, 0.0, sorted(worlds), column)
                next_row += 1
        row_indices.append((own_row, alternatives))
    return program, row_indices


def _add(program: Highs, at_least: float, columns: Sequence[int], subtracted: int | None = None) -> None:
    """Add the row: sum of `columns`, minus the column `subtracted`, is at least `at_least`."""
    import highspy

    indices = np.array([*columns, *_optional(subtracted)], np.int32)
    values = np.array([1.0] * len(columns) + [-1.0] * (subtracted is not None))
    program.addRow(at_least, highspy.kHighsInf, len(indices), indices, values)


def _optional(column: int | None) -> Iterator[int]:
    if column is not None:
        yield column


# --- The fewest worlds that leave the same members as all candidates together, given the true SCM ---------------------
U64 = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

REFUTED = "refute"  # first word of the label of a requirement from a drawn member
DRAWS = 32  # members drawn in each round
MAX_NEW_ROWS = 200  # unmet requirements added in each round, those of fewest worlds


@dataclass(frozen=True)
class FewestWorlds:
    """Minimum proven by search; worlds: indices of candidates; floor: number of members that all candidates leave."""

    worlds: tuple[int, ...]
    floor: int


@dataclass(frozen=True)
class ClairvoyantMinimum:
    """Proven minimum with its certificate.

    worlds: indices of the candidates; floor: number of members that all candidates together leave
    rows: local requirements, which every set that leaves the floor meets; weights: dual weights of the rows
    bound: lower bound that the weights prove
    num_refutations: number of requirements from drawn members, which are not among the rows
    """

    worlds: tuple[int, ...]
    floor: int
    rows: tuple[CoverRow, ...]
    weights: tuple[RowWeight, ...]
    bound: int
    num_refutations: int

    @property
    def is_certified(self) -> bool:
        """Whether the rational weights prove the minimum; else only the search does."""
        return self.bound == len(self.worlds)


class ClairvoyantSearch:
    """Search for the minimum of one true SCM.

    worlds: constants of each candidate; every world has all contexts
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
        rows = [row for row in rows if not row.label.startswith(REFUTED)]  # without the random draws
        weights = dual_weights(rows, len(self.worlds)) if rows else []
        bound = certified_bound(rows, weights)
        return ClairvoyantMinimum(worlds, floor, tuple(rows), tuple(weights), bound, num_refutations)

    def _search(self) -> tuple[tuple[int, ...], int, list[CoverRow], int]:
        """Return the worlds, the floor, the requirements used, and the number of those from drawn members."""
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
                # only violated requirements, those of fewest worlds first: the program stays small
                rows += unmet[:MAX_NEW_ROWS]
                continue
            # every program is a relaxation, so the first solution at the floor is a minimum
            if self.count(chosen) == floor:
                return tuple(chosen), floor, rows, num_refutations
            refutations = self._refutations(chosen, rng)
            num_refutations += len(refutations)
            requirements += refutations

    def count(self, chosen: Sequence[int]) -> int:
        """Return how many members the start and these worlds leave."""
        worlds = [self.start, *(self.evidence[index] for index in chosen)]
        return version_space(self.task, self.scm_class, worlds).count

    def local_requirements(self) -> Iterator[CoverRow]:
        """Yield the requirements of every variable and parent set, without those that the start meets."""
        words = np.array([[self._word(row) for row in world.rows] for world in self.evidence], np.uint64)
        start = np.array([[self._word(row) for row in self.start.rows]], np.uint64)
        merged: dict[tuple[tuple[frozenset[int], ...], ...], str] = {}
        for variable in self.scm_class.endogenous:
            free = np.array([variable not in do for do in self.worlds])
            for parents in self._parent_sets(variable):
                indices = [self.index[u] for u in (*parents, variable)]
                by_pattern = _occurring_patterns(words, indices) & free[:, None]
                at_start = _occurring_patterns(start, indices)[0]
                label = f"{variable}({','.join(parents)})"
                for alternatives, detail in _requirements(by_pattern, at_start):
                    merged.setdefault(alternatives, f"{label} {detail}")
        # equal requirements of different sets are one row, labelled by the first
        for alternatives, label in merged.items():
            yield CoverRow(label, alternatives)

    def _parent_sets(self, variable: str) -> Iterator[tuple[str, ...]]:
        candidates = self.scm_class.admissible_parents(variable)
        # a set with descendants would close a cycle, so its requirement is not necessary
        if self.scm_class.disclosure.order is None:
            descendants = self._descendants(variable)
            candidates = tuple(u for u in candidates if u not in descendants)
        # largest sets only: worlds that show all patterns of a set show those of its subsets
        yield from combinations(candidates, min(self.scm_class.max_parents, len(candidates)))

    def _descendants(self, variable: str) -> set[str]:
        descendants, waiting = set[str](), [variable]
        while waiting:
            parent = waiting.pop()
            children = [v for v, f in self.truth.items() if parent in f.parents and v not in descendants]
            descendants.update(children)
            waiting += children
        return descendants

    def _refutations(self, chosen: Sequence[int], rng: Random) -> list[CoverRow]:
        """Draw members that the chosen worlds leave; return for each the requirement of a world that refutes it."""
        evidence = [self.start, *(self.evidence[index] for index in chosen)]
        space = version_space(self.task, self.scm_class, evidence)
        (roots,) = space.root_sets  # one: the roots are disclosed
        members = draw(ConditionedSpace(ParentSets(space, None), roots), rng, DRAWS)
        rows, spans = candidate_rows(self.scm_class, [(do, self.contexts) for do in self.worlds])
        readings = members.outcomes(rows)
        truth = np.array([self._word(row) for world in self.evidence for row in world.rows], np.uint64)
        differs = np.logical_or.reduceat(readings != truth, spans[:-1], axis=1)
        # the answer has to refute every drawn member that some candidate refutes
        refuted = {frozenset(np.flatnonzero(row).tolist()) for row in differs if row.any()}
        return [
            CoverRow(f"{REFUTED} member {sorted(worlds)[:3]}", ((worlds,),)) for worlds in sorted(refuted, key=sorted)
        ]

    def _word(self, row: str) -> int:
        return sum(1 << self.index[v] for v, bit in zip(self.scm_class.observed, row, strict=True) if bit == "1")


def _occurring_patterns(words: U64, variables: Sequence[int]) -> Flags:
    """Return which values of some variables occur in each world, bit i is variables[i]; [w, 2**len(variables)]."""
    patterns = np.zeros(words.shape, np.int64)
    for i, variable in enumerate(variables):
        patterns |= (words >> np.uint64(variable) & np.uint64(1)).astype(np.int64) << i
    occurs = np.zeros((len(words), 1 << len(variables)), np.bool_)
    occurs[np.arange(len(words))[:, None], patterns] = True
    return occurs


def _requirements(by_pattern: Flags, at_start: Flags) -> Iterator[tuple[tuple[tuple[frozenset[int], ...], ...], str]]:
    """Yield the requirements of one variable and parent set, each with words for its label."""
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
        # both values of one pattern refute the parent set; values that occur at the start need no world
        keys = [key for key in (pattern, pattern + size) if not at_start[key]]
        alternatives.append(tuple(frozenset(np.flatnonzero(by_pattern[:, key]).tolist()) for key in keys))
    yield tuple(alternatives), "conflict"
