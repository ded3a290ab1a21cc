"""The evidence about one mechanism: a truth table with unobserved rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from calibrant.dsl.errors import ContradictionError, TableError
from calibrant.dsl.formulas.table import MAX_TABLE_VARS, TruthTable, full_mask, num_rows


@dataclass(frozen=True, slots=True)
class PartialTable:
    """A partially specified Boolean function: bit r of `value` is meaningful iff bit r of `care` is set.

    num_vars: number of variables, 0 to 16
    care: the rows that were observed
    value: what was observed there; 0 elsewhere
    """

    num_vars: int
    care: int
    value: int

    def __post_init__(self) -> None:
        if not 0 <= self.num_vars <= MAX_TABLE_VARS:
            raise TableError(f"a table has 0 to {MAX_TABLE_VARS} variables, not {self.num_vars}")
        if self.care < 0 or self.care >> num_rows(self.num_vars):
            raise TableError(f"care {self.care:#x} does not fit a table of {self.num_vars} variables")
        if self.value & ~self.care:
            raise TableError("value has rows that care does not have")

    @property
    def num_open(self) -> int:
        """Number of rows that are not determined; 2**num_open functions agree with the table."""
        return num_rows(self.num_vars) - self.care.bit_count()

    def agrees(self, table: TruthTable) -> bool:
        """Return whether a complete function has every observed value."""
        if table.num_vars != self.num_vars:
            raise TableError(f"tables of {table.num_vars} and {self.num_vars} variables do not compare")
        return (table.bits ^ self.value) & self.care == 0

    def merge(self, table: PartialTable) -> PartialTable:
        """Both pieces of evidence together; `ContradictionError` with the first row on which they differ."""
        if table.num_vars != self.num_vars:
            raise TableError(f"tables of {self.num_vars} and {table.num_vars} variables do not merge")
        clash = self.care & table.care & (self.value ^ table.value)
        if clash:
            raise ContradictionError((clash & -clash).bit_length() - 1)
        return PartialTable(self.num_vars, self.care | table.care, self.value | table.value)


def nothing_known(num_vars: int) -> PartialTable:
    return PartialTable(num_vars, 0, 0)


def complete(table: TruthTable) -> PartialTable:
    """Return the partial table that admits exactly this function."""
    return PartialTable(table.num_vars, full_mask(table.num_vars), table.bits)


def from_rows(rows: Iterable[tuple[Sequence[bool], bool]], num_vars: int) -> PartialTable:
    """Return the table that (inputs, output) pairs define; `ContradictionError` if two of them disagree."""
    care = value = 0
    for inputs, output in rows:
        row = sum(1 << i for i, bit in enumerate(inputs) if bit)
        if care >> row & 1 and bool(value >> row & 1) != bool(output):
            raise ContradictionError(row)
        care |= 1 << row
        value |= bool(output) << row
    return PartialTable(num_vars, care, value)
