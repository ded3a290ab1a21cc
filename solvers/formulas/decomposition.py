"""Least formulas beyond a catalogue: an exact search over the operator at the root and its arguments.

To ask for a formula of size s that agrees with a partial table, s - 1 nodes are divided among the arguments. All but
the largest come from the catalogue, and what is left to the largest is again a partial table with more open rows
(see solvers.formulas.splits). That question is a scan of the catalogue, or the same question for a smaller size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from dsl.formulas.table import full_mask
from solvers.budget import Budget
from solvers.formulas import _kernels_synthesis as kernels
from solvers.formulas import splits
from solvers.formulas.catalogue import Catalogue
from solvers.formulas.goal import Goal, Listed, Part, Split, split


class Decomposition:
    """Exact search in one catalogue; remembers what it has refuted.

    Questions are asked in ascending size: a search for size s relies on there being no smaller formula that agrees.
    A state of the budget is a listed function that is compared, or a pair of them.
    """

    def __init__(self, functions: Catalogue) -> None:
        self.functions = functions
        self.full = full_mask(functions.num_vars)
        self.budget = Budget()
        self._refuted: set[tuple[int, int, int]] = set()
        self._parity_pairs: dict[tuple[Goal, int], kernels.ParityPairs] = {}

    @property
    def max_size(self) -> int:
        """Largest size that can be searched: of two arguments one has to be listed."""
        return 2 * self.functions.max_size + 2

    def smallest(self, goal: Goal, size: int) -> Part | None:
        """The best function with a formula of that size that agrees, or None."""
        if size <= self.functions.max_size:
            return self._scan(goal, size)
        return self._search(goal, size, self.functions.operators)

    def rooted(self, goal: Goal, size: int, operator: str) -> Split | None:
        """The same among formulas with the operator at their root."""
        return best(goal, self._candidates(goal, size, operator))

    def listed(self, position: int) -> Listed:
        return Listed(int(self.functions.words[position]), int(self.functions.sizes[position]), position)

    def parity_pairs(self, goal: Goal, total: int) -> kernels.ParityPairs:
        """The best two listed arguments of that total cost for `xor`, and for `iff`; one pass for both."""
        question = goal, total
        if question not in self._parity_pairs:
            functions = self.functions
            self.budget.spend(int(functions.ends[min(total, functions.max_size)]))
            self._parity_pairs[question] = kernels.parity_pairs(
                functions.words, functions.parity_costs, functions.ends, total, *map(np.uint64, goal)
            )
        return self._parity_pairs[question]

    def _scan(self, goal: Goal, size: int) -> Listed | None:
        start, end = (int(end) for end in self.functions.ends[size - 1 : size + 1])
        self.budget.spend(end - start)
        position = kernels.best_match(self.functions.words, start, end, *map(np.uint64, goal))
        return None if position < 0 else self.listed(position)

    def _search(self, goal: Goal, size: int, operators: Iterable[str]) -> Split | None:
        question = goal.care, goal.value, size
        if question in self._refuted:
            return None
        found = best(goal, (part for name in operators for part in self._candidates(goal, size, name)))
        if found is None:
            self._refuted.add(question)
        return found

    def _candidates(self, goal: Goal, size: int, operator: str) -> Iterator[Split]:
        match operator:
            case "not":
                yield from self._negations(goal, size)
            case "and" | "or":
                yield from splits.junctions(self, goal, size, operator)
            case "xor":
                yield from splits.parities(self, goal, size, operator)
            case "iff":
                yield from splits.parities(self, goal, size, operator)
                yield from splits.equalities(self, goal, size)
            case _:
                raise AssertionError(operator)

    def _negations(self, goal: Goal, size: int) -> Iterator[Split]:
        inner = goal.shifted(self.full)
        part: Part | None
        if size - 1 <= self.functions.max_size:
            part = self._scan(inner, size - 1)
        else:  # no `not` below a `not`: without both the formula would be smaller
            part = self._search(inner, size - 1, (name for name in self.functions.operators if name != "not"))
        if part is not None:
            yield split("not", [part], size, self.full)


def best(goal: Goal, candidates: Iterable[Split]) -> Split | None:
    """The candidate of least score, of equals the first; stops when no later one can be better."""
    chosen = None
    for part in candidates:
        if chosen is None or goal.score(part.bits) < goal.score(chosen.bits):
            chosen = part
        if goal.score(chosen.bits) == goal.floor:
            break
    return chosen
