"""Functions of nodes: a truth table over the essential inputs, with proven signs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from calibrant.dsl.formulas.table import TruthTable, cofactor, full_mask, projection, shrink
from calibrant.dsl.networks.formulas import AND, NOT, OR, Node, Nodes, mentioned_names, table_bits

MAX_TABLE_INPUTS = 16
"""Names in a formula up to which a function has a table; beyond, essential inputs and signs are found by SAT."""

Cube: TypeAlias = tuple[tuple[int, bool], ...]
"""A conjunction: positions of inputs and their values."""


@dataclass(frozen=True, slots=True)
class Function:
    """A Boolean function over its essential inputs.

    inputs: in code point order; table: character r is the value in row r, bit i of r is input i; None beyond
    MAX_TABLE_INPUTS; signs: of each input, `+` if no row falls when it rises, `-` if no row rises, else `both`
    nodes: the formula that the file states
    """

    inputs: tuple[str, ...]
    table: str | None
    signs: tuple[str, ...]
    nodes: Nodes = field(compare=False, repr=False)

    def is_identity(self, name: str) -> bool:
        """Return whether the value is that of one input."""
        return self.inputs == (name,) and self.signs == ("+",)

    @property
    def bits(self) -> int:
        """The table as an integer; ValueError without one."""
        if self.table is None:
            raise ValueError(f"a function of {len(self.inputs)} inputs has no table")
        return int(self.table[::-1], 2)

    def steps(self, name: str) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
        """Return, for `+` and `-` as far as they occur, two rows that differ in one input and prove the sign."""
        position, bits = self.inputs.index(name), self.bits
        rising, falling = _steps(bits, position, len(self.inputs))
        pairs = {}
        for sign, rows in (("+", rising), ("-", falling)):
            if rows:
                row = (rows & -rows).bit_length() - 1
                pairs[sign] = (self.row(row), self.row(row | 1 << position))
        return pairs

    def value(self, row: Mapping[str, int]) -> int:
        """Return the value in a row; ValueError without a table."""
        return self.bits >> sum(row[name] << i for i, name in enumerate(self.inputs)) & 1

    def row(self, number: int) -> dict[str, int]:
        """Return the values of the inputs in a row."""
        return {name: number >> i & 1 for i, name in enumerate(self.inputs)}


Decide: TypeAlias = Callable[[Nodes, Sequence[str]], Mapping[str, str]]
"""Essential inputs of a formula of many names, with signs."""


def derive_function(nodes: Nodes, decide: Decide) -> Function:
    """Return the function of a formula.

    decide: asked beyond MAX_TABLE_INPUTS names
    """
    names = sorted(mentioned_names(nodes))
    if len(names) <= MAX_TABLE_INPUTS:
        table, positions = shrink(TruthTable(len(names), table_bits(nodes, names)))
        return from_bits([names[i] for i in positions], table.bits, nodes)
    signs = decide(nodes, names)
    inputs = tuple(sorted(signs))
    return Function(inputs, None, tuple(signs[name] for name in inputs), nodes)


def from_bits(inputs: Sequence[str], bits: int, nodes: Nodes = ()) -> Function:
    """Return the function of a table all of whose inputs are essential."""
    num_inputs = len(inputs)
    signs = []
    for position in range(num_inputs):
        rising, falling = _steps(bits, position, num_inputs)
        signs.append("both" if rising and falling else "+" if rising else "-")
    table = format(bits, f"0{1 << num_inputs}b")[::-1]
    return Function(tuple(inputs), table, tuple(signs), nodes)


def from_table(inputs: Sequence[str], table: str) -> Function:
    """Return the function of a table, over the inputs that are essential; inputs: in code point order."""
    return restrict(Function(tuple(inputs), table, (), ()), {})


def rename_inputs(function: Function, names: Mapping[str, str]) -> Function:
    """Return a function over other names, in their order; ValueError without a table. names: those that stay lack."""
    renamed = [names.get(name, name) for name in function.inputs]
    order = sorted(range(len(renamed)), key=renamed.__getitem__)
    table = format(function.bits, f"0{1 << len(renamed)}b")[::-1]
    rows = (sum((row >> place & 1) << i for place, i in enumerate(order)) for row in range(len(table)))
    return from_table([renamed[i] for i in order], "".join(table[row] for row in rows))


def _steps(bits: int, position: int, num_inputs: int) -> tuple[int, int]:
    """Return the rows with an input at 0 in which its rise raises the value, and those in which it lowers it."""
    ones = projection(position, num_inputs).bits
    low = bits & ~ones & full_mask(num_inputs)
    high = (bits & ones) >> (1 << position)
    return high & ~low, low & ~high


def restrict(function: Function, values: Mapping[str, int]) -> Function:
    """Return the function with some inputs fixed, over the inputs that remain essential."""
    table = TruthTable(len(function.inputs), function.bits)
    for position, name in enumerate(function.inputs):
        if name in values:
            table = cofactor(table, position, bool(values[name]))
    table, positions = shrink(table)
    return from_bits([function.inputs[i] for i in positions], table.bits)


def align_tables(first: Function, second: Function) -> tuple[list[str], int, int]:
    """Return the inputs of both in code point order, and both tables over them."""
    names = sorted({*first.inputs, *second.inputs})
    return names, table_bits(formula_of(first), names), table_bits(formula_of(second), names)


# --- Formulas of tables -----------------------------------------------------------------------------------------------


def cover(bits: int, num_inputs: int) -> list[Cube]:
    """Return an irredundant sum of products: S. Minato, Fast generation of irredundant sum-of-products forms, 1992."""
    cubes, _ = _cover(bits, bits, num_inputs)
    return cubes


def _cover(least: int, greatest: int, position: int) -> tuple[list[Cube], int]:
    """Return cubes over the first inputs between two tables, and the table of the cubes; at most 16 deep."""
    if not least:
        return [], 0
    if greatest == full_mask(position):
        return [()], greatest
    position -= 1
    half = full_mask(position)
    size = 1 << position
    low, high = (least & half, least >> size), (greatest & half, greatest >> size)
    zeros, covered_zero = _cover(low[0] & ~high[1], high[0], position)
    ones, covered_one = _cover(low[1] & ~high[0], high[1], position)
    rest = low[0] & ~covered_zero | low[1] & ~covered_one
    shared, covered = _cover(rest, high[0] & high[1], position)
    cubes = [
        *((*cube, (position, False)) for cube in zeros),
        *((*cube, (position, True)) for cube in ones),
        *shared,
    ]
    return cubes, covered_zero | covered | (covered_one | covered) << size


def formula_of(function: Function) -> Nodes:
    """Return a formula of a function in which essential inputs alone occur; the file's own for one without a table."""
    if function.table is None:
        return function.nodes
    return cubes_formula(cover(function.bits, len(function.inputs)), function.inputs)


def cubes_formula(cubes: Iterable[Cube], inputs: Sequence[str]) -> Nodes:
    """Return the formula of a sum of products in postfix order."""
    nodes: list[Node] = []
    for index, cube in enumerate(cubes):
        for place, (position, value) in enumerate(cube):
            nodes.extend((inputs[position],) if value else (inputs[position], NOT))
            if place:
                nodes.append(AND)
        if not cube:
            nodes.append(True)
        if index:
            nodes.append(OR)
    return tuple(nodes) or (False,)
