"""Tables over several systems: problems without a discovered alternative, cohorts, and depths of changes.

A cohort is the set of problems of one pool, named by --cohort. Its rates are means over systems of each system's mean,
so every system has the same weight. Intervals of differences resample the latent SCMs of each cohort independently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from calibrant.bench.answers.rates import LEVEL, MIN_UNITS, RESAMPLES, SEED, Array, Interval
from calibrant.bench.core.metrics import UNDEFINED, Item
from calibrant.bench.papers import group_answers
from calibrant.bench.replayscm.appendix.metrics import DEPTH_KEYS, NUM_DEPTHS
from calibrant.bench.replayscm.paper import (
    ROW_LABELS,
    by_pools,
    finish_table,
    fits_printed,
    is_alternative,
    is_model,
    pool_name,
    printed_rows,
    with_printed,
)
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell
from calibrant.bench.report.rows import Row
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.text import plural

# --- Alternatives that answers have discovered, by problem ------------------------------------------------------------
# An alternative is a valid, train-exact SCM that differs from gold in the root set or a truth table of a mechanism.
# Without gold, or without structure metrics in the score, it is unknown whether an answer is one.
_BY_PROBLEM = (
    Heading("num_without_model_alternative", "No model found one"),
    Heading("num_without_search_alternative", "No search found one"),
    Heading("num_without_alternative", "None found at all"),
    Heading("any_alternative", "Any found, rate"),
)


def per_problem(rows: Sequence[Row], *, with_paper: bool) -> Table | None:
    """Return Table F.11, the numbers of problems without a discovered alternative; None without rows."""
    with_gold = [row for row in rows if not is_alternative(row.setting)]
    lines = tuple(_problem_row(group) for group in by_pools(with_gold))
    if not lines:
        return None
    labels = (ROW_LABELS[0], Heading("systems", "Systems"), *ROW_LABELS[2:])
    caption = "Numbers of problems on which no train-exact answer differs in meaning from gold."
    table = Table("F.11", "Alternatives discovered, by problem", caption, labels, _BY_PROBLEM, lines)
    # the paper's rows stand beside ours even for the same pool, because the paper ran other systems
    return with_printed(table, map(pool_name, with_gold), with_paper=with_paper)


def _problem_row(group: Sequence[Row]) -> TableRow:
    problems = {item for row in group for item in row.items}
    models = [row for row in group if is_model(row)]
    searches = [row for row in group if not is_model(row)]
    cells = [_num_without(problems, subset) for subset in (models, searches, group)]
    rate = f"{len(_items_with_alternative(group)) / len(problems):.3f}" if cells[-1] != UNDEFINED else UNDEFINED
    first = group[0]
    labels = (
        first.setting,
        f"{plural(len(models), 'models')}, {plural(len(searches), 'searches')}",
        pool_name(first),
        str(len(problems)),
    )
    return TableRow(labels, tuple(map(Cell, (*cells, rate))), fits=all(map(fits_printed, group)))


def _num_without(problems: Set[Item], rows: Sequence[Row]) -> str:
    """Return the number of problems without an alternative; UNDEFINED if it is unknown whether some answer is one."""
    without = problems - _items_with_alternative(rows)
    unknown_items = {
        o.item for row in rows for o in row.observations if o.values[row.column_indices["alternative"]] is None
    }
    return str(len(without)) if rows and not without & unknown_items else UNDEFINED


def _items_with_alternative(rows: Iterable[Row]) -> set[Item]:
    return {o.item for row in rows for o in row.observations if o.values[row.column_indices["alternative"]]}


# --- Cohorts: unpaired differences over a fixed set of systems (Tables F.1 and F.3 to F.6) ----------------------------
METRICS = ("train_world", "heldout_world", "train_exact")
Statistic: TypeAlias = Callable[[Array], Array]
"""Function from means of METRICS, shape (..., 3), to a statistic, shape (...)."""

_BINS: Mapping[str, Callable[[float], bool]] = {
    "shortcut-kill coverage <=0.50": lambda ratio: ratio <= 0.5,
    "shortcut-kill coverage >0.75": lambda ratio: ratio > 0.75,
}


@dataclass(frozen=True)
class Cohort:
    """Answers to the problems of one cohort under one setting. rows: system -> its row."""

    name: str
    setting: str
    rows: Mapping[str, Row]

    @property
    def size(self) -> int:
        """Number of latent SCMs of the system that has the fewest."""
        return min(len(row.units) for row in self.rows.values())

    def labels(self, name: str, systems: str) -> tuple[str, ...]:
        return self.setting, name, systems, pool_name(next(iter(self.rows.values()))), str(self.size)


def parse_cohorts(texts: Sequence[str]) -> list[tuple[str, Path]]:
    """Return (name, pool file) of each NAME=POOL; `CalibrantError` for other texts and missing files."""
    pairs = []
    for text in texts:
        name, separator, pool = text.partition("=")
        if not (separator and name.strip() and pool):
            raise CalibrantError(f"--cohort {short_repr(text)}: give NAME=POOL, with the file of a pool")
        if not Path(pool).is_file():
            raise CalibrantError(f"--cohort {short_repr(text)}: no file {short_repr(pool)}")
        pairs.append((name.strip(), Path(pool)))
    return pairs


def find_cohorts(rows: Sequence[Row], digests: Sequence[tuple[str, str]]) -> list[Cohort]:
    """Return the cohorts of (name, pool digest) pairs; `CalibrantError` for a pool without answers."""
    cohorts = []
    for name, digest in digests:
        matching = [row for row in rows if set(row.pools) == {digest}]
        if not matching:
            raise CalibrantError(f"--cohort {name}: no answers to that pool; give runs or predictions on it")
        cohorts.append(Cohort(name, matching[0].setting, {row.system: row for row in matching}))
    return cohorts


def disclosure_of(setting: str) -> str:
    """Return a key that settings with one disclosure share, such as Ord for Ordered, Ord-Full and Ord-Ext."""
    return "Hid" if setting.startswith(("Hid-", "Hidden-order")) else setting[:3]


def resampled_means(row: Row, stream: int) -> tuple[Array, Array]:
    """Return the means of METRICS over the answers, shape (3,), and over resampled latent SCMs, (RESAMPLES, 3).

    stream: number of a random stream; equal streams resample equally many latent SCMs alike
    """
    columns = [row.column_indices[key] for key in METRICS]
    units = {unit: index for index, unit in enumerate(sorted(row.units))}
    sums, counts = np.zeros((len(units), len(columns))), np.zeros((len(units), len(columns)))
    for o in row.observations:
        for k, column in enumerate(columns):
            value = o.values[column]
            if value is not None:
                sums[units[o.unit], k] += value / o.num_samples
                counts[units[o.unit], k] += 1 / o.num_samples
    generator = np.random.Generator(np.random.PCG64([SEED, stream]))
    draws = generator.multinomial(len(units), np.full(len(units), 1 / len(units)), size=RESAMPLES).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums.sum(0) / counts.sum(0), (draws @ sums) / (draws @ counts)


def pooled_means(cohort: Cohort, systems: Sequence[str], stream: int) -> tuple[Array, Array]:
    """Return `resampled_means` averaged over systems; all systems share each resample of latent SCMs."""
    by_system = [resampled_means(cohort.rows[system], stream) for system in systems]
    return np.mean([pair[0] for pair in by_system], axis=0), np.mean([pair[1] for pair in by_system], axis=0)


def gap(means: Array) -> Array:
    """Return TrainWorld minus HeldoutWorld."""
    return means[..., 0] - means[..., 1]


def retention(means: Array) -> Array:
    """Return the ratio of the means of HeldoutWorld and TrainWorld."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(means[..., 1] / means[..., 0])


_LEVELS: tuple[tuple[str, str, Statistic], ...] = (
    ("train_world", "TrainWorld", lambda means: means[..., 0]),
    ("heldout_world", "HeldoutWorld", lambda means: means[..., 1]),
    ("train_minus_heldout_gap", "Gap", gap),
    ("retention", "Retention", retention),
)
_DIFFERENCES: tuple[tuple[str, str, Statistic], ...] = (
    ("heldout_world_difference", "Δ HeldoutWorld", lambda means: means[..., 1]),
    ("gap_difference", "Δ gap", gap),
    ("retention_difference", "Δ retention", retention),
    ("train_exact_difference", "Δ TrainExact", lambda means: means[..., 2]),
)


class CohortTable(NamedTuple):
    """A table of cohorts.

    is_difference: whether a row is a cohort minus the first of its disclosure, not the cohort itself
    by_system: whether each system has a row, not the mean over systems
    """

    title: str
    columns: tuple[tuple[str, str, Statistic], ...]
    is_difference: bool = True
    by_system: bool = False


_TABLES = {
    "F.1": CohortTable("Pooled cohort differences", _DIFFERENCES[:3]),
    "F.3": CohortTable("Cohorts", _LEVELS, is_difference=False),
    "F.4": CohortTable("Cohort differences", _DIFFERENCES),
    "F.5": CohortTable("Cohort differences by system", _DIFFERENCES[:3], by_system=True),
}
COHORT_TABLES = tuple(_TABLES)
_CAPTION = (
    "Cohorts as --cohort names them. Gap: TrainWorld minus HeldoutWorld. Retention: HeldoutWorld over TrainWorld, a"
    " ratio of the means. Every system weighs the same."
)
_BIN_CAPTION = (
    "Answers in bins of the share of variables of which generation ruled out a shortcut (kill_coverage_ratio): official"
    " records state it, and items of `calibrant generate`. Every system weighs the same."
)


def _cell(mean: float, draws: Array, num_units: int, *, signed: bool = False) -> Cell:
    if not np.isfinite(mean):
        return Cell(UNDEFINED)
    defined = draws[np.isfinite(draws)]
    interval = None
    if num_units >= MIN_UNITS and len(defined):
        low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        interval = Interval(float(low), float(high))
    return cell(f"{mean + 0.0:{'+' if signed else ''}.3f}", interval, signed=signed)


def cohort_table(cohorts: Sequence[Cohort], table_id: str, *, with_paper: bool) -> Table | None:
    """Return a table of cohorts, over the systems that answered all cohorts of a disclosure; None without rows."""
    spec = _TABLES[table_id]
    lines = []
    for base, *others in group_answers(cohorts, lambda cohort: disclosure_of(cohort.setting)).values():
        systems = [system for system in base.rows if all(system in cohort.rows for cohort in others)]
        compared = [*enumerate(others, 1)] if spec.is_difference else [*enumerate((base, *others))]
        for stream, cohort in compared:
            for chosen_systems in [[system] for system in systems] if spec.by_system else [systems] * bool(systems):
                value, draws = pooled_means(cohort, chosen_systems, stream)
                means = [(statistic(value), statistic(draws)) for _, _, statistic in spec.columns]
                name, size = cohort.name, cohort.size
                if spec.is_difference:
                    base_value, base_draws = pooled_means(base, chosen_systems, 0)
                    means = [
                        (mean - statistic(base_value), sample - statistic(base_draws))
                        for (mean, sample), (_, _, statistic) in zip(means, spec.columns, strict=True)
                    ]
                    name, size = f"{cohort.name} - {base.name}", min(size, base.size)
                cells = tuple(_cell(float(mean), sample, size, signed=spec.is_difference) for mean, sample in means)
                system = chosen_systems[0] if spec.by_system else plural(len(chosen_systems), "systems")
                lines.append(TableRow(cohort.labels(name, system), cells))
    if not lines:
        return None
    headings = tuple(Heading(key, text) for key, text, _ in spec.columns)
    labels = _label_headings("comparison" if spec.is_difference else "cohort")
    keys = [heading.key for heading in labels]
    printed = printed_rows(table_id, [heading.key for heading in headings], keys) if with_paper else []
    notes = (f"Rows of pool “paper” are printed in the paper's Table {table_id}.",) if printed else ()
    return Table(table_id, spec.title, _CAPTION, labels, headings, (*lines, *printed), notes)


def _label_headings(name: str) -> tuple[Heading, ...]:
    return (ROW_LABELS[0], Heading(name, name.capitalize()), Heading("system", "Systems"), *ROW_LABELS[2:])


def by_kill_coverage(rows: Sequence[Row], kill_coverage: Mapping[Item, float], *, with_paper: bool) -> Table | None:
    """Return Table F.6, replay in bins of `kill_coverage`: item -> share of variables with a ruled-out shortcut."""
    lines = []
    for (setting, _), group in group_answers(rows, lambda row: (row.setting, pool_name(row))).items():
        for name, holds in _BINS.items():
            items = {item for item, ratio in kill_coverage.items() if holds(ratio)}
            restricted = {row.system: row.restrict(items.__contains__) for row in group}
            chosen = {system: row for system, row in restricted.items() if row.num_items}
            if chosen:
                lines.append(_bin_line(Cohort(name, setting, chosen)))
    headings = (
        Heading("heldout_world", "HeldoutWorld"),
        Heading("retention", "Retention"),
        Heading("heldout_world_given_train_exact", "HW|TE"),
    )
    table = Table("F.6", "Replay by ambiguity proxy", _BIN_CAPTION, _label_headings("bin"), headings, tuple(lines))
    return finish_table(table, with_paper=with_paper)


def _bin_line(cohort: Cohort) -> TableRow:
    value, draws = pooled_means(cohort, [*cohort.rows], 0)
    rates = [row.rates["heldout_world_given_train_exact"].value for row in cohort.rows.values()]
    defined_rates = [rate for rate in rates if rate is not None]
    cells = (
        _cell(float(value[1]), draws[:, 1], cohort.size),
        _cell(float(retention(value)), retention(draws), cohort.size),
        Cell(f"{fsum(defined_rates) / len(defined_rates):.3f}") if defined_rates else NOTHING,
    )
    return TableRow(cohort.labels(cohort.name, plural(len(cohort.rows), "systems")), cells)


# --- Table G.5: variables that successful alternatives change, pooled over systems ------------------------------------


def by_depth(rows: Sequence[Row], panel: str, *, with_paper: bool) -> Table | None:
    """Return panel A or B of Table G.5, rows by depth in the reference."""
    lines = []
    alternative_rows = (row for row in rows if is_alternative(row.setting))
    for setting, group in group_answers(alternative_rows, lambda row: row.setting).items():
        counts = [[_total(group, f"{key}_{index + 1}") for key in DEPTH_KEYS] for index in range(NUM_DEPTHS)]
        num_changed = sum(parents + functions for _, parents, functions in counts)
        for index, (variables, parents, functions) in enumerate(counts):
            name = f"{index + 1}{'+' * (index + 1 == NUM_DEPTHS)}"
            changed = parents + functions
            denominator = variables if panel == "A" else changed
            first = _rate(changed, variables) if panel == "A" else _rate(changed, num_changed)
            cells = (str(denominator), first, _rate(parents, denominator), _rate(functions, denominator))
            lines.append(TableRow((setting, name, plural(len(group), "systems")), tuple(map(Cell, cells))))
    title, *headings = {
        "A": (
            "Changed variables by depth in the reference",
            Heading("num_variables", "Variables"),
            Heading("changed", "Changed"),
        ),
        "B": (
            "Composition of changed variables",
            Heading("num_changed", "Changed"),
            Heading("share_of_changed", "Share of changed"),
        ),
    }[panel]
    headings += [Heading("structure_and_mechanism", "Parents and mechanism")]
    headings += [Heading("mechanism_only", "Mechanism only")]
    labels = (ROW_LABELS[0], Heading("depth", "Depth"), Heading("system", "Systems"))
    caption = (
        "Variables of the reference of every successful alternative. Depth: 1 without endogenous functional parents,"
        " else 1 more than the deepest of them."
    )
    table = Table(f"G.5{panel}", str(title), caption, labels, tuple(headings), tuple(lines))
    return finish_table(table, with_paper=with_paper)


def _total(rows: Sequence[Row], key: str) -> int:
    return int(sum(o.values[row.column_indices[key]] or 0 for row in rows for o in row.observations))


def _rate(count: int, total: int) -> str:
    return f"{count / total:.3f}" if total else UNDEFINED
