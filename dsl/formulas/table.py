"""Truth tables, complete and partial, and their canonical forms.

Bit order, everywhere in this project: row r of a table gives variable i the value (r >> i) & 1. So with two
variables x0 = 0xa, x0 and x1 = 0x8, and with three the majority is 0xe8. Word w of a table is bits 64 w to 64 w + 63.

Each canonical form has the transform back to the function, which checks it. There are 4, 14 and 222 NPN classes
of 2, 3 and 4 variables. The syntactic normal form of formulas is in dsl.formulas.text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from calibrant.dsl.errors import TableError
from calibrant.dsl.formulas.formula import Formula

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


# --- Truth tables: the value type of a Boolean function of up to 16 variables, and its algebra ------------------------
MAX_TABLE_VARS = 16  # 2**16 rows are 1,024 words; evidence of items never has more variables
WORD_BITS = 64


def num_rows(num_vars: int) -> int:
    return 1 << num_vars


def full_mask(num_vars: int) -> int:
    """Return the bits of all rows of a table of `num_vars` variables."""
    return (1 << (1 << num_vars)) - 1


@dataclass(frozen=True, slots=True)
class TruthTable:
    """A completely specified Boolean function.

    num_vars: number of variables, 0 to 16
    bits: 2**num_vars bits; bit r is the value in row r
    """

    num_vars: int
    bits: int

    def __post_init__(self) -> None:
        if not 0 <= self.num_vars <= MAX_TABLE_VARS:
            raise TableError(f"a table has 0 to {MAX_TABLE_VARS} variables, not {self.num_vars}")
        if self.bits < 0 or self.bits >> num_rows(self.num_vars):
            raise TableError(f"{self.bits:#x} does not fit a table of {self.num_vars} variables")

    def __invert__(self) -> TruthTable:
        return TruthTable(self.num_vars, self.bits ^ full_mask(self.num_vars))

    def __and__(self, other: TruthTable) -> TruthTable:
        return TruthTable(self._require_same_size(other), self.bits & other.bits)

    def __or__(self, other: TruthTable) -> TruthTable:
        return TruthTable(self._require_same_size(other), self.bits | other.bits)

    def __xor__(self, other: TruthTable) -> TruthTable:
        return TruthTable(self._require_same_size(other), self.bits ^ other.bits)

    def __getitem__(self, row: int) -> bool:
        if not 0 <= row < num_rows(self.num_vars):
            raise TableError(f"row {row} of a table with {num_rows(self.num_vars)} rows")
        return bool(self.bits >> row & 1)

    def _require_same_size(self, table: TruthTable) -> int:
        if self.num_vars != table.num_vars:
            raise TableError(f"tables of {self.num_vars} and {table.num_vars} variables do not combine")
        return self.num_vars

    @property
    def hex(self) -> str:
        """The bits in hexadecimal, most significant digit first, padded with zeros to the size of the table."""
        return f"{self.bits:0{max(1, num_rows(self.num_vars) // 4)}x}"

    def words(self) -> npt.NDArray[np.uint64]:
        """Return the table as 64-bit words, least significant first; at least one word."""
        import numpy as np

        num_words = max(1, num_rows(self.num_vars) // WORD_BITS)
        return np.frombuffer(self.bits.to_bytes(num_words * 8, "little"), dtype="<u8").astype(np.uint64)


def pack_bits(flags: npt.ArrayLike) -> int:
    """Return flags as an integer, flag i as bit i; any value but 0 is a set flag."""
    import numpy as np

    return int.from_bytes(np.packbits(np.asarray(flags) != 0, bitorder="little").tobytes(), "little")


def unpack_bits(bits: int, size: int) -> npt.NDArray[np.bool_]:
    """Return the bits of an integer below 2**size as flags, bit i as flag i."""
    import numpy as np

    packed = np.frombuffer(bits.to_bytes(-(-size // 8), "little"), np.uint8)
    return np.unpackbits(packed, count=size, bitorder="little").view(np.bool_)


def from_words(words: npt.NDArray[np.uint64], num_vars: int) -> TruthTable:
    return TruthTable(num_vars, int.from_bytes(words.astype("<u8").tobytes(), "little") & full_mask(num_vars))


def constant_table(value: bool, num_vars: int) -> TruthTable:
    return TruthTable(num_vars, full_mask(num_vars) if value else 0)


@cache  # at most 136 tables
def projection(var_index: int, num_vars: int) -> TruthTable:
    """Return the table of variable `var_index` as a function: 0xa, 0xc, 0xf0, ..."""
    if not 0 <= var_index < num_vars:
        raise TableError(f"variable {var_index} of a table with {num_vars} variables")
    block = 1 << var_index  # number of successive rows with the same value of the variable
    pattern = ((1 << block) - 1) << block
    period = 2 * block
    while period < num_rows(num_vars):
        pattern |= pattern << period
        period *= 2
    return TruthTable(num_vars, pattern)


def from_formula(formula: Formula, variables: Sequence[str]) -> TruthTable:
    """Return the table of a formula over `variables`; variable i of the table is variables[i]."""
    num_vars = len(variables)
    if num_vars > MAX_TABLE_VARS:
        raise TableError(f"a table has at most {MAX_TABLE_VARS} variables, not {num_vars}")
    columns = {name: projection(i, num_vars).bits for i, name in enumerate(variables)}
    return TruthTable(num_vars, formula.evaluate(columns.__getitem__, full_mask(num_vars)))


def cofactor(table: TruthTable, var_index: int, value: bool) -> TruthTable:
    """Return the function with one variable fixed, as a table over all variables that does not depend on it."""
    ones = projection(var_index, table.num_vars).bits
    shift = 1 << var_index
    if value:
        branch = table.bits & ones
        return TruthTable(table.num_vars, branch | branch >> shift)
    branch = table.bits & ~ones
    return TruthTable(table.num_vars, branch | branch << shift)


def depends_on(table: TruthTable, var_index: int) -> bool:
    """Return whether flipping the variable can change the value."""
    ones = projection(var_index, table.num_vars).bits
    flipped = table.bits >> (1 << var_index)  # in rows with the variable at 0, the value for it at 1
    return (flipped ^ table.bits) & ~ones != 0


def support(table: TruthTable) -> tuple[int, ...]:
    """Return the variables that the function depends on, ascending."""
    return tuple(i for i in range(table.num_vars) if depends_on(table, i))


def select(table: TruthTable, variables: Sequence[int]) -> TruthTable:
    """Return the function over the given variables only, in the given order, with all others fixed to 0."""
    bits, selected = table.bits, 0
    for row, source in _selected_rows(tuple(variables)):
        if bits & source:
            selected |= row
    return TruthTable(len(variables), selected)


@lru_cache(maxsize=1024)
def _selected_rows(variables: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Return pairs of rows, each as one bit: a row over these variables, and the row of the table that it equals."""
    source_rows = [
        sum(1 << v for i, v in enumerate(variables) if row >> i & 1) for row in range(num_rows(len(variables)))
    ]
    return tuple((1 << row, 1 << source_row) for row, source_row in enumerate(source_rows))


def shrink(table: TruthTable) -> tuple[TruthTable, tuple[int, ...]]:
    """Return the function over its support only, and the support."""
    variables = support(table)
    return (table if len(variables) == table.num_vars else select(table, variables)), variables


def permute(table: TruthTable, order: Sequence[int]) -> TruthTable:
    """Return the table with its variables permuted: variable i of the result is variable order[i] of `table`."""
    if sorted(order) != list(range(table.num_vars)):
        raise TableError(f"{tuple(order)} is not a permutation of {table.num_vars} variables")
    return select(table, order)


def flip(table: TruthTable, var_index: int) -> TruthTable:
    """Return the function with one variable negated."""
    ones = projection(var_index, table.num_vars).bits
    shift = 1 << var_index
    return TruthTable(table.num_vars, (table.bits & ones) >> shift | (table.bits & ~ones) << shift & ones)


# --- Partial tables: the evidence about one mechanism, with unobserved rows -------------------------------------------


@dataclass(frozen=True, slots=True)
class PartialTable:
    """A partially specified Boolean function: bit r of `value` is defined if and only if bit r of `care` is set.

    num_vars: number of variables, 0 to 16
    care: bits of the observed rows
    value: observed values; 0 in other rows
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
        """Number of unobserved rows; 2**num_open functions agree with the table."""
        return num_rows(self.num_vars) - self.care.bit_count()

    def agrees(self, table: TruthTable) -> bool:
        """Return whether a complete function agrees with every observed value."""
        if table.num_vars != self.num_vars:
            raise TableError(f"tables of {table.num_vars} and {self.num_vars} variables do not compare")
        return (table.bits ^ self.value) & self.care == 0


def complete(table: TruthTable) -> PartialTable:
    """Return the partial table with which only this function agrees."""
    return PartialTable(table.num_vars, full_mask(table.num_vars), table.bits)


def look_up(
    tables: npt.NDArray[np.uint64], parents: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """Return values of functions of at most 6 variables; bit 0 of each result is the value, other bits are undefined.

    tables, parents: functions and the sets of their variables, as bits; rows: values, one bit for each variable; all
        three arrays broadcast together
    """
    import numpy as np

    remaining, patterns = parents.copy(), np.zeros_like(rows)
    for position in range(6):
        if not remaining.any():
            break
        parent = remaining & (~remaining + np.uint64(1))
        patterns |= (rows & parent != 0).astype(np.uint64) << np.uint64(position)
        remaining ^= parent
    return tables >> patterns


# --- Canonical forms of functions under permutation and negation of their variables -----------------------------------
