"""Version space: every SCM of a class that fits the training worlds, counted and sampled without enumeration.

C(S) is the number of functions over a parent set S that agree with the rows: 2 to the number of unobserved rows of the
table, or 0 if S does not determine the variable. N(S), the number of those that depend on all of S, follows by Moebius
inversion (inclusion and exclusion over subsets) without enumerating a function: N(S) = sum over subsets T of S of
(-1)**|S - T| C(T). With a cap on formula size, functions are enumerated from the complete list by size.

Two SCMs are the same member iff they have the same roots and the same local functions (functional parents and truth
tables). `ModelClass` names the class of a claim: functional parents <= k, optionally formula size <= s for every
mechanism, and the disclosure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import PartialTable, TruthTable, num_rows
from calibrant.dsl.knowledge import ArcFormula, CheckedKnowledge
from calibrant.dsl.pictures import Picture, Pictured
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.world import PackedPanels, Panel, World, pack_panels
from calibrant.solvers.acyclic.count import Bounds, Weights, bounds, total
from calibrant.solvers.acyclic.draws import Draws, Marginals
from calibrant.solvers.acyclic.elimination import is_orderable, minimal_sets
from calibrant.solvers.acyclic.estimate import PARTICLES, RUNS, Estimate, add_estimates, estimate
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.formulas.catalogue import (
    COMPLETE,
    EssentialFunctions,
    constant_sizes,
    essential_functions,
    expresses_everything,
    require_literals_alone,
    synthesis_operators,
)
from calibrant.solvers.outcome import BudgetSpent, Found, OutOfBudget
from calibrant.solvers.replayscm._kernels_parents import list_tables
from calibrant.solvers.replayscm._kernels_worlds import PREFIX_ROWS, count_essential, fill_histograms, find_subsets
from calibrant.solvers.replayscm.assumptions import admitted_sets, count_monotone, is_directed, relation_cases
from calibrant.solvers.replayscm.roots_and_parents import list_root_sets, nested_variables

# --- Index of functions that depend on all of their variables, for look-up by observed rows ---------------------------
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


class FunctionIndex(NamedTuple):
    """Functions of solvers.formulas.catalogue in the kernels' order.

    bits: [f] uint64 tables, by number of variables, then bits; sizes: [f] least sizes
    prefixes: [k + 1, 2**PREFIX_ROWS + 1] where the functions of j variables with each prefix start; a prefix is the
        highest PREFIX_ROWS rows of the table (all rows if there are fewer)
    largest: largest listed size
    """

    bits: U64
    sizes: npt.NDArray[np.uint8]
    prefixes: I64
    largest: int


NOT_LISTED = FunctionIndex(np.empty(0, np.uint64), np.empty(0, np.uint8), np.empty((0, 0), np.int64), 0)


@cache
def function_index(functions: EssentialFunctions, max_size: int | None = None) -> FunctionIndex:
    """Return the index of a list of functions; built once per process for each list and size.

    max_size: largest size of an indexed function; None for all
    """
    bits, sizes = [], []
    prefixes = np.zeros((len(functions.ends), (1 << PREFIX_ROWS) + 1), np.int64)
    start = 0
    for j in range(1, len(functions.ends)):
        span = slice(functions.starts[j], functions.ends[j])
        bits_of_j, sizes_of_j = functions.bits[span], functions.sizes[span]
        if max_size is not None:
            is_small = sizes_of_j <= max_size
            bits_of_j, sizes_of_j = bits_of_j[is_small], sizes_of_j[is_small]
        # ascending tables keep the functions of a prefix, which are the high bits, together
        order = np.argsort(bits_of_j, kind="stable")  # a merge: the tables of each size are sorted already
        bits.append(bits_of_j[order])
        sizes.append(sizes_of_j[order])
        shift = np.uint64(max(0, num_rows(j) - PREFIX_ROWS))
        counts = np.bincount((bits[-1] >> shift).astype(np.int64), minlength=1 << PREFIX_ROWS)
        prefixes[j, 0] = start
        prefixes[j, 1:] = start + np.cumsum(counts)
        start += len(order)
    return FunctionIndex(
        np.concatenate(bits),
        np.concatenate(sizes),
        prefixes,
        int(functions.sizes.max()) if max_size is None else max_size,
    )


# --- Number of mechanisms of each variable: functions of exactly given parents that agree with all scored rows --------


@dataclass(frozen=True)
class LocalSpace:
    """Mechanisms of one variable by functional parents: the parent sets that determine it, fewest parents first.

    masks: [e] parent sets; cares, values: [e] partial table over each (dsl.formulas.table)
    num_functions: [e] agreeing functions that depend on all of the set, within the size cap if there is one
    histograms: [e, size + 1] the same by least size; None without a size cap
    """

    masks: I64
    cares: U64
    values: U64
    num_functions: U64
    histograms: I64 | None = None

    @cached_property
    def tables(self) -> Mapping[Mask, PartialTable]:
        """Partial table of each parent set that determines the variable."""
        rows = zip(self.masks.tolist(), self.cares.tolist(), self.values.tolist(), strict=True)
        return {mask: PartialTable(mask.bit_count(), care, value) for mask, care, value in rows}

    def table(self, mask: Mask) -> PartialTable:
        """Return the partial table of a parent set that determines the variable."""
        index = self._index_of[mask]
        return PartialTable(mask.bit_count(), int(self.cares[index]), int(self.values[index]))

    @cached_property
    def _index_of(self) -> Mapping[Mask, int]:
        return {mask: index for index, mask in enumerate(self.masks.tolist())}

    @cached_property
    def counts(self) -> Mapping[Mask, int]:
        """Number of agreeing functions that depend on all of a parent set, for sets with any."""
        return {
            mask: count for mask, count in zip(self.masks.tolist(), self.num_functions.tolist(), strict=True) if count
        }

    @cached_property
    def by_size(self) -> Mapping[Mask, Mapping[int, int]]:
        """Parent set -> least size -> number of functions; empty without a size cap."""
        if self.histograms is None:
            return {}
        nonzero = np.flatnonzero(self.num_functions)
        rows = zip(self.masks[nonzero].tolist(), self.histograms[nonzero].tolist(), strict=True)
        return {mask: {size: count for size, count in enumerate(row) if count} for mask, row in rows}

    def within(self, max_parents: int) -> LocalSpace:
        """Return the part of at most `max_parents` parents."""
        end = int(np.searchsorted(np.bitwise_count(self.masks), max_parents, side="right"))
        histograms = None if self.histograms is None else self.histograms[:end]
        return LocalSpace(self.masks[:end], self.cares[:end], self.values[:end], self.num_functions[:end], histograms)

    def under(self, assumed: CheckedKnowledge, variable: int) -> LocalSpace:
        """Return the part of a space that an assumption admits; requires a space without histograms.

        `num_functions` reflects assumed directions, `tables` do not. `BudgetSpent` as in `count_monotone`.
        """
        num_functions = self.num_functions
        if is_directed(assumed, variable):
            directions = assumed.rising[variable], assumed.falling[variable]
            num_functions = count_monotone(self.masks, self.cares, self.values, *directions)
        admitted = admitted_sets(self.masks, assumed, variable)
        return LocalSpace(self.masks[admitted], self.cares[admitted], self.values[admitted], num_functions[admitted])

    def beyond(self, start: int) -> LocalSpace:
        """Return the parent sets from index `start` on, without histograms."""
        return LocalSpace(self.masks[start:], self.cares[start:], self.values[start:], self.num_functions[start:])


def local_space(packed: PackedPanels, target: int, candidates: Sequence[int], max_parents: int) -> LocalSpace:
    """Count all mechanisms of at most `max_parents` functional parents among the candidates."""
    # ascending candidates: variable i of a table is the i-th smallest parent
    masks, cares, values = _tables(packed, target, sorted(candidates), max_parents)
    below = np.empty((len(masks), max_parents), np.int64)
    find_subsets(masks, np.argsort(masks), below)
    num_functions = np.empty(len(masks), np.uint64)
    count_essential(masks, cares, values, below, 0, len(masks), num_functions)
    return LocalSpace(masks, cares, values, num_functions)


def size_counts(
    space: LocalSpace, functions: EssentialFunctions, constants: Mapping[int, int], max_size: int | None = None
) -> I64:
    """Count the listed functions of each parent set by least size; shape [e, size + 1].

    constants: constant (0 or 1) -> size of its formula, if it has one; max_size: largest size counted, None for all
    """
    index = function_index(functions, max_size)
    histograms = np.zeros((len(space.masks), max(index.largest, *constants.values(), 0) + 1), np.int64)
    fill_histograms(space.masks, space.cares, space.values, index.bits, index.sizes, index.prefixes, histograms)
    # sets come by number of parents, the empty one first; its constants are in no index of functions
    if len(space.masks) and not space.masks[0]:
        no_parents = space.tables[0]
        for size, count in Counter(s for bit, s in constants.items() if no_parents.agrees(TruthTable(0, bit))).items():
            histograms[0, size] = count
    return histograms if max_size is None else histograms[:, : max_size + 1]


def limit_size(space: LocalSpace, histograms: I64, functions: EssentialFunctions, max_size: int) -> LocalSpace:
    """Return the part of a space whose formulas have at most `max_size` nodes; histograms: from `size_counts`.

    `ValueError` if not all functions of that size are listed for some number of parents.
    """
    for num_parents in np.unique(np.bitwise_count(space.masks[space.num_functions > 0])).tolist():
        # a count up to a cap is exact only if all functions up to it are listed
        complete_size = functions.complete_to[num_parents]
        if num_parents and max_size > complete_size != COMPLETE:
            raise ValueError(
                f"functions of {num_parents} variables are listed up to size {complete_size}, not {max_size}"
            )
    within = histograms[:, : max_size + 1]
    return LocalSpace(space.masks, space.cares, space.values, within.sum(1).astype(np.uint64), within)


def sized_local_space(
    space: LocalSpace, functions: EssentialFunctions, constants: Mapping[int, int], max_size: int
) -> LocalSpace:
    """Count the part of a space whose formulas have at most `max_size` nodes, by least size."""
    return limit_size(space, size_counts(space, functions, constants), functions, max_size)


def _tables(packed: PackedPanels, target: int, candidates: Sequence[int], max_parents: int) -> tuple[I64, U64, U64]:
    """Return the parent sets that determine a variable, by number of parents, with care and value of their tables."""
    # the kernel does not check the length of its outputs: all sets fit, 163 for 8 candidates and k = 4
    limit = sum(comb(len(candidates), j) for j in range(max_parents + 1))
    masks, cares, values = np.empty(limit, np.int64), np.empty(limit, np.uint64), np.empty(limit, np.uint64)
    parts = np.empty((1 << max_parents, packed.observed.shape[1]), np.uint64)
    candidate_array = np.array(candidates, np.int64)
    count = list_tables(
        packed.observed, packed.scored[target], target, candidate_array, max_parents, parts, masks, cares, values
    )
    return masks[:count], cares[:count], values[:count]


MAX_PARENTS = 6  # tables of 2**6 rows fill one word


@dataclass(frozen=True, slots=True)
class ModelClass:
    """Hypothesis class of a count.

    max_parents: largest number of functional parents of a mechanism
    max_size: largest formula size of a mechanism; None means any function, whatever its formula
    nested_roots: in Hidden-roots, only root sets whose columns are nested over shared units
        (solvers.replayscm.roots_and_parents)
    """

    max_parents: int = 4
    max_size: int | None = None
    nested_roots: bool = False

    def describe(self, task: Task) -> str:
        """Describe the class in words, for reports and certificates."""
        size = "any formula size" if self.max_size is None else f"formula size <= {self.max_size}"
        if self.max_size is None and not expresses_everything(task.grammar):
            size = f"any function, whether or not {' '.join(task.grammar.operators)} can express it"
        if self.max_size is not None and "if" in task.grammar.operators:  # no catalogue has formulas with `if`
            size += f" over {' '.join(synthesis_operators(task.grammar))}"
        nested = ", roots with nested columns" if self.nested_roots and task.disclosure.roots is None else ""
        assumed = "" if task.assumption is None else f", {task.assumption.in_words}"
        return f"functional parents <= {self.max_parents}, {size}, {task.disclosure.label}{nested}{assumed}"


class VersionSpace(Pictured):
    """All members of a class that fit a task's training worlds. Counts are exact Python integers."""

    def __init__(self, task: Task, model_class: ModelClass, *, terms: int | None = None) -> None:
        """Prepare counting; `terms` limits each sum over acyclic assignments (solvers.acyclic.count.Weights)."""
        if not 1 <= model_class.max_parents <= MAX_PARENTS:
            raise ValueError(f"max_parents is {model_class.max_parents}; 1 to {MAX_PARENTS} are supported")
        if model_class.max_size is not None:
            require_literals_alone(task.grammar)
        self.task = task
        self.model_class = model_class
        self.terms = terms
        self.index = {variable: i for i, variable in enumerate(task.variables)}
        self._spaces: dict[int, LocalSpace] = {}
        self._uncapped: dict[int, LocalSpace] = {}
        self._sizes: dict[int, I64] = {}
        self._wider: VersionSpace | None = None

    def picture(self) -> Picture:
        """Return the class and the evidence that its members fit; `count` counts them."""
        words = self.model_class.describe(self.task)
        return replace(self.task.picture(), title="Version space: SCMs that fit these rows", text=f"class: {words}")

    def __repr__(self) -> str:
        return f"<VersionSpace: {self.model_class.describe(self.task)}>"

    @cached_property
    def root_sets(self) -> tuple[tuple[str, ...], ...]:
        """Root sets of the class: the disclosed one, or every hypothesis; `BudgetSpent` for too many.

        Under an assumption, sets with a variable that it requires to have parents are left out.
        """
        candidates = nested_variables(self.task) if self.model_class.nested_roots else None
        root_sets = list_root_sets(self.task, candidates)
        if self.assumed is not None:
            required = self.assumed.required
            root_sets = [roots for roots in root_sets if not any(required[self.index[root]] for root in roots)]
        return tuple(root_sets)

    @cached_property
    def assumed(self) -> CheckedKnowledge | None:
        """The assumption of the task over its variables; `CalibrantError` if its statements conflict."""
        return None if self.task.assumption is None else self.task.assumption.check(self.task.variables)

    @property
    def _relations(self) -> tuple[ArcFormula, ...]:
        return () if self.assumed is None else self.assumed.relations

    @cached_property
    def _packed(self) -> PackedPanels:
        return pack_panels([self.task.training])

    @cached_property
    def functions(self) -> EssentialFunctions:
        """Functions by size, from which a size-capped class is enumerated."""
        return essential_functions(self.model_class.max_parents, synthesis_operators(self.task.grammar))

    @property
    def listed(self) -> FunctionIndex:
        """Index of `functions`, or of a superset."""
        return self._wider.listed if self._wider is not None else function_index(self.functions)

    def local(self, variable: int) -> LocalSpace:
        """Return the mechanisms of one variable by functional parents, before acyclicity."""
        if variable not in self._spaces:
            cap = self.model_class.max_size
            if cap is not None:
                space = limit_size(self._any_size(variable), self.size_counts(variable), self.functions, cap)
            else:
                space = self._any_size(variable)
            self._spaces[variable] = space
        return self._spaces[variable]

    def _any_size(self, variable: int) -> LocalSpace:
        """Return the mechanisms of one variable without a cap on formula size."""
        if self._wider is not None:
            return self._wider._any_size(variable).within(self.model_class.max_parents)
        if variable not in self._uncapped:
            candidates = [self.index[u] for u in self.task.disclosure.admissible_parents(self.task.variables[variable])]
            max_parents = min(self.model_class.max_parents, len(candidates))
            space = local_space(self._packed, variable, candidates, max_parents)
            if self.assumed is not None:
                space = space.under(self.assumed, variable)
            self._uncapped[variable] = space
        return self._uncapped[variable]

    def size_counts(self, variable: int) -> I64:
        """Count the listed functions of each parent set by least size, for all sets without a cap; [e, size + 1]."""
        return self._size_counts(variable, self.model_class.max_parents)

    def _size_counts(self, variable: int, max_parents: int) -> I64:
        """Return `size_counts` of the sets of at most `max_parents` parents; counts are cached."""
        if self._wider is not None:
            return self._wider._size_counts(variable, max_parents)
        # sets come by number of parents: those of a narrower class are a prefix, and only new sets are counted
        sets = self._any_size(variable).within(max_parents)
        counts = self._sizes.get(variable)
        num_counted = 0 if counts is None else len(counts)
        if num_counted < len(sets.masks) or counts is None:
            constants = constant_sizes(self.functions, self.task.grammar)
            new_counts = size_counts(sets.beyond(num_counted), self.functions, constants)
            counts = new_counts if counts is None else np.concatenate([counts, new_counts])
            self._sizes[variable] = counts
        return counts[: len(sets.masks)]

    def weights(self, roots: Sequence[str], local: Mapping[int, Mapping[Mask, int]] | None = None) -> Weights:
        """Return the weights of all parent sets under one root set: counts, or those of `local` instead."""
        endogenous = [self.index[v] for v in self.task.variables if v not in roots]
        options = {v: local[v] if local and v in local else self.local(v).counts for v in endogenous}
        return Weights(options, sum(1 << self.index[root] for root in roots), terms=self.terms)

    @cached_property
    def counts_by_roots(self) -> dict[tuple[str, ...], int]:
        """Number of members with each root set; only root sets with at least one."""
        counts = {roots: self._count_under(roots) for roots in self._feasible_root_sets}
        return {roots: count for roots, count in counts.items() if count}

    def _count_under(self, roots: tuple[str, ...]) -> int:
        """Return the number of members with these roots."""
        if not self._relations:
            return total(self.weights(roots))
        return sum(total(self.weights(roots, case)) for case in self._cases(roots))

    def _cases(self, roots: tuple[str, ...]) -> Iterator[dict[int, dict[Mask, int]]]:
        """Yield the cases of the assumption's relations under a root set; `BudgetSpent` for too many."""
        options = {self.index[v]: self.local(self.index[v]).counts for v in self.task.variables if v not in roots}
        return relation_cases(self._relations, self.index, options)

    def has_member(self) -> bool:
        """Return whether some SCM of the class fits; quicker than counting. `BudgetSpent` for too many root sets."""
        for roots in self.root_sets:
            mask = sum(1 << self.index[root] for root in roots)
            local = {i: self.local(i).counts for v, i in self.index.items() if v not in roots}
            for case in self._cases(roots) if self._relations else [{}]:
                sets = {v: np.array(list(case.get(v, counts)), np.int64) for v, counts in local.items()}
                if is_orderable({v: minimal_sets(masks) for v, masks in sets.items()}, mask):
                    return True
        return False

    @property
    def _feasible_root_sets(self) -> Iterator[tuple[str, ...]]:
        """Root sets under which all other variables have mechanisms and can be ordered."""
        if self.task.disclosure.roots is not None:
            return iter(self.root_sets)
        # whether variables can be ordered depends on minimal parent sets alone; of up to 10,000 root sets only feasible
        # ones are summed over DAGs
        minimal = {i: minimal_sets(np.array(list(self.local(i).counts), np.int64)) for i in self.index.values()}
        return (roots for roots in self.root_sets if is_orderable(minimal, sum(1 << self.index[v] for v in roots)))

    @property
    def count(self) -> int:
        """Number of semantically distinct SCMs of the class that fit all training worlds; `BudgetSpent` if too many."""
        return sum(self.counts_by_roots.values())

    def counted(self) -> Found[int] | OutOfBudget:
        """Return the count, or certified bounds."""
        try:
            return Found(self.count)
        except BudgetSpent as spent:
            certified = self.bounds
            return OutOfBudget(f"{spent}; {certified} members", certified.lower)

    @property
    def count_method(self) -> str:
        """Methods of the count, each with the largest number of variables of a component."""
        used = {
            (len(c.endogenous), c.method)
            for roots in self._feasible_root_sets
            for c in self.weights(roots).components()
        }
        largest = {method: max(size for size, other_method in used if other_method == method) for _, method in used}
        return "; ".join(
            f"{method}, up to {num_variables} variables" for method, num_variables in sorted(largest.items())
        )

    def estimate(self, seed: int, *, particles: int = PARTICLES, runs: int = RUNS) -> Estimate:
        """Estimate the count without bias if it is out of budget; else return the count itself.

        particles, runs: effort, see solvers.acyclic.estimate; `BudgetSpent` if no sampled order is complete
        """
        seeds = np.random.SeedSequence(seed)
        parts = [
            estimate(self.weights(r), seeds.spawn(1)[0], particles=particles, runs=runs)
            for r in self._feasible_root_sets
        ]
        return add_estimates(parts)

    @property
    def bounds(self) -> Bounds:
        """Certified bounds of the count; both are the count if it is within the budget."""
        parts = [bounds(self.weights(roots)) for roots in self._feasible_root_sets]
        lower = (
            0 if self._relations else sum(part.lower for part in parts)
        )  # relations exclude members that the sum has
        return Bounds(lower, sum(part.upper for part in parts))

    def with_worlds(self, worlds: Iterable[World]) -> VersionSpace:
        """Return the version space after more evidence: the members that also fit these worlds exactly."""
        added = tuple(worlds)
        if not added:
            return self
        training = Panel(self.task.training.variables, (*self.task.training.worlds, *added))
        return VersionSpace(replace(self.task, training=training), self.model_class, terms=self.terms)

    def within(self, max_parents: int, max_size: int | None = None) -> VersionSpace:
        """Return the members whose mechanisms have at most `max_parents` parents and formulas of at most `max_size`.

        Counts are shared. `ValueError` for more parents than this class has, or if it has a size cap.
        """
        if self.model_class.max_size is not None:
            raise ValueError("the class has a size cap already")
        if max_parents > self.model_class.max_parents:
            raise ValueError(f"the class has at most {self.model_class.max_parents} parents, not {max_parents}")
        narrower = replace(self.model_class, max_parents=max_parents, max_size=max_size)
        space = VersionSpace(self.task, narrower, terms=self.terms)
        space._wider = self
        return space

    def given_roots(self, roots: Sequence[str]) -> VersionSpace:
        """Return the members with these roots, for a task with hidden roots; counts are shared."""
        disclosure = self.task.disclosure.given_roots(roots)
        space = VersionSpace(replace(self.task, disclosure=disclosure), self.model_class, terms=self.terms)
        space._spaces, space._wider = self._spaces, self  # admissible parents do not depend on the root set
        return space

    def mass(self, *, size_penalty: int | None = None) -> int:
        """Return the total weight of all members, weighted as for sampling: their number unless there is a penalty.

        Weights are scaled to integers by the same factor for every version space of the same class and variables.
        """
        return self.count if size_penalty is None else self._mass(self.counts_by_roots, size_penalty)

    def _mass(self, root_sets: Iterable[tuple[str, ...]], size_penalty: int | None) -> int:
        local = self._penalised_weights(size_penalty)
        return sum(total(self.weights(roots, local)) for roots in root_sets)

    def agreement(self, worlds: Iterable[World], *, size_penalty: int | None = None) -> Fraction:
        """Return the exact share of members, weighted as for sampling, that replay the given worlds exactly.

        A row is replayed exactly iff every mechanism agrees with it locally, so the agreeing members are the version
        space of the extended evidence under the same root sets. `ZeroDivisionError` for an empty space.
        """
        return self.share(self.with_worlds(worlds), size_penalty=size_penalty)

    def share(self, after: VersionSpace, *, size_penalty: int | None = None) -> Fraction:
        """Return the exact share of members, weighted as for sampling, that remain in `after`, with worlds added."""
        # root sets of this space: new worlds can narrow the nested ones of `after`, which would change the class
        return Fraction(after._mass(self.counts_by_roots, size_penalty), self.mass(size_penalty=size_penalty))

    def parent_set_marginals(self, variable: str) -> dict[tuple[str, ...], Fraction]:
        """Return the share of members with each functional parent set; where the variable is a root it has none."""
        i, members_with = self.index[variable], Counter[Mask]()
        for roots in self.counts_by_roots:
            if variable not in roots:
                members_with.update(self._marginals(roots).of(i))
        masks = (mask for mask in self.local(i).counts if members_with[mask])
        return {self.names(mask): Fraction(members_with[mask], self.count) for mask in masks}

    def _marginals(self, roots: tuple[str, ...]) -> Marginals:
        if roots not in self._marginals_by_roots:
            self._marginals_by_roots[roots] = Marginals(self.weights(roots))
        return self._marginals_by_roots[roots]

    @cached_property
    def _marginals_by_roots(self) -> dict[tuple[str, ...], Marginals]:
        return {}

    def names(self, mask: Mask) -> tuple[str, ...]:
        return tuple(v for v, i in self.index.items() if mask >> i & 1)

    def draws(self, roots: tuple[str, ...], size_penalty: int | None) -> Draws:
        """Return the sampler of parent sets under a root set; cached, since all samples use its sums."""
        key = roots, size_penalty
        if key not in self._draws:
            self._draws[key] = Draws(self.weights(roots, self._penalised_weights(size_penalty)))
        return self._draws[key]

    @cached_property
    def _draws(self) -> dict[tuple[tuple[str, ...], int | None], Draws]:
        return {}

    def _penalised_weights(self, size_penalty: int | None) -> dict[int, dict[Mask, int]] | None:
        """Return counts weighted by 2**(penalty * (cap - size)), which is an integer; None for uniform weights."""
        if size_penalty is None:
            return None
        cap = self.model_class.max_size
        if cap is None:
            raise ValueError("weights by size need a class with a size cap")
        return {
            v: {
                mask: sum(count << size_penalty * (cap - size) for size, count in sizes.items())
                for mask, sizes in self.local(v).by_size.items()
            }
            for v in self.index.values()
        }
