"""The canonical model of a program, and the values of its variables.

V_i = f_i(pa_i, U_i), acyclic, with one private noise variable for each equation, all noise independent. A node's domain
is the image of its table over the domains of its parents, a superset of the values that occur in worlds.

Outside the interpreter a value is represented by its symbol, its compact JSON text, so that 1, 1.0, true and "1" are
four values, although `True == 1 == 1.0` in Python. The symbol of a tuple is that of the list ["tuple", members...].

A case of a table is a product of sets of values, one set for each parent and for the noise; cases are disjoint.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.dsl.errors import CalibrantError, short_repr

# --- Symbols: values of variables and noise as compact JSON texts
Symbol: TypeAlias = str
Assignment: TypeAlias = Mapping[str, Symbol]

_TAG = "tuple"
_INVALID = '{"not a value":'
_MAX_DEPTH = 20


class ModelError(CalibrantError):
    """Invalid program, model, question or file of CauSim; the message is one line."""


def symbol(value: object) -> Symbol:
    """Return the symbol of a JSON scalar or a tuple of such; `ModelError` for anything else, for NaN and infinities."""
    return json.dumps(_encode(value, _MAX_DEPTH), separators=(",", ":"))


def value_of(text: Symbol) -> Any:
    """Return the Python value that a symbol stands for; `ModelError` for the placeholder of an invalid value."""
    if text.startswith(_INVALID):
        raise ModelError(f"{text} stands for something that is not a value")
    return _decode(json.loads(text))


def shown_value(text: Symbol) -> str:
    """Return a value as text for people, strings without quotation marks."""
    plain = value_of(text)
    return plain if isinstance(plain, str) else text


def loose_symbol(value: object) -> Symbol:
    """Return the symbol of a decoded JSON value; of a non-value (object, list, NaN) a placeholder unlike any symbol.

    The placeholder is the text of a JSON object, so that an answer that holds one can still be decoded.
    """
    try:
        if isinstance(value, list) and value[:1] == [_TAG]:
            return symbol(_decode(value))
        return symbol(value)
    except (ModelError, ValueError, RecursionError):  # an integer beyond the interpreter's digit limit
        return _INVALID + json.dumps(type(value).__name__) + "}"


def is_value(text: Symbol) -> bool:
    """Return whether a text is the symbol of a value, not a placeholder of `loose_symbol`."""
    return not text.startswith(_INVALID)


def compact(value: object) -> str:
    """Return compact JSON with sorted keys, the format of prompts, files and answers."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def assignment_text(assignment: Assignment) -> str:
    """Return a mapping of names to symbols as compact JSON with sorted keys."""
    return "{" + ",".join(f"{json.dumps(name)}:{assignment[name]}" for name in sorted(assignment)) + "}"


def plain(assignment: Assignment) -> dict[str, Any]:
    """Return the JSON values by name, the inverse of `symbols`."""
    return {name: json.loads(assignment[name]) for name in sorted(assignment)}


def symbols(values: Mapping[str, object]) -> dict[str, Symbol]:
    """Return the symbols of a decoded JSON object; `ModelError` names the key of an invalid value."""
    by_name = {}
    for name, value in values.items():
        decoded = _decode(value) if isinstance(value, list) else value
        try:
            by_name[name] = symbol(decoded)
        except ModelError as error:
            raise ModelError(f"{short_repr(name)}: {error}") from None
    return by_name


def _encode(value: object, depth: int) -> object:
    if value is None or type(value) in (bool, str, int):
        return value
    if type(value) is float:
        if math.isfinite(value):
            return value
        raise ModelError(f"{value} is not a value; finite numbers are")
    if type(value) is tuple and depth:
        return [_TAG, *(_encode(member, depth - 1) for member in value)]
    raise ModelError(f"{short_repr(value)} is not a value; JSON scalars and tuples of them are")


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        if value[:1] != [_TAG]:
            raise ModelError(f"{short_repr(value)} is not a value; a tuple is a list behind the tag {_TAG!r}")
        return tuple(_decode(member) for member in value[1:])
    return value


# --- The canonical model: for each node parents, noise with exact probabilities, and a table over both
Mechanism: TypeAlias = Callable[[tuple[Symbol, ...], Symbol], Symbol]
Tabulate: TypeAlias = Callable[[Sequence[tuple[Symbol, ...]]], tuple[NDArray[np.int32], tuple[Symbol, ...]]]
MAX_ROWS = 1_000_000  # rows of a table that is computed row by row
MAX_CACHED_ROWS = 200_000  # cached outputs of a node, about 60 MB
MAX_CACHED_CHARS = 400  # a row whose parents' symbols have more characters is not cached


@dataclass(frozen=True, eq=False)
class Node:
    """One variable and its equation.

    noise: name of its noise variable
    parents: in the order of the mechanism's parameters
    support: values of the noise of positive probability, sorted by text
    weights: their probabilities; they add up to one
    mechanism: maps parents' values and noise value to the value; raises `ModelError`
    tabulate: None, or a faster way than row by row to compute the table: given the domains of the parents and of the
        noise, it returns an array of codes with one axis for each domain, and the symbol of each code
    """

    name: str
    noise: str
    parents: tuple[str, ...]
    support: tuple[Symbol, ...]
    weights: tuple[Fraction, ...]
    mechanism: Mechanism
    tabulate: Tabulate | None = None
    _cached_outputs: dict[tuple[tuple[Symbol, ...], Symbol], Symbol] = field(default_factory=dict, repr=False)

    def value(self, parents: tuple[Symbol, ...], noise: Symbol) -> Symbol:
        """Return the node's value (cached); values of parents may be outside their domains."""
        key = parents, noise
        output = self._cached_outputs.get(key)
        if output is None:
            output = self.mechanism(parents, noise)
            # values in replies may be many and long, so the cache is bounded in number and in length
            if sum(map(len, parents)) <= MAX_CACHED_CHARS:
                if len(self._cached_outputs) >= MAX_CACHED_ROWS:
                    self._cached_outputs.clear()
                self._cached_outputs[key] = output
        return output

    @property
    def noise_index(self) -> dict[Symbol, int]:
        """Index of each value in `support`."""
        return {symbol: i for i, symbol in enumerate(self.support)}


@dataclass(frozen=True, eq=False)
class Local:
    """A node's equation in one system, as integers.

    parents: indices of the parents in Model.nodes
    domain: possible values of the node in this system
    table: indices in `domain`, of shape (sizes of the parents' domains in order, size of the noise support)
    """

    parents: tuple[int, ...]
    domain: tuple[Symbol, ...]
    table: NDArray[np.int64]

    @cached_property
    def index(self) -> dict[Symbol, int]:
        """Index of each value in `domain`."""
        return {symbol: i for i, symbol in enumerate(self.domain)}


System: TypeAlias = tuple[Local, ...]


class Model:
    """Nodes in topological order; names of nodes and of noise are unique.

    begin: called before tables under an intervention are computed, to give them a new budget
    """

    def __init__(self, nodes: Sequence[Node], begin: Callable[[], None] = lambda: None) -> None:
        self.nodes = tuple(nodes)
        self._begin = begin
        self.position = {node.name: i for i, node in enumerate(self.nodes)}
        self.of_noise = {node.noise: i for i, node in enumerate(self.nodes)}
        names = [name for node in self.nodes for name in (node.name, node.noise)]
        if len(set(names)) < len(names):
            raise ModelError("two variables have the same name")
        for i, node in enumerate(self.nodes):
            if any(self.position.get(parent, i) >= i for parent in node.parents):
                raise ModelError(f"{node.name} has a parent that does not come before it")
            if len(set(node.parents)) < len(node.parents):
                raise ModelError(f"{node.name} has the same parent twice")

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes)

    @cached_property
    def noises(self) -> tuple[str, ...]:
        return tuple(node.noise for node in self.nodes)

    @property
    def worlds(self) -> int:
        """Return the number of combinations of noise values."""
        return prod(len(node.support) for node in self.nodes)

    @cached_property
    def system(self) -> System:
        """The equations without intervention; `ModelError` if a mechanism raises on its domain or exceeds MAX_ROWS."""
        return self._system({})

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Indices of each node's children, ascending."""
        child_lists: list[list[int]] = [[] for _ in self.nodes]
        for i, node in enumerate(self.nodes):
            for parent in node.parents:
                child_lists[self.position[parent]].append(i)
        return tuple(map(tuple, child_lists))

    @cached_property
    def _under(self) -> dict[tuple[tuple[str, Symbol], ...], System]:
        return {}

    def under(self, do: Assignment) -> System:
        """Return the equations under an intervention: nodes in `do` are constants, even outside their domains.

        Raises `ModelError` for an unknown node, or if a mechanism raises for a value outside its parents' domains.
        """
        if not do:
            return self.system
        key = tuple(sorted(do.items()))
        if key not in self._under:
            if len(self._under) > 64:
                self._under.clear()
            self._under[key] = self._system(do)
        return self._under[key]

    def _system(self, do: Assignment) -> System:
        unknown = sorted(set(do) - set(self.position))
        if unknown:
            raise ModelError(f"{unknown[0]} is no variable of the model")
        system: list[Local] = []
        base = self.system if do else None
        if do:
            self._begin()
        for i, node in enumerate(self.nodes):
            if node.name in do:
                zeros = np.zeros(len(node.support), dtype=np.int64)
                system.append(Local((), (do[node.name],), zeros))
                continue
            parents = tuple(self.position[parent] for parent in node.parents)
            if base is not None:
                selected = _restrict_table(base, system, i)
                if selected is not None:
                    system.append(selected)
                    continue
            system.append(_tabulate(node, parents, [system[parent].domain for parent in parents]))
        return tuple(system)


def _restrict_table(base: System, system: Sequence[Local], i: int) -> Local | None:
    """Return a table of `base` restricted to smaller domains of its parents; None if a domain is not a subset."""
    local = base[i]
    if all(system[parent].domain == base[parent].domain for parent in local.parents):
        return local
    table = local.table
    for axis, parent in enumerate(local.parents):
        index = base[parent].index
        positions = [index.get(symbol, -1) for symbol in system[parent].domain]
        if -1 in positions:
            return None
        table = np.take(table, positions, axis=axis)
    return Local(local.parents, local.domain, table)


def _tabulate(node: Node, parents: tuple[int, ...], domains: Sequence[tuple[Symbol, ...]]) -> Local:
    shape = (*map(len, domains), len(node.support))
    if node.tabulate is not None:
        return _local_table(parents, *node.tabulate([*domains, node.support]))
    if prod(shape) > MAX_ROWS:
        raise ModelError(f"the table of {node.name} has {prod(shape)} rows; up to {MAX_ROWS} are made")
    value = node.value
    values = [value(row, noise) for row in product(*domains) for noise in node.support]
    domain = tuple(sorted(set(values)))
    index = {symbol: i for i, symbol in enumerate(domain)}
    table = np.array([index[symbol] for symbol in values], dtype=np.int64).reshape(shape)
    return Local(parents, domain, table)


def _local_table(parents: tuple[int, ...], codes: NDArray[np.int32], symbols: tuple[Symbol, ...]) -> Local:
    is_used = np.zeros(len(symbols), dtype=np.bool_)
    is_used[codes] = True
    domain = tuple(sorted(symbol for symbol, used in zip(symbols, is_used, strict=True) if used))
    index = {symbol: i for i, symbol in enumerate(domain)}
    positions = np.array([index.get(symbol, -1) for symbol in symbols], dtype=np.int64)
    return Local(parents, domain, positions[codes])


def rows(model: Model, name: str) -> Iterator[tuple[tuple[Symbol, ...], Symbol, Symbol]]:
    """Yield the rows of a node's table (parents' values, noise value, value), sorted by texts."""
    i = model.position[name]
    node, system = model.nodes[i], model.system
    for row in product(*(system[parent].domain for parent in system[i].parents)):
        for noise in node.support:
            yield row, noise, node.value(row, noise)


def run(model: Model, noise: Mapping[str, Symbol], do: Assignment) -> dict[str, Symbol]:
    """Return the values of all nodes in one world: `noise` names every noise variable, `do` replaces equations."""
    values: dict[str, Symbol] = {}
    for node in model.nodes:
        if node.name in do:
            values[node.name] = do[node.name]
        else:
            values[node.name] = node.value(tuple(values[parent] for parent in node.parents), noise[node.noise])
    return values


def table_node(
    name: str,
    noise: str,
    parents: Sequence[str],
    support: Mapping[Symbol, Fraction],
    table: Mapping[tuple[tuple[Symbol, ...], Symbol], Symbol],
) -> Node:
    """Return a node whose mechanism is a table; it raises `ModelError` for values outside the table."""
    outputs = dict(table)

    def mechanism(row: tuple[Symbol, ...], value: Symbol) -> Symbol:
        try:
            return outputs[row, value]
        except KeyError:
            raise ModelError(f"the table of {name} has no row for {', '.join(row)} and {value}") from None

    ordered = sorted(symbol for symbol, weight in support.items() if weight)
    return Node(name, noise, tuple(parents), tuple(ordered), tuple(support[symbol] for symbol in ordered), mechanism)


# --- Tables as rules: for each outcome the cases in which it occurs; the outcome with most cases is the default
Case: TypeAlias = tuple[tuple[Symbol, ...] | None, ...]  # per parent, then the noise; None allows every value


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of a node; branches: outcomes with their cases, sorted by text; otherwise: outcome of all other cases."""

    branches: tuple[tuple[Symbol, tuple[Case, ...]], ...]
    otherwise: Symbol


def rules_of(model: Model, i: int) -> Rules:
    """Return the rules of node i; `otherwise` is the outcome with the most cases."""
    local, node = model.system[i], model.nodes[i]
    axes = [*(model.system[parent].domain for parent in local.parents), node.support]
    cases: dict[Symbol, list[Case]] = {}
    for positions, outcome in cubes(local.table):
        case = tuple(
            None if len(chosen) == len(axis) else tuple(axis[k] for k in chosen)
            for chosen, axis in zip(positions, axes, strict=True)
        )
        cases.setdefault(local.domain[outcome], []).append(case)
    rows = Counter(int(k) for k in local.table.flat)
    otherwise = min(cases, key=lambda symbol: (-len(cases[symbol]), -rows[local.index[symbol]], symbol))
    branches = tuple((symbol, tuple(cases[symbol])) for symbol in sorted(cases) if symbol != otherwise)
    return Rules(branches, otherwise)


def cubes(table: NDArray[np.int64]) -> list[tuple[tuple[tuple[int, ...], ...], int]]:
    """Partition a table into products of index sets with one outcome each; equivalent values of an axis are merged."""
    if table.ndim == 0:
        return [((), int(table))]
    alike: dict[bytes, list[int]] = {}
    for k in range(table.shape[0]):
        alike.setdefault(np.ascontiguousarray(table[k]).tobytes(), []).append(k)
    return [
        ((tuple(together), *inner_cube), outcome)
        for together in alike.values()
        for inner_cube, outcome in cubes(table[together[0]])
    ]


def holds(case: Case, values: tuple[Symbol, ...]) -> bool:
    """Return whether a case contains these values of parents and noise."""
    return all(allowed is None or value in allowed for allowed, value in zip(case, values, strict=True))


def outcome(rules: Rules, values: tuple[Symbol, ...]) -> Symbol:
    """Return the outcome of the rules for values of the parents and the noise."""
    for symbol, cases in rules.branches:
        if any(holds(case, values) for case in cases):
            return symbol
    return rules.otherwise
