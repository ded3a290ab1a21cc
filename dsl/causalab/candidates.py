"""The released helper that keeps the configs of a file which reproduce what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from calibrant.dsl.causalab.configs import Config
from calibrant.dsl.causalab.item import Traced
from calibrant.dsl.causalab.mechanism import Values
from calibrant.dsl.causalab.reference import Reading, bases_after, bases_of, values
from calibrant.dsl.errors import CalibrantError

TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class Transition:
    """All values before and after a property was set."""

    before: Values
    after: Values
    property: str
    value: float


def candidates(configs: Iterable[Config], names: Iterable[str], transitions: Iterable[Transition]) -> list[Config]:
    """Return the configs with these properties in which every transition comes out within 0.01."""
    properties = set(names)
    observations = list(transitions)
    return [c for c in configs if set(c.mechanism.drawn) == properties and all(explains(c, t) for t in observations)]


def explains(candidate: Config, transition: Transition) -> bool:
    """Return whether a config with the same properties turns the values before into those after."""
    mechanism = candidate.mechanism
    try:
        bases = bases_of(mechanism, transition.before)
        after = values(mechanism, bases_after(mechanism, bases, transition.property, transition.value, Reading.VALUE))
    except CalibrantError:  # numbers beyond any crystal's
        return False
    return all(abs(after[node] - transition.after[node]) <= TOLERANCE for node in after)


def transitions_of(trace: Sequence[Traced], *, listed_order: bool) -> list[Transition]:
    """Return the settings of a static trace.

    listed_order: each from the entry before it, as the released helper replays them; otherwise the first setting starts
        from entry 0, as the values show
    """
    transitions = []
    previous: Traced | None = None
    for i, entry in enumerate(trace):
        start = trace[i - 1] if listed_order or previous is not None else trace[0]
        if entry.property is not None and entry.value is not None and i:
            transitions.append(Transition(start.values, entry.values, entry.property, entry.value))
            previous = entry
    return transitions
