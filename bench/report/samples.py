"""The table of systems that answered items several times: mean, pass@k, majority, with intervals over items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from calibrant.bench.core.samples import Item, Sampled, majority, pass_at
from calibrant.bench.report.intervals import LEVEL, Interval, bootstrap_intervals, wilson_if_constant
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell


@dataclass(frozen=True)
class SampleRow:
    """One way to count a system's samples.

    way: mean | pass@k | majority; k: of pass@k; values: by measure, None where it is not known; intervals over items
    """

    of: Sampled
    way: str
    k: int | None
    values: Mapping[str, float | None]
    intervals: Mapping[str, Interval | None]

    def to_dict(self) -> dict[str, Any]:
        """Numbers as numbers, what is undefined as null."""
        low, high = self.of.sizes
        record: dict[str, Any] = {"setting": self.of.setting, "system": self.of.system, "pool": self.of.pool}
        record |= {"n": len(self.of.items), "samples": [low, high], "way": self.way, "k": self.k}
        for key, value in self.values.items():
            ends = self.intervals[key] or (None, None)
            record[key] = {"value": value, "low": ends[0], "high": ends[1]}
        return record

    def labels(self) -> tuple[str, ...]:
        low, high = self.of.sizes
        times = str(low) if low == high else f"{low}-{high}"
        way = self.way if self.k is None else f"pass@{self.k}"
        return self.of.setting, self.of.system, self.of.pool, f"{len(self.of.items)} x {times}", way

    def cells_by_name(self) -> dict[str, str]:
        """Return the cells of a text table, under the keys of `sample_headings`."""
        figures = (f"{figure.text} {figure.interval}".strip() for figure in self.cells())
        return dict(zip(_LABEL_HEADINGS, self.labels(), strict=True)) | dict(zip(self.values, figures, strict=True))

    def cells(self) -> tuple[Cell, ...]:
        return tuple(
            NOTHING if value is None else cell(f"{value:.3f}", self.intervals[key])
            for key, value in self.values.items()
        )


def sample_rows(sampled: Iterable[Sampled]) -> list[SampleRow]:
    """Return a row for each way to count, of each system that has several samples of an item."""
    return [row for system in sampled if system.is_several for row in _rows(system)]


def _rows(sampled: Sampled) -> list[SampleRow]:
    min_samples = sampled.sizes[0]
    powers = [2**i for i in range(1, min_samples.bit_length()) if 2**i < min_samples]
    ways: list[tuple[str, int | None]] = [("mean", None), *(("pass", k) for k in (*powers, min_samples) if k > 1)]
    counts, voted = _count_right(sampled)
    figures: list[list[dict[Item, Fraction] | None]] = [
        [{item: pass_at(number, hits, k or 1) for item, (number, hits) in of.items()} for of in counts]
        for _, k in ways  # the mean is that of one sample
    ]
    figures.append([_all_known(of) for of in voted])
    intervals = _intervals(sampled, [values for row in figures for values in row])
    rows = []
    for (way, k), row in zip([*ways, ("majority", None)], figures, strict=True):
        values = {key: None if v is None else _mean(v) for (key, _, _), v in zip(sampled.rights, row, strict=True)}
        ends = {key: next(intervals) for key, _, _ in sampled.rights}
        rows.append(SampleRow(sampled, way, k, values, ends))
    return rows


def _count_right(
    sampled: Sampled,
) -> tuple[list[dict[Item, tuple[int, int]]], list[dict[Item, Fraction | None]]]:
    """For each thing that is counted, of an item: samples and how many are right; how right their majority is."""
    counts: list[dict[Item, tuple[int, int]]] = [{} for _ in sampled.rights]
    voted: list[dict[Item, Fraction | None]] = [{} for _ in sampled.rights]
    for item, samples in sampled.items.items():
        answers = tuple(samples)
        for place, (_, _, right) in enumerate(sampled.rights):
            counts[place][item] = len(answers), sum(map(right, answers))
            voted[place][item] = majority(answers, right)
    return counts, voted


def _all_known(values: Mapping[Item, Fraction | None]) -> dict[Item, Fraction] | None:
    defined = {item: value for item, value in values.items() if value is not None}
    return defined if len(defined) == len(values) else None


def _mean(values: Mapping[Item, Fraction]) -> float:
    return float(sum(values.values(), Fraction(0)) / len(values))


def _intervals(sampled: Sampled, columns: Sequence[Mapping[Item, Fraction] | None]) -> Any:
    """Intervals over latent SCMs, of one column after the other: bootstrap, and Wilson's where all items are alike."""
    latents = {latent: place for place, latent in enumerate(sorted(set(sampled.latents.values())))}
    sums = np.zeros((len(latents), len(columns)))
    counts = np.zeros_like(sums)
    for k, values in enumerate(columns):
        for item, value in sorted((values or {}).items()):
            sums[latents[sampled.latents[item]], k] += float(value)
            counts[latents[sampled.latents[item]], k] += 1
    intervals = bootstrap_intervals(sums, counts)
    return iter([wilson_if_constant(interval, counts[:, k]) for k, interval in enumerate(intervals)])


_LABEL_HEADINGS = {"setting": "Setting", "system": "System", "pool": "Pool", "n": "n", "way": "Samples"}


def sample_headings(sampled: Sampled) -> dict[str, str]:
    """Key and heading of every column of a text table, labels first."""
    return _LABEL_HEADINGS | {key: heading for key, heading, _ in reversed(sampled.rights)}


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
    f" weighs the same. In brackets: {LEVEL:.0%} percentile bootstrap over latent SCMs."
)


def sample_table(rows: Sequence[SampleRow]) -> Table | None:
    """Return the table of these rows; None if there are none."""
    if not rows:
        return None
    headings = tuple(Heading(key, heading) for key, heading, _ in rows[0].of.rights)
    lines = tuple(TableRow(row.labels(), row.cells()) for row in rows)
    return Table("samples", "Several samples", CAPTION, _LABELS, headings, lines)
