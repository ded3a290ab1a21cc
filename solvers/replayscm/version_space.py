"""Version space: every SCM of a class that fits the training worlds, counted and sampled without enumeration.

Two SCMs are the same member iff they have the same roots and the same local functions (functional parents and truth
tables). The class of a claim is named by `ModelClass`: functional parents <= k, optionally formula size <= s for
every mechanism, and the disclosure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.world import PackedPanels, Panel, World, pack_panels
from calibrant.solvers.acyclic.count import Bounds, Weights, bounds, total
from calibrant.solvers.acyclic.draws import Draws, Marginals
from calibrant.solvers.acyclic.elimination import is_orderable, minimal_sets
from calibrant.solvers.acyclic.estimate import PARTICLES, RUNS, Estimate, add_estimates, estimate
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.formulas.catalogue import (
    EssentialFunctions,
    constant_sizes,
    essential_functions,
    expresses_everything,
    require_literals_alone,
    synthesis_operators,
)
from calibrant.solvers.outcome import Found, OutOfBudget
from calibrant.solvers.replayscm.function_index import FunctionIndex, function_index
from calibrant.solvers.replayscm.local_counts import I64, LocalSpace, limit_size, local_space, size_counts
from calibrant.solvers.replayscm.roots import list_root_sets, nested_variables

MAX_PARENTS = 6  # tables of 2**6 rows fill one word


@dataclass(frozen=True, slots=True)
class ModelClass:
    """Hypothesis class of a count.

    max_parents: largest number of functional parents of a mechanism
    max_size: largest formula size of a mechanism; None means any function, whatever its formula
    nested_roots: in Hidden-roots, only root sets whose non-intervened columns are nested over shared units
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
        return f"functional parents <= {self.max_parents}, {size}, {task.disclosure.label}{nested}"


class VersionSpace:
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

    def __repr__(self) -> str:
        return f"<VersionSpace: {self.model_class.describe(self.task)}>"

    @cached_property
    def root_sets(self) -> tuple[tuple[str, ...], ...]:
        """Root sets of the class: the disclosed one, or every hypothesis; `BudgetSpent` for too many."""
        able = nested_variables(self.task) if self.model_class.nested_roots else None
        return tuple(list_root_sets(self.task, able))

    @cached_property
    def _packed(self) -> PackedPanels:
        return pack_panels([self.task.training])

    @cached_property
    def functions(self) -> EssentialFunctions:
        """Functions by size, from which a size-capped class is enumerated."""
        return essential_functions(self.model_class.max_parents, synthesis_operators(self.task.grammar))

    @property
    def listed(self) -> FunctionIndex:
        """Index of these functions, or of a superset."""
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
            self._uncapped[variable] = local_space(self._packed, variable, candidates, max_parents)
        return self._uncapped[variable]

    def size_counts(self, variable: int) -> I64:
        """Count the listed functions of each parent set by least size, for all sets without a cap; [e, size + 1]."""
        return self._size_counts(variable, self.model_class.max_parents)

    def _size_counts(self, variable: int, max_parents: int) -> I64:
        """Return `size_counts` of the sets of at most `max_parents` parents; counts are cached from call to call."""
        if self._wider is not None:
            return self._wider._size_counts(variable, max_parents)
        # sets come by number of parents: those of a narrower class are a prefix, and only the rest is counted
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
        counts = {roots: total(self.weights(roots)) for roots in self._feasible_root_sets}
        return {roots: count for roots, count in counts.items() if count}

    @property
    def _feasible_root_sets(self) -> Iterator[tuple[str, ...]]:
        """Root sets under which all other variables have mechanisms and can be ordered."""
        if self.task.disclosure.roots is not None:
            return iter(self.root_sets)
        # a larger set waits for more variables, so minimal ones decide; of up to 10,000 root sets only feasible ones
        # are then summed over DAGs
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
        """Estimate the count without bias where it is out of budget; the count itself elsewhere.

        particles, runs: the effort (solvers.acyclic.estimate); `BudgetSpent` where they reach no member
        """
        seeds = np.random.SeedSequence(seed)
        parts = [
            estimate(self.weights(r), seeds.spawn(1)[0], particles=particles, runs=runs)
            for r in self._feasible_root_sets
        ]
        return add_estimates(parts)

    @property
    def bounds(self) -> Bounds:
        """Certified bounds of the count where it is out of budget; the count itself elsewhere."""
        parts = [bounds(self.weights(roots)) for roots in self._feasible_root_sets]
        return Bounds(sum(part.lower for part in parts), sum(part.upper for part in parts))

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
        """Return the members with these roots, where roots are hidden; counts are shared."""
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
        """Return the share of members with each functional parent set; members in which it is a root have none."""
        i, having = self.index[variable], Counter[Mask]()
        for roots in self.counts_by_roots:
            if variable not in roots:
                having.update(self._marginals(roots).of(i))
        masks = (mask for mask in self.local(i).counts if having[mask])
        return {self.names(mask): Fraction(having[mask], self.count) for mask in masks}

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
        """Return the sampler of parent sets under a root set; cached, since samples share its sums."""
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
                mask: sum(number << size_penalty * (cap - size) for size, number in sizes.items())
                for mask, sizes in self.local(v).by_size.items()
            }
            for v in self.index.values()
        }
