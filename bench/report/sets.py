"""Table of a report about answers that are sets, from verdicts of `calibrant score --set-size`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.bench.answers.frame import estimate
from calibrant.bench.answers.intervals import INTERVALS
from calibrant.bench.core.names import TITLES
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell
from calibrant.bench.scoring.sets import (
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
    caption = " ".join(MEANINGS) + f" Means over items; {INTERVALS}"
    return Table(SETS_TABLE, "Answers that are sets", caption, labels, headings, rows)


def _cells(lines: Sequence[Mapping[str, Any]]) -> Iterator[Cell]:
    for name in RATES:
        values = rate_values(lines, name)
        if not values:
            yield NOTHING
            continue
        rate = estimate((place, str(place), value) for place, value in enumerate(values))
        assert rate is not None
        yield cell(short_rate(rate.mean), rate.interval if name in WITH_INTERVAL else None)
