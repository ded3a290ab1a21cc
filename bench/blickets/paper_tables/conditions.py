"""Conditions for which the paper prints statistics, and the items under them."""

from __future__ import annotations

from calibrant.dsl.blickets.item import BlicketItem, Condition, Exposure, SwitchBy
from calibrant.dsl.blickets.rule import Form


def _is_switched(item: BlicketItem, form: Form, size: int, switch: int) -> bool:
    """Return whether a conjunctive pair becomes another rule of that form and size, with no object in both, after N."""
    if item.condition is not Condition.MODERATOR or len(item.sealed.mechanisms) != 2 or item.task.n != 5:
        return False
    sealed = item.sealed
    if sealed.switch_by is not SwitchBy.ACTIVATIONS or sealed.exposure != Exposure() or item.task.graded:
        return False
    first, second = (mechanism.rule.canonical for mechanism in sealed.mechanisms)
    return (
        sealed.switches == (switch,)
        and first.form is Form.CONJUNCTIVE
        and (first.blickets.bit_count(), second.form, second.blickets.bit_count()) == (2, form, size)
        and not first.blickets & second.blickets
    )


def is_easy(item: BlicketItem, switch: int) -> bool:
    """Return whether a single object is enough after N = `switch` activations; 75 steps."""
    return _is_switched(item, Form.DISJUNCTIVE, 1, switch) and item.task.budget == 75


def is_hard(item: BlicketItem) -> bool:
    """Return whether the other three objects are needed after three activations; any budget."""
    return _is_switched(item, Form.CONJUNCTIVE, 3, 3)


def is_stochastic(item: BlicketItem) -> bool:
    """Return whether it is an unreliable detector of five objects, p = .7."""
    return item.condition is Condition.STOCHASTIC and item.sealed.p == 0.7 and item.task.n == 5


def is_order(item: BlicketItem) -> bool:
    """Return whether an order matters among four objects."""
    return item.condition is Condition.ORDER and item.task.n == 4
