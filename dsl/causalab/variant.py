"""Deviations of an item from its suite: what is shown, what is allowed, how a setting is read."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from calibrant.dsl.causalab.mechanism import Mechanism
from calibrant.dsl.causalab.reactor import TRIES
from calibrant.dsl.causalab.reference import Reading
from calibrant.dsl.causalab.score import roots

NUM_RECORDS = 2  # of the released suites
MAX_RECORDS = 64


class View(StrEnum):
    """The visible properties of the reactor crystal."""

    ALL = "all"
    ROOTS = "roots"  # only parentless ancestors of the frequency
    HIDE_ONE = "hide-one"  # all but one parent of the frequency


@dataclass(frozen=True, slots=True)
class Variant:
    """Terms of an item on a released config.

    records: earlier crystals that are shown; released: those of every released episode, which one fixed seed draws
    allowance: None for the config's
    fixed: how many of the settable properties cannot be set
    """

    records: int = NUM_RECORDS
    released: bool = False
    allowance: int | None = None
    fixed: int = 0
    view: View = View.ALL
    tries: int = TRIES
    reading: Reading = Reading.VALUE

    def __post_init__(self) -> None:
        if not 0 <= self.records <= MAX_RECORDS:
            raise ValueError(f"{self.records} records; 0 to {MAX_RECORDS} are possible")
        if self.allowance is not None and self.allowance < 0:
            raise ValueError(f"an allowance of {self.allowance}")


def visible_properties(view: View, mechanism: Mechanism, rng: random.Random) -> tuple[str, ...]:
    """Return the properties of the reactor crystal that are shown."""
    properties = mechanism.properties
    if view is View.ROOTS:
        return tuple(sorted(roots(mechanism.edges)))
    if view is View.HIDE_ONE:
        hidden = rng.choice(sorted(mechanism.frequency.parents))
        return tuple(p for p in properties if p != hidden)
    return properties
