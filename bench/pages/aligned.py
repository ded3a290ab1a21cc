"""Tables as text that a terminal, a pipe and a diff all show alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from bench.answers.columns import (
    ALTERNATIVE_COLUMNS,
    FUNNEL_COLUMNS,
    REPLAY_COLUMNS,
    ROOT_COLUMNS,
    STRUCTURE_COLUMNS,
    SUPPRESSED,
    UNDEFINED,
    Column,
)
from dsl.errors import in_one_line

VIEWS: Mapping[str, tuple[Column, ...]] = {
    "replay": REPLAY_COLUMNS,
    "structure": STRUCTURE_COLUMNS,
    "funnel": FUNNEL_COLUMNS,
}


def table_text(rows: Iterable[Mapping[str, str]], *, view: str = "replay") -> str:
    """Rows as aligned columns; columns that are undefined in every row are left out."""
    rows = list(rows)
    keys = {"setting": "Setting", "system": "System", "pool": "Pool", "stratum": "Stratum", "n": "n"}
    columns = (*VIEWS[view], *(ROOT_COLUMNS + ALTERNATIVE_COLUMNS if view == "replay" else ()))
    keys |= {"coverage": "Coverage"} | {column.key: column.heading for column in columns}
    if view == "replay":
        keys |= {"out_of_budget": "NoBudget", "seconds_median": "s median", "seconds_max": "s max"}
    if all(row["coverage"] in ("1.000", UNDEFINED) for row in rows):
        del keys["coverage"]
    shown = {key: head for key, head in keys.items() if any(row.get(key, UNDEFINED) != UNDEFINED for row in rows)}
    return aligned(list(shown.values()), [[row.get(key, UNDEFINED) for key in shown] for row in rows])


def aligned(headings: list[str], rows: list[list[str]]) -> str:
    """A plain text table: columns of numbers to the right, others to the left; every cell stays in its line."""
    rows = [[in_one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    number = re.compile(rf"[\d.{SUPPRESSED}{UNDEFINED}]*")
    numeric = [all(map(number.fullmatch, column)) for column in zip(*rows, strict=True)]
    numeric = numeric or [False] * len(headings)

    def line(cells: list[str]) -> str:
        padded = [c.rjust(w) if n else c.ljust(w) for c, w, n in zip(cells, widths, numeric, strict=True)]
        return "  ".join(padded).rstrip()

    return "\n".join(map(line, [headings, *rows]))
