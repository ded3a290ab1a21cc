"""The paper's symbolic exact-search: three stages of growing caps, the first train-exact SCM wins.

A stage lists candidate mechanisms per variable and then tries to choose one of
each without a cycle, depth first, smallest first. It may fail where solvers.replayscm.exact does not: a variable can
need a larger formula or a parent set behind the caps, and the choice can need more nodes than there are.

Published (Appendix H, Table H.1): formula sizes up to 8, 10, 12; slack 2, 2, 3; 32, 32, 256 candidates; 50,000, 50,000,
100,000 states of a size; 2, 20, 600 seconds. Seconds are counted in nodes here, NODES_PER_SECOND each, so that every
machine gives the same answers. What slack is relative to, what a state is, and the order of the search are not
published: here a formula may be so much larger than the smallest candidate that closes no cycle with what was chosen
before, and baselines.replayscm.staged says what is kept.

Nothing is enumerated here. The list of functions by size (solvers.formulas.catalogue) is read as a bottom-up search
that keeps behaviours, what formulas are worth in the rows seen: a size is reached as long as the behaviours two nodes
below were all kept. Functions of five variables end at size 11 there, so a cap of 12 is one of 11 for them.

The published cap on states does not say what is counted. Counted per parent set, as here, it changes none of the
candidate lists of the development pools. Counted over all formulas of all admissible variables, rows not merged and
nothing found above a size that is too large, TrainExact there would be 0.950, 0.938, 0.875, 0.875 (80 problems each of
Ordered, Block, Hidden-order, Hidden-roots) in place of 1.000, 1.000, 0.988, 0.988.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.baselines.replayscm._kernels_choice import first_choice
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.formulas.catalogue import EssentialFunctions, require_literals_alone
from calibrant.solvers.formulas.synthesis import least_formula
from calibrant.solvers.outcome import Budget, BudgetSpent, Found
from calibrant.solvers.replayscm.certified import certify
from calibrant.solvers.replayscm.parents import ParentSearch, ParentSet, iterate_likely_first

# --- Candidate mechanisms under the caps of a stage: the smallest formula over each parent set, if it is small enough
MAX_PARENTS = 5


class Caps(NamedTuple):
    """Limits of a stage on the candidates of one variable.

    max_size: largest formula size
    slack: how much larger than the smallest one that closes no cycle a chosen candidate may be
    candidates: how many candidates are kept, smallest first
    states: behaviours of one size that are kept to build larger formulas from; counted are those of functions that
        depend on all the parents, not those of fewer, so the cap binds later than a count of all would
    """

    max_size: int
    slack: int
    candidates: int
    states: int


class CandidateMechanism(NamedTuple):
    """A mechanism that fits; orders by size, then number of parents, then parent set."""

    size: int
    num_parents: int
    mask: Mask


class Candidates:
    """The candidate mechanisms of every variable of a task, under any caps."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._search = ParentSearch(task, MAX_PARENTS)
        self._sets: dict[str, dict[Mask, ParentSet]] = {}

    def of(self, variable: str, caps: Caps) -> list[CandidateMechanism]:
        """At most `caps.candidates` mechanisms of the variable, smallest first."""
        sized = ((self._size(parent_set, caps), parent_set.mask) for parent_set in self._parent_sets(variable).values())
        candidates = sorted(
            CandidateMechanism(size, mask.bit_count(), mask) for size, mask in sized if size is not None
        )
        return candidates[: caps.candidates]

    def formula(self, variable: str, mask: Mask) -> Formula:
        """Return the formula of a candidate."""
        parent_set = self._sets[variable][mask]
        names = [self.task.variables[i] for i in parent_set.indices]
        outcome = least_formula(parent_set.table, names, operators=self._search.operators)
        assert isinstance(outcome, Found)
        return outcome.value

    def _parent_sets(self, variable: str) -> dict[Mask, ParentSet]:
        if variable not in self._sets:
            index = {v: i for i, v in enumerate(self.task.variables)}
            admissible = [index[u] for u in self.task.disclosure.admissible_parents(variable)]
            parent_sets = self._search.parent_sets(index[variable], admissible) if admissible else []
            self._sets[variable] = {parent_set.mask: parent_set for parent_set in parent_sets}
        return self._sets[variable]

    def _size(self, parent_set: ParentSet, caps: Caps) -> int | None:
        """Return the size at which a formula is found for a parent set, None if that is beyond the caps."""
        num_vars, functions = parent_set.mask.bit_count(), self._listed.functions
        care, value = np.uint64(parent_set.table.care), np.uint64(parent_set.table.value)
        for size in range(parent_set.at_least, caps.max_size + 1):
            first, last = self._listed.range(num_vars, size)
            if size == parent_set.size or np.any((functions.bits[first:last] & care) == value):
                before = (self._listed.range(num_vars, smaller - 2) for smaller in range(parent_set.at_least, size + 1))
                is_listed = all(not _more_than(caps.states, functions.bits[slice(*part)], care) for part in before)
                return size if is_listed else None
        return None

    @cached_property
    def _listed(self) -> _BySize:
        return _BySize(self._search.functions)


def _more_than(states: int, bits: npt.NDArray[np.uint64], care: np.uint64) -> bool:
    """Return whether functions show more than so many behaviours in the rows seen.

    The first functions usually suffice.
    """
    if 1 << int(care).bit_count() <= states:
        return False
    looked_at = states
    while looked_at < len(bits):
        looked_at = min(2 * looked_at, len(bits))
        if len(np.unique(bits[:looked_at] & care)) > states:
            return True
    return False


class _BySize:
    """Index of the catalogued functions by number of variables and size."""

    def __init__(self, functions: EssentialFunctions) -> None:
        self.functions = functions
        self._ranges: dict[tuple[int, int], tuple[int, int]] = {}

    def range(self, num_vars: int, size: int) -> tuple[int, int]:
        key = num_vars, size
        if key not in self._ranges:
            start, end = int(self.functions.starts[num_vars]), int(self.functions.starts[num_vars + 1])
            first, last = np.searchsorted(self.functions.sizes[start:end], [size, size + 1])
            self._ranges[key] = start + int(first), start + int(last)
        return self._ranges[key]


NODES_PER_SECOND = 50_000  # choices of a candidate that the search tries
NO_LIMIT = 1 << 62


class Stage(NamedTuple):
    """The caps of one stage, and how many nodes its choice of structure may try over all root sets."""

    caps: Caps
    nodes: int


STAGES = (
    Stage(Caps(max_size=8, slack=2, candidates=32, states=50_000), 2 * NODES_PER_SECOND),
    Stage(Caps(max_size=10, slack=2, candidates=32, states=50_000), 20 * NODES_PER_SECOND),
    Stage(Caps(max_size=12, slack=3, candidates=256, states=100_000), 600 * NODES_PER_SECOND),
)


class StagedAnswer(NamedTuple):
    """A train-exact SCM and the number of the stage that found it, from 1."""

    model: Scm
    stage: int


class NotFound(NamedTuple):
    """No stage found one.

    without: variables that have no candidate in the last stage, under any root set
    out_of_nodes: whether a stage ended because its nodes were used up
    """

    without: tuple[str, ...]
    out_of_nodes: bool


def staged_search(task: Task, stages: Sequence[Stage] = STAGES) -> StagedAnswer | NotFound:
    """Return the first train-exact SCM that the stages find, replayed by the reference."""
    require_literals_alone(task.grammar)
    listed, spent = Candidates(task), False
    without: tuple[str, ...] = ()
    for number, stage in enumerate(stages, start=1):
        candidates = {variable: listed.of(variable, stage.caps) for variable in natural(task.disclosure.endogenous)}
        without = tuple(variable for variable, mechanisms in candidates.items() if not mechanisms)
        budget = Budget(stage.nodes)
        try:
            for roots in iterate_likely_first(task):
                chosen = _first_choice(task, roots, candidates, stage.caps.slack, budget)
                if chosen is not None:
                    mechanisms = {v: listed.formula(v, mask) for v, mask in chosen.items()}
                    return StagedAnswer(certify(task, Scm(roots, mechanisms)), number)
        except BudgetSpent:
            spent = True
    return NotFound(without, spent)


def _first_choice(
    task: Task,
    roots: tuple[str, ...],
    by_variable: Mapping[str, Sequence[CandidateMechanism]],
    slack: int,
    budget: Budget,
) -> dict[str, Mask] | None:
    """Depth first: the variable with fewest candidates first, its smallest candidate first, no cycles.

    The first choice that has no cycle; None if there is none; `BudgetSpent` if the nodes ran out.
    """
    index = {variable: i for i, variable in enumerate(task.variables)}
    order = sorted((v for v in task.variables if v not in roots), key=lambda v: (len(by_variable[v]), index[v]))
    if not all(by_variable[v] for v in order):
        return None
    free = sum(1 << index[v] for v in order)
    candidates = [candidate for v in order for candidate in by_variable[v]]
    chosen = np.empty(len(order), np.int64)
    answer, num_nodes = first_choice(
        np.array([index[v] for v in order], np.int64),
        np.cumsum([0, *(len(by_variable[v]) for v in order)]),
        np.array([candidate.size for candidate in candidates], np.int64),
        np.array([candidate.mask & free for candidate in candidates], np.uint64),
        slack,
        NO_LIMIT if budget.states is None else budget.states,
        np.zeros((len(order) + 1, len(task.variables)), np.uint64),
        chosen,
    )
    budget.spend(num_nodes)
    if answer < 0:
        budget.spend(1)
    if answer == 0:
        return None
    return {v: candidates[place].mask for v, place in zip(order, chosen.tolist(), strict=True)}
