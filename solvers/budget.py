"""Budgets in states, not in seconds: the same budget gives the same answer on every machine.

Integer programs alone (solvers.acyclic.integer_program) are given seconds, at the end of which they say what they have.
"""

from __future__ import annotations

from collections.abc import Mapping

LEAST_SCM_STATES = 2_000_000_000  # functions that formula search may compare: under two seconds; pools need none


class BudgetSpent(Exception):  # noqa: N818  # a signal between parts of a solver, not an error; callers see OutOfBudget
    """More states were asked for than are left."""


class Undecided(BudgetSpent):
    """The budget ran out in a search for a minimum, or it cannot be decided at all.

    at_least: proven; nothing costs less
    reached: why, in words; None if it was the budget
    known: the best choice met so far, by variable; None if none is
    """

    def __init__(self, at_least: int, reached: str | None = None, known: Mapping[int, int] | None = None) -> None:
        super().__init__(reached or f"at least {at_least}")
        self.at_least = at_least
        self.reached = reached
        self.known = known


class Budget:
    """Counts down the states that a search may still look at.

    What a state is (a function compared, a node of a search tree) each solver says. States are charged before the work.
    """

    __slots__ = ("_exhausted", "states", "used")

    def __init__(self, states: int | None = None) -> None:
        """At most that many states; None sets no limit.

        states: how many are left, None without a limit
        used: how many were charged so far
        """
        if states is not None and states < 0:
            raise ValueError(f"a budget of {states} states; it is 0 or more, or None for no limit")
        self.states = states
        self.used = 0
        self._exhausted = False

    @property
    def exhausted(self) -> bool:
        """Return whether more states were asked for than there were."""
        return self._exhausted

    def spend(self, states: int) -> None:
        """Charge that many states; `BudgetSpent` if fewer are left, and from then on whenever any are asked for."""
        if self.states is not None:
            if self._exhausted or states > self.states:
                self._exhausted = True
                raise BudgetSpent
            self.states -= states
        self.used += states

    def __repr__(self) -> str:
        return f"Budget(states={self.states}, used={self.used})"
