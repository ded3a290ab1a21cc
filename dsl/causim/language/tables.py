"""Mechanisms as tables over all combinations of arguments, and as decision diagrams without such a table.

An argument is chosen when it is first read, and after each statement of the body only the names that are still read
count: runs that agree on those go on as one. So a chain of gates costs a run for each way through it, and a counter
over nine parents a run for each count, instead of one for each of the combinations. Limits are those of a call.

The ways of a tabulation from state to state are the diagram: an argument is read at most once on a
path. So a sum of fifteen items costs its partial sums and not its 10^10 combinations. `Decisions` compares
diagrams.

A mechanism's diagram asks for arguments in the order of its statements. Here all functions ask in
one order, equal parts are shared, and what makes no difference is not asked (R. E. Bryant, Graph-Based Algorithms for
Boolean Function Manipulation, 1986; here arguments have any number of values). So a sum is the same in any order of its
terms, and has as many parts as partial sums.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.dsl.causim.language.execution_limits import (
    MAX_ENTRIES,
    MAX_STEPS,
    SCALARS,
    Deferred,
    Frame,
    StepBudget,
    TooManyCombinations,
)
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.language.statements import RETURN, Function, Run, run_signal
from calibrant.dsl.causim.model import Symbol

# --- The table of a mechanism over all combinations of its arguments, without running it once for each ----------------
Codes: TypeAlias = NDArray[np.int32]
Positions: TypeAlias = tuple[int | None, ...]  # per parameter; None where any value leads here


class _CannotFork(Exception):  # noqa: N818  # a signal between the functions of this module
    """Something is kept between statements that cannot be copied."""


@dataclass(frozen=True)
class _State:
    """The state of a run at a statement: its live variables and the remaining steps."""

    names: dict[str, Any]
    steps_left: int


@dataclass(frozen=True)
class Way:
    """From a state through one statement: the arguments read there, and the value returned or the state after it."""

    positions: Positions
    returned: Symbol | None
    state: object  # the key of a state, None where a value is returned


def table(
    function: Function, values: Sequence[Sequence[Any]], encode: Callable[[Any], Symbol], work: StepBudget
) -> tuple[Codes, tuple[Symbol, ...]]:
    """Codes of shape (number of values of each parameter), and the symbol of each code.

    `Unsupported` where some combination raises or leaves its limits, and for more than MAX_ENTRIES combinations.
    """
    size = prod(map(len, values))
    if size > MAX_ENTRIES:
        raise TooManyCombinations(f"{function.name} has more than {MAX_ENTRIES} combinations of arguments")
    work.reserve(size)
    try:
        return _Tabulation(function, values, encode, work).run(function.parts, function.live)
    except _CannotFork:
        return _Tabulation(function, values, encode, work).run((function.body,), (frozenset(), frozenset()))


def explore(
    function: Function, values: Sequence[Sequence[Any]], encode: Callable[[Any], Symbol], work: StepBudget
) -> list[dict[object, list[Way]]]:
    """Return for each statement the ways from each state, without a table; the state at the beginning is None.

    `Unsupported` where some combination raises or leaves its limits.
    """
    try:
        return _Tabulation(function, values, encode, work).explore(function.parts, function.live)[0]
    except _CannotFork:
        whole = (frozenset[str](), frozenset[str]())
        return _Tabulation(function, values, encode, work).explore((function.body,), whole)[0]


class _Tabulation:
    def __init__(
        self, function: Function, values: Sequence[Sequence[Any]], encode: Callable[[Any], Symbol], work: StepBudget
    ) -> None:
        self.function = function
        self.values = values
        self.encode = encode
        self.work = work
        self.place = {name: k for k, name in enumerate(function.parameters)}
        self.codes: dict[Symbol, int] = {}
        self._unique = count()

    def run(self, parts: Sequence[Run], live: Sequence[frozenset[str]]) -> tuple[Codes, tuple[Symbol, ...]]:
        """`live[i]`: the names that statement i or a later one reads."""
        ways, ends = self.explore(parts, live)
        ones = (1,) * len(self.values)
        below: dict[object, Codes] = {}
        if ends:
            nothing = self._code(self.encode(None))
            below = {key: np.full(ones, nothing, dtype=np.int32) for key in ends}
        for level in reversed(ways):
            below = {key: self._join_branches(branches, below) for key, branches in level.items()}
        codes = np.broadcast_to(below[None], tuple(map(len, self.values)))
        return codes, tuple(self.codes)

    def explore(
        self, parts: Sequence[Run], live: Sequence[frozenset[str]]
    ) -> tuple[list[dict[object, list[Way]]], Collection[object]]:
        """Return the ways from each state of each statement, and the states at the end."""
        levels: list[dict[object, _State]] = [{None: _State({}, MAX_STEPS)}]
        ways: list[dict[object, list[Way]]] = []
        for part, needed in zip(parts, live[1:], strict=True):
            after: dict[object, _State] = {}
            ways.append({key: list(self._through(part, state, needed, after)) for key, state in levels[-1].items()})
            levels.append(after)
        return ways, levels[-1].keys()

    def _code(self, symbol: Symbol) -> int:
        code = self.codes.get(symbol)
        if code is None:
            self.work.charge_text(symbol)
            code = self.codes[symbol] = len(self.codes)
        return code

    def _through(self, part: Run, state: _State, needed: frozenset[str], after: dict[object, _State]) -> Iterator[Way]:
        """Every way through one statement, by the arguments that it reads first."""
        path: list[list[int]] = []  # parameter and position of each argument read, in the order of reading
        fork = not all(map(_is_fixed, state.names.values()))
        while True:
            depth = 0

            def read_name(name: str) -> Any:
                nonlocal depth
                if name not in self.place:
                    raise UnboundLocalError(name)
                if depth == len(path):
                    path.append([self.place[name], 0])
                parameter, position = path[depth]
                depth += 1
                return self.values[parameter][position]

            names = Deferred(read_name)
            names.update(_copy_names(state.names, self.work) if fork else state.names)
            frame = Frame(names, None)
            frame.left = state.steps_left
            signal = run_signal(self.function.name, part, frame)
            self.work.spend(state.steps_left - frame.left)
            positions: list[int | None] = [None] * len(self.values)
            for parameter, position in path:
                positions[parameter] = position
            if signal is RETURN:
                yield Way(tuple(positions), self.encode(frame.result), None)
            else:
                live_names = {name: value for name, value in names.all_values().items() if name in needed}
                key = self._key(live_names, frame.left)
                after.setdefault(key, _State(live_names, frame.left))
                yield Way(tuple(positions), None, key)
            while path and path[-1][1] + 1 == len(self.values[path[-1][0]]):
                path.pop()
            if not path:
                return
            path[-1][1] += 1

    def _key(self, names: dict[str, Any], steps_left: int) -> object:
        """Equal for states that go on alike; states that hold what can change are never taken for alike."""
        if not all(_is_fixed(value) for value in names.values()):
            return next(self._unique)
        texts = tuple(sorted((name, repr(value)) for name, value in names.items()))
        self.work.charge(sum(len(text) for _, text in texts) // 16)
        return steps_left, texts

    def _join_branches(self, ways: Sequence[Way], below: dict[object, Codes]) -> Codes:
        """Join the codes of the branches; an axis has length one where the argument makes no difference."""
        parts = [
            (way.positions, below[way.state])
            if way.returned is None
            else (way.positions, np.full((1,) * len(self.values), self._code(way.returned), dtype=np.int32))
            for way in ways
        ]
        shape = []
        for k, domain in enumerate(self.values):
            is_read = any(positions[k] is not None for positions, _ in parts)
            shape.append(len(domain) if is_read else max(codes.shape[k] for _, codes in parts))
        joined = np.empty(shape, dtype=np.int32)
        for positions, codes in parts:
            joined[tuple(slice(None) if k is None else slice(k, k + 1) for k in positions)] = codes
        return joined


def _is_fixed(value: object) -> bool:
    return type(value) in SCALARS or (type(value) is tuple and all(map(_is_fixed, value)))


def _copy_names(names: dict[str, Any], work: StepBudget) -> dict[str, Any]:
    """Copy the containers of a state; no two names share one, none nests one."""
    copies: dict[str, Any] = {}
    changing: list[Any] = []
    for name, value in names.items():
        if _is_fixed(value):
            copies[name] = value
            continue
        if type(value) not in (list, set, dict) or any(value is container for container in changing):
            raise _CannotFork
        if not all(map(_is_fixed, value.values() if type(value) is dict else value)):
            raise _CannotFork
        changing.append(value)
        work.charge(len(value) // 16)
        copies[name] = value.copy()
    return copies


# --- Mechanisms as decision diagrams: their values and effects without a table over all combinations of arguments -----


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


# --- Functions of a few arguments as reduced ordered decision diagrams: equal functions are equal numbers -------------
MAX_BRANCHES = 5_000_000  # that the comparisons of a program look at, about 6 s
MAX_ARGUMENTS = 200  # each is a level of recursion


class TooManyDecisions(Unsupported):
    """Comparisons look at more than MAX_BRANCHES: nothing is known."""


class DecisionBudget:
    """Branches that the comparisons of a program may still look at."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_BRANCHES

    def spend(self, number: int) -> None:
        self.left -= number
        if self.left < 0:
            raise TooManyDecisions(f"it takes more than {MAX_BRANCHES} branches of decisions")


class Difference(NamedTuple):
    """choices: arguments, by position of their values; values: what the two functions give for them."""

    choices: Mapping[int, int]
    values: tuple[Symbol, Symbol]


class _Part(NamedTuple):
    """A function: its value, or the argument that it asks for first and the functions that follow.

    rank: place of that argument in the order
    """

    rank: int
    branches: tuple[int, ...]
    value: Symbol


class Decisions:
    """Functions of the same arguments, each a number.

    sizes: number of values of each argument; order: arguments that are asked for first; others come after them
    """

    def __init__(self, sizes: Sequence[int], order: Sequence[int], budget: DecisionBudget) -> None:
        if len(sizes) > MAX_ARGUMENTS:
            raise TooManyDecisions(f"it has more than {MAX_ARGUMENTS} arguments")
        self._order = [*order, *(k for k in range(len(sizes)) if k not in order)]
        self._rank = {argument: rank for rank, argument in enumerate(self._order)}
        self._sizes = sizes
        self._budget = budget
        self._parts: list[_Part] = []
        self._numbers: dict[_Part, int] = {}
        self._choices: dict[tuple[int, tuple[int, ...]], int] = {}

    def function_of(self, diagram: Diagram) -> int:
        """Return the function of a diagram, whose parameters are the arguments."""
        after: dict[object, int] = {}
        end = self._constant(diagram.default)
        for level in reversed(diagram.levels):
            after = {key: self._function_of_ways(ways, after or {None: end}) for key, ways in level.items()}
        return after[None] if diagram.levels else end

    def arguments_of(self, function: int) -> set[int]:
        """Return the arguments that make a difference."""
        arguments: set[int] = set()
        waiting, visited = [function], {function}
        while waiting:
            part = self._parts[waiting.pop()]
            if part.branches:
                arguments.add(self._order[part.rank])
                waiting += set(part.branches) - visited
                visited.update(part.branches)
        return arguments

    def find_difference(self, first: int, second: int) -> Difference | None:
        """Return arguments for which two functions differ; None if there are none."""
        if first == second:
            return None
        choices: dict[int, int] = {}
        while (rank := min(self._parts[first].rank, self._parts[second].rank)) < len(self._order):
            argument = self._order[rank]
            pairs = [
                (self._branch(first, rank, k), self._branch(second, rank, k)) for k in range(self._sizes[argument])
            ]
            choices[argument] = next(k for k, (a, b) in enumerate(pairs) if a != b)
            first, second = pairs[choices[argument]]
        return Difference(choices, (self._parts[first].value, self._parts[second].value))

    def _function_of_ways(self, ways: Sequence[Way], after: Mapping[object, int]) -> int:
        """Return the function of a state: the ways from it read the same argument first, and so on below."""
        return self._join(
            [
                (_read_positions(way), after[way.state] if way.returned is None else self._constant(way.returned))
                for way in ways
            ]
        )

    def _join(self, targets: Sequence[tuple[dict[int, int], int]]) -> int:
        shared = set.intersection(*(set(read) for read, _ in targets))
        if not shared:
            ((_, function),) = targets
            return function
        argument = min(shared)
        groups: list[list[tuple[dict[int, int], int]]] = [[] for _ in range(self._sizes[argument])]
        for read, function in targets:
            groups[read[argument]].append(({k: v for k, v in read.items() if k != argument}, function))
        return self._choose(argument, tuple(self._join(group) for group in groups))

    def _choose(self, argument: int, functions: tuple[int, ...]) -> int:
        """Return the function that is `functions[k]` where the argument has its value k."""
        if len(set(functions)) == 1:
            return functions[0]
        number = self._choices.get((argument, functions))
        if number is None:
            rank = min(self._rank[argument], *(self._parts[function].rank for function in functions))
            is_first = rank == self._rank[argument]
            self._budget.spend(len(functions) * (1 if is_first else self._sizes[self._order[rank]]))
            if is_first:
                branches = tuple(self._branch(function, rank, k) for k, function in enumerate(functions))
            else:
                branches = tuple(
                    self._choose(argument, tuple(self._branch(function, rank, k) for function in functions))
                    for k in range(self._sizes[self._order[rank]])
                )
            is_equal = len(set(branches)) == 1
            number = self._choices[argument, functions] = (
                branches[0] if is_equal else self._number(_Part(rank, branches, ""))
            )
        return number

    def _branch(self, function: int, rank: int, position: int) -> int:
        """Return a function where the argument of that rank, which it asks for first or not at all, has a value."""
        part = self._parts[function]
        return part.branches[position] if part.rank == rank else function

    def _constant(self, value: Symbol) -> int:
        return self._number(_Part(len(self._order), (), value))

    def _number(self, part: _Part) -> int:
        number = self._numbers.get(part)
        if number is None:
            number = self._numbers[part] = len(self._parts)
            self._parts.append(part)
        return number


def reading_order(diagram: Diagram) -> list[int]:
    """Return the parameters in the order in which the statements of a diagram read them."""
    order: dict[int, None] = {}
    for level in diagram.levels:
        for ways in level.values():
            for way in ways:
                order.update(dict.fromkeys(_read_positions(way)))
    return list(order)


def _read_positions(way: Way) -> dict[int, int]:
    """Return the positions of the arguments that a way reads."""
    return {k: position for k, position in enumerate(way.positions) if position is not None}
