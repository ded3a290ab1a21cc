"""Mechanisms as decision diagrams: their values and effects without a table over all combinations of arguments.

The ways of a tabulation (language.tables) from state to state are the diagram: an argument is read at most once on a
path. So a sum of fifteen items costs its partial sums and not its 10^10 combinations. `language.decisions` compares
diagrams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from calibrant.dsl.causim.language.execution_limits import StepBudget
from calibrant.dsl.causim.language.statements import Function
from calibrant.dsl.causim.language.tables import Way, explore
from calibrant.dsl.causim.values import Symbol


@dataclass(frozen=True, eq=False)
class Diagram:
    """levels: of each statement the ways from each state; default: the value of a run that returns none."""

    levels: Sequence[Mapping[object, Sequence[Way]]]
    default: Symbol

    @cached_property
    def values(self) -> frozenset[Symbol]:
        """The values that some combination of arguments gives."""
        ways = [way for level in self.levels for ways in level.values() for way in ways]
        last = [way for ways in (self.levels[-1].values() if self.levels else ()) for way in ways]
        returned = frozenset(way.returned for way in ways if way.returned is not None)
        falls_through = not self.levels or any(way.returned is None for way in last)
        return returned | ({self.default} if falls_through else set())

    def reordered(self, places: Sequence[int]) -> Diagram:
        """Return the diagram with its parameter `places[k]` as parameter k; those at -1 are new and never read."""

        def moved(way: Way) -> Way:
            return Way(tuple(None if k < 0 else way.positions[k] for k in places), way.returned, way.state)

        levels = [{key: [moved(way) for way in ways] for key, ways in level.items()} for level in self.levels]
        return Diagram(levels, self.default)


def diagram(
    function: Function, values: Sequence[Sequence[Any]], encode: Callable[[Any], Symbol], work: StepBudget
) -> Diagram:
    """Return the diagram of a mechanism; `Unsupported` where some combination raises or leaves its limits."""
    return Diagram(_merge_states(explore(function, values, encode, work)), encode(None))


def _merge_states(levels: Sequence[Mapping[object, Sequence[Way]]]) -> list[dict[object, list[Way]]]:
    """Merge the states of a level from which the same ways go: they differ in remaining steps, or in names unread."""
    merged: list[dict[object, list[Way]]] = []
    representative: dict[object, object] = {}
    for level in reversed(levels):
        states: dict[object, list[Way]] = {}
        by_ways: dict[tuple[Way, ...], object] = {}
        of_level: dict[object, object] = {}
        for key, ways in level.items():
            moved = [Way(way.positions, way.returned, representative.get(way.state)) for way in ways]
            first = of_level[key] = by_ways.setdefault(tuple(moved), key)
            if first is key:
                states[key] = moved
        merged.append(states)
        representative = of_level
    return merged[::-1]
