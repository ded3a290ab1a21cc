"""Table of a report about answers that are sets, from verdicts of `calibrant score --set-size`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import Any

from calibrant.bench.core.names import TITLES
from calibrant.bench.report.intervals import Interval
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell
from calibrant.bench.sets.table import (
    HEADINGS,
    LABELS,
    MARK,
    MEANINGS,
    RATES,
    group_sets,
    rate_values,
    read_set_lines,
    short_rate,
)
from calibrant.bench.variants.consistency import clustered_interval
from calibrant.dsl.errors import CalibrantError

SETS_TABLE = "sets"
WITH_INTERVAL = ("valid_rate", "distinct_rate", "reach", "prior_mass")


def set_tables(paths: Sequence[Path]) -> dict[str, Table]:
    """Return a table for each benchmark of the verdicts; `CalibrantError` for lines that do not state theirs."""
    by_benchmark: dict[str, list[Mapping[str, Any]]] = {}
    for line in read_set_lines(paths):
        name = line.get("benchmark")
        if name not in TITLES:
            raise CalibrantError("verdicts on sets without their benchmark: score the sets again")
        by_benchmark.setdefault(name, []).append(line)
    return {name: _table(lines) for name, lines in by_benchmark.items()}


def _table(verdicts: Sequence[Mapping[str, Any]]) -> Table:
    keys = ("pool", "system", "n", MARK)
    labels = tuple(map(Heading, keys, LABELS))
    headings = tuple(map(Heading, RATES, HEADINGS[len(LABELS) :]))
    rows = tuple(
        TableRow((pool, system, str(len(lines)), str(size)), tuple(_cells(lines)))
        for (pool, system, size), lines in group_sets(verdicts)
    )
    caption = " ".join(MEANINGS) + " Means over items; 95 % intervals over items (Student's t, Wilson's near 0 and 1)."
    return Table(SETS_TABLE, "Answers that are sets", caption, labels, headings, rows)


def _cells(lines: Sequence[Mapping[str, Any]]) -> Iterator[Cell]:
    for name in RATES:
        values = rate_values(lines, name)
        if not values:
            yield NOTHING
            continue
        mean = fsum(values) / len(values)
        has_interval = name in WITH_INTERVAL and len(values) > 1
        interval = Interval(*clustered_interval([[value] for value in values])) if has_interval else None
        yield cell(short_rate(mean), interval)
