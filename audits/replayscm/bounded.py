"""The paper's bounded searches for other mechanisms, and next to each the exact number it is a bound for.

Budgets are those of the paper's Table B.2: local alternatives with slack 2 up to size 8 and 50,000 states a size, the
stronger audit with slack 4 up to size 10 and 80,000 states, coordinated pairs with slack 3 up to size 9 and 5
alternatives upstream, shortcuts of at most 5 nodes. A state is a semantically distinct function; seconds are not
counted, so the same budget means the same on every machine. A mechanism's search goes over the nearest latent
predecessors, the window from which the generator draws parents (docs/semantics.md, "The published generator").
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, inf
from typing import Annotated

import numpy as np
from msgspec import Meta

from calibrant.dsl.replayscm.generation.scms import window
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import PackedPanels, pack_panels
from calibrant.solvers.formulas.catalogue import (
    EssentialFunctions,
    constant_sizes,
    essential_functions,
    synthesis_operators,
)
from calibrant.solvers.replayscm.space import LocalSpace, local_space, sized_local_space

MAX_WINDOW = 5  # the largest window of any published stratum; functions over it are listed up to size 11
SHORTCUT_SIZE = 5


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """Bounds of one search."""

    slack: Annotated[int, Meta(description="formula size is at most min(gold size + slack, cap)")]
    cap: Annotated[int, Meta(description="formula size is at most min(gold size + slack, cap)")]
    states_per_size: Annotated[int, Meta(description="so many new functions a size")]


@dataclass(frozen=True, slots=True)
class PairBudget(SearchBudget):
    """Bounds of the search for pairs."""

    upstream_alternatives: Annotated[int, Meta(description="how many are combined with those downstream")]


LOCAL = SearchBudget(2, 8, 50_000)
STRONGER = SearchBudget(4, 10, 80_000)
PAIRS = PairBudget(3, 9, 50_000, 5)
SHORTCUTS = SearchBudget(-1, SHORTCUT_SIZE, LOCAL.states_per_size)


@dataclass(frozen=True, slots=True)
class LocalFinding:
    """Result of a bounded search for one variable, beside the exact number."""

    variable: Annotated[str, Meta(description="name of the variable")]
    size_bound: Annotated[int, Meta(description="largest formula that is looked at")]
    found: Annotated[
        int,
        Meta(
            description="semantically distinct functions over the window, other than gold's, that fit and are "
            "small enough"
        ),
    ]
    budget_hit: Annotated[
        bool,
        Meta(description="whether some size has more functions than the search may hold, so `found` is a lower bound"),
    ]
    exact: Annotated[
        str, Meta(description="all functions over the window, of any size, that fit and are not gold's; in decimal")
    ]


@dataclass(frozen=True, slots=True)
class PairFinding:
    """Coordinated alternatives along one gold edge. Fit is local, so a pair fits iff both of its halves do."""

    upstream: Annotated[str, Meta(description="the two ends of the edge")]
    downstream: Annotated[str, Meta(description="the two ends of the edge")]
    found: Annotated[int, Meta(description="pairs that are no pair of gold's own functions")]
    budget_hit: Annotated[
        bool,
        Meta(description="whether more functions or more upstream alternatives were there than the search may hold"),
    ]
    exact: Annotated[str, Meta(description="all pairs that there are; in decimal")]


@dataclass(frozen=True, slots=True)
class Shortcut:
    """The smallest function below the gold size that fits over the window."""

    variable: Annotated[str, Meta(description="name of the variable")]
    size_bound: Annotated[int, Meta(description="largest formula that is looked at")]
    size: Annotated[int | None, Meta(description="of it; None if there is none")]
    budget_hit: Annotated[bool, Meta(description="as for local alternatives")]
    exact: Annotated[str, Meta(description="all functions over the window, of any size, that fit; in decimal")]


@dataclass(frozen=True, slots=True)
class Budgets:
    """Budgets of the searches."""

    local: Annotated[SearchBudget, Meta(description="the search of that name")] = LOCAL
    stronger: Annotated[SearchBudget, Meta(description="the search of that name")] = STRONGER
    pairs: Annotated[PairBudget, Meta(description="the search of that name")] = PAIRS
    shortcuts: Annotated[SearchBudget, Meta(description="the search of that name")] = SHORTCUTS


@dataclass(frozen=True, slots=True)
class Bounded:
    """All searches of one instance."""

    local: Annotated[list[LocalFinding], Meta(description="the targeted search")]
    stronger: Annotated[list[LocalFinding], Meta(description="the one after generation")]
    pairs: Annotated[list[PairFinding], Meta(description="along gold's edges")]
    shortcuts: Annotated[list[Shortcut], Meta(description="functions that are smaller than gold's")]
    budgets: Annotated[Budgets, Meta(description="what each search was allowed")] = Budgets()


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
        """Return every search with its budget; shortcut_floor: of `shortcuts`."""
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
        """Return the shortcut class: at most min(5, gold size - 1) nodes, operators of two or three arguments.

        Variables whose bound is below `floor` are left out, as the generator does.
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
            if not (mask.bit_count() == 4 and size == 5)  # four arguments under one operator: more than three
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
