"""The tables that `score` and `table` print, the table of repeated samples, and the sentences below them."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, sqrt
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from calibrant.bench.answers.frame import Estimate
from calibrant.bench.answers.rates import INTERVALS, NORMAL_95, Interval, natural, pass_at
from calibrant.bench.core import metrics as core_metrics
from calibrant.bench.core.attribution import ATTRIBUTION_METRICS, BASE
from calibrant.bench.core.names import TITLES
from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.responses import EXCLUDED, REASONS, reason_numbers
from calibrant.bench.core.scoring import GROUP, PEOPLE_SYSTEM, AnswerContext, participant_of
from calibrant.bench.core.verdict import LazyVerdict, MeanScore
from calibrant.bench.pages.terminal_tables import NO_ANSWER_COLUMN, NOT_RUN_COLUMN, reason_key
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell
from calibrant.bench.report.rows import (
    Answer,
    Grouping,
    Row,
    RowGroups,
    answered_by_pool,
    drop_equal_choices,
    num_answered,
    num_expected,
)
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.text import plural

# --- Table of systems that answered items several times: mean, pass@k, majority, with intervals over items ------------
Rights = tuple[tuple[str, str, core_metrics.Right], ...]  # key, heading, criterion (`MetricSet.rights`)


@dataclass(frozen=True)
class SampleRow:
    """One aggregate of a system's samples.

    row: the row of the system; way: mean, pass or majority; k: k of pass@k, else None
    estimates: key of `Rights` -> estimate, None if unknown; by: property that groups answers into rows
    """

    row: Row
    way: str
    k: int | None
    estimates: Mapping[str, Estimate | None]
    by: Grouping

    def to_dict(self) -> dict[str, Any]:
        """Return the row for JSON, with null for undefined numbers."""
        record: dict[str, Any] = {"setting": self.row.setting, "system": self.row.system, "pool": self.row.pool}
        record |= {"stratum": self.row.stratum or None} if self.by is Grouping.STRATUM else {}
        record |= {"n": self.row.num_items, "samples": [*self.row.num_samples], "way": self.way, "k": self.k}
        for key, rate in self.estimates.items():
            low_end, high_end = (rate and rate.interval) or (None, None)
            record[key] = {"value": rate and rate.mean, "low": low_end, "high": high_end}
        return record

    def labels(self) -> dict[str, str]:
        """Return the label cells by the keys of `_LABELS`; the stratum only if answers are grouped by it."""
        labels = {"setting": self.row.setting, "system": self.row.system, "pool": self.row.pool}
        labels |= {"stratum": self.row.stratum or core_metrics.UNDEFINED} if self.by is Grouping.STRATUM else {}
        way = self.way if self.k is None else f"pass@{self.k}"
        return labels | {"n": f"{self.row.num_items} x {sample_range(self.row)}", "way": way}

    def cells_by_name(self) -> dict[str, str]:
        """Return the cells of a text table, under the keys of `sample_headings`."""
        texts = (f"{entry.text} {entry.interval}".strip() for entry in self.cells())
        return self.labels() | dict(zip(self.estimates, texts, strict=True))

    def cells(self) -> tuple[Cell, ...]:
        return tuple(
            NOTHING if rate is None else cell(f"{rate.mean:.3f}", rate.interval) for rate in self.estimates.values()
        )


def sample_range(row: Row) -> str:
    low, high = row.num_samples
    return str(low) if low == high else f"{low}-{high}"


def sample_rows(rows: Iterable[Row], rights: Rights, by: Grouping = Grouping.POOL) -> list[SampleRow]:
    """Return a row for each aggregate of each system that has several samples of an item; none for people.

    rights: (key, heading, criterion) of the metrics
    """
    sampled_rows = (row for row in rows if not row.is_group and row.num_samples[1] > 1)
    return [sample_row for row in sampled_rows for sample_row in _aggregate_samples(row, rights, by)]


def _aggregate_samples(row: Row, rights: Rights, by: Grouping) -> list[SampleRow]:
    min_samples = row.num_samples[0]
    powers = [2**i for i in range(1, min_samples.bit_length()) if 2**i < min_samples]
    ways: list[tuple[str, int | None]] = [("mean", None), *(("pass", k) for k in (*powers, min_samples) if k > 1)]
    sizes = row.frame.sizes.tolist()
    counts = {key: [*zip(sizes, row.frame.num_right(right).tolist(), strict=True)] for key, _, right in rights}
    rows = [
        SampleRow(row, way, k, {key: _estimate_passes(row, counts[key], k or 1) for key in counts}, by)  # mean: pass@1
        for way, k in ways
    ]
    votes = {key: row.frame.majorities(right) for key, _, right in rights}
    estimates = {key: None if shares is None else row.frame.estimate_items(shares) for key, shares in votes.items()}
    return [*rows, SampleRow(row, "majority", None, estimates, by)]


def _estimate_passes(row: Row, counts: Sequence[tuple[int, int]], k: int) -> Estimate:
    """Return the mean of pass@k over items. counts: (number of samples, number of right ones) of each item."""
    shares = {pair: pass_at(*pair, k) for pair in Counter(counts)}
    return row.frame.estimate_items([shares[pair] for pair in counts])


_LABELS = {"setting": "Setting", "system": "System", "pool": "Pool", "stratum": "Stratum", "n": "n", "way": "Samples"}


def sample_headings(row: SampleRow, rights: Rights) -> dict[str, str]:
    """Return key -> heading for the columns of a text table of such rows, labels first."""
    return {key: _LABELS[key] for key in row.labels()} | {key: heading for key, heading, _ in reversed(rights)}


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
    lines = tuple(TableRow(tuple(row.labels().values()), row.cells()) for row in rows)
    labels = tuple(Heading(key, _LABELS[key]) for key in rows[0].labels())
    return Table("samples", "Several samples", CAPTION, labels, headings, lines)


# --- Legend below a printed table -------------------------------------------------------------------------------------
PRIORS = {
    ("Chance", "Uniform"): "Chance and Best weigh what fits by the generator's prior where it explains the item, so"
    " they may be 1.000 where nothing is decided; Uniform weighs all that fit alike.",
}  # pair of headings -> sentence on how they differ, printed if both are


def legend_lines(headings: Collection[str], meanings: Mapping[str, str], width: int) -> list[str]:
    """Return the wrapped sentence of the meanings of printed headings; empty if none has a meaning."""
    parts = [f"{heading}: {meaning}" for heading, meaning in meanings.items() if heading in headings]
    return textwrap.wrap(f"{'; '.join(parts)}.", width, break_on_hyphens=False) if parts else []


def attribution_legend(headings: Collection[str], width: int) -> list[str]:
    """Return the legend of the columns on attributions and chance levels among these headings."""
    meanings = {metric.heading: metric.meaning for metric in ATTRIBUTION_METRICS}
    lines = legend_lines(headings, {heading: meanings[heading] for heading in headings if heading in meanings}, width)
    if "NoAnswer" in headings:
        lines += textwrap.wrap(BASE, width)
    for pair, sentence in PRIORS.items():
        if set(pair) <= set(headings):
            lines += textwrap.wrap(sentence, width)
    return lines


def tie_legend(names: tuple[str, str] | None, width: int) -> list[str]:
    """Return the legend of a system with tied answers. names: of its rows of means and of chosen answers, if any."""
    if names is None:
        return []
    text = f"{names[0]}: mean over all equally good answers; {names[1]}: the answer that the tie rule takes of them."
    return textwrap.wrap(text, width, break_on_hyphens=False)


# --- Sentence on the system with the largest share of lucky answers (right, but undecided) among its right ones -------


def luck_sentence(rows: Iterable[Row]) -> str:
    """Return the sentence on the system with the largest share of undecided answers among its right ones.

    Ties are broken by name. Empty if no answer is known to be lucky.
    """
    earned: Counter[str] = Counter()
    lucky: Counter[str] = Counter()
    for row in rows:
        for counts, key in ((earned, "earned"), (lucky, "lucky")):
            if (metric_index := row.column_indices.get(key)) is not None:
                counts[row.system] += row.frame.count(metric_index, 1)
    if not lucky.total():
        return ""
    system = min(lucky, key=lambda name: (-lucky[name] / (lucky[name] + earned[name] or 1), name))
    right, name = lucky[system] + earned[system], in_one_line(system)
    if right == 1:
        return f"The only right answer of {name} was not decided by what it had seen."
    verb = "was" if lucky[system] == 1 else "were"
    return f"{lucky[system]} of the {right} right answers of {name} {verb} not decided by what it had seen."


# --- The tables of `score` and `table`: a row for each setting, pool and system, with rates of all metrics ------------
NAMELESS_BENCHMARK = next(iter(TITLES))  # its rows have no key `benchmark` in JSON: they are older than the key
STRUCTURE_METRIC = "parent_f1"  # defined for exactly those answers that have structure metrics


class _ReasonKey(NamedTuple):
    """Key of a row for counts of reasons, without the options of the system."""

    setting: str
    stratum: str
    pool_digest: str
    system: str

    @classmethod
    def of(cls, row: Row) -> _ReasonKey:
        return cls(row.key.setting, row.key.stratum, row.key.pool_digest, row.key.system.system)


class ResultTable:
    """Collector of scored answers that returns them as table rows, independent of the order of the answers.

    Participants of one study are one system, such as people (40).
    """

    def __init__(
        self,
        metrics: core_metrics.MetricSet,
        *,
        by: Grouping = Grouping.POOL,
        handling: core_metrics.InvalidHandling = core_metrics.InvalidHandling.PUBLISHED,
    ) -> None:
        self.metrics = metrics
        self._by = by
        self._reader = core_metrics.ObservationReader(metrics, handling)
        self._groups = RowGroups(metrics, self._reader.columns, by)
        self._reasons: dict[_ReasonKey, Counter[str]] = {}
        self._pools: dict[str, set[str]] = {}

    def add(self, context: AnswerContext, score: Mapping[str, Any]) -> None:
        """Add a scored answer, or a response that is excluded from every rate."""
        reason = "" if isinstance(score, LazyVerdict) else score.get("reason", "")
        if isinstance(reason, str) and reason in EXCLUDED:
            self.exclude(context, reason)
            return
        reason = score.reading.reason if isinstance(score, LazyVerdict) else reason
        self.count(context, *self._reader.read_values(context.setting, score), reason)

    def count(
        self, context: AnswerContext, values: core_metrics.Values, sample: core_metrics.Sample, reason: str = ""
    ) -> None:
        """Add an answer with its values. reason: why the response holds no answer; empty if it holds one."""
        self._groups.add(context, values, sample)
        if reason:
            self._count_reason(context, reason)

    def exclude(self, context: AnswerContext, reason: str) -> None:
        """Add a response that is excluded from every rate."""
        self._count_reason(context, reason)

    def _count_reason(self, context: AnswerContext, reason: str) -> None:
        stratum = context.stratum if self._by is Grouping.STRATUM else ""
        digest = "" if self._by is Grouping.SETTING else context.pool_digest
        system = PEOPLE_SYSTEM if participant_of(context.system) else context.system
        key = _ReasonKey(context.setting, stratum, digest, system)
        self._reasons.setdefault(key, Counter())[reason] += 1
        self._pools.setdefault(digest, set()).add(in_one_line(context.pool))

    def _reasons_of(self, row: Row) -> Counter[str]:
        return self._reasons.get(_ReasonKey.of(row), Counter())

    def read_rows(self) -> Iterator[tuple[Row, Counter[str]]]:
        """Yield each row with the counts of reasons of its responses without an answer."""
        yield from ((row, self._reasons_of(row)) for row in self._sorted_rows())

    def unrated(self) -> list[tuple[dict[str, str], Counter[str]]]:
        """Return labels and counts of reasons of the rows whose responses are all excluded from the rates."""
        rated = {_ReasonKey.of(row) for row in self._groups.rows()}
        keys = sorted(
            (key for key in self._reasons if key not in rated), key=lambda k: (*self.metrics.setting_order_key(k[0]), k)
        )
        names = ("setting", "system", *(("stratum",) if self._by is Grouping.STRATUM else ()))
        unrated = []
        for key in keys:
            pools = sorted(self._pools[key.pool_digest])
            labels = {name: in_one_line(getattr(key, name)) for name in names}
            labels["pool"] = pools[0] if len(pools) == 1 else plural(len(pools), "pools")
            unrated.append((labels, self._reasons[key]))
        return unrated

    def cells(self) -> list[dict[str, str]]:
        """Return one mapping per row, with values as they are printed."""
        rows = self._sorted_rows()
        shares = zip(rows, num_answered(rows, self._by), num_expected(rows, self._by), strict=True)
        by_reader = any(map(readers_differ, rows))
        cells = [
            self._label_cells(row, *nums) | _rate_cells(row, by_reader=by_reader) | _reason_cells(self._reasons_of(row))
            for row, *nums in shares
        ]
        unrated = [{**labels, "n": "0"} | _reason_cells(reasons) for labels, reasons in self.unrated()]
        return cells + [dict.fromkeys(cells[0] if cells else (), core_metrics.UNDEFINED) | row for row in unrated]

    @property
    def chosen(self) -> tuple[str, str] | None:
        """Names of the first system with tied answers in its row of means and in its row of chosen answers; or None."""
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
        """Return one mapping per row for JSON, with null for undefined and suppressed numbers."""
        rows = self._sorted_rows()
        shares = zip(rows, num_answered(rows, self._by), num_expected(rows, self._by), strict=True)
        lines = [self._json_row(*share) for share in shares]
        if not any(map(readers_differ, rows)):
            lines = [{key: value for key, value in line.items() if key not in _READER_KEYS} for line in lines]
        for name, view in self.metrics.views.items():
            keys = [column.key for column in view.metrics]
            is_optional = view.optional or name == "attribution"  # answers are attributed on request or in episodes
            if is_optional and all(line[key] is None for line in lines for key in keys):
                lines = [{key: value for key, value in line.items() if key not in keys} for line in lines]
        named = {} if self.metrics.benchmark == NAMELESS_BENCHMARK else {"benchmark": self.metrics.benchmark}
        empty = dict.fromkeys(lines[0] if lines else ()) | named | {"n": 0, "answers": 0}
        return lines + [empty | labels | reason_numbers(reasons) for labels, reasons in self.unrated()]

    def sample_rows(self) -> list[SampleRow]:
        """Return the sample rows of the rows that have several samples of an item."""
        return sample_rows(self._sorted_rows(), self.metrics.rights, self._by)

    def incomplete(self) -> list[str]:
        """Return a line for every row that lacks items of its pools, and for every row with crashes.

        A group of people has one line, on how many items each of them took.
        """
        lines: dict[str, None] = {}  # an ordered set
        rows = self._sorted_rows()
        for row, num_items in zip(rows, num_answered(rows, self._by), strict=True):
            if row.is_group:
                lines |= dict.fromkeys(self._partial_lines(row, rows))
                continue
            if num_items < row.num_expected and self._by is Grouping.POOL:
                lines[_partial_line(row.pool, row.system, num_items, row.num_expected)] = None
            if row.outcomes["crashed"]:
                crashed = (
                    f"{row.outcomes['crashed']} of {plural(row.num_answers, 'answers')} of {row.system} are crashes"
                )
                lines[f"{row.pool}: {crashed}; rates count them as not valid"] = None
        if self._by is Grouping.SETTING:
            lines |= dict.fromkeys(_partial_line(*part) for part in answered_by_pool(rows) if part[2] < part[3])
        return list(lines)

    def _partial_lines(self, row: Row, rows: Sequence[Row]) -> Iterator[str]:
        """Yield a line on how many items of their pools people took, if some of them did not take all."""
        if self._by is Grouping.STRATUM:
            return
        same_group = [peer for peer in rows if (peer.system, peer.pool) == (row.system, row.pool)]
        num_taken = sum((peer.num_taken for peer in same_group), start=Counter[str]())
        low, high = min(num_taken.values()), max(num_taken.values())
        if low < row.num_expected:
            reach = f"{low}" if low == high else f"{low} to {high}"
            mean = "rates are over those" if len(num_taken) == 1 else "rates are means over participants, each alike"
            yield f"{row.pool}: {row.system} took {reach} of {plural(row.num_expected, 'items')}; {mean}"

    def luck(self) -> str:
        """Return the sentence on luck; empty if no answer is known to be lucky."""
        return luck_sentence(self._sorted_rows())

    def _sorted_rows(self) -> list[Row]:
        def sort_key(row: Row) -> tuple[Any, ...]:
            name = row.pools[row.key.pool_digest][0] if row.key.pool_digest else ""
            names = name, row.key.pool_digest, *row.key.system[:2], str(int(row.key.system.is_chosen)), row.stratum
            return *self.metrics.setting_order_key(row.setting), *map(natural, names)

        return sorted(drop_equal_choices(self._groups.rows()), key=sort_key)

    @property
    def _has_groups(self) -> bool:
        """Whether some participants were assigned to groups of a study."""
        return any(row.people_group for row in self._groups.rows())

    def _label_cells(self, row: Row, num_items: int, num_total: int) -> dict[str, str]:
        cells = {"setting": row.setting, "system": row.label, "pool": row.pool}
        if self._has_groups:
            cells[GROUP] = row.people_group or core_metrics.UNDEFINED
        if self._by is Grouping.STRATUM:
            cells["stratum"] = row.stratum or core_metrics.UNDEFINED
        cells |= {"n": str(row.num_items), "samples": _num_samples(row)}
        cells["coverage"] = f"{num_items / num_total:.3f}" if num_total else core_metrics.UNDEFINED
        return cells

    def _json_row(self, row: Row, num_items: int, num_total: int) -> dict[str, Any]:
        cells = self._label_cells(row, num_items, num_total)
        labels: dict[str, Any] = {key: None if text == core_metrics.UNDEFINED else text for key, text in cells.items()}
        numbers: dict[str, Any] = {
            "n": row.num_items,
            "answers": row.num_answers,
            "samples": [1, 1] if row.is_group else [*row.num_samples],
            "coverage": num_items / num_total if num_total else None,
            "pools": [{"name": name, "digest": digest} for digest, (name, _) in sorted(row.pools.items())],
            "options": dict(row.config),
        }
        if row.is_group:
            numbers["participants"] = len(row.num_taken)
        if self.metrics.benchmark != NAMELESS_BENCHMARK:
            labels = {"benchmark": self.metrics.benchmark, **labels}
        return labels | numbers | _rate_values(row) | reason_numbers(self._reasons_of(row))


def _partial_line(pool: str, system: str, num_items: int, num_total: int) -> str:
    return f"{pool}: {num_items} of {plural(num_total, 'instances')} scored for {system}; rates are over those"


_READER_KEYS = frozenset(metric.key for metric in core_metrics.READERS)


def readers_differ(row: Row) -> bool:
    """Return whether an answer of a row is right by one reader and not by another."""
    chosen, *alternatives = (row.frame.read(row.column_indices[metric.key]) for metric in core_metrics.READERS)
    return any(bool(((chosen != values) & ~np.isnan(values)).any()) for values in alternatives)


def _reason_cells(reasons: Counter[str]) -> dict[str, str]:
    """Return cells with the numbers of excluded and of unanswered responses, and of each reason; a dash for 0."""
    counts = {reason_key(reason): reasons[reason] for reason in REASONS}
    counts[NOT_RUN_COLUMN] = sum(reasons[reason] for reason in EXCLUDED)
    counts[NO_ANSWER_COLUMN] = sum(count for reason, count in reasons.items() if reason not in EXCLUDED)
    if not counts[NOT_RUN_COLUMN]:
        del counts[NOT_RUN_COLUMN]
    return {key: str(count) if count else core_metrics.UNDEFINED for key, count in counts.items()}


def _rate_cells(row: Row, *, by_reader: bool = False) -> dict[str, str]:
    hidden = frozenset({"chosen"}) if by_reader else _READER_KEYS
    cells = {key: rate.text for key, rate in row.rates.items() if key not in hidden}
    for key, interval in _skill_intervals(row):
        cells[key] += f" [{interval.low:.2f}, {interval.high:.2f}]"
    num_structured = _num_structured(row)
    if num_structured is not None:
        cells["structure_scored"] = str(num_structured)
    cells |= {
        name: str(row.outcomes[name]) if row.outcomes else core_metrics.UNDEFINED for name in core_metrics.OUTCOMES
    }
    seconds = row.seconds
    cells["seconds_median"] = f"{median(seconds):.4f}" if seconds else core_metrics.UNDEFINED
    cells["seconds_max"] = f"{max(seconds):.4f}" if seconds else core_metrics.UNDEFINED
    return cells


def _rate_values(row: Row) -> dict[str, Any]:
    """Return the values of `_rate_cells` as numbers, None if undefined or suppressed, and the suppressed keys."""
    values: dict[str, Any] = {key: rate.value for key, rate in row.rates.items() if key != "chosen"}
    if (num_structured := _num_structured(row)) is not None:
        values["structure_scored"] = num_structured
    values |= {name: row.outcomes[name] if row.outcomes else None for name in core_metrics.OUTCOMES}
    seconds = row.seconds
    values["seconds_median"] = median(seconds) if seconds else None
    values["seconds_max"] = max(seconds, default=None)
    values |= {f"{key}_interval": [*interval] for key, interval in _skill_intervals(row)}
    values["suppressed"] = [key for key, rate in row.rates.items() if rate.text == core_metrics.SUPPRESSED]
    return values


def _skill_intervals(row: Row) -> Iterator[tuple[str, Interval]]:
    """Yield (key, interval) for the skills whose interval is defined."""
    keys = (column.key for column in row.columns if column.skill_of)
    yield from ((key, interval) for key in keys if (interval := row.interval(key)) is not None)


def _num_structured(row: Row) -> int | None:
    """Return the number of answers with structure metrics; None if the benchmark has no such metrics."""
    metric_index = row.column_indices.get(STRUCTURE_METRIC)
    if metric_index is None:
        return None
    return int((~np.isnan(row.frame.read(metric_index))).sum())


def _num_samples(row: Row) -> str:
    """Return `sample_range`; a dash if all items have one sample, and for people."""
    return core_metrics.UNDEFINED if row.is_group or row.num_samples[1] == 1 else sample_range(row)


MAX_SYSTEMS = 8  # systems in one line


class Excluded:
    """Responses that are excluded from every rate. listed: (context, reason) of each."""

    def __init__(self) -> None:
        self.listed: list[tuple[AnswerContext, str]] = []

    def filter_out(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        """Yield the answers that have a verdict; collect the others in `listed`."""
        for context, score in answers:
            if not isinstance(score, LazyVerdict | MeanScore) and score.get("reason") in EXCLUDED:
                self.listed.append((context, str(score["reason"])))
            else:
                yield context, score

    def count_in(self, tables: Mapping[str, ResultTable]) -> None:
        """Add the collected responses to the tables of their benchmarks."""
        for context, reason in self.listed:
            if context.benchmark in tables:
                tables[context.benchmark].exclude(context, reason)

    def lines(self) -> Iterator[str]:
        """Yield a line with the numbers of excluded responses by reason and by system; none if there are none."""
        counts = Counter(reason for _, reason in self.listed)
        if counts:
            numbers = ", ".join(f"{reason} {counts[reason]}" for reason in REASONS if counts[reason])
            systems = Counter(in_one_line(context.system) for context, _ in self.listed).most_common()
            names = [f"{name} {number}" for name, number in systems[:MAX_SYSTEMS]]
            names += [f"{len(systems) - MAX_SYSTEMS} other systems"] if len(systems) > MAX_SYSTEMS else []
            yield f"{plural(counts.total(), 'responses')} left out of all rates ({numbers}): {', '.join(names)}"


# --- Reasons why protocols gave no answer: a line for every system that exhausted its class or its budget -------------
EXHAUSTED = "exhausted: "  # start of a reason that is a proof
MAX_REASON_CHARS = 160 + len(EXHAUSTED)  # length of a reason in a line
_OUTCOMES = {
    EXHAUSTED: "nothing of the class fits ({})",
    "impossible": "no answer, without a proof that there is none ({})",
    "out_of_budget": "unanswered within the budget ({})",
}


class UnansweredCounts:
    """Counter of missing answers, of exhausted classes or budgets, by system, outcome and reason."""

    def __init__(self) -> None:
        self._reasons: dict[tuple[str, str], Counter[str]] = {}

    def add(self, context: AnswerContext) -> None:
        """Count an answer if its outcome is impossible or out_of_budget."""
        if context.outcome in _OUTCOMES:
            system = PEOPLE_SYSTEM if participant_of(context.system) else context.system
            proof = context.outcome == "impossible" and context.reason.startswith(EXHAUSTED)
            self._reasons.setdefault((system, EXHAUSTED if proof else context.outcome), Counter())[context.reason] += 1

    def lines(self) -> Iterator[str]:
        """Yield a line for each system (people are one) and outcome: number of items and most frequent reason."""
        for (system, outcome), reasons in sorted(self._reasons.items()):
            reason = min(reasons, key=lambda reason_text: (-reasons[reason_text], reason_text))
            text = in_one_line(reason)[:MAX_REASON_CHARS] or "no reason recorded"
            text += f"; {plural(len(reasons) - 1, 'other reasons')}" if len(reasons) > 1 else ""
            if system == PEOPLE_SYSTEM:
                yield f"{system}: {reasons.total()} answer{'s are' if reasons.total() > 1 else ' is'} missing ({text})"
            else:
                yield f"{in_one_line(system)}: {plural(reasons.total(), 'items')}: {_OUTCOMES[outcome].format(text)}"


# --- Sampling error of rates that are means over a random sample of equally good answers ------------------------------


@dataclass
class _DrawnItems:
    num_items: int = 0
    num_drawn: int = 0  # items whose rate is a mean over `draws` draws
    draws: int = 0
    variances: list[float] = field(default_factory=list)


class DrawnTies:
    """Collector of items whose rate is a mean over draws, by system and setting."""

    def __init__(self) -> None:
        self._systems: dict[tuple[str, str], _DrawnItems] = {}

    def add(self, context: AnswerContext, score: Mapping[str, Any]) -> None:
        """Add an answer; a mean over n draws with a share p of right ones has the sampling variance p (1 - p) / n."""
        success = benchmark(context.benchmark).metrics.success
        if not success.is_defined(score, context.setting):
            return
        system = self._systems.setdefault((context.system, context.setting), _DrawnItems())
        system.num_items += 1
        if not isinstance(score, MeanScore) or not score.is_drawn:
            return
        draws = sum(times for times, _ in score.parts)
        right = sum(times for times, part in score.parts if success.is_right(part, context.setting)) / draws
        system.num_drawn += 1
        system.draws = draws
        system.variances.append(right * (1 - right) / draws)

    def lines(self) -> Iterator[str]:
        """Yield a line for each system and setting with draws: the half width of the 95 % interval of sampling."""
        for (name, setting), system in sorted(self._systems.items()):
            if system.num_drawn:
                half = NORMAL_95 * sqrt(fsum(system.variances)) / system.num_items
                where = f" on {setting}" if setting else ""
                yield (
                    f"{name}{where}: {system.num_drawn} of {plural(system.num_items, 'items')} have more than"
                    f" {system.draws:,} equally good answers; means over as many draws leave the rate of right ones"
                    f" ± {half:.4f} (95 %)."
                )
