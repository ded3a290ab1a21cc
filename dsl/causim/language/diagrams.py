"""Mechanisms as decision diagrams: their values and effects without a table over all combinations of arguments.

The ways of a tabulation (language.tables) from state to state are the diagram: an argument is read at most once on a
path. Two diagrams are compared state by state along shared arguments, so a sum of fifteen items costs its partial sums
and not its 10^10 combinations. A difference comes with the arguments that show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from calibrant.dsl.causim.language.execution_limits import StepBudget
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.language.statements import Function
from calibrant.dsl.causim.language.tables import Way, explore
from calibrant.dsl.causim.values import Symbol

MAX_PAIRS = 250_000  # of states that the comparisons of a program go through, about 6 s
_Place: TypeAlias = tuple[int, object]  # a level, and the key of a state
Choices: TypeAlias = tuple[tuple[int, int], ...]  # parameter and position of its value, sorted by parameter


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

    @cached_property
    def reads(self) -> Mapping[_Place, frozenset[int]]:
        """The parameters that a run may still read from a state on."""
        reads: dict[_Place, frozenset[int]] = {}
        for number in reversed(range(len(self.levels))):
            for key, ways in self.levels[number].items():
                read_now = {k for way in ways for k, position in enumerate(way.positions) if position is not None}
                later = [reads.get((number + 1, way.state), frozenset()) for way in ways if way.returned is None]
                reads[number, key] = frozenset(read_now).union(*later)
        return reads

    def follow(self, place: _Place, chosen: Mapping[int, int]) -> Iterator[tuple[dict[int, int], _Place | Symbol]]:
        """Yield the ways from a state that agree with what is chosen: the further choices, and where they lead."""
        number, key = place
        for way in self.levels[number][key]:
            read = {k: position for k, position in enumerate(way.positions) if position is not None}
            if all(chosen.get(k, position) == position for k, position in read.items()):
                yield read, self._end(number + 1, way)

    def _end(self, number: int, way: Way) -> _Place | Symbol:
        if way.returned is not None:
            return way.returned
        return self.default if number == len(self.levels) else (number, way.state)

    def reordered(self, places: Sequence[int]) -> Diagram:
        """Return the diagram with its parameter `places[k]` as parameter k; those at -1 are new and never read."""

        def moved(way: Way) -> Way:
            return Way(tuple(None if k < 0 else way.positions[k] for k in places), way.returned, way.state)

        levels = [{key: [moved(way) for way in ways] for key, ways in level.items()} for level in self.levels]
        return Diagram(levels, self.default)

    @property
    def root(self) -> _Place | Symbol:
        return (0, None) if self.levels else self.default


def reads_below(diagram: Diagram, place: _Place | Symbol) -> frozenset[int]:
    return frozenset() if isinstance(place, str) else diagram.reads[place]


class TooManyPairs(Unsupported):
    """Comparisons go through more than MAX_PAIRS pairs of states: nothing is known."""


class PairBudget:
    """Pairs of states that the comparisons of a program may still go through."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_PAIRS

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooManyPairs(f"it takes more than {MAX_PAIRS} pairs of states")


class _Pair(NamedTuple):
    """Two places, and what one side has chosen that the other may still read."""

    first: _Place | Symbol
    second: _Place | Symbol
    by_first: frozenset[tuple[int, int]]
    by_second: frozenset[tuple[int, int]]


class Difference(NamedTuple):
    """choices: of the arguments that were read on either side; values: what the two mechanisms give for them."""

    choices: Mapping[int, int]
    values: tuple[Symbol, Symbol]


def find_difference(
    first: Diagram,
    second: Diagram,
    budget: PairBudget,
    fixed: tuple[Mapping[int, int], Mapping[int, int]] = ({}, {}),
) -> Difference | None:
    """Return arguments for which two mechanisms differ; None if there are none. `TooManyPairs` if that is not known.

    fixed: positions of arguments that are not shared, on either side
    """
    start = _Pair(first.root, second.root, frozenset(), frozenset())
    paths: dict[_Pair, tuple[_Pair, Mapping[int, int]] | None] = {start: None}
    stack = [start]
    differing = fixed[0].keys() | fixed[1].keys()
    while stack:
        pair = stack.pop()
        if isinstance(pair.first, str) and isinstance(pair.second, str):
            if pair.first != pair.second:
                return Difference(_choices(paths, pair), (pair.first, pair.second))
            continue
        is_same_state = first is second and pair.first == pair.second and not (pair.by_first or pair.by_second)
        if is_same_state and not differing & reads_below(first, pair.first):
            continue  # nothing that a run still reads tells the two apart
        for successor, chosen in _successors(first, second, fixed, pair):
            if successor not in paths:
                budget.spend()
                paths[successor] = pair, chosen
                stack.append(successor)
    return None


def _choices(paths: Mapping[_Pair, tuple[_Pair, Mapping[int, int]] | None], pair: _Pair) -> dict[int, int]:
    choices: dict[int, int] = {}
    step = paths[pair]
    while step is not None:
        pair, chosen = step
        choices |= chosen
        step = paths[pair]
    return choices


def _successors(
    first: Diagram, second: Diagram, fixed: tuple[Mapping[int, int], Mapping[int, int]], pair: _Pair
) -> Iterator[tuple[_Pair, Mapping[int, int]]]:
    """Yield the pairs after one statement of the side that has read less, with what is chosen there."""
    if isinstance(pair.first, str):
        moves_first = False
    elif isinstance(pair.second, str) or pair.by_second:
        moves_first = True
    else:  # the side that has not read yet what the other has, else the one with more to read
        remaining = len(reads_below(first, pair.first)), len(reads_below(second, pair.second))
        moves_first = not pair.by_first and remaining[0] >= remaining[1]
    if moves_first:
        assert not isinstance(pair.first, str)
        settled = dict(pair.by_second) | dict(fixed[0])
        for read, place in first.follow(pair.first, settled):
            chosen = {k: position for k, position in read.items() if k not in settled}
            yield _narrow(first, second, place, pair.second, pair.by_first | chosen.items(), pair.by_second), chosen
    else:
        assert not isinstance(pair.second, str)
        settled = dict(pair.by_first) | dict(fixed[1])
        for read, place in second.follow(pair.second, settled):
            chosen = {k: position for k, position in read.items() if k not in settled}
            yield _narrow(first, second, pair.first, place, pair.by_first, pair.by_second | chosen.items()), chosen


def _narrow(
    first: Diagram,
    second: Diagram,
    place: _Place | Symbol,
    opposite: _Place | Symbol,
    by_first: frozenset[tuple[int, int]],
    by_second: frozenset[tuple[int, int]],
) -> _Pair:
    """Return the pair without choices that the other side never reads again."""
    for_second, for_first = reads_below(second, opposite), reads_below(first, place)
    return _Pair(
        place,
        opposite,
        frozenset(choice for choice in by_first if choice[0] in for_second),
        frozenset(choice for choice in by_second if choice[0] in for_first),
    )


def has_effect(diagram: Diagram, parameter: int, num_values: int, budget: PairBudget) -> bool:
    """Return whether changing one argument ever changes the value; `TooManyPairs` if that is not known."""
    if parameter not in reads_below(diagram, diagram.root):
        return False
    return any(
        find_difference(diagram, diagram, budget, ({parameter: 0}, {parameter: position})) is not None
        for position in range(1, num_values)
    )


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
