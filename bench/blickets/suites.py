"""The paper's conditions as suites of items: the same roles for everybody, drawn by the number of the item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from dsl.blickets.item import BlicketItem, Condition, Mechanism, Sealed, Task
from dsl.blickets.rule import Form, Rule, set_of

LETTERS = "ABCDE"
BUDGET = 75
ORDER_BUDGET = 100  # of the runs with four objects


@dataclass(frozen=True, slots=True)
class Suite:
    """One condition. drawn: the mechanism and its surroundings from a shuffled list of object numbers and a seed"""

    name: str
    condition: Condition
    num_objects: int
    drawn: Callable[[list[int], int], Sealed]
    budget: int = BUDGET

    def item(self, number: int) -> BlicketItem:
        """The same number gives the same item, everywhere."""
        roles = Random(number).sample(range(self.num_objects), self.num_objects)
        task = Task(tuple(LETTERS[: self.num_objects]), self.budget)
        return BlicketItem(f"{self.name}-{number}", self.condition, task, self.drawn(roles, number))

    def items(self, episodes: int) -> list[BlicketItem]:
        return [self.item(number) for number in range(episodes)]


def _pair(roles: list[int]) -> Mechanism:
    return Mechanism(Rule(Form.CONJUNCTIVE, set_of(roles[:2])))


def _single(roles: list[int]) -> Mechanism:
    return Mechanism(Rule(Form.DISJUNCTIVE, set_of(roles[2:3])))


def _triple(roles: list[int]) -> Mechanism:
    return Mechanism(Rule(Form.CONJUNCTIVE, set_of(roles[2:5])))


def _unreliable(roles: list[int], seed: int) -> Sealed:
    return Sealed((_pair(roles),), p=0.7, noise_seed=seed)


def _ordered(length: int) -> Callable[[list[int], int], Sealed]:
    def drawn(roles: list[int], seed: int) -> Sealed:
        order = tuple(roles[:length])
        return Sealed((Mechanism(Rule(Form.CONJUNCTIVE, set_of(order)), order),))

    return drawn


SUITES = {
    suite.name: suite
    for suite in (
        Suite("conjunctive", Condition.CONJUNCTIVE, 5, lambda roles, seed: Sealed((_pair(roles),))),
        Suite("easy-3", Condition.MODERATOR, 5, lambda roles, seed: Sealed((_pair(roles), _single(roles)), (3,))),
        Suite("easy-5", Condition.MODERATOR, 5, lambda roles, seed: Sealed((_pair(roles), _single(roles)), (5,))),
        Suite("hard-3", Condition.MODERATOR, 5, lambda roles, seed: Sealed((_pair(roles), _triple(roles)), (3,))),
        Suite("stochastic", Condition.STOCHASTIC, 5, _unreliable),
        Suite("order-2-of-5", Condition.ORDER, 5, _ordered(2)),
        Suite("order-2-of-4", Condition.ORDER, 4, _ordered(2), ORDER_BUDGET),
        Suite("order-3-of-4", Condition.ORDER, 4, _ordered(3), ORDER_BUDGET),
        Suite("order-4-of-4", Condition.ORDER, 4, _ordered(4), ORDER_BUDGET),
    )
}
