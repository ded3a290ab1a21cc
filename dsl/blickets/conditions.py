"""The condition that a mechanism belongs to, and the error for an item that names another.

The relation is that of the specification, in both directions: every condition is one row, and a mechanism belongs to
at most one. A rule of one blicket is the same function under both words, so it is of either static condition unless
the item wants the word that it is written with.
"""

from __future__ import annotations

from itertools import pairwise

from calibrant.dsl.blickets.item import BlicketItem, Condition, Sealed
from calibrant.dsl.blickets.rule import Form

MEANINGS = {
    Condition.CONJUNCTIVE: "one conjunctive rule, no order, no switch, p = 1",
    Condition.DISJUNCTIVE: "one disjunctive rule, no order, no switch, p = 1",
    Condition.MODERATOR: "two rules or more, each another function than the one before, no order, p = 1",
    Condition.ORDER: "one rule with an order of two blickets or more, no switch, p = 1",
    Condition.STOCHASTIC: "one rule, no order, no switch, p below 1",
    Condition.NOISY_MODERATOR: "two rules or more, each another function than the one before, no order, p below 1",
}


def condition_of(sealed: Sealed) -> Condition | None:
    """Return the condition of a mechanism; None where no condition has it."""
    first = sealed.mechanisms[0]
    noisy = sealed.p < 1
    if any(mechanism.order is not None for mechanism in sealed.mechanisms):
        is_order = not sealed.switches and not noisy and len(first.order or ()) > 1
        return Condition.ORDER if is_order else None
    if sealed.switches:
        if repeated_rule(sealed):
            return None
        return Condition.NOISY_MODERATOR if noisy else Condition.MODERATOR
    if noisy:
        return Condition.STOCHASTIC
    return Condition.CONJUNCTIVE if first.rule.form is Form.CONJUNCTIVE else Condition.DISJUNCTIVE


def repeated_rule(sealed: Sealed) -> int:
    """Return the number of the first rule that is the same function as the one before it; 0 if there is none."""
    rules = [mechanism.rule.canonical for mechanism in sealed.mechanisms]
    return next((number for number, (rule, next_rule) in enumerate(pairwise(rules), 2) if rule == next_rule), 0)


def contradiction(item: BlicketItem) -> str:
    """Why the condition of an item is not that of its mechanism; empty if it is."""
    sealed, condition = item.sealed, condition_of(item.sealed)
    if condition is item.condition:
        return ""
    static = (Condition.CONJUNCTIVE, Condition.DISJUNCTIVE)
    single = sealed.mechanisms[0].rule.blickets.bit_count() == 1 and not sealed.strict_singleton
    if single and condition in static and item.condition in static:
        return ""
    return f"condition {item.condition} is {MEANINGS[item.condition]}; the mechanism is {_in_words(sealed)}"


def _in_words(sealed: Sealed) -> str:
    orders = [len(mechanism.order) for mechanism in sealed.mechanisms if mechanism.order is not None]
    number = len(sealed.mechanisms)
    parts = [f"one {sealed.mechanisms[0].rule.form} rule" if number == 1 else f"{number} rules"]
    repeated = repeated_rule(sealed)
    parts += [f"rule {repeated} the same as rule {repeated - 1}"] if repeated else []
    parts += [f"an order of {orders[0]}" if orders else "no order", f"p = {sealed.p:g}"]
    return ", ".join(parts)
