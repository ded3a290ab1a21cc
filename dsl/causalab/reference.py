"""What a mechanism means: values of a crystal, settings of a property, hidden noise. Slow and readable.

Rounding is part of the meaning: every node is rounded to two decimals with Python's `round`, children see rounded
parents, and sums are added from the left, base first. The released code (v0.0.2) does the same, but for a negative
zero, which is 0 here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

from calibrant.dsl.causalab.mechanism import FREQUENCY, Mechanism, Values
from calibrant.dsl.errors import CalibrantError

DECIMALS = 2
NO_SHIFT: Mapping[str, float] = {}


class Reading(StrEnum):
    """What the value of a setting means."""

    VALUE = "value"  # the final value of the property (released code)
    BASE = "base"  # the new base of the property (paper)


class UnboundedError(CalibrantError):
    """A value would not be a finite number."""


def rounded(number: float) -> float:
    """The number to two decimals; never -0.0."""
    found = round(number, DECIMALS)
    return found if found else abs(found)


def values(mechanism: Mechanism, bases: Values, shifts: Values = NO_SHIFT) -> dict[str, float]:
    """The value of every node of a crystal.

    bases: of the properties
    shifts: hidden noise, added to a node after its own rounding and rounded again, before its children are computed
    `UnboundedError` if a value is not finite.
    """
    found: dict[str, float] = {}
    for node in mechanism.order:
        total = mechanism.frequency_base if node == FREQUENCY else bases[node]
        try:
            for parent, power, weight in mechanism.equations[node].terms:
                total = total + (weight * found[parent] if power == 1 else weight * found[parent] ** power)
        except OverflowError:
            total = math.inf
        if not math.isfinite(total):
            raise UnboundedError(f"{node} would not be a finite number")
        total = rounded(total)
        if node in shifts:
            total = rounded(total + shifts[node])
        found[node] = total
    return found


def bases_after(mechanism: Mechanism, bases: Values, node: str, value: float, reading: Reading) -> dict[str, float]:
    """The bases of a crystal after a property was set.

    In the reading of the released code the new base is what is missing to the wanted value, measured by the rounded
    value that the property has now, without noise.
    """
    made = dict(bases)
    if reading is Reading.BASE or not mechanism.equations[node].terms:
        made[node] = rounded(value)
    else:
        made[node] = rounded(value - (values(mechanism, bases)[node] - bases[node]))
    if not math.isfinite(made[node]):
        raise UnboundedError(f"the base of {node} would not be a finite number")
    return made


def bases_of(mechanism: Mechanism, seen: Values) -> dict[str, float]:
    """The bases of a crystal whose values are known (free of noise), to two decimals."""
    found = {}
    for node in mechanism.drawn:
        terms = mechanism.equations[node].terms
        found[node] = rounded(seen[node] - math.fsum(w * seen[p] ** power for p, power, w in terms))
    return found
