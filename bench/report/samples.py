"""The table of systems that answered items several times: mean, pass@k, majority, with intervals over items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.bench.answers.frame import Estimate
from calibrant.bench.answers.intervals import INTERVALS
from calibrant.bench.answers.rates import pass_at
from calibrant.bench.core.metrics import Right
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell
from calibrant.bench.report.rows import Row

Rights = tuple[tuple[str, str, Right], ...]


@dataclass(frozen=True)
class SampleRow:
    """One way to count a system's samples.

    way: mean | pass@k | majority; k: of pass@k; estimates: by measure, None where it is not known
    """

    of: Row
    way: str
    k: int | None
    estimates: Mapping[str, Estimate | None]

    def to_dict(self) -> dict[str, Any]:
        """Numbers as numbers, what is undefined as null."""
        record: dict[str, Any] = {"setting": self.of.setting, "system": self.of.system, "pool": self.of.pool}
        record |= {"n": self.of.num_items, "samples": [*self.of.num_samples], "way": self.way, "k": self.k}
        for key, rate in self.estimates.items():
            low_end, high_end = (rate and rate.interval) or (None, None)
            record[key] = {"value": rate and rate.mean, "low": low_end, "high": high_end}
        return record

    def labels(self) -> tuple[str, ...]:
        low, high = self.of.num_samples
        times = str(low) if low == high else f"{low}-{high}"
        way = self.way if self.k is None else f"pass@{self.k}"
        return self.of.setting, self.of.system, self.of.pool, f"{self.of.num_items} x {times}", way

    def cells_by_name(self) -> dict[str, str]:
        """Return the cells of a text table, under the keys of `sample_headings`."""
        figures = (f"{figure.text} {figure.interval}".strip() for figure in self.cells())
        return dict(zip(_LABEL_HEADINGS, self.labels(), strict=True)) | dict(zip(self.estimates, figures, strict=True))

    def cells(self) -> tuple[Cell, ...]:
        return tuple(
            NOTHING if rate is None else cell(f"{rate.mean:.3f}", rate.interval) for rate in self.estimates.values()
        )


def sample_rows(rows: Iterable[Row], rights: Rights) -> list[SampleRow]:
    """Return a row for each way to count, of each system that has several samples of an item; none of people.

    rights: key, heading and criterion of what is counted
    """
    several = (row for row in rows if not row.is_group and row.num_samples[1] > 1)
    return [sample_row for row in several for sample_row in _rows(row, rights)]


def _rows(row: Row, rights: Rights) -> list[SampleRow]:
    min_samples = row.num_samples[0]
    powers = [2**i for i in range(1, min_samples.bit_length()) if 2**i < min_samples]
    ways: list[tuple[str, int | None]] = [("mean", None), *(("pass", k) for k in (*powers, min_samples) if k > 1)]
    sizes = row.frame.sizes.tolist()
    counts = {key: [*zip(sizes, row.frame.num_right(right).tolist(), strict=True)] for key, _, right in rights}
    rows = [
        SampleRow(row, way, k, {key: _estimate_passes(row, counts[key], k or 1) for key in counts})  # the mean is of 1
        for way, k in ways
    ]
    votes = {key: row.frame.majorities(right) for key, _, right in rights}
    estimates = {key: None if shares is None else row.frame.estimate_items(shares) for key, shares in votes.items()}
    return [*rows, SampleRow(row, "majority", None, estimates)]


def _estimate_passes(row: Row, counts: Sequence[tuple[int, int]], k: int) -> Estimate:
    """Return the mean of pass@k. counts: of each item, its samples and how many are right."""
    shares = {pair: pass_at(*pair, k) for pair in Counter(counts)}
    return row.frame.estimate_items([shares[pair] for pair in counts])


_LABEL_HEADINGS = {"setting": "Setting", "system": "System", "pool": "Pool", "n": "n", "way": "Samples"}


def sample_headings(rights: Rights) -> dict[str, str]:
    """Key and heading of every column of a text table, labels first."""
    return _LABEL_HEADINGS | {key: heading for key, heading, _ in reversed(rights)}


_LABELS = (
    Heading("setting", "Setting"),
    Heading("system", "System"),
    Heading("pool", "Pool"),
    Heading("n", "n"),
    Heading("way", "Samples"),
)
CAPTION = (
    "Systems that answered items several times; n: items x samples of each. mean: of one sample. pass@k: one of k"
    " samples is right, estimated without bias. majority: of the meaning that most valid samples have. Every item"
    f" weighs the same. In brackets: {INTERVALS}"
)


def sample_table(rows: Sequence[SampleRow], rights: Rights) -> Table | None:
    """Return the table of these rows; None if there are none."""
    if not rows:
        return None
    headings = tuple(Heading(key, heading) for key, heading, _ in rights)
    lines = tuple(TableRow(row.labels(), row.cells()) for row in rows)
    return Table("samples", "Several samples", CAPTION, _LABELS, headings, lines)
