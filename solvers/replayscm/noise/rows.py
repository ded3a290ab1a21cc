"""Evidence as words: a row is a word with a bit per variable, and a word of what was intervened on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld


class EvidenceRow(NamedTuple):
    """One row.

    word: values, bit i for variable i of the class; clamped: bits of the intervention's targets
    is_clean: whether it is noise-free, so that only tables that agree are admitted
    """

    word: int
    clamped: int
    is_clean: bool = False


@dataclass(frozen=True)
class VariableRows:
    """The rows that are evidence of one mechanism: those in which its variable is free.

    noisy: word -> number of rows; clean: words of clean rows
    """

    noisy: Mapping[int, int] = field(default_factory=dict)
    clean: frozenset[int] = frozenset()

    @property
    def num_cells(self) -> int:
        """Noisy cells, each of which contributes a factor of the rate or of its complement."""
        return sum(self.noisy.values())


def text_word(text: str) -> int:
    """Return the word of a row string: bit i is character i."""
    return int(text[::-1], 2)


def word_text(word: int, num_vars: int) -> str:
    """Return the row string of a word."""
    return "".join(str(word >> i & 1) for i in range(num_vars))


def target_mask(scm_class: MechanismClass, constants: Iterable[str]) -> int:
    """Return the bits of observed variables."""
    return sum(1 << scm_class.observed.index(variable) for variable in constants)


def evidence_rows(scm_class: MechanismClass, worlds: Iterable[EvidenceWorld]) -> tuple[EvidenceRow, ...]:
    """Return the rows of worlds as words, in order."""
    return tuple(
        EvidenceRow(text_word(row), target_mask(scm_class, world.constants), world.is_clean)
        for world in worlds
        for row in world.rows
    )


def variable_rows(rows: Sequence[EvidenceRow], variable: int) -> VariableRows:
    """Return the evidence of one variable's mechanism."""
    bit = 1 << variable
    # equal rows are one entry: the cost of a weight is sets x different rows
    noisy = Counter(row.word for row in rows if not row.clamped & bit and not row.is_clean)
    # a clean row that is repeated excludes nothing more
    clean = frozenset(row.word for row in rows if not row.clamped & bit and row.is_clean)
    return VariableRows(noisy, clean)
