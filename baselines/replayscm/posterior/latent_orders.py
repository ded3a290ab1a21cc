"""Sums over the latent orders in which the generator may have built an SCM.

The roots come first, in an order of their own, because windows slide over them too; then each variable with the window
of its last predecessors. Orders are equally likely, so the sum is over all that the disclosure admits; prefixes with
the same variables and the same last window go on alike and are summed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import permutations
from math import fsum
from random import Random
from typing import Generic, TypeAlias, TypeVar

from calibrant.dsl.replayscm.disclosure import Disclosure
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.budget import Budget

T = TypeVar("T")

WindowWeight: TypeAlias = Callable[[int, Mask], float]
"""Weight of a variable that is built with this window."""

State: TypeAlias = tuple[Mask, tuple[int, ...]]
"""What is placed, and the last window in order."""


class LatentOrders:
    """All orders that start with one root set. A state of the budget is a prefix that is gone on from."""

    def __init__(
        self,
        variables: Sequence[str],
        disclosure: Disclosure,
        roots: Sequence[str],
        window: int,
        weight: WindowWeight,
        budget: Budget,
    ) -> None:
        self.weight = weight
        self.window = window
        self.budget = budget
        index = {variable: i for i, variable in enumerate(variables)}
        self.full = (1 << len(variables)) - 1
        self.roots = [index[root] for root in roots]
        self.root_mask = sum(1 << root for root in self.roots)
        self.known = None if disclosure.order is None else [index[v] for v in disclosure.order]
        self.before = {i: sum(1 << index[u] for u in disclosure.earlier(v)) for v, i in index.items()}
        self._memo: dict[State, float] = {}
        self._options: dict[State, tuple[Mask, Choice[tuple[int, State]]]] = {}  # for draws; the window first

    def starts(self) -> Iterator[State]:
        """Yield the roots with every last window they may leave; all equally likely."""
        if self.known is not None:
            yield self.root_mask, tuple([v for v in self.known if v in self.roots][-self.window :])
            return
        for last in permutations(self.roots, min(self.window, len(self.roots))):
            yield self.root_mask, last

    def mean(self) -> float:
        """Total weight of the orders of the other variables, averaged over those of the roots."""
        sums = [self.completions(start) for start in self.starts()]
        return fsum(sums) / len(sums)

    def completions(self, state: State) -> float:
        """Total weight of all ways to place the rest; `BudgetSpent` when there are too many."""
        if state[0] == self.full:
            return 1.0
        if state not in self._memo:
            self.budget.spend(1)
            self._memo[state] = fsum(weight * self.completions(after) for _, weight, after in self.steps(state))
        return self._memo[state]

    def heaviest(self) -> dict[int, Mask]:
        """Windows of all endogenous variables in an order of largest weight; the first of several."""
        best: dict[State, tuple[float, list[tuple[int, Mask]]]] = {}

        def heaviest_tail(state: State) -> tuple[float, list[tuple[int, Mask]]]:
            if state[0] == self.full:
                return 1.0, []
            if state not in best:
                self.budget.spend(1)
                heaviest: tuple[float, list[tuple[int, Mask]]] = 0.0, []
                for v, weight, after in self.steps(state):
                    tail_weight, tail = heaviest_tail(after)
                    if weight * tail_weight > heaviest[0]:
                        heaviest = weight * tail_weight, [(v, sum(1 << u for u in state[1])), *tail]
                best[state] = heaviest
            return best[state]

        return dict(max((heaviest_tail(start) for start in self.starts()), key=lambda result: result[0])[1])

    def steps(self, state: State) -> Iterator[tuple[int, float, State]]:
        """Every variable that may come next: its weight, and the state behind it."""
        placed, last = state
        window = sum(1 << v for v in last)
        if self.known is not None:
            free = [next(v for v in self.known if not placed >> v & 1)]
        else:
            free = [v for v, earlier in self.before.items() if not placed >> v & 1 and not earlier & ~placed]
        for v in free:
            weight = self.weight(v, window)
            if weight:
                yield v, weight, (placed | 1 << v, (*last, v)[-self.window :])

    def sample(self, rng: Random) -> dict[int, Mask]:
        """Windows of all endogenous variables in an order drawn by its weight."""
        state = self._start.draw(rng)
        windows: dict[int, Mask] = {}
        while state[0] != self.full:
            if state not in self._options:
                steps = [((v, after), weight * self.completions(after)) for v, weight, after in self.steps(state)]
                self._options[state] = sum(1 << v for v in state[1]), Choice(steps)
            window, options = self._options[state]
            v, state = options.draw(rng)
            windows[v] = window
        return windows

    @cached_property
    def _start(self) -> Choice[State]:
        return Choice([(start, self.completions(start)) for start in self.starts()])


class Choice(Generic[T]):
    """Options with weights, from which is drawn again and again."""

    def __init__(self, options: Sequence[tuple[T, float]]) -> None:
        self.options = options
        self.whole = fsum(weight for _, weight in options)

    def draw(self, rng: Random) -> T:
        """One option with probability proportional to its weight."""
        mark = rng.random() * self.whole
        for option, weight in self.options:
            mark -= weight
            if mark < 0:
                return option
        return next(option for option, weight in reversed(self.options) if weight)
