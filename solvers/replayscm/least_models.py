"""All train-exact SCMs of least total size: their exact number, and each of them or uniform draws.

The exact solver returns one of them by its tie rule; what a rate owes to that choice is what the others say. Members
are counted up to meaning: SCMs with the same local functions are one (solvers.replayscm.space).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from math import comb
from random import Random

import numpy as np

from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.formulas.catalogue import COMPLETE, constant_sizes
from calibrant.solvers.outcome import BudgetSpent, Found, OutOfBudget
from calibrant.solvers.replayscm.exact import ONLY_NESTED, ExactAnswer
from calibrant.solvers.replayscm.members import count_by_size, members_by_size, sample_member
from calibrant.solvers.replayscm.space import I64, LocalSpace, ModelClass, VersionSpace, size_counts

MAX_LISTED = 1_000  # least SCMs; of more so many are drawn
MAX_PARENT_SETS = 100_000  # over all variables; of more no tables are made: that would cost more than the answer
MAX_TERMS = 200_000  # terms of a sum over DAGs: a fraction of a second
_SIZE_STEP = 4  # functions are indexed up to multiples of it
_PENALTY = 24  # bits by which a node more makes a draw less likely: nearly every draw is of least size


@dataclass(frozen=True)
class LeastModels:
    """The least SCMs of a task.

    count: how many there are; models: all of them, or MAX_LISTED independent uniform draws
    unlisted: which functions are in no catalogue, so that SCMs with them are not among these; empty if none could be
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
    """Return all SCMs that are as small as the solver's answer, or draws; `OutOfBudget` says why they are not counted.

    max_parents: of the class in which the answer is least
    """
    numbers = [len(task.disclosure.admissible_parents(variable)) for variable in task.variables]
    num_sets = sum(comb(number, size) for number in numbers for size in range(max_parents + 1))
    if num_sets > MAX_PARENT_SETS:
        return OutOfBudget(f"least SCMs are not counted: {num_sets} parent sets, more than {MAX_PARENT_SETS}")
    nested = answer.provenance.get("nested_roots") == ONLY_NESTED
    space = _LeastSpace(task, ModelClass(max_parents, nested_roots=nested), answer.size)
    try:
        count = count_by_size(space).get(answer.size, 0)
    except BudgetSpent as spent:
        return OutOfBudget(f"least SCMs are not counted: {spent}")
    if not count:
        return OutOfBudget(f"least SCMs are not counted: {space.unlisted}")
    if count <= max_listed:
        return Found(LeastModels(count, tuple(islice(members_by_size(space, (answer.size,)), count)), space.unlisted))
    random, models = Random(count), list[Scm]()
    while len(models) < max_listed:  # rejection leaves a uniform draw: equal sizes weigh the same
        model = sample_member(space, random, _PENALTY)
        if model.size == answer.size:
            models.append(model)
    return Found(LeastModels(count, tuple(models), space.unlisted))


class _LeastSpace(VersionSpace):
    """Members of at most a total size, whose mechanisms are no larger than the least of all others leave room for.

    unlisted: functions that could belong to a least SCM and are in no catalogue; empty if there are none
    """

    def __init__(self, task: Task, model_class: ModelClass, size: int) -> None:
        super().__init__(task, model_class, terms=MAX_TERMS)
        self.unlisted = ""
        self._counts: dict[int, I64] = {}
        self._caps = self._size_caps(size)
        self.model_class = replace(model_class, max_size=max(self._caps.values()))

    def _size_caps(self, size: int) -> Mapping[int, int]:
        """Return the largest size of each variable's mechanism in an SCM of that total size."""
        least = {v: self._least(v) for v in self.index.values()}
        caps = {}
        for variable in least:
            others = sorted(bound for v, bound in least.items() if v != variable)
            if self.task.disclosure.roots is None:  # those that are roots have no mechanism: the largest, at worst
                del others[len(least) - self.task.disclosure.num_roots - 1 :]
            caps[variable] = size - sum(others)
        return caps

    def _least(self, variable: int) -> int:
        """Return a lower bound of the size of a variable's mechanism; of a disclosed root 0."""
        if self.task.variables[variable] in (self.task.disclosure.roots or ()):
            return 0
        bounds = [least] if (least := self._least_listed(variable)) is not None else []
        sizes = [int(size) for size in self.functions.complete_to[1:] if size != COMPLETE]
        return min([*bounds, *(size + 1 for size in sizes)], default=0)

    def _least_listed(self, variable: int) -> int | None:
        """Return the least size of a listed function that agrees, None without any; no larger one is looked at."""
        largest = self._largest_listed
        for max_size in range(_SIZE_STEP, largest + _SIZE_STEP, _SIZE_STEP):
            sizes = np.flatnonzero(self._counts_to(variable, max_size).any(axis=0))
            if len(sizes):
                return int(sizes[0])
        return None

    @cached_property
    def _largest_listed(self) -> int:
        constants = constant_sizes(self.functions, self.task.grammar)
        return max(int(self.functions.sizes.max()), *constants.values(), 0)

    def _counts_to(self, variable: int, max_size: int) -> I64:
        """Return `size_counts` up to a size, or a little beyond."""
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
            numbers = histograms.sum(1).astype(np.uint64)
            self._spaces[variable] = LocalSpace(space.masks, space.cares, space.values, numbers, histograms)
        return self._spaces[variable]

    def _note_unlisted(self, variable: int, space: LocalSpace, cap: int) -> None:
        for num_parents in np.unique(np.bitwise_count(space.masks[space.numbers > 0])).tolist():
            complete_size = int(self.functions.complete_to[num_parents])
            if num_parents and cap > complete_size != COMPLETE:
                name = self.task.variables[variable]
                self.unlisted = (
                    f"functions of {num_parents} variables are listed up to size {complete_size};"
                    f" one of {name} may have size {cap}"
                )
