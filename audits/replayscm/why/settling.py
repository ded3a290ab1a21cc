"""Worlds of one row that split what fits: every reading that may follow, and how many SCMs each leaves; exact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from calibrant.audits.replayscm.why.choices import Choices
from calibrant.audits.replayscm.why.parts import Decider, Reading
from calibrant.audits.replayscm.why.table_rows import Context, differing_contexts, local_value, target_menu, values_at
from calibrant.dsl.replayscm.evaluator import Rows
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, World
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, ParentSets
from calibrant.solvers.replayscm.version_space import VersionSpace

MAX_OPEN = 8  # open variables that a row leaves free: each reading is a combination of their values
MAX_ROWS = 6_000  # rows that are counted for one item
MAX_SLOW_ROWS = 120  # of spaces whose sums do not fit machine words
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
        splits = []
        for targets in target_menu(variable, first, second):
            try:
                contexts = differing_contexts(variable, first, second, targets)
            except ValueError:
                continue
            for context in contexts[:MAX_CONTEXTS]:
                split = self._split(context, first)
                if split is not None:
                    splits.append(split)
        return sorted(splits, key=lambda split: split.rank)

    def _split(self, context: Context, model: Scm) -> SplitContext | None:
        """Count the SCMs that each possible row of a context leaves; None where that is too many rows."""
        free = [name for name in self.open if name not in context.targets]
        if len(free) > MAX_OPEN or 1 << len(free) > self.budget:
            return None
        self.budget -= 1 << len(free)
        self.looked_at += 1
        rows = [
            self._row(context, model, dict(zip(free, bits, strict=True))) for bits in product((0, 1), repeat=len(free))
        ]
        words = np.array([sum(bit << i for i, bit in enumerate(row)) for row in rows], np.uint64)
        clamped = sum(1 << self.space.index[name] for name in context.targets)
        masses = self._space.masses(
            Rows(words, np.full(len(rows), clamped, np.uint64)), np.arange(len(rows) + 1, dtype=np.int64)
        )
        possible = [(row, number) for row, number in zip(rows, masses, strict=True) if number]
        assert sum(number for _, number in possible) == self.count, "readings of a row partition what fits"
        return SplitContext(context, tuple(row for row, _ in possible), tuple(number for _, number in possible))

    def _row(self, context: Context, model: Scm, fixed_values: Mapping[str, int]) -> tuple[int, ...]:
        """Return the row in which open variables have these values; decided ones follow from their one mechanism."""
        values = context.roots | context.targets | dict(fixed_values)
        waiting = [name for name in self.names if name not in values]
        while waiting:
            for name in list(waiting):
                if all(u in values for u in model.local_functions[name].parents):
                    values[name] = local_value(model, name, values)
                    waiting.remove(name)
        return tuple(values[name] for name in self.names)

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
