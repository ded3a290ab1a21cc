"""Findings about the released files and about the paper's printed rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from calibrant.audits.causalab.suites import (
    PrintedRow,
    abstention_finding,
    class_size_finding,
    denominator_findings,
    mean_class_sizes,
    mixture_finding,
    suite_findings,
)
from calibrant.audits.claims import Finding
from calibrant.bench.causalab.paper import paper
from calibrant.dsl.causalab.configs import read_configs
from calibrant.dsl.causalab.generation import PLANS

OBSERVED = {"11": "4nodes", "12": "6nodes"}  # tables whose rows without interventions are compared with abstention
REGIMES = ("9", "10", "11", "12")
CLASS_SIZES = {"imec_3_nodes": "3nodes", "imec_4_nodes": "4nodes"}  # of Table 8
DISTANCES = "7"


def released_findings(folder: Path, seeds: int) -> Iterator[Finding]:
    """Yield findings of every released file, on so many episodes of each config; `PoolError` if one is missing."""
    suites = {suite: read_configs(folder / f"{suite}.jsonl") for suite in PLANS}
    yield from suite_findings(suites, range(seeds))
    for number, suite in OBSERVED.items():
        graphs = [config.mechanism.edges for config in suites[suite]]
        rows = [row for row in printed_rows(number) if "pure observation" in row.where]
        yield from (abstention_finding(row, graphs) for row in rows)
    for column, suite in CLASS_SIZES.items():
        sizes = mean_class_sizes([config.mechanism for config in suites[suite]])
        yield from (class_size_finding(row, column, sizes) for row in printed_rows("8"))
    rows = [row for number in REGIMES for row in printed_rows(number) if "pure intervention" in row.where]
    yield from map(mixture_finding, rows)
    yield from denominator_findings(printed_rows(DISTANCES))


def printed_rows(number: str) -> Sequence[PrintedRow]:
    """Return the rows of one of the paper's tables."""
    table = paper().tables[number]
    width = len(table.labels)
    return [
        PrintedRow(f"Table {number}: {' '.join(row[:width])}", dict(zip(table.columns, row[width:], strict=True)))
        for row in table.rows
    ]
