"""The smallest pair of consistent SCMs that differ, and the worlds of one row that split the consistent SCMs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations, islice
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.audits.replayscm.ambiguity import sized_class
from calibrant.audits.replayscm.why.parts import Context, Decider, Reading, differing_contexts, target_menu, values_at
from calibrant.dsl.formulas.table import TruthTable, full_mask, projection, support
from calibrant.dsl.replayscm.evaluator import simulate
from calibrant.dsl.replayscm.scm import LocalFunction, Scm
from calibrant.dsl.replayscm.world import Intervention, Rows, World, row_words
from calibrant.solvers.acyclic.elimination import is_orderable, minimal_sets
from calibrant.solvers.acyclic.least import Cost, Mask, ParentSet, cost_by_size, remove_dominated
from calibrant.solvers.acyclic.optimum import optimal_choice
from calibrant.solvers.formulas.catalogue import synthesis_operators
from calibrant.solvers.formulas.synthesis import formula_for
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.replayscm.certified import write_model
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, ParentSets
from calibrant.solvers.replayscm.members import agreeing_functions, sample_completion
from calibrant.solvers.replayscm.space import VersionSpace

# --- Options of each variable in some SCM that fits, and the two SCMs of least total size that differ in one ----------
# A parent set of a variable is part of some SCM that fits iff it is within the largest set of variables that can be
# placed before the variable. Greedy placement, each variable after one of its parent sets, reaches that largest set,
# and all other variables can be placed after. So two functions of one variable fit with the same other mechanisms.
# --- Options of each variable in some SCM that fits: a root, or a function of a parent set; exact, without
# counting SCMs
MAX_ROOT_SETS = 2_000  # root sets up to which options are listed


@dataclass(frozen=True)
class VariableChoices:
    """Options of a variable over all root sets: number of functions, parent sets, whether it may be a root."""

    functions: int
    parent_sets: frozenset[Mask]
    may_be_root: bool

    @property
    def is_open(self) -> bool:
        return self.functions + self.may_be_root > 1


class Choices:
    """The options of each variable in SCMs that fit, for every root set.

    least_sets: variable -> its parent sets that are minimal by inclusion
    """

    def __init__(self, space: VersionSpace) -> None:
        self.space = space
        self.least_sets = {
            v: minimal_sets(np.array(list(space.local(v).counts), np.int64)) for v in space.index.values()
        }

    @cached_property
    def root_sets(self) -> tuple[tuple[str, ...], ...]:
        """The root sets of SCMs that fit."""
        return tuple(roots for roots in self.space.root_sets if is_orderable(self.least_sets, self.mask_of(roots)))

    @property
    def num_parent_sets(self) -> int:
        """Number of parent sets that fit, of all variables."""
        return sum(len(self.space.local(v).counts) for v in self.space.index.values())

    @property
    def certain_roots(self) -> tuple[str, ...]:
        """Variables that no parent set determines."""
        return tuple(name for name, v in self.space.index.items() if not len(self.least_sets[v]))

    def names_of(self, mask: Mask) -> tuple[str, ...]:
        return tuple(name for name, v in self.space.index.items() if mask >> v & 1)

    def mask_of(self, names: tuple[str, ...]) -> Mask:
        return sum(1 << self.space.index[name] for name in names)

    def options(self, roots: tuple[str, ...], variable: int) -> Mapping[Mask, int]:
        """Return parent set -> number of functions, of a variable that is no root, in SCMs with these roots."""
        before = self._largest_before(self.mask_of(roots), variable)
        return {mask: count for mask, count in self.space.local(variable).counts.items() if not mask & ~before}

    def _largest_before(self, roots: Mask, variable: int) -> Mask:
        """Return the largest set of variables that can be placed before this one."""
        waiting = [v for v in self.least_sets if v != variable and not roots >> v & 1]
        placed, before = roots, -1
        while placed != before:
            before = placed
            ready = [v for v in waiting if _fits(self.least_sets[v], placed)]
            placed |= sum(1 << v for v in ready)
            waiting = [v for v in waiting if not placed >> v & 1]
        return placed

    @cached_property
    def by_variable(self) -> dict[str, VariableChoices]:
        """The options of every variable; `ValueError` beyond MAX_ROOT_SETS root sets."""
        if len(self.root_sets) > MAX_ROOT_SETS:
            raise ValueError(
                f"{len(self.root_sets)} root sets; the options of at most {MAX_ROOT_SETS} are gone through"
            )
        choices = {}
        for name, variable in self.space.index.items():
            functions: dict[Mask, int] = {}
            for roots in self.root_sets:
                if name not in roots:
                    functions |= self.options(roots, variable)
            may_be_root = any(name in roots for roots in self.root_sets)
            choices[name] = VariableChoices(sum(functions.values()), frozenset(functions), may_be_root)
        return choices


def _fits(masks: npt.NDArray[np.int64], placed: Mask) -> bool:
    return bool(((masks & ~np.int64(placed)) == 0).any())


# --- Functions with the size of a formula: all of up to four parents by least size, some of five and six --------------
LISTED_PARENTS = 4  # number of parents up to which every function is listed by least size
MAX_WIDE_SETS = 40  # wider parent sets of a variable that are tried, those with most observed rows first
NUM_FLIPS = 6  # completions of a wide table that are tried, beside all 0 and all 1


@dataclass(frozen=True)
class SizedFunction:
    """A function over a parent set, with the size of a formula for it."""

    size: int
    mask: Mask
    table: TruthTable


def sized_space(space: VersionSpace) -> VersionSpace:
    """Return the part of a space with at most four parents, listed by least size; its cap excludes no function."""
    if space.model_class.max_size is not None:
        return space
    parents = min(space.model_class.max_parents, LISTED_PARENTS)
    return space.within(parents, sized_class(space.task, parents).max_size)


class WideFunctions:
    """Some functions of five and six parents; their formulas are not proven least."""

    def __init__(self, space: VersionSpace) -> None:
        self.space = space
        self.functions = cache(self._functions)

    def masks(self, variable: int) -> Sequence[Mask]:
        """Return the wide parent sets of a variable, those with most observed rows first."""
        local = self.space.local(variable)
        wide = [mask for mask in local.counts if mask.bit_count() > LISTED_PARENTS]
        return sorted(wide, key=lambda mask: (local.tables[mask].num_open, mask))[:MAX_WIDE_SETS]

    def _functions(self, variable: int, mask: Mask) -> tuple[SizedFunction, ...]:
        table = self.space.local(variable).tables[mask]
        all_rows = full_mask(table.num_vars)
        unseen = [row for row in range(all_rows.bit_length()) if not table.care >> row & 1]
        fills = [0, all_rows & ~table.care, *(1 << row for row in unseen[:NUM_FLIPS])]
        filled = dict.fromkeys(TruthTable(table.num_vars, table.value | fill) for fill in fills)
        functions = [entry for entry in filled if len(support(entry)) == table.num_vars]
        if not functions:
            bits = sample_completion(Random(table.num_vars), table.num_vars, table.care, table.value)
            functions = [TruthTable(table.num_vars, bits)]
        names, operators = self.space.names(mask), synthesis_operators(self.space.task.grammar)
        return tuple(SizedFunction(formula_for(entry, names, operators).size, mask, entry) for entry in functions)


# --- Two SCMs that fit and differ in one variable, of least total size; or in roots, if no two share them -------------
MAX_FUNCTIONS = 48  # smallest functions of a variable from which pairs are formed
MAX_COMPARED_ROOT_SETS = 40  # root sets of one SCM each that are compared


@dataclass(frozen=True)
class FittingPair:
    """Two checked SCMs; `differing`: variables whose function or role differs; `least`: total size is proven least."""

    first: Scm
    second: Scm
    differing: tuple[str, ...]
    least: bool

    @property
    def size(self) -> int:
        return self.first.size + self.second.size


class _Rank(NamedTuple):
    """Sort key of pairs: total size, number of parents, the parents' columns; last names and tables, as tie-breaks."""

    size: int
    num_parents: int
    columns: tuple[tuple[int, int], ...]
    union: Mask
    first: int
    second: int


class PairSearch:
    """Search for the smallest differing pair of a version space, in `sized_space` and some wider functions."""

    def __init__(self, space: VersionSpace, choices: Choices, budget: Budget | None = None) -> None:
        """Prepare the search; `budget`: in parent sets that are compared."""
        self.budget = budget or Budget()
        self.space = space
        self.choices = choices
        self.sized = sized_space(space)
        self.wide = WideFunctions(space) if space.model_class.max_parents > LISTED_PARENTS else None
        self._undominated: dict[int, Mapping[Mask, Cost]] = {}
        self._smallest: dict[tuple[int, Mask], SizedFunction] = {}
        self._others: dict[tuple[tuple[str, ...], int, Mask], Mapping[int, Mask] | None] = {}

    def differing_in(self, variable: str) -> FittingPair | None:
        """Return the smallest pair that differs in this variable alone; None if no root set leaves it two functions.

        If the budget ends or there are too many root sets, it is the smallest found, with `least` false.
        """
        pairs, num_compared = list[FittingPair | None](), 0
        with suppress(BudgetSpent):
            for roots in self.choices.root_sets[:MAX_COMPARED_ROOT_SETS]:
                pairs.append(self._under(roots, self.space.index[variable]))
                num_compared += 1
        best = min(filter(None, pairs), key=lambda pair: pair.size, default=None)
        is_least = best is not None and best.least and num_compared == len(self.choices.root_sets)
        return None if best is None else replace(best, least=is_least)

    def differing_in_roots(self) -> FittingPair | None:
        """Return two SCMs with different roots, each of least size for its roots, that differ in fewest variables.

        Of several pairs, the one of least total size; None for one root set.
        """
        models = [
            model for roots in self.choices.root_sets[:MAX_COMPARED_ROOT_SETS] if (model := self._smallest_model(roots))
        ]
        best: tuple[int, int, Scm, Scm, tuple[str, ...]] | None = None
        for first, second in combinations(models, 2):
            differing = tuple(v for v in self.space.task.variables if _role(first, v) != _role(second, v))
            if best is None or (len(differing), first.size + second.size) < best[:2]:
                best = len(differing), first.size + second.size, first, second, differing
        is_complete = len(models) == len(self.choices.root_sets)
        return None if best is None else FittingPair(best[2], best[3], best[4], is_complete)

    def _under(self, roots: tuple[str, ...], variable: int) -> FittingPair | None:
        if self.space.task.variables[variable] in roots:
            return None
        functions = self._functions(roots, variable)
        if len(functions) < 2:
            return None
        alone = self._cost(roots, variable, 0)
        if alone is None:
            return None
        best: tuple[_Rank, SizedFunction, SizedFunction] | None = None
        ordered = sorted(combinations(functions, 2), key=lambda pair: pair[0].size + pair[1].size)
        for first, second in ordered:
            if best is not None and first.size + second.size + 2 * alone > best[0].size:
                break
            size_of_others = self._cost(roots, variable, first.mask | second.mask)
            if size_of_others is not None:
                key = self._rank(variable, first, second, first.size + second.size + 2 * size_of_others)
                if best is None or key < best[0]:
                    best = key, first, second
        if best is None:
            return None
        key, first, second = best
        complete = self.wide is None and (
            len(functions) < MAX_FUNCTIONS or functions[-1].size + functions[0].size + 2 * alone >= key.size
        )
        models = [self._model(roots, variable, function, first.mask | second.mask) for function in (first, second)]
        return FittingPair(models[0], models[1], (self.space.task.variables[variable],), complete)

    def _rank(self, variable: int, first: SizedFunction, second: SizedFunction, size: int) -> _Rank:
        training, union = self.space.task.training, first.mask | second.mask
        columns = tuple(sorted((training.columns[name], training.clamped[name]) for name in self.space.names(union)))
        return _Rank(size, union.bit_count(), columns, union, first.table.bits, second.table.bits)

    def _functions(self, roots: tuple[str, ...], variable: int) -> list[SizedFunction]:
        """Return the smallest functions that the variable may have, ascending by size."""
        options = self.choices.options(roots, variable)
        local = self.sized.local(variable)
        blocks = sorted(
            (size, mask.bit_count(), mask) for mask, sizes in local.by_size.items() if mask in options for size in sizes
        )
        functions: list[SizedFunction] = []
        for size, _, mask in blocks:
            if len(functions) >= MAX_FUNCTIONS:
                break
            functions += [
                SizedFunction(size, mask, table) for table in agreeing_functions(self.sized, local.tables[mask], size)
            ]
        if self.wide is not None and len(functions) < 2:
            wide = [
                entry
                for mask in self.wide.masks(variable)
                if mask in options
                for entry in self.wide.functions(variable, mask)
            ]
            functions += sorted(wide, key=lambda entry: (entry.size, entry.mask, entry.table.bits))
        return functions[:MAX_FUNCTIONS]

    def _cost(self, roots: tuple[str, ...], variable: int, parents: Mask) -> int | None:
        """Return the least total size of all other mechanisms if the variable comes after these parents."""
        chosen = self._optimal_others(roots, variable, parents)
        if chosen is None:
            return None
        return sum(self._least(v, mask).size for v, mask in chosen.items() if v != variable)

    def _least(self, variable: int, mask: Mask) -> SizedFunction:
        """Return the smallest function over a parent set; ties by the smallest table."""
        key = variable, mask
        if key not in self._smallest:
            self._smallest[key] = self._find_least(variable, mask)
        return self._smallest[key]

    def _find_least(self, variable: int, mask: Mask) -> SizedFunction:
        local = self.sized.local(variable)
        if mask in local.by_size:
            size = min(local.by_size[mask])
            return SizedFunction(size, mask, agreeing_functions(self.sized, local.tables[mask], size)[0])
        assert self.wide is not None
        return min(self.wide.functions(variable, mask), key=lambda entry: (entry.size, entry.table.bits))

    def _sizes(self, variable: int) -> dict[Mask, int]:
        """Return parent set -> least size; wide sets only if there is no other, with a size that suffices."""
        sizes = {mask: min(by_size) for mask, by_size in self.sized.local(variable).by_size.items()}
        if sizes or self.wide is None:
            return sizes
        return {mask: self._least(variable, mask).size for mask in self.wide.masks(variable)}

    def _costs(self, variable: int) -> Mapping[Mask, Cost]:
        """Return the costs of the undominated parent sets of a variable: an optimal assignment needs no others."""
        if variable not in self._undominated:
            sets = [ParentSet(cost_by_size(size, mask), mask) for mask, size in self._sizes(variable).items()]
            self.budget.spend(len(sets))
            undominated = remove_dominated(sets, self.space.index.values())
            self._undominated[variable] = {mask: parent_set.cost for mask, parent_set in undominated.items()}
        return self._undominated[variable]

    def _optimal_others(self, roots: tuple[str, ...], variable: int, parents: Mask) -> Mapping[int, Mask] | None:
        """Return the least-size assignment in which the variable has these parents; variable -1: no constraint."""
        key = roots, variable, parents
        if key not in self._others:
            costs = {v: self._costs(v) for u, v in self.space.index.items() if u not in roots and v != variable}
            self.budget.spend(sum(1 + len(sets) for sets in costs.values()))
            if variable >= 0:
                costs[variable] = {parents: 0}
            choice = (
                optimal_choice(costs, self.choices.mask_of(roots), len(self.space.index))
                if all(costs.values())
                else None
            )
            self._others[key] = None if choice is None else choice.chosen
        return self._others[key]

    def _model(self, roots: tuple[str, ...], variable: int, function: SizedFunction, union: Mask) -> Scm:
        chosen = self._optimal_others(roots, variable, union)
        assert chosen is not None
        functions = dict(self._least_functions(chosen, variable))
        name = self.space.task.variables[variable]
        functions[name] = LocalFunction(self.space.names(function.mask), function.table)
        return write_model(self.space.task, self.space.model_class.max_parents, functions)

    def _smallest_model(self, roots: tuple[str, ...]) -> Scm | None:
        chosen = self._optimal_others(roots, -1, 0)
        if chosen is None:
            return None
        return write_model(self.space.task, self.space.model_class.max_parents, dict(self._least_functions(chosen, -1)))

    def _least_functions(self, chosen: Mapping[int, Mask], left_out: int) -> Iterator[tuple[str, LocalFunction]]:
        for v, mask in chosen.items():
            if v != left_out:
                yield self.space.task.variables[v], LocalFunction(self.space.names(mask), self._least(v, mask).table)


def _role(model: Scm, variable: str) -> LocalFunction | None:
    """Return the local function of a variable, None for a root."""
    return model.local_functions.get(variable)


# --- Worlds of one row that split the SCMs that fit: every possible reading, and how many SCMs it leaves; exact -------
MAX_OPEN = 8  # open variables that are not set in a row: each reading is a combination of their values
MAX_ROWS = 6_000  # rows that are counted for one item
MIN_BATCH_ROWS = 128  # rows that are counted in one call, times 8 bytes for each parent set
MAX_SLOW_ROWS = 120  # rows of spaces whose sums do not fit machine words
MAX_CONTEXTS = 8  # root assignments of an intervention that are compared


@dataclass(frozen=True)
class SplitContext:
    """A context with every row that SCMs that fit give in it, and the number of SCMs that each row leaves."""

    context: Context
    rows: tuple[tuple[int, ...], ...]
    remaining: tuple[int, ...]

    @property
    def rank(self) -> tuple[int, int, int]:
        """Sort key, best first: most SCMs left, sum of squares (expected number left), number of targets."""
        return max(self.remaining), sum(count * count for count in self.remaining), len(self.context.targets)


class _ContextRows(NamedTuple):
    context: Context
    rows: Rows


def _batches(contexts: Sequence[_ContextRows]) -> Iterator[list[_ContextRows]]:
    """Yield contexts in batches of at least MIN_BATCH_ROWS rows, to make the cost of a kernel call small."""
    batch: list[_ContextRows] = []
    for context in contexts:
        batch.append(context)
        if sum(len(entry.rows.words) for entry in batch) >= MIN_BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


class Settling:
    """Splits of a version space with known roots by worlds of one row; `BudgetSpent` if its sums are out of budget."""

    def __init__(self, space: VersionSpace, choices: Choices, count: int) -> None:
        self.space = space
        self.choices = choices
        self.count = count
        self.names = space.task.variables
        (self.roots,) = choices.root_sets
        self._space = ConditionedSpace(ParentSets(space, None), self.roots)
        self.budget = MAX_ROWS if self._space._fits_words else MAX_SLOW_ROWS
        self.open = [name for name, options in choices.by_variable.items() if options.is_open]
        self.looked_at = 0

    def splits(self, variable: str, first: Scm, second: Scm) -> list[SplitContext]:
        """Return the contexts in which the pair differs in the variable, best first."""
        menu = target_menu(variable, first, second)
        by_targets = differing_contexts(variable, first, second, menu, MAX_CONTEXTS)
        contexts = [context for listed in by_targets for context in listed or () if self._spend(context)]
        rows = [self._rows(context, first) for context in contexts]
        splits = [split for batch in _batches(rows) for split in self._split(batch)]
        return sorted(splits, key=lambda split: split.rank)

    def _free(self, context: Context) -> list[str]:
        return [name for name in self.open if name not in context.targets]

    def _spend(self, context: Context) -> bool:
        """Charge the rows of a context to the budget; False if they are too many."""
        num_free = len(self._free(context))
        if num_free > MAX_OPEN or 1 << num_free > self.budget:
            return False
        self.budget -= 1 << num_free
        self.looked_at += 1
        return True

    def _rows(self, context: Context, model: Scm) -> _ContextRows:
        """Return every row of a context: all values of open variables; decided ones follow from their mechanism."""
        free = self._free(context)
        num_rows = 1 << len(free)
        rows = (1 << num_rows) - 1
        columns = {name: rows * bit for name, bit in (context.roots | context.targets).items()}
        columns |= {name: projection(i, len(free)).bits for i, name in enumerate(reversed(free))}
        clamped = dict.fromkeys(columns, rows)
        values = simulate(model, columns, clamped, rows)
        words = row_words([values[name] for name in self.names], num_rows)
        targets = sum(1 << self.space.index[name] for name in context.targets)
        return _ContextRows(context, Rows(words, np.full(num_rows, targets, np.uint64)))

    def _split(self, batch: Sequence[_ContextRows]) -> Iterator[SplitContext]:
        """Yield each context with its possible rows and the number of SCMs that each leaves."""
        rows = Rows(*(np.concatenate(parts) for parts in zip(*(entry.rows for entry in batch), strict=True)))
        masses = iter(self._space.masses(rows, np.arange(len(rows.words) + 1, dtype=np.int64)))
        for context, (words, _) in batch:
            counted = zip(words.tolist(), islice(masses, len(words)), strict=True)
            readings = [(word, count) for word, count in counted if count]
            assert sum(count for _, count in readings) == self.count, "readings of a row partition what fits"
            bits = [tuple(word >> i & 1 for i in range(len(self.names))) for word, _ in readings]
            yield SplitContext(context, tuple(bits), tuple(count for _, count in readings))

    def deciders(self, splits: Sequence[SplitContext], limit: int = 4) -> Iterator[Decider]:
        """Yield the best splits, one for each set of targets, as worlds to copy."""
        met: set[tuple[tuple[str, int], ...]] = set()
        for split in splits:
            key = tuple(split.context.targets.items())
            if key in met:
                continue
            met.add(key)
            yield self._decider(split)
            if len(met) == limit:
                return

    def _decider(self, split: SplitContext) -> Decider:
        readings = sorted(zip(split.remaining, split.rows, strict=True), key=lambda entry: (entry[0], entry[1]))
        return Decider(
            in_words=context_words(split.context, self.names),
            world=world_to_copy(self.space, split.context),
            readings=tuple(Reading("".join(map(str, row)), str(count)) for count, row in readings),
            least=str(min(split.remaining)),
            most=str(max(split.remaining)),
            expected=sum(count * count for count in split.remaining) / self.count,
        )


def world_to_copy(space: VersionSpace, context: Context) -> dict[str, Any]:
    """Return a training world in the pool format, with ? for values to observe; its unit is new."""
    names, worlds = space.task.variables, space.task.training.worlds
    fixed = {**context.roots, **context.targets}
    pattern = "".join(str(fixed[name]) if name in fixed else "?" for name in names)
    world: dict[str, Any] = {"id": _unused("new_world", {w.id for w in worlds}), "rows": [pattern]}
    if context.targets:
        world["constants"] = dict(context.targets)
    return world | {"units": [_unused("new_unit", {unit for w in worlds for unit in w.units})]}


def readings_of_pair(space: VersionSpace, context: Context, first: Scm, second: Scm) -> Decider:
    """Count the SCMs that the rows of a pair leave; other rows are possible too, as the roots are hidden."""
    names, readings = space.task.variables, []
    for model in (first, second):
        values = values_at(model, context)
        columns = tuple(values[name] for name in names)
        world = World("reading", Intervention(context.targets), names, ("reading",), columns)
        remaining = space.with_worlds([world]).count
        readings.append(Reading("".join(map(str, columns)), str(remaining)))
    counts = [int(reading.remaining) for reading in readings]
    return Decider(
        in_words=context_words(context, names),
        world=world_to_copy(space, context),
        readings=tuple(readings),
        least=str(min(counts)),
        most=str(max(counts)),
        expected=None,
        complete=False,
    )


def context_words(context: Context, names: Sequence[str]) -> str:
    """Return a context as part of a sentence: do(X1 = 1) with X2 = 0."""
    roots = [f"{name} = {context.roots[name]}" for name in names if name in context.roots]
    targets = [f"{name} = {bit}" for name, bit in context.targets.items()]
    visible = f"a unit with {', '.join(roots)}" if roots else "any unit"
    return f"do({', '.join(targets)}) and {visible}" if targets else visible


def _unused(name: str, used_names: set[str]) -> str:
    suffix = 0
    while f"{name}_{suffix}" in used_names:
        suffix += 1
    return f"{name}_{suffix}"
