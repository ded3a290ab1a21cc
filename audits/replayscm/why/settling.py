"""Worlds of one row that split what fits: every reading that may follow, and how many SCMs each leaves; exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from calibrant.audits.replayscm.why.parts import Decider, Reading
from calibrant.audits.replayscm.why.smallest_pair import Choices
from calibrant.audits.replayscm.why.table_rows import Context, differing_contexts, target_menu, values_at
from calibrant.dsl.formulas.table import projection
from calibrant.dsl.replayscm.evaluator import simulate
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, Rows, World, row_words
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, ParentSets
from calibrant.solvers.replayscm.space import VersionSpace

MAX_OPEN = 8  # open variables that a row leaves free: each reading is a combination of their values
MAX_ROWS = 6_000  # rows that are counted for one item
MIN_BATCH_ROWS = 128  # rows that are counted in one call, times 8 bytes for each parent set
MAX_SLOW_ROWS = 120  # rows of spaces whose sums do not fit machine words
MAX_CONTEXTS = 8  # root assignments of an intervention that are compared


@dataclass(frozen=True)
class SplitContext:
    """A context with every row that may be seen in it, and how many SCMs each leaves."""

    context: Context
    rows: tuple[tuple[int, ...], ...]
    remaining: tuple[int, ...]

    @property
    def rank(self) -> tuple[int, int, int]:
        """Most SCMs left, then their expected number times all, then the number of targets."""
        return max(self.remaining), sum(number * number for number in self.remaining), len(self.context.targets)


class _ContextRows(NamedTuple):
    context: Context
    rows: Rows


def _batches(contexts: Sequence[_ContextRows]) -> Iterator[list[_ContextRows]]:
    """Yield contexts, so many at a time that a call of the kernel is not dearer than what it counts."""
    batch: list[_ContextRows] = []
    for context in contexts:
        batch.append(context)
        if sum(len(entry.rows.words) for entry in batch) >= MIN_BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


class Settling:
    """Splits of one version space whose roots are told; `BudgetSpent` where its sums are out of budget."""

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
        """Contexts in which the pair differs in the variable, best first."""
        menu = target_menu(variable, first, second)
        by_targets = differing_contexts(variable, first, second, menu, MAX_CONTEXTS)
        contexts = [context for listed in by_targets for context in listed or () if self._spend(context)]
        rows = [self._rows(context, first) for context in contexts]
        splits = [split for batch in _batches(rows) for split in self._split(batch)]
        return sorted(splits, key=lambda split: split.rank)

    def _free(self, context: Context) -> list[str]:
        return [name for name in self.open if name not in context.targets]

    def _spend(self, context: Context) -> bool:
        """Charge the rows of a context to the budget; False where they are too many."""
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
        """Yield how many SCMs each possible row of some contexts leaves."""
        rows = Rows(*(np.concatenate(parts) for parts in zip(*(entry.rows for entry in batch), strict=True)))
        masses = iter(self._space.masses(rows, np.arange(len(rows.words) + 1, dtype=np.int64)))
        for context, (words, _) in batch:
            numbered = zip(words.tolist(), islice(masses, len(words)), strict=True)
            possible = [(word, number) for word, number in numbered if number]
            assert sum(number for _, number in possible) == self.count, "readings of a row partition what fits"
            bits = [tuple(word >> i & 1 for i in range(len(self.names))) for word, _ in possible]
            yield SplitContext(context, tuple(bits), tuple(number for _, number in possible))

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
            readings=tuple(Reading("".join(map(str, row)), str(number)) for number, row in readings),
            least=str(min(split.remaining)),
            most=str(max(split.remaining)),
            expected=sum(number * number for number in split.remaining) / self.count,
        )


def world_to_copy(space: VersionSpace, context: Context) -> dict[str, Any]:
    """Return a training world of the pool format, ? where it is to be observed.

    Its unit is new: no threshold is claimed.
    """
    names, worlds = space.task.variables, space.task.training.worlds
    fixed = {**context.roots, **context.targets}
    pattern = "".join(str(fixed[name]) if name in fixed else "?" for name in names)
    world: dict[str, Any] = {"id": _unused("new_world", {w.id for w in worlds}), "rows": [pattern]}
    if context.targets:
        world["constants"] = dict(context.targets)
    return world | {"units": [_unused("new_unit", {unit for w in worlds for unit in w.units})]}


def readings_of_pair(space: VersionSpace, context: Context, first: Scm, second: Scm) -> Decider:
    """Count the SCMs that the rows of a pair leave; other rows are possible too, because the roots are not told."""
    names, readings = space.task.variables, []
    for model in (first, second):
        values = values_at(model, context)
        columns = tuple(values[name] for name in names)
        world = World("reading", Intervention(context.targets), names, ("reading",), columns)
        remaining = space.with_worlds([world]).count
        readings.append(Reading("".join(map(str, columns)), str(remaining)))
    numbers = [int(reading.remaining) for reading in readings]
    return Decider(
        in_words=context_words(context, names),
        world=world_to_copy(space, context),
        readings=tuple(readings),
        least=str(min(numbers)),
        most=str(max(numbers)),
        expected=None,
        complete=False,
    )


def context_words(context: Context, names: Sequence[str]) -> str:
    """Return a context as part of a sentence: do(X1 = 1) with X2 = 0."""
    roots = [f"{name} = {context.roots[name]}" for name in names if name in context.roots]
    targets = [f"{name} = {bit}" for name, bit in context.targets.items()]
    visible = f"a unit with {', '.join(roots)}" if roots else "any unit"
    return f"do({', '.join(targets)}) and {visible}" if targets else visible


def _unused(name: str, taken: set[str]) -> str:
    number = 0
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
