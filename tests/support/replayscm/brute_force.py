"""Brute force for small problems: all formulas by size, all acyclic choices, all functions. The solvers' oracle.

Plain Python on rows that are dictionaries; nothing here uses the solvers, truth tables or the package's evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import combinations, product
from math import prod
from typing import NamedTuple, TypeAlias

from calibrant.dsl.formulas.text import Grammar
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.world import World

Pattern: TypeAlias = tuple[int, ...]
"""The values of some variables in one row."""

Columns: TypeAlias = tuple[int, ...]
"""Of the variables of one world, in their order; bit r is row r."""

Parents: TypeAlias = tuple[str, ...]
"""A parent set, natural order."""

Structure: TypeAlias = dict[str, Parents]
"""The parent set of every endogenous variable."""


# --- evidence --------------------------------------------------------------------------------------------------------


def world_rows(world: World) -> list[dict[str, int]]:
    columns = dict(zip(world.variables, world.columns, strict=True))
    return [{v: column >> r & 1 for v, column in columns.items()} for r in range(len(world.units))]


@lru_cache(maxsize=64)
def _different_rows(columns: tuple[tuple[Columns, int], ...]) -> list[Pattern]:
    """Of some worlds' columns and numbers of rows; a row that is met again says nothing new."""
    rows = [[column >> r & 1 for column in world] for world, num_rows in columns for r in range(num_rows)]
    return sorted(set(map(tuple, rows)))


def seen(task: Task, variable: str, parents: Parents) -> dict[Pattern, int] | None:
    """Return the table's bits by pattern in the rows where the variable is not clamped; None for a contradiction."""
    free = [world for world in task.training.worlds if variable not in world.intervention.targets]
    own, *places = [task.variables.index(name) for name in (variable, *parents)]
    table: dict[Pattern, int] = {}
    for row in _different_rows(tuple((world.columns, len(world.units)) for world in free)):
        if table.setdefault(tuple([row[place] for place in places]), row[own]) != row[own]:
            return None
    return table


def parent_sets(task: Task, variable: str, most: int) -> list[Parents]:
    """All sets of at most that many admissible parents, the empty one included."""
    admissible = [v for v in task.variables if v in task.disclosure.admissible_parents(variable)]
    return [chosen for number in range(most + 1) for chosen in combinations(admissible, number)]


def root_hypotheses(task: Task) -> list[Parents]:
    known = task.disclosure.roots
    return list(combinations(task.variables, task.disclosure.num_roots)) if known is None else [known]


def can_be_root(task: Task, variable: str) -> bool:
    """Over worlds that leave it alone, the sets of units in which a root is 1 are nested (paper, B.2.2)."""
    observed = []
    for world in task.training.worlds:
        rows = world_rows(world)
        cyclic = any(rows == (rows[:period] * len(rows))[: len(rows)] for period in range(1, len(rows) // 2 + 1))
        if variable not in world.intervention.targets and not cyclic:
            observed.append({unit: row[variable] for unit, row in zip(world.units, rows, strict=True)})
    for one, other in combinations(observed, 2):
        ones = {unit for unit in one.keys() & other.keys() if one[unit]}
        others = {unit for unit in one.keys() & other.keys() if other[unit]}
        if not (ones <= others or others <= ones):
            return False
    return True


# --- formulas by size ------------------------------------------------------------------------------------------------

_JOIN = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}


class Behaviours:
    """Least formula size of every function on some rows, found size by size.

    A function is a number, bit i its value in the i-th row. Of its formulas only a smallest one matters, because an
    argument may be exchanged for a smaller formula of the same function; likewise for lists of arguments.
    """

    def __init__(self, atoms: Sequence[int], num_rows: int, operators: Sequence[str]) -> None:
        self.full = (1 << num_rows) - 1
        self.operators = operators
        self.possible = _closure(frozenset(atoms), self.full, operators)
        self.least = dict.fromkeys(atoms, 1)
        self.new: list[set[int]] = [set(), set(atoms)]  # by size
        self.lists = {name: [set(), set(atoms)] for name in _JOIN if name in operators}  # by total size of arguments
        self.iff_lists: list[set[tuple[int, int]]] = [set(), set()]  # rows in which all, and any, of two or more are 1

    def size(self, function: int) -> int | None:
        """None if no formula has these values."""
        while function in self.possible and function not in self.least:
            self._grow()
        return self.least.get(function)

    def _grow(self) -> None:
        size = len(self.new)
        made = {self.full ^ argument for argument in self.new[size - 1] if "not" in self.operators}
        made.update(*(lists[size - 1] for lists in self.lists.values()))
        if "iff" in self.operators:
            made.update(every | (self.full ^ some) for every, some in self.iff_lists[size - 1])
        self.new.append(made - self.least.keys())
        self.least.update(dict.fromkeys(self.new[size], size))
        splits = [(first, self.new[i], size - i) for i in range(1, size) for first in self.new[i]]
        for name, lists in self.lists.items():
            longer = {_JOIN[name](first, rest) for first, _, left in splits for rest in lists[left]}
            lists.append((self.new[size] | longer).difference(*lists))
        pairs = {(first & rest, first | rest) for first, _, left in splits for rest in self.new[left]}
        longer_pairs = {
            (first & every, first | some) for first, _, left in splits for every, some in self.iff_lists[left]
        }
        self.iff_lists.append((pairs | longer_pairs).difference(*self.iff_lists))


@cache
def _closure(atoms: frozenset[int], full: int, operators: Sequence[str]) -> frozenset[int]:
    """Every function that some formula over the atoms has."""
    if atoms and "not" in operators and ("and" in operators or "or" in operators):
        return frozenset(range(full + 1))  # functionally complete; the rows are told apart by the atoms
    known, lists = set[int](), set[tuple[int, int]]()
    waiting, waiting_lists = set(atoms), set[tuple[int, int]]()
    while waiting or waiting_lists:
        known |= waiting
        lists |= waiting_lists
        made = {full ^ argument for argument in waiting if "not" in operators}
        for name in _JOIN:
            if name in operators:
                made |= {_JOIN[name](one, other) for one, other in product(waiting, known)}
        longer = set[tuple[int, int]]()
        if "iff" in operators:
            longer |= {(one & other, one | other) for one, other in product(waiting, known)}
            longer |= {(every & one, some | one) for (every, some), one in product(lists, waiting)}
            longer |= {(every & one, some | one) for (every, some), one in product(waiting_lists, known)}
            made |= {every | (full ^ some) for every, some in waiting_lists}
        waiting, waiting_lists = made - known, longer - lists
    return frozenset(known)


@cache
def behaviours(patterns: tuple[Pattern, ...], num_parents: int, grammar: Grammar) -> Behaviours:
    """Return the functions of that many variables on the given rows, which differ."""
    atoms = [sum(pattern[i] << r for r, pattern in enumerate(patterns)) for i in range(num_parents)]
    if grammar.allow_constants:
        atoms += [0, (1 << len(patterns)) - 1]
    return Behaviours(atoms, len(patterns), grammar.operators)


def least_size(task: Task, variable: str, parents: Parents) -> int | None:
    """Least size of a formula that mentions at most these parents and agrees with the rows."""
    table = seen(task, variable, parents)
    if table is None:
        return None
    patterns = tuple(sorted(table))
    wanted = sum(table[pattern] << r for r, pattern in enumerate(patterns))
    return behaviours(patterns, len(parents), task.grammar).size(wanted)


def function_size(bits: int, num_parents: int, grammar: Grammar) -> int | None:
    """Least size of a formula for a complete function; a constant without literals mentions some variable."""
    if num_parents == 0:
        return function_size(3 * bits, 1, grammar)
    patterns = tuple(tuple(row >> i & 1 for i in range(num_parents)) for row in range(1 << num_parents))
    return behaviours(patterns, num_parents, grammar).size(bits)


# --- structures ------------------------------------------------------------------------------------------------------


def is_acyclic(structure: Mapping[str, Parents]) -> bool:
    return _in_some_order(tuple(structure), tuple(structure.values()))


@cache
def _in_some_order(variables: Parents, parents: tuple[Parents, ...]) -> bool:
    """Whether each of the variables can come after those of its parents that are among them."""
    waiting = dict(zip(variables, parents, strict=True))
    while placed := [v for v in waiting if waiting.keys().isdisjoint(waiting[v])]:
        for variable in placed:
            del waiting[variable]
    return not waiting


def structures(options: Mapping[str, Sequence[Parents]]) -> Iterator[Structure]:
    """Every acyclic choice of one option per variable."""
    variables = tuple(options)
    for chosen in product(*options.values()):
        if _in_some_order(variables, chosen):
            yield dict(zip(variables, chosen, strict=True))


class Optimum(NamedTuple):
    """The best choice by the stated rule: total size, mentions, root set, parent sets; sets compare as numbers."""

    size: int
    mentions: int
    roots: int
    masks: tuple[int, ...]
    structure: Structure


def optimum(task: Task, most: int, hypotheses: Sequence[Parents]) -> Optimum | None:
    """Return the least total formula size over all acyclic choices, and the choice that the tie rule prefers."""
    sized = {
        v: {s: size for s in parent_sets(task, v, most) if (size := least_size(task, v, s))} for v in task.variables
    }

    def number(names: Parents) -> int:
        return sum(1 << task.variables.index(name) for name in names)

    found = []
    for roots in hypotheses:
        for structure in structures({v: list(sized[v]) for v in task.variables if v not in roots}):
            size = sum(sized[v][s] for v, s in structure.items())
            masks = tuple(number(structure.get(v, ())) for v in task.variables)
            found.append(Optimum(size, sum(map(len, structure.values())), number(roots), masks, structure))
    return min(found, key=lambda choice: choice[:4], default=None)


# --- version spaces --------------------------------------------------------------------------------------------------


def local_functions(task: Task, variable: str, most: int) -> dict[Parents, list[int]]:
    """Per parent set the tables that agree with the rows and depend on every parent; bit r is row r of the table."""
    found = {}
    for parents in parent_sets(task, variable, most):
        table = seen(task, variable, parents)
        if table is not None:
            wanted = {sum(bit << i for i, bit in enumerate(pattern)): bit for pattern, bit in table.items()}
            given, ones = sum(1 << row for row in wanted), sum(bit << row for row, bit in wanted.items())
            if tables := [bits for bits in _functions(len(parents)) if bits & given == ones]:
                found[parents] = tables
    return found


@cache
def _functions(num_parents: int) -> list[int]:
    """Those that depend on every parent."""
    num_rows = 1 << num_parents
    found = []
    for bits in range(1 << num_rows):
        values = [bits >> row & 1 for row in range(num_rows)]
        if all(any(values[row] != values[row ^ 1 << i] for row in range(num_rows)) for i in range(num_parents)):
            found.append(bits)
    return found


class Family(NamedTuple):
    """All members with one root set and one structure: any choice of one function per variable."""

    roots: Parents
    structure: Structure
    functions: dict[str, list[int]]

    @property
    def num_members(self) -> int:
        return prod(map(len, self.functions.values()))


def families(task: Task, most: int, hypotheses: Sequence[Parents], max_size: int | None = None) -> list[Family]:
    """Return the version space, family by family."""
    local = {v: local_functions(task, v, most) for v in task.variables}
    if max_size is not None:
        local = {v: _capped(tables, task.grammar, max_size) for v, tables in local.items()}
    return [
        Family(roots, structure, {v: local[v][s] for v, s in structure.items()})
        for roots in hypotheses
        for structure in structures({v: list(local[v]) for v in task.variables if v not in roots})
    ]


def _capped(tables: Mapping[Parents, list[int]], grammar: Grammar, max_size: int) -> dict[Parents, list[int]]:
    capped = {
        parents: [bits for bits in listed if (function_size(bits, len(parents), grammar) or max_size + 1) <= max_size]
        for parents, listed in tables.items()
    }
    return {parents: listed for parents, listed in capped.items() if listed}


Member: TypeAlias = tuple[Parents, tuple[tuple[str, Parents, int], ...]]
"""Roots, and per endogenous variable its functional parents and table: what makes two SCMs the same."""


def members(family: Family) -> Iterator[Member]:
    for chosen in product(*family.functions.values()):
        rows = zip(family.functions, chosen, strict=True)
        yield family.roots, tuple((v, family.structure[v], bits) for v, bits in rows)


def member_size(member: Member, grammar: Grammar) -> int:
    """Sum of the least formulas' sizes."""
    return sum(function_size(bits, len(parents), grammar) or 0 for _, parents, bits in member[1])
