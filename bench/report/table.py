"""The tables that `score` and `table` print: a row for each setting, pool and system, rates of all metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from calibrant.bench.answers.intervals import Interval
from calibrant.bench.answers.names import natural
from calibrant.bench.core.metrics import OUTCOMES, SUPPRESSED, UNDEFINED, InvalidHandling, MetricSet, Sample
from calibrant.bench.core.names import TITLES
from calibrant.bench.core.observations import ObservationReader, Values
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.report.legend import luck_sentence
from calibrant.bench.report.rows import Grouping, Row, RowGroups, drop_equal_choices
from calibrant.bench.report.samples import SampleRow, sample_rows

NAMELESS_BENCHMARK = next(iter(TITLES))  # its rows are older than the name in JSON
STRUCTURE_METRIC = "parent_f1"  # defined for answers with structure metrics; they are counted


class ResultTable:
    """Collects scored answers and prints them as rows; the order in which they are added does not matter.

    Participants of one study are one system, such as people (40).
    """

    def __init__(
        self,
        metrics: MetricSet,
        *,
        by: Grouping = Grouping.POOL,
        handling: InvalidHandling = InvalidHandling.PUBLISHED,
    ) -> None:
        self.metrics = metrics
        self._by = by
        self._reader = ObservationReader(metrics, handling)
        self._groups = RowGroups(metrics, self._reader.columns, by)

    def add(self, context: AnswerContext, score: Mapping[str, Any]) -> None:
        """Count one answer under the setting of its context."""
        self.count(context, *self._reader.read_values(context.setting, score))

    def count(self, context: AnswerContext, values: Values, sample: Sample) -> None:
        """Count one answer of which these values were read."""
        self._groups.add(context, values, sample)

    def cells(self) -> list[dict[str, str]]:
        """Return one mapping per row, every value as it is printed."""
        rows = self._sorted_rows()
        answered = self._num_answered(rows)
        return [self._label_cells(row, num) | _rate_cells(row) for row, num in zip(rows, answered, strict=True)]

    @property
    def chosen(self) -> tuple[str, str] | None:
        """Names of the first system with equally good answers: of its mean, and of what its tie rule chose."""
        rows = self._sorted_rows()
        names = {row.key: row.system for row in rows}
        return next(
            (
                (names[row.key._replace(system=row.key.system._replace(is_chosen=False))], row.system)
                for row in rows
                if row.key.system.is_chosen
            ),
            None,
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Return one mapping per row: numbers as numbers, null for what is undefined or suppressed."""
        rows = self._sorted_rows()
        lines = [self._json_row(row, num) for row, num in zip(rows, self._num_answered(rows), strict=True)]
        for name, view in self.metrics.views.items():
            keys = [column.key for column in view.metrics]
            is_optional = view.optional or name == "attribution"  # attributed on request, or in episodes
            if is_optional and all(line[key] is None for line in lines for key in keys):
                lines = [{key: value for key, value in line.items() if key not in keys} for line in lines]
        return lines

    def sample_rows(self) -> list[SampleRow]:
        """Return the table of the rows that have several samples of an item."""
        return sample_rows(self._sorted_rows(), self.metrics.rights)

    def incomplete(self) -> list[str]:
        """Return a line for every row that does not cover its pools, and for every row with answers that crashed.

        Of a group of people one line: how many items they took.
        """
        lines: dict[str, None] = {}  # each once, in order
        rows = self._sorted_rows()
        for row, num_answered in zip(rows, self._num_answered(rows), strict=True):
            if row.is_group:
                lines |= dict.fromkeys(self._partial_lines(row, rows))
                continue
            if num_answered < row.num_expected and self._by is not Grouping.STRATUM:
                scored = f"{num_answered} of {row.num_expected} instances scored for {row.system}"
                lines[f"{row.pool}: {scored}; rates are over those"] = None
            if row.outcomes["crashed"]:
                crashed = f"{row.outcomes['crashed']} of {row.num_answers} answers of {row.system} are crashes"
                lines[f"{row.pool}: {crashed}; rates count them as not valid"] = None
        return list(lines)

    def _partial_lines(self, row: Row, rows: Sequence[Row]) -> Iterator[str]:
        """Yield how many items of their pools a group of people took, if some of them took not all."""
        if self._by is Grouping.STRATUM:
            return
        alike = [peer for peer in rows if (peer.system, peer.pool) == (row.system, row.pool)]
        taken = sum((peer.num_taken for peer in alike), start=Counter[str]())
        low, high = min(taken.values()), max(taken.values())
        if low < row.num_expected:
            reach = f"{low}" if low == high else f"{low} to {high}"
            mean = "rates are over those" if len(taken) == 1 else "rates are means over participants, each alike"
            yield f"{row.pool}: {row.system} took {reach} of {row.num_expected} items; {mean}"

    def luck(self) -> str:
        """Return the sentence on luck; empty where no answer is known to be lucky."""
        return luck_sentence(self._sorted_rows())

    def _sorted_rows(self) -> list[Row]:
        def place(row: Row) -> tuple[Any, ...]:
            name = row.pools[row.key.pool_digest][0] if row.key.pool_digest else ""
            names = name, row.key.pool_digest, *row.key.system[:2], str(int(row.key.system.is_chosen)), row.stratum
            return *self.metrics.place(row.setting), *map(natural, names)

        return sorted(drop_equal_choices(self._groups.rows()), key=place)

    def _label_cells(self, row: Row, num_answered: int) -> dict[str, str]:
        cells = {"setting": row.setting, "system": row.system, "pool": row.pool}
        if self._by is Grouping.STRATUM:
            cells["stratum"] = row.stratum or UNDEFINED
        cells |= {"n": str(row.num_items), "samples": _num_samples(row)}
        is_whole = self._by is not Grouping.STRATUM and row.num_expected
        cells["coverage"] = f"{num_answered / row.num_expected:.3f}" if is_whole else UNDEFINED
        return cells

    def _json_row(self, row: Row, num_answered: int) -> dict[str, Any]:
        cells = self._label_cells(row, num_answered)
        labels: dict[str, Any] = {key: None if text == UNDEFINED else text for key, text in cells.items()}
        numbers: dict[str, Any] = {
            "n": row.num_items,
            "answers": row.num_answers,
            "samples": [1, 1] if row.is_group else [*row.num_samples],
            "coverage": num_answered / row.num_expected if labels["coverage"] else None,
            "pools": [{"name": name, "digest": digest} for digest, (name, _) in sorted(row.pools.items())],
            "options": dict(row.config),
        }
        if row.is_group:
            numbers["participants"] = len(row.num_taken)
        if self.metrics.benchmark != NAMELESS_BENCHMARK:
            labels = {"benchmark": self.metrics.benchmark, **labels}
        return labels | numbers | _rate_values(row)

    def _num_answered(self, rows: Sequence[Row]) -> list[int]:
        """Return how many items of its pools each row's system answered; where rows are of pools, in all settings."""
        if self._by is not Grouping.POOL:
            return [row.num_items for row in rows]
        numbers: Counter[tuple[str, str]] = Counter()
        for row in rows:
            numbers[row.system, row.pool] += row.num_items
        return [numbers[row.system, row.pool] for row in rows]


def _rate_cells(row: Row) -> dict[str, str]:
    cells = {key: rate.text for key, rate in row.rates.items()}
    for key, interval in _skill_intervals(row):
        cells[key] += f" [{interval.low:.2f}, {interval.high:.2f}]"
    num_structured = _num_structured(row)
    if num_structured is not None:
        cells["structure_scored"] = str(num_structured)
    cells |= {name: str(row.outcomes[name]) if row.outcomes else UNDEFINED for name in OUTCOMES}
    seconds = row.seconds
    cells["seconds_median"] = f"{median(seconds):.4f}" if seconds else UNDEFINED
    cells["seconds_max"] = f"{max(seconds):.4f}" if seconds else UNDEFINED
    return cells


def _rate_values(row: Row) -> dict[str, Any]:
    """Return the same as numbers; null where a rate is undefined or suppressed, and which are suppressed."""
    values: dict[str, Any] = {key: rate.value for key, rate in row.rates.items()}
    num_structured = _num_structured(row)
    if num_structured is not None:
        values["structure_scored"] = num_structured
    values |= {name: row.outcomes[name] if row.outcomes else None for name in OUTCOMES}
    seconds = row.seconds
    values["seconds_median"] = median(seconds) if seconds else None
    values["seconds_max"] = max(seconds, default=None)
    values |= {f"{key}_interval": [*interval] for key, interval in _skill_intervals(row)}
    values["suppressed"] = [key for key, rate in row.rates.items() if rate.text == SUPPRESSED]
    return values


def _skill_intervals(row: Row) -> Iterator[tuple[str, Interval]]:
    """Yield the intervals of ratios, which stand beside them."""
    keys = (column.key for column in row.columns if column.skill_of)
    yield from ((key, interval) for key in keys if (interval := row.interval(key)) is not None)


def _num_structured(row: Row) -> int | None:
    """Return how many answers have structure metrics; None where the benchmark has none."""
    place = row.places.get(STRUCTURE_METRIC)
    if place is None:
        return None
    return int((~np.isnan(row.frame.read(place))).sum())


def _num_samples(row: Row) -> str:
    """Return how many samples the items have: undefined if it is one of each, and of a group of people."""
    if row.is_group:
        return UNDEFINED
    low, high = row.num_samples
    return UNDEFINED if high == 1 else str(low) if low == high else f"{low}-{high}"
