"""Reference semantics of a mechanism: values of a crystal, settings of a property, hidden noise.

A crystal is one unit; its properties are the nodes that can be set, and its frequency is the outcome, which cannot.

Rounding is part of the semantics: every node is rounded to two decimals with Python's `round`, children are computed
from rounded parents, and sums are added from the left, base first. The released code (v0.0.2) does the same, except
that it may give -0.0 where this gives 0.0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

from calibrant.dsl.causalab.mechanism import FREQUENCY, Mechanism, Values
from calibrant.dsl.errors import CalibrantError

DECIMALS = 2
NO_SHIFT: Mapping[str, float] = {}


class SettingMeaning(StrEnum):
    """The meaning of the number that a property is set to."""

    VALUE = "value"  # the final value of the property (released code)
    BASE = "base"  # the new base of the property (paper)


class UnboundedError(CalibrantError):
    """A value would not be a finite number."""


def round_value(number: float) -> float:
    """Round to two decimals; never -0.0."""
    rounded = round(number, DECIMALS)
    return rounded if rounded else abs(rounded)


def values(mechanism: Mechanism, bases: Values, shifts: Values = NO_SHIFT) -> dict[str, float]:
    """Return the value of every node of a crystal.

    bases: exogenous base value of each property
    shifts: hidden noise, added to a node after its own rounding and rounded again, before its children are computed

    `UnboundedError` if a value is not finite.
    """
    node_values: dict[str, float] = {}
    for node in mechanism.order:
        # the mechanism has the base of the frequency, the crystal those of properties
        total = mechanism.frequency_base if node == FREQUENCY else bases[node]
        try:
            for parent, power, weight in mechanism.equations[node].terms:
                # most powers are 1, and x ** 1 takes three times as long as x
                total = total + (weight * node_values[parent] if power == 1 else weight * node_values[parent] ** power)
        except OverflowError:
            total = math.inf
        if not math.isfinite(total):
            raise UnboundedError(f"{node} would not be a finite number")
        total = round_value(total)
        if node in shifts:
            total = round_value(total + shifts[node])
        node_values[node] = total
    return node_values


def bases_after(
    mechanism: Mechanism, bases: Values, node: str, value: float, meaning: SettingMeaning
) -> dict[str, float]:
    """Return the bases of a crystal after a property was set.

    With the meaning VALUE, that of the released code, the new base is the given value minus the contribution of the
    parents, which is the property's present rounded value, without noise, minus its present base.
    """
    new_bases = dict(bases)
    if meaning is SettingMeaning.BASE or not mechanism.equations[node].terms:
        new_bases[node] = round_value(value)
    else:
        new_bases[node] = round_value(value - (values(mechanism, bases)[node] - bases[node]))
    if not math.isfinite(new_bases[node]):
        raise UnboundedError(f"the base of {node} would not be a finite number")
    return new_bases


def bases_of(mechanism: Mechanism, node_values: Values) -> dict[str, float]:
    """Return the bases, rounded to two decimals, of a crystal with these noiseless values."""
    bases = {}
    for node in mechanism.nodes_with_drawn_base:
        terms = mechanism.equations[node].terms
        bases[node] = round_value(node_values[node] - math.fsum(w * node_values[p] ** power for p, power, w in terms))
    return bases
