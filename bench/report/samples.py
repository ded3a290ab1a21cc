"""The table of systems that answered items several times: mean, pass@k, majority, with intervals over items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from calibrant.bench.answers.frame import Estimate, estimate
from calibrant.bench.answers.intervals import INTERVALS
from calibrant.bench.core.metrics import Item, Sampled, majority, pass_at
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell


@dataclass(frozen=True)
class SampleRow:
    """One way to count a system's samples.

    way: mean | pass@k | majority; k: of pass@k; estimates: by measure, None where it is not known
    """

    of: Sampled
    way: str
    k: int | None
    estimates: Mapping[str, Estimate | None]

    def to_dict(self) -> dict[str, Any]:
        """Numbers as numbers, what is undefined as null."""
        low, high = self.of.sizes
        record: dict[str, Any] = {"setting": self.of.setting, "system": self.of.system, "pool": self.of.pool}
        record |= {"n": len(self.of.items), "samples": [low, high], "way": self.way, "k": self.k}
        for key, rate in self.estimates.items():
            low_end, high_end = (rate and rate.interval) or (None, None)
            record[key] = {"value": rate and rate.mean, "low": low_end, "high": high_end}
        return record

    def labels(self) -> tuple[str, ...]:
        low, high = self.of.sizes
        times = str(low) if low == high else f"{low}-{high}"
        way = self.way if self.k is None else f"pass@{self.k}"
        return self.of.setting, self.of.system, self.of.pool, f"{len(self.of.items)} x {times}", way

    def cells_by_name(self) -> dict[str, str]:
        """Return the cells of a text table, under the keys of `sample_headings`."""
        figures = (f"{figure.text} {figure.interval}".strip() for figure in self.cells())
        return dict(zip(_LABEL_HEADINGS, self.labels(), strict=True)) | dict(zip(self.estimates, figures, strict=True))

    def cells(self) -> tuple[Cell, ...]:
        return tuple(
            NOTHING if rate is None else cell(f"{rate.mean:.3f}", rate.interval) for rate in self.estimates.values()
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
    return [
        SampleRow(
            sampled, way, k, {key: _estimate(sampled, v) for (key, _, _), v in zip(sampled.rights, row, strict=True)}
        )
        for (way, k), row in zip([*ways, ("majority", None)], figures, strict=True)
    ]


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


def _estimate(sampled: Sampled, values: Mapping[Item, Fraction] | None) -> Estimate | None:
    """Return the mean over items; None where it is not known of one."""
    if values is None:
        return None
    rate = estimate((item, sampled.latents[item], float(value)) for item, value in values.items())
    return rate and rate._replace(mean=float(sum(values.values(), Fraction(0)) / len(values)))


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
    f" weighs the same. In brackets: {INTERVALS}"
)


def sample_table(rows: Sequence[SampleRow]) -> Table | None:
    """Return the table of these rows; None if there are none."""
    if not rows:
        return None
    headings = tuple(Heading(key, heading) for key, heading, _ in rows[0].of.rights)
    lines = tuple(TableRow(row.labels(), row.cells()) for row in rows)
    return Table("samples", "Several samples", CAPTION, _LABELS, headings, lines)
