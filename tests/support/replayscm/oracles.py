"""Second, independently written meanings: what the tests compare with. Nothing here calls dsl's own evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from typing import TypeAlias

from calibrant.dsl.formulas.formula import Apply, Formula
from calibrant.dsl.formulas.table import PartialTable
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.reference import Cell
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, World
from tests.support.replayscm.brute_force import Member, families, members, root_hypotheses

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
