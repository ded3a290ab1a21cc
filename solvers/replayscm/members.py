"""Members of a version space: random ones, all by total formula size, and all of least size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from itertools import islice, product
from math import comb
from random import Random

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.formula import Formula, constant
from calibrant.dsl.formulas.table import PartialTable, TruthTable, full_mask, projection
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.acyclic.count import Layers, Weights, total
from calibrant.solvers.acyclic.draws import draw_weighted
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.formulas.catalogue import COMPLETE, EssentialFunctions, constant_sizes, synthesis_operators
from calibrant.solvers.formulas.synthesis import formula_for
from calibrant.solvers.outcome import BudgetSpent, Found, OutOfBudget
from calibrant.solvers.replayscm.exact import ONLY_NESTED, ExactAnswer
from calibrant.solvers.replayscm.space import I64, LocalSpace, ModelClass, VersionSpace, size_counts

# --- Exact sampling from a version space: root set, then parent sets, then functions ----------------------------------


def sample_members(space: VersionSpace, rng: Random, num_members: int, *, size_penalty: int | None = None) -> list[Scm]:
    """Sample members independently: uniformly, or in a size-capped class by 2**(-size_penalty * total size)."""
    return [sample_member(space, rng, size_penalty) for _ in range(num_members)]


def sample_member(space: VersionSpace, rng: Random, size_penalty: int | None) -> Scm:
    """Sample a member with probability proportional to its weight; `ValueError` from an empty space."""
    # the root set first, by the exact weight of its members: so each member is drawn by its own weight
    sums = [(roots, space.draws(roots, size_penalty).total) for roots in space.counts_by_roots]
    total_weight = sum(weight for _, weight in sums)
    if not total_weight:
        raise ValueError("the version space is empty")
    roots = draw_weighted(rng, sums, total_weight)
    chosen = space.draws(roots, size_penalty).draw(rng)
    mechanisms = {}
    for variable, mask in sorted(chosen.items()):
        table = _sample_function(space, rng, variable, mask, size_penalty)
        mechanisms[space.task.variables[variable]] = write_mechanism(space, roots, variable, mask, table)
    return Scm(roots, mechanisms)


def write_mechanism(space: VersionSpace, roots: Sequence[str], variable: int, mask: Mask, table: TruthTable) -> Formula:
    """Write a formula for a function of exactly these parents, of least size if the catalogues list it.

    A constant is a literal, or mentions the first admissible root, through which no cycle goes. `ValueError` if neither
    is available.
    """
    grammar = space.task.grammar
    if mask:
        return formula_for(table, space.names(mask), synthesis_operators(grammar))
    if grammar.allow_constants:
        return constant(bool(table.bits))
    name = space.task.variables[variable]
    mentioned = [root for root in roots if root in space.task.disclosure.admissible_parents(name)]
    if not mentioned:
        raise ValueError(f"'{name}' is constant in a member, and neither a literal nor a root can say so")
    return formula_for(table, mentioned[:1], synthesis_operators(grammar))


def _sample_function(space: VersionSpace, rng: Random, variable: int, mask: Mask, penalty: int | None) -> TruthTable:
    """Sample a function of exactly these parents by the weights of `sample_member`."""
    local = space.local(variable)
    table = local.tables[mask]
    if not local.by_size:
        return TruthTable(table.num_vars, sample_completion(rng, table.num_vars, table.care, table.value))
    cap = space.model_class.max_size
    assert cap is not None
    weights = [(s, n << (penalty * (cap - s) if penalty else 0)) for s, n in local.by_size[mask].items()]
    size = draw_weighted(rng, weights, sum(weight for _, weight in weights))
    functions = agreeing_functions(space, table, size)
    return functions[rng.randrange(len(functions))]


def agreeing_functions(space: VersionSpace, table: PartialTable, size: int) -> list[TruthTable]:
    """Return the functions whose least formulas have `size` nodes, that depend on all variables and agree; by bits."""
    functions = space.functions
    if table.num_vars == 0:
        constants = constant_sizes(functions, space.task.grammar)
        tables = [TruthTable(0, bit) for bit in sorted(constants) if constants[bit] == size]
        return [function for function in tables if table.agrees(function)]
    bits = _functions_of_size(functions, table.num_vars, size)
    agreeing = bits[(bits ^ np.uint64(table.value)) & np.uint64(table.care) == 0]
    return [TruthTable(table.num_vars, word) for word in agreeing.tolist()]


@cache
def _functions_of_size(functions: EssentialFunctions, num_vars: int, size: int) -> npt.NDArray[np.uint64]:
    """Return the tables of the functions of `num_vars` variables and least size `size`, ascending."""
    start, end = functions.starts[num_vars], functions.ends[num_vars]
    bits: npt.NDArray[np.uint64] = functions.bits[start:end][functions.sizes[start:end] == size]
    return bits


def sample_completion(rng: Random, num_vars: int, care: int, value: int) -> int:
    """Sample uniformly from the agreeing functions that depend on every variable, by rejection; return the bits."""
    num_rows = 1 << num_vars
    unseen = full_mask(num_vars) & ~care
    halves = _low_rows(num_vars)
    # ends with probability 1: sets without an agreeing function have weight 0 and are never drawn
    while True:
        table = value | (rng.getrandbits(num_rows) & unseen)
        for shift, low_rows in halves:
            if not (table >> shift ^ table) & low_rows:
                break
        else:
            return table


@cache
def _low_rows(num_vars: int) -> list[tuple[int, int]]:
    """Return, per variable, the distance of rows that differ in it, and the rows in which it is 0."""
    return [(1 << i, full_mask(num_vars) & ~projection(i, num_vars).bits) for i in range(num_vars)]


# --- Members of a size-capped version space by total formula size: their number, and the members, smallest first ------
MAX_CACHED = 1 << 14  # entries of each of the two caches of a walk: formulas, and lists of functions


class _Packing:
    """Kronecker substitution: a polynomial with non-negative coefficients is one integer of `width`-bit fields.

    Exponents are formula sizes, coefficients count functions.
    """

    def __init__(self, width: int) -> None:
        self.width = width

    def pack(self, coefficients: Mapping[int, int]) -> int:
        # a product of polynomials is one product of integers, which Python multiplies in n**1.58 (Karatsuba)
        return sum(count << self.width * size for size, count in coefficients.items())

    def coefficient(self, packed: int, size: int) -> int:
        return packed >> self.width * size & (1 << self.width) - 1

    def unpack(self, packed: int) -> dict[int, int]:
        coefficients, size, mask = {}, 0, (1 << self.width) - 1
        while packed:
            if packed & mask:
                coefficients[size] = packed & mask
            packed >>= self.width
            size += 1
        return coefficients


def count_by_size(space: VersionSpace) -> dict[int, int]:
    """Count the members by total formula size (sum over mechanisms of the sizes of least formulas).

    The same sum over DAGs as the count, over polynomials. `ValueError` without a size cap in the class.
    """
    sizes: dict[int, int] = {}
    for roots in space.counts_by_roots:
        packing, weights = _pack_weights(space, roots)
        for size, count in packing.unpack(total(weights)).items():
            sizes[size] = sizes.get(size, 0) + count
    return dict(sorted(sizes.items()))


def _pack_weights(space: VersionSpace, roots: tuple[str, ...]) -> tuple[_Packing, Weights]:
    if space.model_class.max_size is None:
        raise ValueError("total sizes need a class with a size cap")
    # fields wider than the whole count: no coefficient can carry into the next one
    packing = _Packing(space.counts_by_roots[roots].bit_length() + 1)
    local = {
        v: {mask: packing.pack(sizes) for mask, sizes in space.local(v).by_size.items()} for v in space.index.values()
    }
    return packing, space.weights(roots, local)


@dataclass(frozen=True, slots=True)
class SmallestMembers:
    """The first members in the order of total size; `more`: whether there are others."""

    models: tuple[Scm, ...]
    more: bool


def smallest_members(space: VersionSpace, limit: int) -> SmallestMembers:
    """Return at most `limit` members, smallest total size first; ties in a fixed order."""
    members = tuple(islice(members_by_size(space), limit + 1))
    return SmallestMembers(members[:limit], len(members) > limit)


def members_by_size(space: VersionSpace, sizes: Sequence[int] | None = None) -> Iterator[Scm]:
    """Yield all members in the order of total size; within a size by root set, layers, parent sets and tables.

    sizes: total sizes to yield; None for all
    """
    # one walk per root set, for all sizes: the completions that guide it are summed once
    walks = {roots: _Walk(space, roots) for roots in space.counts_by_roots}
    for size in count_by_size(space) if sizes is None else sizes:
        for walk in walks.values():
            yield from walk.models(size)


class _Walk:
    """Depth-first search through layers and parent sets that enters only branches with a member of the given size."""

    def __init__(self, space: VersionSpace, roots: tuple[str, ...]) -> None:
        self.space = space
        self.roots = roots
        self.packing, weights = _pack_weights(space, roots)
        self.layers = Layers(weights)
        # members of one size share nearly all mechanisms
        self._formula = lru_cache(MAX_CACHED)(partial(write_mechanism, space, roots))
        self._agreeing = lru_cache(MAX_CACHED)(self._agreeing_functions)

    def models(self, size: int) -> Iterator[Scm]:
        for assignment in self._assignments(0, 0, size):
            yield from self._functions(assignment)

    def _assignments(self, placed: Mask, last: Mask, size: int) -> Iterator[dict[int, tuple[Mask, int]]]:
        """Yield, for the unplaced variables, parent sets and formula sizes that add up to a total size."""
        weights = self.layers.weights
        if placed == weights.full:
            if size == 0:
                yield {}
            return
        for layer, packed in self.layers.steps(placed, last):
            # the polynomial of a layer lists the sizes of its completions: no dead end is entered
            if not self.packing.coefficient(packed, size):
                continue
            later_sizes = self.packing.unpack(self.layers.completions(placed | layer, layer))
            for assigned in self._layer_assignments(layer, placed, last, size, later_sizes.keys()):
                remaining_size = size - sum(s for _, s in assigned.values())
                for assigned_later in self._assignments(placed | layer, layer, remaining_size):
                    yield assigned | assigned_later

    def _layer_assignments(
        self, layer: Mask, placed: Mask, last: Mask, size: int, later_sizes: Set[int]
    ) -> Iterator[dict[int, tuple[Mask, int]]]:
        """Yield parent sets and sizes for one layer such that the remaining size is one of `later_sizes`."""
        variables = [self.layers.weights.endogenous[i] for i in members_of(layer)]
        options = [
            [
                (mask, own_size)
                for mask, packed in self.layers.parent_sets(i, placed, last)
                for own_size in self.packing.unpack(packed)
            ]
            for i in members_of(layer)
        ]
        # reachable[k]: sizes that the last k variables of the layer and all later layers can have together
        reachable = [later_sizes]
        for pairs in reversed(options):
            own_sizes = {own_size for _, own_size in pairs}
            reachable.append({own_size + remaining for own_size in own_sizes for remaining in reachable[-1]})

        def extend(num_decided: int, remaining: int) -> Iterator[dict[int, tuple[Mask, int]]]:
            if num_decided == len(variables):
                yield {}
                return
            for mask, own_size in options[num_decided]:
                if remaining - own_size in reachable[len(variables) - num_decided - 1]:
                    for assigned in extend(num_decided + 1, remaining - own_size):
                        yield {variables[num_decided]: (mask, own_size)} | assigned

        return extend(0, size)

    def _functions(self, assignment: Mapping[int, tuple[Mask, int]]) -> Iterator[Scm]:
        """Yield the SCMs with these parent sets and formula sizes."""
        variables = sorted(assignment)
        names = [self.space.task.variables[v] for v in variables]
        tables = [self._agreeing(v, *assignment[v]) for v in variables]
        model: Scm | None = None
        # by bits: hashing a table takes longer than the look-up
        written: list[dict[int, Formula]] = [{} for _ in variables]
        for selection in product(*tables):
            mechanisms = {}
            for v, name, table, formulas in zip(variables, names, selection, written, strict=True):
                formula = formulas.get(table.bits)
                if formula is None:
                    formula = formulas[table.bits] = self._formula(v, assignment[v][0], table)
                mechanisms[name] = formula
            model = Scm(self.roots, mechanisms) if model is None else model.with_mechanisms(mechanisms)
            yield model

    def _agreeing_functions(self, variable: int, mask: Mask, size: int) -> list[TruthTable]:
        return agreeing_functions(self.space, self.space.local(variable).table(mask), size)


# --- All train-exact SCMs of least total size: their exact number, and each of them or uniform draws ------------------
# The exact solver returns one of them by its tie rule; the others show how far a rate depends on that rule. SCMs with
# the same local functions count as one (solvers.replayscm.space).
MAX_LISTED = 100  # least SCMs listed, of more a sample: to score 1,000 took longer than to find the answer
MAX_INDEXED = 1_000  # least SCMs up to which a sample is drawn by index from the list, in a tenth of the time
MAX_PARENT_SETS = 100_000  # parent sets of all variables up to which tables are computed: more cost more than solving
MAX_TERMS = 200_000  # terms of a sum over DAGs: a fraction of a second
_SIZE_STEP = 4  # functions are indexed up to a multiple of this size, so that few indexes are built
_PENALTY = 24  # a further formula node makes a draw 2**24 times less likely: nearly every draw is of least size


@dataclass(frozen=True)
class LeastModels:
    """The least SCMs of a task.

    count: how many there are; models: all of them, or a sample of independent uniform draws
    unlisted: in words, the functions in no catalogue, so that SCMs with them are not counted; "" if none could be least
    """

    count: int
    models: tuple[Scm, ...]
    unlisted: str

    @property
    def is_drawn(self) -> bool:
        return self.count > len(self.models)


def least_models(
    task: Task, answer: ExactAnswer, *, max_parents: int = 5, max_listed: int = MAX_LISTED
) -> Found[LeastModels] | OutOfBudget:
    """Return all SCMs of the size of the solver's answer, or a sample; `OutOfBudget` if they are not counted.

    max_parents: parent limit of the class in which the answer is least
    """
    candidates = [len(task.disclosure.admissible_parents(variable)) for variable in task.variables]
    num_sets = sum(comb(num_candidates, size) for num_candidates in candidates for size in range(max_parents + 1))
    if num_sets > MAX_PARENT_SETS:
        return OutOfBudget(f"least SCMs are not counted: {num_sets} parent sets, more than {MAX_PARENT_SETS}")
    nested = answer.provenance.get("nested_roots") == ONLY_NESTED
    space = _LeastSpace(task, ModelClass(max_parents, nested_roots=nested), answer.model)
    try:
        count = count_by_size(space).get(answer.size, 0)
    except BudgetSpent as spent:
        return OutOfBudget(f"least SCMs are not counted: {spent}")
    if not count:
        return OutOfBudget(f"least SCMs are not counted: {space.unlisted}")
    if count <= max_listed:
        return Found(LeastModels(count, tuple(islice(members_by_size(space, (answer.size,)), count)), space.unlisted))
    random, models = Random(count), list[Scm]()
    if count <= MAX_INDEXED:
        listed = tuple(islice(members_by_size(space, (answer.size,)), count))
        models = [listed[random.randrange(count)] for _ in range(max_listed)]
    while len(models) < max_listed:  # uniform after rejection: members of equal size have equal weights
        model = sample_member(space, random, _PENALTY)
        if model.size == answer.size:
            models.append(model)
    return Found(LeastModels(count, tuple(models), space.unlisted))


class _LeastSpace(VersionSpace):
    """Members of a total size: each mechanism is capped at that size minus the least sizes of all others.

    unlisted: as in `LeastModels`
    """

    def __init__(self, task: Task, model_class: ModelClass, least: Scm) -> None:
        super().__init__(task, model_class, terms=MAX_TERMS)
        self.unlisted = ""
        self._counts: dict[int, I64] = {}
        self._least_model = least
        self._caps = self._size_caps(least.size)
        self.model_class = replace(model_class, max_size=max(self._caps.values()))

    def _size_caps(self, size: int) -> Mapping[int, int]:
        """Return the largest size of each variable's mechanism in an SCM of that total size."""
        least = {v: self._least(v) for v in self.index.values()}
        caps = {}
        for variable in least:
            others = sorted(bound for v, bound in least.items() if v != variable)
            # roots have no mechanism: at worst the roots are the variables with the largest bounds
            if self.task.disclosure.roots is None:
                del others[len(least) - self.task.disclosure.num_roots - 1 :]
            caps[variable] = size - sum(others)
        return caps

    def _least(self, variable: int) -> int:
        """Return a lower bound of the size of a variable's mechanism; 0 for a disclosed root."""
        if self.task.variables[variable] in (self.task.disclosure.roots or ()):
            return 0
        bounds = [least] if (least := self._least_listed(variable)) is not None else []
        sizes = [int(size) for size in self.functions.complete_to[1:] if size != COMPLETE]
        return min([*bounds, *(size + 1 for size in sizes)], default=0)

    def _least_listed(self, variable: int) -> int | None:
        """Return the least size of a listed function that agrees, None without any."""
        largest, mechanism = self._largest_listed, self._least_model.mechanisms.get(self.task.variables[variable])
        # the size in the least model is usually the least: one pass suffices
        first_size = _SIZE_STEP if mechanism is None else min(mechanism.size, largest)
        for max_size in range(first_size, largest + _SIZE_STEP, _SIZE_STEP):
            sizes = np.flatnonzero(self._counts_to(variable, max_size).any(axis=0))
            if len(sizes):
                return int(sizes[0])
        return None

    @cached_property
    def _largest_listed(self) -> int:
        constants = constant_sizes(self.functions, self.task.grammar)
        return max(int(self.functions.sizes.max()), *constants.values(), 0)

    def _counts_to(self, variable: int, max_size: int) -> I64:
        """Return `size_counts` up to at least `max_size`."""
        counts = self._counts.get(variable)
        if counts is None or counts.shape[1] <= min(max_size, self._largest_listed):
            constants = constant_sizes(self.functions, self.task.grammar)
            limit = min(self._largest_listed, -(-max_size // _SIZE_STEP) * _SIZE_STEP)  # few indexes are built
            counts = size_counts(self._any_size(variable), self.functions, constants, limit)
            self._counts[variable] = counts
        return counts

    def local(self, variable: int) -> LocalSpace:
        if variable not in self._spaces:
            space, cap = self._any_size(variable), max(0, self._caps[variable])
            histograms = self._counts_to(variable, cap)[:, : cap + 1]
            self._note_unlisted(variable, space, cap)
            num_functions = histograms.sum(1).astype(np.uint64)
            self._spaces[variable] = LocalSpace(space.masks, space.cares, space.values, num_functions, histograms)
        return self._spaces[variable]

    def _note_unlisted(self, variable: int, space: LocalSpace, cap: int) -> None:
        for num_parents in np.unique(np.bitwise_count(space.masks[space.num_functions > 0])).tolist():
            complete_size = int(self.functions.complete_to[num_parents])
            if num_parents and cap > complete_size != COMPLETE:
                name = self.task.variables[variable]
                self.unlisted = (
                    f"functions of {num_parents} variables are listed up to size {complete_size};"
                    f" one of {name} may have size {cap}"
                )
