"""Bounded audits of the paper: coverage of local patterns, and searches for other mechanisms that fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, fsum, inf
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
from msgspec import Meta

from calibrant.dsl.replayscm.generation.scms import window
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Column, Intervention, PackedPanels, World, pack_panels
from calibrant.solvers.formulas.catalogue import (
    EssentialFunctions,
    constant_sizes,
    essential_functions,
    synthesis_operators,
)
from calibrant.solvers.replayscm.space import LocalSpace, local_space, sized_local_space

# --- Coverage of an instance: local predecessor patterns, exposure, interventions, held-out balance (paper, B.2) ------
# A local pattern is an assignment to a bounded subset of the variables before V in the latent order, counted on rows in
# which V is no target. Subsets are of the window that V's parents were drawn from; they have three variables, or the
# whole window if it is smaller. The paper does not state which subsets are probed. Worlds are chosen by the first and
# the last subset of each window, as in the released code; coverage is reported over all subsets.
#
# Departure: the released code masks the record of seen patterns, one bit a pattern, with the number of variables of the
# subset instead of the number of patterns. So it counts patterns 0 to size - 1 only: a probe of three variables never
# exceeds 3/8. Here every pattern counts, so chosen worlds show more. A test repeats the fault, to compare with stored
# diagnostics.
# --- Local support: joint values of a variable's possible causes that the training rows show (paper, section B.2.3)


PROBE_SIZE = 3  # predecessors in a local pattern


class Probe(NamedTuple):
    """A variable and some of its possible causes."""

    variable: str
    causes: tuple[str, ...]

    @property
    def num_patterns(self) -> int:
        return 1 << len(self.causes)


PatternSets: TypeAlias = tuple[int, ...]
"""For each probe a bit set: bit p is set iff pattern p was shown; in pattern p, cause i has the value (p >> i) & 1."""


def all_probes(windows: Mapping[str, Sequence[str]]) -> tuple[Probe, ...]:
    """Return all subsets of PROBE_SIZE variables of each window; the whole window if it has fewer."""
    return tuple(
        Probe(variable, causes)
        for variable, predecessors in windows.items()
        for causes in combinations(predecessors, min(PROBE_SIZE, len(predecessors)))
    )


def outer_probes(windows: Mapping[str, Sequence[str]]) -> tuple[Probe, ...]:
    """Return the first and the last subset of each window: its farthest and its nearest variables."""
    chosen: dict[Probe, None] = {}
    for variable, predecessors in windows.items():
        size = min(PROBE_SIZE, len(predecessors))
        chosen[Probe(variable, tuple(predecessors[:size]))] = None
        chosen[Probe(variable, tuple(predecessors[-size:]))] = None
    return tuple(chosen)


def consecutive_probes(windows: Mapping[str, Sequence[str]]) -> tuple[Probe, ...]:
    """Return every run of PROBE_SIZE neighbours in each window; the whole window if it has fewer."""
    return tuple(
        Probe(variable, tuple(predecessors[start : start + PROBE_SIZE]))
        for variable, predecessors in windows.items()
        for start in range(max(1, len(predecessors) - PROBE_SIZE + 1))
    )


def rows_by_pattern(columns: Sequence[Column], every_row: Column) -> list[Column]:
    """Return a list whose entry p has, as bits, the rows in which the columns show pattern p."""
    groups = [every_row]
    for column in columns:
        groups = [rows & ~column for rows in groups] + [rows & column for rows in groups]
    return groups


def patterns(world: World, probes: Sequence[Probe]) -> PatternSets:
    """Return the patterns that one world shows; none for probes of its targets."""
    columns = world.by_variable
    every_row = (1 << world.num_rows) - 1
    bits_by_probe = []
    for variable, causes in probes:
        scored = 0 if variable in world.intervention.targets else every_row
        groups = rows_by_pattern([columns[u] for u in causes], scored)
        bits_by_probe.append(sum(1 << pattern for pattern, rows in enumerate(groups) if rows))
    return tuple(bits_by_probe)


def unite(pattern_sets: Iterable[PatternSets], num_probes: int) -> PatternSets:
    """Unite the patterns of several worlds."""
    union = [0] * num_probes
    for pattern_set in pattern_sets:
        union = [bits | new_bits for bits, new_bits in zip(union, pattern_set, strict=True)]
    return tuple(union)


def count_new(before: PatternSets, after: PatternSets) -> int:
    """Count the patterns of `after` that `before` lacks."""
    return sum((new_bits & ~bits).bit_count() for bits, new_bits in zip(before, after, strict=True))


class Support(NamedTuple):
    """Patterns that at least one world shows, and those that at least two show."""

    once: PatternSets
    twice: PatternSets

    @property
    def size(self) -> tuple[int, int]:
        """Numbers of patterns shown at least twice and at least once, which Extra Worlds maximises in this order."""
        return sum(map(int.bit_count, self.twice)), sum(map(int.bit_count, self.once))

    def after(self, world_patterns: PatternSets) -> Support:
        """Return the support after one more world that shows these patterns."""
        once = tuple(bits | new for bits, new in zip(self.once, world_patterns, strict=True))
        twice = tuple(
            bits | (earlier & new) for bits, earlier, new in zip(self.twice, self.once, world_patterns, strict=True)
        )
        return Support(once, twice)


def support(worlds: Iterable[World], probes: Sequence[Probe]) -> Support:
    """Return the support that worlds give to the patterns of these probes."""
    nothing = (0,) * len(probes)
    result = Support(nothing, nothing)
    for world in worlds:
        result = result.after(patterns(world, probes))
    return result


def coverage(worlds: Iterable[World], probes: Sequence[Probe]) -> float:
    """Return the share of patterns that are shown; 1 without probes."""
    united = unite((patterns(world, probes) for world in worlds), len(probes))
    total = sum(probe.num_patterns for probe in probes)
    return sum(bits.bit_count() for bits in united) / total if total else 1.0


# --- Local predecessor-pattern coverage of an instance, by the paper's definition (section B.2.3, Table F.2) ----------


@dataclass(frozen=True, slots=True)
class VariableCoverage:
    """Patterns of one endogenous variable: how many its scored training rows show, and how many there are."""

    variable: str
    num_seen: int
    total: int


@dataclass(frozen=True, slots=True)
class PatternCoverage:
    """Local coverage of an instance; `by_variable` in the latent order."""

    by_variable: tuple[VariableCoverage, ...]

    @property
    def num_seen(self) -> int:
        return sum(part.num_seen for part in self.by_variable)

    @property
    def total(self) -> int:
        return sum(part.total for part in self.by_variable)

    @property
    def share(self) -> Fraction:
        """Seen patterns over all patterns; 1 where there are none."""
        return Fraction(self.num_seen, self.total) if self.total else Fraction(1)


GOLD_EXAMPLE = '"sealed": {"gold": {"X3": "(and X1 X2)"}}'


def latent_scm(problem: Problem) -> Scm:
    """Return the gold SCM; `ValueError` if the problem has none."""
    if problem.sealed.gold is None:
        raise ValueError(f"problem '{problem.id}' has no gold SCM; add it to the item: {GOLD_EXAMPLE}")
    return problem.sealed.gold


def windows(problem: Problem) -> dict[str, tuple[str, ...]]:
    """Return each endogenous variable's parents and nearest latent predecessors; all if the file has no bound."""
    gold, order = latent_scm(problem), problem.sealed.latent_order
    bound, mechanisms = problem.sealed.max_predecessors, gold.mechanisms
    return {v: window(order, index, bound, mechanisms[v].mentioned) for index, v in enumerate(order) if v in mechanisms}


def probes(problem: Problem) -> tuple[Probe, ...]:
    """Return all local predecessor subsets of the instance."""
    return all_probes(windows(problem))


def seen_patterns(worlds: Iterable[World], listed: tuple[Probe, ...]) -> PatternSets:
    """Return, per probe, the patterns that some world shows."""
    return unite((patterns(world, listed) for world in worlds), len(listed))


def pattern_coverage(problem: Problem) -> PatternCoverage:
    """Return the coverage by the training worlds over all subsets: patterns shown by at least one world."""
    instance_probes = probes(problem)
    return _by_variable(problem, instance_probes, seen_patterns(problem.task.training.worlds, instance_probes))


def support_coverage(problem: Problem) -> PatternCoverage:
    """Return the coverage by which pools of the published strata agree with Table F.2: see docs/findings.md.

    Probes are runs of neighbours in a window; patterns count if at least two training worlds show them.
    """
    instance_probes = consecutive_probes(windows(problem))
    return _by_variable(problem, instance_probes, support(problem.task.training.worlds, instance_probes).twice)


def _by_variable(problem: Problem, listed: Sequence[Probe], covered: PatternSets) -> PatternCoverage:
    by_variable: dict[str, list[int]] = {variable: [0, 0] for variable in windows(problem)}
    for probe, bits in zip(listed, covered, strict=True):
        by_variable[probe.variable][0] += bits.bit_count()
        by_variable[probe.variable][1] += probe.num_patterns
    return PatternCoverage(tuple(VariableCoverage(v, *numbers) for v, numbers in by_variable.items()))


# --- Exposure, intervention coverage and held-out balance of an instance (paper, section B.2.3 and Table B.2) ---------


@dataclass(frozen=True, slots=True)
class Exposure:
    """Numbers of training worlds in which one endogenous variable is scored, and in which it is a target."""

    variable: Annotated[str, Meta(description="name of the variable")]
    scored_worlds: Annotated[int, Meta(description="number of worlds in which the variable is not a target")]
    scored_cells: Annotated[int, Meta(description="number of cells of the variable in these worlds")]
    intervened_worlds: Annotated[int, Meta(description="number of worlds in which the variable is a target")]


@dataclass(frozen=True, slots=True)
class InterventionMix:
    """Numbers of training worlds by mode."""

    none: Annotated[int, Meta(description="number of worlds without intervention")]
    hard_constant: Annotated[int, Meta(description="number of worlds whose targets are all constant")]
    hard_assigned: Annotated[int, Meta(description="number of worlds with a target set row by row")]
    by_targets: Annotated[dict[int, int], Meta(description="number of targets -> number of worlds")]


@dataclass(frozen=True, slots=True)
class HeldoutBalance:
    """Target novelty of the held-out worlds: 1 - the largest Jaccard similarity to a training world's target set."""

    smallest: Annotated[float, Meta(description="least novelty of a held-out world")]
    mean: Annotated[float, Meta(description="mean novelty of the held-out worlds")]
    largest: Annotated[float, Meta(description="greatest novelty of a held-out world")]


def exposure(problem: Problem) -> list[Exposure]:
    """Return one row per endogenous variable of gold, natural order."""
    gold = problem.sealed.gold
    if gold is None:
        raise ValueError("exposure needs to know which variables are endogenous")
    worlds = problem.task.training.worlds
    return [_exposure(variable, worlds) for variable in gold.endogenous]


def _exposure(variable: str, worlds: tuple[World, ...]) -> Exposure:
    free = [world for world in worlds if variable not in world.intervention.targets]
    return Exposure(variable, len(free), sum(world.num_rows for world in free), len(worlds) - len(free))


def intervention_mix(problem: Problem) -> InterventionMix:
    """Return modes and target counts of the training worlds."""
    worlds = problem.task.training.worlds
    modes = [world.intervention.mode for world in worlds]
    targets = [len(world.intervention.targets) for world in worlds]
    return InterventionMix(
        modes.count("none"),
        modes.count("hard_constant"),
        modes.count("hard_assigned"),
        {num_targets: targets.count(num_targets) for num_targets in sorted(set(targets))},
    )


def heldout_balance(problem: Problem) -> HeldoutBalance | None:
    """Return novelty of the held-out targets; None without held-out worlds."""
    training = problem.task.training.worlds
    novelties = [target_novelty(world.intervention, training) for world in problem.sealed.heldout.worlds]
    if not novelties:
        return None
    return HeldoutBalance(min(novelties), fsum(novelties) / len(novelties), max(novelties))


def target_novelty(intervention: Intervention, training: Iterable[World]) -> float:
    """Return 1 minus the largest Jaccard similarity of the targets to those of a training world."""
    similar = (_jaccard(intervention.targets, world.intervention.targets) for world in training)
    return 1 - max(similar, default=0.0)


def _jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    union = first | second
    return len(first & second) / len(union) if union else 1.0


# --- The paper's bounded searches for other mechanisms, each with the exact number that it bounds from below ----------
# Budgets are those of the paper's Table B.2: local alternatives with slack 2 up to size 8 and 50,000 states a size, the
# stronger audit with slack 4 up to size 10 and 80,000 states, coordinated pairs with slack 3 up to size 9 and 5
# alternatives upstream, shortcuts of at most 5 nodes. A state is a semantically distinct function; there is no limit of
# seconds, so results do not depend on the machine. The search for a mechanism is over the nearest latent predecessors,
# the window from which the generator draws parents (docs/semantics.md, "The published generator").
MAX_WINDOW = 5  # the largest window of any published stratum; functions over it are listed up to size 11
SHORTCUT_SIZE = 5  # most nodes of a shortcut


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """Bounds of one search."""

    slack: Annotated[int, Meta(description="formula size is at most min(gold size + slack, cap)")]
    cap: Annotated[int, Meta(description="formula size is at most min(gold size + slack, cap)")]
    states_per_size: Annotated[int, Meta(description="largest number of new functions of each size")]


@dataclass(frozen=True, slots=True)
class PairBudget(SearchBudget):
    """Bounds of the search for pairs."""

    upstream_alternatives: Annotated[
        int, Meta(description="largest number of alternatives upstream that are combined with those downstream")
    ]


LOCAL = SearchBudget(2, 8, 50_000)
STRONGER = SearchBudget(4, 10, 80_000)
PAIRS = PairBudget(3, 9, 50_000, 5)
SHORTCUTS = SearchBudget(-1, SHORTCUT_SIZE, LOCAL.states_per_size)


@dataclass(frozen=True, slots=True)
class LocalFinding:
    """Result of a bounded search for one variable, beside the exact number."""

    variable: Annotated[str, Meta(description="name of the variable")]
    size_bound: Annotated[int, Meta(description="largest size of a searched formula")]
    found: Annotated[
        int,
        Meta(
            description="number of distinct functions over the window, other than gold's, that fit and are small enough"
        ),
    ]
    budget_hit: Annotated[
        bool,
        Meta(description="whether some size has more functions than the budget, so that `found` is a lower bound"),
    ]
    exact: Annotated[
        str,
        Meta(
            description="number of all functions over the window, of any size, that fit and are not gold's; in decimal"
        ),
    ]


@dataclass(frozen=True, slots=True)
class PairFinding:
    """Coordinated alternatives along one gold edge. Fit is local, so a pair fits iff both of its halves do."""

    upstream: Annotated[str, Meta(description="the parent")]
    downstream: Annotated[str, Meta(description="the child")]
    found: Annotated[int, Meta(description="number of pairs of an alternative upstream and one downstream")]
    budget_hit: Annotated[
        bool,
        Meta(description="whether there are more functions or upstream alternatives than the budget"),
    ]
    exact: Annotated[str, Meta(description="number of all such pairs, within no budget; in decimal")]


@dataclass(frozen=True, slots=True)
class Shortcut:
    """The smallest function below the gold size that fits over the window."""

    variable: Annotated[str, Meta(description="name of the variable")]
    size_bound: Annotated[int, Meta(description="largest size of a searched formula")]
    size: Annotated[int | None, Meta(description="size of the smallest shortcut; None without one")]
    budget_hit: Annotated[bool, Meta(description="whether some size has more functions than the budget")]
    exact: Annotated[
        str, Meta(description="number of all functions over the window, of any size, that fit; in decimal")
    ]


@dataclass(frozen=True, slots=True)
class Budgets:
    """Budgets of the searches."""

    local: Annotated[SearchBudget, Meta(description="budget of `local`")] = LOCAL
    stronger: Annotated[SearchBudget, Meta(description="budget of `stronger`")] = STRONGER
    pairs: Annotated[PairBudget, Meta(description="budget of `pairs`")] = PAIRS
    shortcuts: Annotated[SearchBudget, Meta(description="budget of `shortcuts`")] = SHORTCUTS


@dataclass(frozen=True, slots=True)
class Bounded:
    """All searches of one instance."""

    local: Annotated[list[LocalFinding], Meta(description="results of the targeted search for local alternatives")]
    stronger: Annotated[list[LocalFinding], Meta(description="results of the stronger search after generation")]
    pairs: Annotated[list[PairFinding], Meta(description="pairs of alternatives along gold's edges")]
    shortcuts: Annotated[list[Shortcut], Meta(description="smallest functions below the size of gold's")]
    budgets: Annotated[Budgets, Meta(description="budget of each search")] = Budgets()


class BoundedAudit:
    """The searches of one instance. Reads gold and the latent order: this is for benchmark authors, not solvers."""

    def __init__(self, problem: Problem) -> None:
        if problem.sealed.gold is None:
            raise ValueError("bounded audits need the gold mechanisms")
        self.gold: Scm = problem.sealed.gold
        self.variables = problem.task.variables
        self._order = problem.sealed.latent_order
        bound = problem.sealed.max_predecessors
        self._window = MAX_WINDOW if bound is None else min(bound, MAX_WINDOW)
        self._packed: PackedPanels = pack_panels([problem.task.training])
        self._grammar = problem.task.grammar
        self._spaces = {v: self._space(v) for v in self.gold.endogenous}

    def window(self, variable: str) -> tuple[str, ...]:
        """Return gold's parents and the nearest latent predecessors, farthest first."""
        parents = self.gold.mechanisms[variable].mentioned
        return window(self._order, self._order.index(variable), self._window, parents)

    def everything(self, *, shortcut_floor: int = 3) -> Bounded:
        """Return the results of every search, with its budget; `shortcut_floor`: `floor` of `shortcuts`."""
        return Bounded(
            local=self.local_alternatives(LOCAL),
            stronger=self.local_alternatives(STRONGER),
            pairs=self.coordinated_pairs(),
            shortcuts=self.shortcuts(floor=shortcut_floor),
        )

    def local_alternatives(self, budget: SearchBudget) -> list[LocalFinding]:
        """Return the targeted search (LOCAL) or the post-generation one (STRONGER), for every endogenous variable."""
        return [self._local(variable, budget) for variable in self.gold.endogenous]

    def coordinated_pairs(self) -> list[PairFinding]:
        """Return pairs of alternatives along gold's functional edges between endogenous variables."""
        local = {v: self._local(v, PAIRS) for v in self.gold.endogenous}
        edges = sorted(edge for edge in self.gold.functional_edges if edge[0] in local)
        return [_pair(local[u], local[v]) for u, v in edges]

    def shortcuts(self, *, floor: int = 3) -> list[Shortcut]:
        """Return the smallest shortcut of each variable, of at most min(5, gold size - 1) nodes.

        Operators have two or three arguments. Variables with a limit below `floor` are left out, as in the generator.
        """
        shortcuts = []
        for variable in self.gold.endogenous:
            bound = min(SHORTCUT_SIZE, self.gold.mechanisms[variable].size - 1)
            if bound >= floor:
                shortcuts.append(self._shortcut(variable, bound))
        return shortcuts

    def _shortcut(self, variable: str, bound: int) -> Shortcut:
        budget_hit = self._exceeds_limit(
            self._functions(variable), len(self.window(variable)), bound, SHORTCUTS.states_per_size
        )
        exact = sum(self._spaces[variable].counts.values())
        return Shortcut(variable, bound, self._smallest(variable, bound), budget_hit, str(exact))

    def _space(self, variable: str) -> LocalSpace:
        window = sorted(self.variables.index(u) for u in self.window(variable))
        return local_space(self._packed, self.variables.index(variable), window, len(window))

    def _functions(self, variable: str) -> EssentialFunctions:
        return essential_functions(max(1, len(self.window(variable))), synthesis_operators(self._grammar))

    def _size_limited(self, variable: str, bound: int) -> LocalSpace:
        functions = self._functions(variable)
        return sized_local_space(self._spaces[variable], functions, constant_sizes(functions, self._grammar), bound)

    def _smallest(self, variable: str, bound: int) -> int | None:
        size_limited = self._size_limited(variable, bound)
        sizes = [
            size
            for mask, by_size in size_limited.by_size.items()
            for size in by_size
            if not (mask.bit_count() == 4 and size == 5)  # one operator of four arguments, which is no shortcut
        ]
        return min(sizes, default=None)

    def _local(self, variable: str, budget: SearchBudget) -> LocalFinding:
        mechanism = self.gold.mechanisms[variable]
        bound = min(mechanism.size + budget.slack, budget.cap)
        functions, space = self._functions(variable), self._spaces[variable]
        size_limited = self._size_limited(variable, bound)
        num_found = sum(size_limited.counts.values())
        fits = self._gold_fits(variable)
        return LocalFinding(
            variable,
            bound,
            num_found - (fits and self._gold_size(variable) <= bound),
            self._exceeds_limit(functions, len(self.window(variable)), bound, budget.states_per_size),
            str(sum(space.counts.values()) - fits),
        )

    def _gold_fits(self, variable: str) -> bool:
        """Return whether gold's parents lie in the window and its function agrees with the rows."""
        local = self.gold.local_functions[variable]
        table = self._spaces[variable].tables.get(sum(1 << self.variables.index(u) for u in local.parents))
        return table is not None and (local.table.bits ^ table.value) & table.care == 0

    def _gold_size(self, variable: str) -> float:
        """Return the size of gold's least formula, which its text may exceed; infinite if not listed."""
        functions, local = self._functions(variable), self.gold.local_functions[variable]
        if not local.parents:
            return constant_sizes(functions, self._grammar).get(int(bool(local.table.bits)), inf)
        start, end = functions.starts[local.table.num_vars], functions.ends[local.table.num_vars]
        sizes = functions.sizes[start:end][functions.bits[start:end] == np.uint64(local.table.bits)]
        return min(sizes.tolist(), default=inf)

    def _exceeds_limit(self, functions: EssentialFunctions, num_vars: int, bound: int, limit: int) -> bool:
        """Return whether some size up to the bound has more distinct functions of the window than the limit."""
        totals = np.zeros(bound + 1, np.int64)
        for j in range(1, num_vars + 1):
            sizes = functions.sizes[functions.starts[j] : functions.ends[j]]
            totals += comb(num_vars, j) * np.bincount(sizes[sizes <= bound], minlength=bound + 1)
        return bool((totals > limit).any())


def _pair(upstream: LocalFinding, downstream: LocalFinding) -> PairFinding:
    num_upstream = min(upstream.found, PAIRS.upstream_alternatives)
    hit = upstream.budget_hit or downstream.budget_hit or upstream.found > num_upstream
    exact = int(upstream.exact) * int(downstream.exact)
    return PairFinding(upstream.variable, downstream.variable, num_upstream * downstream.found, hit, str(exact))
