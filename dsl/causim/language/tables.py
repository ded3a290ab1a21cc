"""The table of a mechanism over all combinations of its arguments, without running it once for each.

An argument is chosen when it is first read, and after each statement of the body only the names that are still read
count: runs that agree on those go on as one. So a chain of gates costs a run for each way through it, and a counter
over nine parents a run for each count, instead of one for each of the combinations. Limits are those of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod
from typing import Any, TypeAlias

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
from calibrant.dsl.causim.language.statements import RETURN, Function, Run, run_signal
from calibrant.dsl.causim.model import Symbol

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
                live_names = {name: value for name, value in names.everything().items() if name in needed}
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
