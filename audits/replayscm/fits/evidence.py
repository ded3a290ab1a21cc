"""Evidence of claims about fits: a table, as it was parsed with the options of `calibrant fit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from calibrant.audits.claims import Refused
from calibrant.dsl.text import plural

GAP = -1  # code of a cell without a value
MAX_WORDS_SHOWN = 6  # columns whose word for 1 is stated


class ReadingRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parsing of a table: the options of `calibrant fit` of these names; `purpose`: the kind of fit."""

    purpose: Literal["formulas", "networks"]
    do: list[str] = []
    do_flags: str | None = None
    ones: list[str | tuple[str, str]] = []
    binarize: list[str | tuple[str, str]] = []
    drop: list[str] = []
    missing: list[str] = []
    gaps: Literal["complete", "drop"] = "complete"


@dataclass(frozen=True, eq=False)
class TableEvidence:
    """Rows of the used columns of a table, grouped by pattern (equal rows).

    words: [columns][code] the value that a code stands for; codes: [patterns, columns] a code or GAP
    is_set: [patterns, columns] whether the column was intervened on; counts: [patterns] number of rows
    """

    names: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    codes: npt.NDArray[np.int16]
    is_set: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.int64]

    @property
    def digested(self) -> Mapping[str, Any]:
        """Columns with their words, and sorted rows, so that the digest does not depend on their order in the file."""
        rows = sorted(
            f"{','.join(map(str, codes))};{','.join(map(str, np.flatnonzero(is_set)))};{count}"
            for codes, is_set, count in zip(self.codes.tolist(), self.is_set, self.counts.tolist(), strict=True)
        )
        return {"columns": [[name, *words] for name, words in zip(self.names, self.words, strict=True)], "rows": rows}

    @cached_property
    def num_rows(self) -> int:
        return int(self.counts.sum())

    @property
    def in_words(self) -> str:
        """Number of rows, columns, and the value that is coded as 1, for up to MAX_WORDS_SHOWN columns."""
        binary = [(name, words[1]) for name, words in zip(self.names, self.words, strict=True) if len(words) == 2]
        coded = ", ".join(f"{name} is 1 where {word}" for name, word in binary[:MAX_WORDS_SHOWN] if word != "1")
        return f"{plural(self.num_rows, 'rows')} of {', '.join(self.names)}" + (f" ({coded})" if coded else "")

    def position(self, name: str) -> int:
        """Return the position of a column; `Refused` if there is none."""
        if name not in self.names:
            raise Refused(f"the table has no column {name!r}")
        return self.names.index(name)


@dataclass(frozen=True, eq=False)
class TargetRows:
    """Rows in which a target is known and was not set.

    columns: the other columns; codes: [patterns, columns]; zeros, ones: [patterns] number of rows with target 0, 1
    """

    columns: tuple[str, ...]
    codes: npt.NDArray[np.int16]
    zeros: npt.NDArray[np.int64]
    ones: npt.NDArray[np.int64]


def rows_of_target(evidence: TableEvidence, target: str) -> TargetRows:
    """Return the rows that a mechanism of the target has to fit; `Refused` for columns of more than two values."""
    if any(len(words) != 2 for words in evidence.words):
        raise Refused("a column has more than two values")
    position = evidence.position(target)
    has_value = (evidence.codes[:, position] != GAP) & ~evidence.is_set[:, position]
    other_positions = [k for k in range(len(evidence.names)) if k != position]
    values, row_counts = evidence.codes[has_value, position], evidence.counts[has_value]
    return TargetRows(
        tuple(evidence.names[k] for k in other_positions),
        evidence.codes[has_value][:, other_positions],
        np.where(values == 0, row_counts, 0),
        np.where(values == 1, row_counts, 0),
    )
