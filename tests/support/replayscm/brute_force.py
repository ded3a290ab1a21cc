"""Answers by enumeration, and oracles that share nothing with solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations, product
from math import prod
from typing import NamedTuple, TypeAlias

from calibrant.dsl.formulas.formula import Apply, Formula
from calibrant.dsl.formulas.table import PartialTable
from calibrant.dsl.formulas.text import Grammar
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.reference import Cell
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, World

# --- Brute force for small problems: all formulas by size, all acyclic choices, all functions. The solvers' oracle ----
# Plain Python on rows that are dictionaries; nothing here uses the solvers, truth tables or the package's evaluation.
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


# --- Second, independently written meanings: what the tests compare with. Nothing here calls dsl's own evaluation -----
# Formulas are nested tuples here, (operator, (argument, ...)), and everything recurses or enumerates.
Tree: TypeAlias = "str | bool | tuple[str, tuple[Tree, ...]]"

MOST_ARGUMENTS = {"not": 1, "and": None, "or": None, "xor": None, "iff": None, "if": 3}
FEWEST_ARGUMENTS = {"not": 1, "and": 2, "or": 2, "xor": 2, "iff": 2, "if": 3}


def truth(operator: str, bits: Sequence[int]) -> int:
    """Return the operators as docs/semantics.md, "Mechanism texts", words them."""
    match operator:
        case "not":
            return 1 - bits[0]
        case "and":
            return min(bits)
        case "or":
            return max(bits)
        case "xor":
            return bits.count(1) % 2  # odd number of ones
        case "iff":
            return int(len(set(bits)) == 1)  # all arguments equal, not a chain of biconditionals
        case "if":
            return bits[1] if bits[0] else bits[2]
    raise AssertionError(operator)


@lru_cache(maxsize=1024)
def tree_of(formula: Formula) -> Tree:
    """Return a formula as nested tuples, read off its postfix program from the end."""
    nodes = list(formula.nodes)

    def take() -> Tree:
        node = nodes.pop()
        if not isinstance(node, Apply):
            return node
        arguments = [take() for _ in range(node.arity)]
        return (node.operator, tuple(reversed(arguments)))

    tree = take()
    assert not nodes
    return tree


def tree_value(tree: Tree, value: Callable[[str], int]) -> int:
    """Return the value of a tree when `value` gives that of each name."""
    if isinstance(tree, bool):
        return int(tree)
    if isinstance(tree, str):
        return value(tree)
    operator, arguments = tree
    return truth(operator, [tree_value(argument, value) for argument in arguments])


def tree_nodes(tree: Tree) -> Iterator[Tree]:
    """Yield the tree and everything below it."""
    yield tree
    if isinstance(tree, tuple):
        for argument in tree[1]:
            yield from tree_nodes(argument)


def tree_depth(tree: Tree) -> int:
    return 1 + max(map(tree_depth, tree[1])) if isinstance(tree, tuple) else 1


def assignments(names: Sequence[str]) -> Iterator[dict[str, int]]:
    """All assignments in the order of table rows: the first name changes fastest."""
    for bits in product((0, 1), repeat=len(names)):
        yield dict(zip(names, reversed(bits), strict=True))


def table_bits(tree: Tree, names: Sequence[str]) -> int:
    """Return the truth table of a tree as a number, one row after another."""
    return sum(tree_value(tree, row.__getitem__) << r for r, row in enumerate(assignments(names)))


def replay(model: Scm, intervention: Intervention, observed: Callable[[str], int]) -> dict[str, int]:
    """One row of a world, each variable asked for the values it needs, in no fixed order."""
    trees = {variable: tree_of(mechanism) for variable, mechanism in model.mechanisms.items()}

    @cache
    def value(variable: str) -> int:
        if variable in intervention.constants:
            return intervention.constants[variable]
        if variable in intervention.assigned or variable not in trees:
            return observed(variable)
        return tree_value(trees[variable], value)

    return {variable: value(variable) for variable in (*model.roots, *trees)}


def observed_bit(world: World, row: int, variable: str) -> int:
    (column,) = (bits for name, bits in zip(world.variables, world.columns, strict=True) if name == variable)
    return column >> row & 1


def replay_world_row(model: Scm, world: World, row: int) -> dict[str, int]:
    return replay(model, world.intervention, lambda variable: observed_bit(world, row, variable))


# --- What replay has to find, counted cell by cell with the recursive oracle; nothing here is packed ------------------
@dataclass(frozen=True)
class Counts:
    """What the oracle finds by looking at every cell; in `wrong` the wrong cells in the order of reporting."""

    cells: int
    worlds: int
    exact_worlds: int
    wrong: tuple[Cell, ...]


def counts(model: Scm, worlds: Sequence[World], order: Sequence[str]) -> Counts:
    """Every cell of every row by the recursive oracle; worlds without scored cells are not counted."""
    cells = num_worlds = exact = 0
    wrong: list[Cell] = []
    for world in worlds:
        targets = {*world.intervention.constants, *world.intervention.assigned}
        scored = [v for v in order if v not in targets]
        before = len(wrong)
        for r in range(len(world.units)):
            values = replay_world_row(model, world, r)
            found = [Cell(world.id, r, v, values[v], observed_bit(world, r, v)) for v in scored]
            wrong += [cell for cell in found if cell.predicted != cell.expected]
        cells += len(scored) * len(world.units)
        if scored and world.units:
            num_worlds += 1
            exact += len(wrong) == before
    return Counts(cells, num_worlds, exact, tuple(wrong))


# --- Least formula sizes by naive bottom-up enumeration over argument lists: what exact synthesis is compared with ----
# Nothing here uses symmetry, list costs, tables of functions or the package's own evaluation. A function is the integer
# of its values on the rows that matter, in any order of rows.
Combined: TypeAlias = tuple[int, int, int]
"""What a list of arguments gives under each operator that takes two or more: conjunction, disjunction and parity."""


def least_sizes(atoms: Sequence[int], everywhere: int, operators: Sequence[str], limit: int) -> dict[int, int]:
    """Least size of every function that formulas of at most `limit` nodes over the atoms give."""
    layers: list[list[int]] = [[], sorted(set(atoms))]
    sizes = dict.fromkeys(layers[1], 1)
    for size in range(2, limit + 1):
        new: set[int] = set()
        if "not" in operators:
            new.update(everywhere ^ argument for argument in layers[size - 1])
        for conjunction, disjunction, parity in argument_lists(layers, size - 1):
            if "and" in operators:
                new.add(conjunction)
            if "or" in operators:
                new.add(disjunction)
            if "xor" in operators:
                new.add(parity)
            if "iff" in operators:  # all arguments 1, or all 0
                new.add(conjunction | (everywhere ^ disjunction))
        layers.append(sorted(new - sizes.keys()))
        sizes.update(dict.fromkeys(layers[size], size))
    return sizes


def argument_lists(layers: Sequence[Sequence[int]], total: int) -> Iterator[Combined]:
    """Every multiset of two or more functions whose sizes add up to `total`, combined."""

    def extend(chosen: Combined, size: int, start: int, left: int) -> Iterator[Combined]:
        """With one more argument, the start-th of that size or a later one, and so on until nothing is left."""
        conjunction, disjunction, parity = chosen
        for last in layers[left][start:] if left == size else layers[left] if left > size else ():
            yield conjunction & last, disjunction | last, parity ^ last
        for next_size in range(size, left // 2 + 1):
            first = start if next_size == size else 0
            for index, more in enumerate(layers[next_size][first:], first):
                both = conjunction & more, disjunction | more, parity ^ more
                yield from extend(both, next_size, index, left - next_size)

    for size in range(1, total // 2 + 1):
        for index, argument in enumerate(layers[size]):
            yield from extend((argument, argument, argument), size, index, total - size)


def least_size_by_enumeration(partial: PartialTable, operators: Sequence[str], limit: int) -> int | None:
    """Least size of a formula that agrees with the table, None if it exceeds `limit`."""
    rows = [row for row in range(2**partial.num_vars) if partial.care >> row & 1]
    atoms = [sum((row >> index & 1) << place for place, row in enumerate(rows)) for index in range(partial.num_vars)]
    wanted = sum((partial.value >> row & 1) << place for place, row in enumerate(rows))
    return least_sizes(atoms, 2 ** len(rows) - 1, operators, limit).get(wanted)


# --- All members of small version spaces with what they do in given worlds, by enumeration and a row at a time --------
Table: TypeAlias = tuple[tuple[int, ...], ...]
"""Per row of every world the values of all variables."""


def all_members(task: Task, most: int, max_size: int | None = None) -> list[Member]:
    return list(each_member(task, most, max_size))


def each_member(task: Task, most: int, max_size: int | None = None) -> Iterator[Member]:
    for family in families(task, most, root_hypotheses(task), max_size):
        yield from members(family)


def does(member: Member, worlds: Sequence[World]) -> Table:
    """Targets and the member's own roots as they are in the row, everything else computed."""
    _, mechanisms = member
    waiting = {v: (parents, bits) for v, parents, bits in mechanisms}
    order = []
    while waiting:
        variable = next(v for v, (parents, _) in waiting.items() if not set(parents) & waiting.keys())
        order.append((variable, *waiting.pop(variable)))
    table = []
    for world in worlds:
        targets = world.intervention.targets
        computed = [step for step in order if step[0] not in targets]
        for r in range(len(world.units)):
            values = {v: column >> r & 1 for v, column in zip(world.variables, world.columns, strict=True)}
            for variable, parents, bits in computed:
                row = 0
                for parent in reversed(parents):
                    row = row << 1 | values[parent]
                values[variable] = bits >> row & 1
            table.append(tuple(values.values()))
    return tuple(table)


def observed(worlds: Sequence[World]) -> Table:
    return tuple(
        tuple(column >> r & 1 for column in world.columns) for world in worlds for r in range(len(world.units))
    )
