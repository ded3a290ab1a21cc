"""Tables of sets: a row a system, beside what independent draws of hypotheses that fit would have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.bench.answers.rates import mean_if_known
from calibrant.bench.pages.aligned import aligned
from calibrant.bench.scoring.input.files import PredictionFile, shown_name
from calibrant.dsl.errors import CalibrantError

MARK = "set_size"  # the field that a verdict on a set alone has
RATES = ("valid_rate", "distinct_rate", "recovery", "reach", "draws_reach", "mass", "prior_mass", "draws_prior_mass")
REQUIRED = RATES[:6]  # of verdicts of earlier versions too
LABELS = ("Pool", "System", "n", "k")
HEADINGS = (*LABELS, "Valid", "Distinct", "Recovery", "Reach", "Draws", "Mass", "Prior", "PriorDraws")
MEANINGS = (
    "Valid: entries that fit; Distinct: different ones among these; Recovery: of all that fit; Reach: of the most that",
    "k entries can be; Draws: the same of k independent draws of what fits; Mass: of the members that they stand for;",
    "Prior: posterior probability under the generator's prior, or that of the noise; PriorDraws: of k draws from it.",
)


def is_set_file(path: Path) -> bool:
    """Return whether a file's first line is a verdict on a set."""
    if not path.is_file():
        return False
    try:
        first = next((line for _, line in PredictionFile(path).objects()), None)
    except CalibrantError:  # what reads it says so
        return False
    return isinstance(first, Mapping) and MARK in first


def read_set_lines(paths: Sequence[Path]) -> Iterator[Mapping[str, Any]]:
    """Yield the verdicts of files of sets; `CalibrantError` names a line that is none."""
    for path in paths:
        for place, line in PredictionFile(path).objects():
            if line is None or any(name not in line for name in (MARK, "model", "pool", *REQUIRED)):
                raise CalibrantError(f"{shown_name(path)}: {place}: no verdict of `calibrant score --set-size`")
            yield line


def group_sets(lines: Iterable[Mapping[str, Any]]) -> list[tuple[tuple[str, str, int], list[Mapping[str, Any]]]]:
    """Return verdicts by pool, system and size of sets, sorted by these."""
    groups: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
    for line in lines:
        groups.setdefault((str(line["pool"]), str(line["model"]), int(line[MARK])), []).append(line)
    return sorted(groups.items())


def rate_values(lines: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    """Return a rate of all verdicts that have it."""
    return [float(line[name]) for line in lines if line.get(name) is not None]


def set_rows(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each pool, system and size of sets: means over items, None where no item has a rate."""
    rows = []
    for (pool, system, size), group in group_sets(lines):
        row: dict[str, Any] = {"pool": pool, "system": system, "n": len(group), MARK: size}
        for name in RATES:
            row[name] = mean_if_known(rate_values(group, name))
        rows.append(row)
    return rows


def set_table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table; a recovery below a thousandth has its power of ten."""
    cells = [
        [
            str(row["pool"]),
            str(row["system"]),
            str(row["n"]),
            str(row[MARK]),
            *(short_rate(row[name]) for name in RATES),
        ]
        for row in rows
    ]
    yield aligned(list(HEADINGS), cells)
    yield from MEANINGS


def short_rate(value: float | None) -> str:
    """Return a rate as tables show it: below a thousandth with its power of ten."""
    if value is None:
        return "\N{EN DASH}"
    return f"{value:.1e}" if 0 < value < 0.001 else f"{value:.3f}"


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as JSON."""
    return json.dumps({"sets": list(rows)}, indent=1)
