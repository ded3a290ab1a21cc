"""Mechanisms as tables over all combinations of arguments, and as decision diagrams without such a table.

Tables come from a forward dynamic programme over the statements of the body. The value of an argument is chosen when
the argument is first read. After each statement, runs that agree on the live variables (those that a later statement
reads) are merged. So a chain of gates costs one run for each path through it, and a counter over nine parents one run
for each count, instead of one for each combination of arguments. The limits of a run are those of a call.

The states of this programme and the edges between them form the mechanism's diagram, which reads an argument at
most once on a path. So a sum of fifteen items costs its partial sums and not its 10^10 combinations.

`Decisions` compares diagrams. It converts them to reduced ordered decision diagrams (R. E. Bryant, Graph-Based
Algorithms for Boolean Function Manipulation, 1986; here arguments have any number of values): all functions test their
arguments in one order, equal nodes are shared, and arguments without effect are not tested. So a sum has the same
diagram for any order of its terms, with as many nodes as partial sums.
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
Positions: TypeAlias = tuple[int | None, ...]  # per parameter: index of its value; None if it was not read


class _CannotFork(Exception):  # noqa: N818  # a signal between the functions of this module
    """A state has a value that cannot be copied for each run that continues from it."""


@dataclass(frozen=True)
class _State:
    """The state of a run at a statement: its live variables and the remaining steps."""

    names: dict[str, Any]
    steps_left: int


@dataclass(frozen=True)
class Edge:
    """Transition from a state by one statement: the arguments that it reads, and the returned value or the next state.

    positions: for each parameter the index of the value that the statement read; None if it read none
    returned: None if the statement does not return
    """

    positions: Positions
    returned: Symbol | None
    state: object  # the key of a state, None where a value is returned


def table(
    function: Function, values: Sequence[Sequence[Any]], encode: Callable[[Any], Symbol], work: StepBudget
) -> tuple[Codes, tuple[Symbol, ...]]:
    """Return codes, of shape (number of values of each parameter), and the symbol of each code.

    values: for each parameter its possible values

    `Unsupported` if some combination raises or exceeds its limits; `TooManyCombinations` above MAX_ENTRIES of them.
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
) -> list[dict[object, list[Edge]]]:
    """Return for each statement the edges from each state, without a table; the key of the first state is None.

    `Unsupported` if some combination raises or exceeds its limits.
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
        self.parameter_index = {name: k for k, name in enumerate(function.parameters)}
        self.codes: dict[Symbol, int] = {}
        self._unique = count()

    def run(self, parts: Sequence[Run], live: Sequence[frozenset[str]]) -> tuple[Codes, tuple[Symbol, ...]]:
        """Return codes and symbols, as `table`; `live[i]`: the names that statement i or a later one reads."""
        edges, ends = self.explore(parts, live)
        scalar_shape = (1,) * len(self.values)
        below: dict[object, Codes] = {}
        if ends:
            none_code = self._code(self.encode(None))  # a body without a return returns None
            below = {key: np.full(scalar_shape, none_code, dtype=np.int32) for key in ends}
        for level in reversed(edges):
            below = {key: self._join_branches(branches, below) for key, branches in level.items()}
        codes = np.broadcast_to(below[None], tuple(map(len, self.values)))
        return codes, tuple(self.codes)

    def explore(
        self, parts: Sequence[Run], live: Sequence[frozenset[str]]
    ) -> tuple[list[dict[object, list[Edge]]], Collection[object]]:
        """Return the edges from each state of each statement, and the keys of the states after the last one."""
        levels: list[dict[object, _State]] = [{None: _State({}, MAX_STEPS)}]
        edges: list[dict[object, list[Edge]]] = []
        for part, needed in zip(parts, live[1:], strict=True):
            after: dict[object, _State] = {}
            edges.append({key: list(self._edges_from(part, state, needed, after)) for key, state in levels[-1].items()})
            levels.append(after)
        return edges, levels[-1].keys()

    def _code(self, symbol: Symbol) -> int:
        code = self.codes.get(symbol)
        if code is None:
            self.work.charge_text(symbol)
            code = self.codes[symbol] = len(self.codes)
        return code

    def _edges_from(
        self, part: Run, state: _State, needed: frozenset[str], after: dict[object, _State]
    ) -> Iterator[Edge]:
        """Yield every edge from a state by a statement, one for each combination of the arguments that it reads.

        after: states after the statement by key, to which new ones are added
        """
        path: list[list[int]] = []  # parameter and value index of each argument read, in the order of reading
        fork = not all(map(_is_immutable, state.names.values()))
        while True:
            depth = 0

            def read_name(name: str) -> Any:
                nonlocal depth
                if name not in self.parameter_index:
                    raise UnboundLocalError(name)
                if depth == len(path):
                    path.append([self.parameter_index[name], 0])
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
                yield Edge(tuple(positions), self.encode(frame.result), None)
            else:
                live_names = {name: value for name, value in names.all_values().items() if name in needed}
                key = self._key(live_names, frame.left)
                after.setdefault(key, _State(live_names, frame.left))
                yield Edge(tuple(positions), None, key)
            while path and path[-1][1] + 1 == len(self.values[path[-1][0]]):
                path.pop()
            if not path:
                return
            path[-1][1] += 1

    def _key(self, names: dict[str, Any], steps_left: int) -> object:
        """Return a key that is equal for equal states; a state with mutable values gets a key of its own."""
        if not all(_is_immutable(value) for value in names.values()):
            return next(self._unique)
        texts = tuple(sorted((name, repr(value)) for name, value in names.items()))
        self.work.charge(sum(len(text) for _, text in texts) // 16)
        return steps_left, texts

    def _join_branches(self, edges: Sequence[Edge], below: dict[object, Codes]) -> Codes:
        """Join the codes of the edges from a state; the axis of an argument without effect has length 1."""
        parts = [
            (edge.positions, below[edge.state])
            if edge.returned is None
            else (
                edge.positions,
                np.full((1,) * len(self.values), self._code(edge.returned), dtype=np.int32),
            )
            for edge in edges
        ]
        shape = []
        for k, domain in enumerate(self.values):
            is_read = any(positions[k] is not None for positions, _ in parts)
            shape.append(len(domain) if is_read else max(codes.shape[k] for _, codes in parts))
        joined = np.empty(shape, dtype=np.int32)
        for positions, codes in parts:
            joined[tuple(slice(None) if k is None else slice(k, k + 1) for k in positions)] = codes
        return joined


def _is_immutable(value: object) -> bool:
    return type(value) in SCALARS or (type(value) is tuple and all(map(_is_immutable, value)))


def _copy_names(names: dict[str, Any], work: StepBudget) -> dict[str, Any]:
    """Copy the containers of a state; `_CannotFork` if two names share one or if one is nested."""
    copies: dict[str, Any] = {}
    changing: list[Any] = []
    for name, value in names.items():
        if _is_immutable(value):
            copies[name] = value
            continue
        if type(value) not in (list, set, dict) or any(value is container for container in changing):
            raise _CannotFork
        if not all(map(_is_immutable, value.values() if type(value) is dict else value)):
            raise _CannotFork
        changing.append(value)
        work.charge(len(value) // 16)
        copies[name] = value.copy()
    return copies


# --- Mechanisms as decision diagrams: their values and effects without a table over all combinations of arguments -----


@dataclass(frozen=True, eq=False)
class Diagram:
    """A mechanism as a graph of states.

    levels: for each statement the edges from each state; default: value of a run without a return
    """

    levels: Sequence[Mapping[object, Sequence[Edge]]]
    default: Symbol

    @cached_property
    def values(self) -> frozenset[Symbol]:
        """The values that some combination of arguments gives."""
        edges = [edge for level in self.levels for edges in level.values() for edge in edges]
        last = [edge for edges in (self.levels[-1].values() if self.levels else ()) for edge in edges]
        returned = frozenset(edge.returned for edge in edges if edge.returned is not None)
        falls_through = not self.levels or any(edge.returned is None for edge in last)
        return returned | ({self.default} if falls_through else set())

    def reordered(self, source_parameters: Sequence[int]) -> Diagram:
        """Return the diagram with parameter `source_parameters[k]` as parameter k; -1 adds one that is never read."""

        def moved(edge: Edge) -> Edge:
            positions = tuple(None if k < 0 else edge.positions[k] for k in source_parameters)
            return Edge(positions, edge.returned, edge.state)

        levels = [{key: [moved(edge) for edge in edges] for key, edges in level.items()} for level in self.levels]
        return Diagram(levels, self.default)


def diagram(
    function: Function, values: Sequence[Sequence[Any]], encode: Callable[[Any], Symbol], work: StepBudget
) -> Diagram:
    """Return the diagram of a mechanism; `Unsupported` if some combination raises or exceeds its limits."""
    return Diagram(_merge_states(explore(function, values, encode, work)), encode(None))


def _merge_states(levels: Sequence[Mapping[object, Sequence[Edge]]]) -> list[dict[object, list[Edge]]]:
    """Merge the states of a level that have the same outgoing edges; they differ in steps left or unread names."""
    merged: list[dict[object, list[Edge]]] = []
    representative: dict[object, object] = {}
    for level in reversed(levels):
        states: dict[object, list[Edge]] = {}
        by_edges: dict[tuple[Edge, ...], object] = {}
        level_representative: dict[object, object] = {}
        for key, edges in level.items():
            moved = [Edge(edge.positions, edge.returned, representative.get(edge.state)) for edge in edges]
            first = level_representative[key] = by_edges.setdefault(tuple(moved), key)
            if first is key:
                states[key] = moved
        merged.append(states)
        representative = level_representative
    return merged[::-1]


# --- Functions of a few arguments as reduced ordered decision diagrams: equal functions are equal numbers -------------
MAX_BRANCHES = 5_000_000  # branches that the comparisons of a program visit, about 6 s
MAX_ARGUMENTS = 200  # each is a level of recursion


class TooManyDecisions(Unsupported):
    """Comparisons would visit more than MAX_BRANCHES, so nothing was decided."""


class DecisionBudget:
    """Number of branches that the comparisons of a program may still visit."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_BRANCHES

    def spend(self, num_branches: int) -> None:
        self.left -= num_branches
        if self.left < 0:
            raise TooManyDecisions(f"it takes more than {MAX_BRANCHES} branches of decisions")


class Difference(NamedTuple):
    """Arguments for which two functions differ.

    choices: argument -> index of its value; values: the values of the two functions for these arguments
    """

    choices: Mapping[int, int]
    values: tuple[Symbol, Symbol]


class _DiagramNode(NamedTuple):
    """Node of a decision diagram, which stands for a function.

    rank: position, in the order, of the argument that it tests; the number of arguments if it is a constant
    branches: for each value of that argument the id of the remaining function; empty for a constant
    value: value of a constant
    """

    rank: int
    branches: tuple[int, ...]
    value: Symbol


class Decisions:
    """Functions of the same arguments as reduced ordered decision diagrams; equal functions have equal ids.

    sizes: number of values of each argument; order: arguments that are tested first; others come after them
    """

    def __init__(self, sizes: Sequence[int], order: Sequence[int], budget: DecisionBudget) -> None:
        if len(sizes) > MAX_ARGUMENTS:
            raise TooManyDecisions(f"it has more than {MAX_ARGUMENTS} arguments")
        self._order = [*order, *(k for k in range(len(sizes)) if k not in order)]
        self._rank = {argument: rank for rank, argument in enumerate(self._order)}
        self._sizes = sizes
        self._budget = budget
        self._nodes: list[_DiagramNode] = []
        self._ids: dict[_DiagramNode, int] = {}
        self._choices: dict[tuple[int, tuple[int, ...]], int] = {}

    def function_of(self, diagram: Diagram) -> int:
        """Return the id of the function of a diagram, whose parameters are the arguments."""
        after: dict[object, int] = {}
        end = self._constant(diagram.default)
        for level in reversed(diagram.levels):
            after = {key: self._function_of_state(edges, after or {None: end}) for key, edges in level.items()}
        return after[None] if diagram.levels else end

    def arguments_of(self, function: int) -> set[int]:
        """Return the arguments that a function depends on."""
        arguments: set[int] = set()
        waiting, visited = [function], {function}
        while waiting:
            node = self._nodes[waiting.pop()]
            if node.branches:
                arguments.add(self._order[node.rank])
                waiting += set(node.branches) - visited
                visited.update(node.branches)
        return arguments

    def find_difference(self, first: int, second: int) -> Difference | None:
        """Return arguments for which two functions differ; None if there are none."""
        if first == second:
            return None
        choices: dict[int, int] = {}
        while (rank := min(self._nodes[first].rank, self._nodes[second].rank)) < len(self._order):
            argument = self._order[rank]
            pairs = [
                (self._branch(first, rank, k), self._branch(second, rank, k)) for k in range(self._sizes[argument])
            ]
            choices[argument] = next(k for k, (a, b) in enumerate(pairs) if a != b)
            first, second = pairs[choices[argument]]
        return Difference(choices, (self._nodes[first].value, self._nodes[second].value))

    def _function_of_state(self, edges: Sequence[Edge], after: Mapping[object, int]) -> int:
        """Return the id of the function from a state on; after: function ids by key of the states of the next level."""
        return self._join(
            [
                (
                    _read_positions(edge),
                    after[edge.state] if edge.returned is None else self._constant(edge.returned),
                )
                for edge in edges
            ]
        )

    def _join(self, targets: Sequence[tuple[dict[int, int], int]]) -> int:
        """Return the function that is `targets[k][1]` if the arguments have the value indices `targets[k][0]`."""
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
        """Return the function that is `functions[k]` if the argument has its value k."""
        if len(set(functions)) == 1:
            return functions[0]
        chosen = self._choices.get((argument, functions))
        if chosen is None:
            rank = min(self._rank[argument], *(self._nodes[function].rank for function in functions))
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
            chosen = self._choices[argument, functions] = (
                branches[0] if is_equal else self._node_id(_DiagramNode(rank, branches, ""))
            )
        return chosen

    def _branch(self, function: int, rank: int, position: int) -> int:
        """Restrict a function to a value of the argument of that rank, which it tests first or not at all."""
        node = self._nodes[function]
        return node.branches[position] if node.rank == rank else function

    def _constant(self, value: Symbol) -> int:
        return self._node_id(_DiagramNode(len(self._order), (), value))

    def _node_id(self, node: _DiagramNode) -> int:
        node_id = self._ids.get(node)
        if node_id is None:
            node_id = self._ids[node] = len(self._nodes)
            self._nodes.append(node)
        return node_id


def reading_order(diagram: Diagram) -> list[int]:
    """Return the parameters in the order in which the statements of a diagram read them."""
    order: dict[int, None] = {}
    for level in diagram.levels:
        for edges in level.values():
            for edge in edges:
                order.update(dict.fromkeys(_read_positions(edge)))
    return list(order)


def _read_positions(edge: Edge) -> dict[int, int]:
    """Return the value indices of the arguments that an edge reads."""
    return {k: position for k, position in enumerate(edge.positions) if position is not None}
