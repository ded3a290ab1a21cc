"""Tables of the ReplaySCM paper in every report: printed rows, and our rows of answers beside them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

from calibrant.bench.answers.frame import AnswerFrame
from calibrant.bench.answers.rates import LEVEL, natural
from calibrant.bench.core.attribution import ATTRIBUTION_METRICS, BASE
from calibrant.bench.core.metrics import InvalidHandling, Item
from calibrant.bench.papers import Paper, PrintedTable, group_answers, read_paper
from calibrant.bench.replayscm.verdict import METRICS, REPLAY_METRICS
from calibrant.bench.report.comparisons import difference_cell, difference_headings, differences
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Source, Table, TableRow
from calibrant.bench.report.rows import Answer, Grouping, Row, group
from calibrant.bench.report.sections import rate_cell
from calibrant.dsl.replayscm.generation.strata import STRATA
from calibrant.dsl.replayscm.pools.official import BY_DIGEST, latent_of
from calibrant.dsl.text import plural

# --- Rows: models before searches, in the order of the disclosure ladder ----------------------------------------------
SEARCHES_IN_FILES = ("bnlearn", "symbolic")  # words in names of systems of official files that are searches
ROW_LABELS = (Heading("setting", "Setting"), Heading("system", "System"), Heading("pool", "Pool"), Heading("n", "n"))


def report_rows(
    answers: Iterable[Answer],
    by: Grouping = Grouping.POOL,
    handling: InvalidHandling = InvalidHandling.PUBLISHED,
    latents: Mapping[Item, str] | None = None,
) -> list[Row]:
    """Return the rows sorted by disclosure, in the order of the ladder, then pool, then system.

    latents: item -> latent SCM, from the pool files; for other items the id states the latent SCM
    """
    latent_by_item = latents or {}
    rows = group(
        answers, METRICS, by, handling=handling, unit=lambda item: latent_by_item.get(item) or latent_of(item[1])
    )
    return sorted(rows, key=_sort_key)


def _sort_key(row: Row) -> tuple[Any, ...]:
    ladder = METRICS.setting_order_key(row.setting)
    return *ladder, natural(pool_name(row)), not is_model(row), natural(row.system), sorted(row.pools)


def is_model(row: Row) -> bool:
    """Return whether the answers of a row are a language model's, not a search's."""
    return not row.outcomes and not any(name in row.system.casefold() for name in SEARCHES_IN_FILES)


def pool_name(row: Row) -> str:
    """Return the name of a row's pool without the suffix of published files, or the number of its pools."""
    return row.pool.removesuffix(".runtime.yaml")


def size_text(row: Row) -> str:
    """Return the number of answered items, with the number of all items if some are missing."""
    answered = row.num_items
    return str(answered) if answered == row.num_expected else f"{answered} of {row.num_expected}"


def by_pools(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield lists of rows with the same pools and setting."""
    yield from group_answers(rows, lambda row: (row.setting, frozenset(row.pools))).values()


def is_alternative(setting: str) -> bool:
    return setting.startswith("Alt-")


def gold_sizes(rows: Iterable[Row]) -> dict[str, int]:
    """Return latent SCM -> its formula size, which scores of valid answers state."""
    sizes: dict[str, int] = {}
    for row in rows:
        metric_index = row.column_indices["gold_size"]
        for observation in row.observations:
            size = observation.values[metric_index]
            if size is not None:
                sizes[observation.unit] = int(size)
    return sizes


# --- Printed rows -----------------------------------------------------------------------------------------------------
MAX_NAMED = 2  # number of pools up to which a note names each
PAIR = " -> "  # separator of two compared settings
DIFFERENCE = " - "  # separator of two settings in a difference of rates
NUM_PAIRED = 100  # number of problems in the paper's paired tables
LABELS = tuple(heading.key for heading in ROW_LABELS)
WORDS = (
    "items of the nine strata of the published generator (6 to 10 variables, 10 or 11 training worlds, no noise), under"
    " the disclosure of each row"
)
_STRATA = frozenset(stratum.name for stratum in STRATA)
_WITH_INTERVAL = re.compile(r"(\S+) \[(\S+), (\S+)\]")

# our name of a setting -> the paper's names: full pools before matched ones
_SETTINGS = {
    "Ordered": ("Ord-Full", "Ord-Match"),
    "Hidden-order": ("Hid-Full", "Hid-Match"),
    "Hidden-roots": ("Hid-Roots",),
    "Ord-Full": ("Ord-Full", "Ord-Match"),
    "Hid-Full": ("Hid-Full", "Hid-Match"),
    "Alt-Ordered": ("Alt-Ord",),
    "Alt-Hidden-order": ("Alt-Hid",),
}


@cache
def paper() -> Paper:
    """Return the paper's printed tables, those of the appendices last."""
    main, appendix = (read_paper("replayscm", Paper, name) for name in ("paper_rows", "appendix_rows"))
    return Paper(main.tables | appendix.tables, main.source, appendix.notes, main.problems)


def printed_table(number: str) -> PrintedTable | None:
    return paper().tables.get(number)


def printed_settings(number: str, setting: str) -> tuple[str, ...]:
    """Return the names of a setting in a table of the paper; empty if it has no rows of it."""
    table = printed_table(number)
    return tuple(name for name in _paper_names(setting) if table and name in table.settings)


def _paper_names(setting: str) -> tuple[str, ...]:
    for sign in (PAIR, DIFFERENCE):
        first, separator, second = setting.partition(sign)
        if separator:  # paired rows are about the matched pools, which come last
            return (f"{_paper_names(first)[-1]}{sign}{_paper_names(second)[-1]}",)
    return _SETTINGS.get(setting, (setting,))


def fits_printed(row: Row) -> bool:
    """Return whether all items of a row are official ones, or of the strata that the paper is about."""
    official = [digest in BY_DIGEST for digest in row.pools]
    if official and all(official):
        return True
    is_printed = row.setting in RUNGS or is_alternative(row.setting)
    return is_printed and bool(row.strata) and row.strata <= _STRATA


def with_printed(table: Table, others: Iterable[str], *, with_paper: bool) -> Table:
    """Return a table of ours that the paper prints too, marked as such; `with_paper` adds the paper's rows.

    They follow our last row of their setting; if no row of ours is comparable, they are at the end.

    others: names of our pools with other problems than the paper's, or with fewer
    """
    fits = any(row.fits for row in table.rows)
    columns = [heading.key for heading in table.headings]
    labels = [heading.key for heading in table.labels]
    rows, note_lines = table.rows, table.notes
    if with_paper and fits:
        rows = with_printed_rows(table.id, rows, columns, labels)
        note_lines = (*notes(table.id, rows, others), *note_lines)
    elif with_paper:
        rows = (*rows, *printed_rows(table.id, columns, labels))
    whole = replace(table, rows=tuple(rows), notes=note_lines, printed=WORDS, fits=fits, is_result=True)
    return name_as_printed(whole)


def with_printed_rows(
    number: str, rows: Sequence[TableRow], columns: Sequence[str], labels: Sequence[str] = LABELS
) -> tuple[TableRow, ...]:
    """Insert the paper's rows of a setting (the first label) after our last row of it, if one of our rows fits.

    number: the paper's table; columns: keys of the cells; labels: keys of the labels. Of labels that the paper's table
    lacks, the pool is "paper", n the number of problems, and any other empty.
    """
    fitting = {row.labels[0] for row in rows if row.fits}
    lines: list[TableRow] = []
    for index, line in enumerate(rows):
        lines.append(line)
        setting = line.labels[0]
        is_last = index + 1 == len(rows) or rows[index + 1].labels[0] != setting
        if is_last and setting in fitting:
            names = printed_settings(number, setting)
            lines += [line for line in printed_rows(number, columns, labels) if line.labels[0] in names]
    return tuple(lines)


def printed_rows(number: str, columns: Sequence[str], labels: Sequence[str] = LABELS) -> list[TableRow]:
    """Return the printed rows of a table; empty if none are stored."""
    table = printed_table(number)
    lines = []
    for row_labels, figures in [] if table is None else table.figures:
        size = figures.get("n", str(paper().problems.get(row_labels[0], NUM_PAIRED)))
        texts = {"pool": "paper", "n": size} | dict(zip(table.labels if table else (), row_labels, strict=True))
        cells = tuple(printed_cell(figures[key]) if key in figures else NOTHING for key in columns)
        lines.append(TableRow(tuple(texts.get(key, "") for key in labels), cells, Source.PAPER))
    return lines


def printed_cell(text: str) -> Cell:
    """Return a printed figure, with its interval if one is printed."""
    match = _WITH_INTERVAL.fullmatch(text)
    return Cell(*match.groups()) if match else Cell(text)


def notes(number: str, lines: Sequence[TableRow], others: Iterable[str]) -> tuple[str, ...]:
    """Return the notes below a table with printed rows; others: as in `with_printed`."""
    sizes = {line.labels[0]: line.labels[-1] for line in lines if line.source is Source.PAPER}
    if not sizes:
        return ()
    problems = ", ".join(f"{setting} {size}" for setting, size in sizes.items())
    where = f"Rows of pool “paper” are printed in Table {number} of {paper().source} (problems: {problems})."
    differing = sorted(set(others))
    if not differing:
        return (where,)
    names = ", ".join(differing) if len(differing) <= MAX_NAMED else f"{len(differing)} pools"
    return where, f"The pools differ: our rows are on other problems, or not on all ({names}); compare levels only."


def finish_table(table: Table, *, with_paper: bool) -> Table | None:
    """Return a table with its rows grouped by setting; None without rows. with_paper: whether printed rows follow."""
    if not table.rows:
        return None
    ordered = [row for group in group_answers(table.rows, lambda row: row.labels[0]).values() for row in group]
    if not with_paper:
        return replace(table, rows=tuple(ordered))
    labels = tuple(heading.key for heading in table.labels)
    rows = with_printed_rows(table.id, ordered, [heading.key for heading in table.headings], labels)
    pools = [row.labels[2] for row in table.rows] if labels == LABELS else []
    return name_as_printed(replace(table, rows=rows, notes=notes(table.id, rows, pools)))


PRINTED_NAMES = {"staged-exact-search": "symbolic exact-search", "bnlearn+dsl": "bnlearn+DSL"}
"""Name of our method -> its name in the paper, for methods that the paper has too."""


def name_as_printed(table: Table) -> Table:
    """Return a table in which our searches have the paper's names, with a note, if it has printed rows."""
    system_index = next((index for index, heading in enumerate(table.labels) if heading.key == "system"), None)
    if system_index is None or all(row.source is not Source.PAPER for row in table.rows):
        return table
    renamed: dict[str, str] = {}
    rows = []
    for row in table.rows:
        name, separator, options = row.labels[system_index].partition(" (")
        if name in PRINTED_NAMES:
            renamed[name] = PRINTED_NAMES[name]
            text = PRINTED_NAMES[name] + separator + options
            row = replace(row, labels=(*row.labels[:system_index], text, *row.labels[system_index + 1 :]))
        rows.append(row)
    pairs = ", ".join(f"{name} is {printed}" for name, printed in renamed.items())
    note_lines = (f"Methods under the paper's names: {pairs}.",) if renamed else ()
    return replace(table, rows=tuple(rows), notes=(*table.notes, *note_lines))


def is_papers(setting: str, number: str, digests: Iterable[str]) -> bool:
    """Return whether the pools are exactly those of the printed rows."""
    table = printed_table(number)
    official = [BY_DIGEST[digest].setting == setting if digest in BY_DIGEST else False for digest in digests]
    return all(official) and table is not None and setting in table.settings


# --- Columns, computed from a row of answers or from the two sides of a contrast --------------------------------------
ALONE = ""  # name of the only side of a row that compares nothing
KNOWN = {column.key: column for column in (*METRICS.columns, *METRICS.hidden)}
Sides: TypeAlias = Mapping[str, Row]
"""Name of a side -> its row of answers; a table row that contrasts two has several sides."""
Line: TypeAlias = tuple[tuple[str, ...], Sides]
"""Labels of a table row, and its sides: name of a side -> a system's answers (a row of the report)."""


def with_pools(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines, with the pools behind the name of a system that has several."""
    num_lines = Counter(system for (system, *_), _ in lines)
    for (system, *others), sides in lines:
        pools = ", ".join(dict.fromkeys(map(pool_name, sides.values())))
        yield (f"{system} ({pools})" if num_lines[system] > 1 else system, *others), sides


class Columns(NamedTuple):
    """Columns that are computed together. cells: sides of a row -> its cells in these columns."""

    headings: tuple[Heading, ...]
    cells: Callable[[Sides], Sequence[Cell]]


def metric_cells(row: Row | None, keys: Sequence[str]) -> tuple[Cell, ...]:
    """Return the rates of a row; dashes without a row."""
    return tuple(NOTHING if row is None else rate_cell(row, KNOWN[key]) for key in keys)


def metrics(keys: str) -> Columns:
    """Return columns with the rates of these metrics, for rows of one side. keys: separated by blanks."""
    metric_keys = keys.split()
    headings = tuple(Heading(key, KNOWN[key].heading) for key in metric_keys)
    return Columns(headings, lambda sides: metric_cells(sides[ALONE], metric_keys))


def where_known(columns: Columns, needed: str) -> Columns:
    """Return the columns with dashes in rows in which the metric `needed` is unknown for some answer.

    It is always known for answers that are not train-exact, so a rate over the known ones would be biased.
    """

    def cells(sides: Sides) -> Sequence[Cell]:
        row = sides[ALONE]
        is_known = all(o.values[row.column_indices[needed]] is not None for o in row.observations)
        return columns.cells(sides) if is_known else [NOTHING] * len(columns.headings)

    return Columns(columns.headings, cells)


def count(key: str, heading: str, metric: str, text: Callable[[Sequence[float | None]], str] | None = None) -> Columns:
    """Return a column with the number of answers for which a metric is 1, or with `text` of the metric's values."""
    text = text or count_ones

    def cells(sides: Sides) -> tuple[Cell]:
        row = sides[ALONE]
        return (Cell(text([o.values[row.column_indices[metric]] for o in row.observations])),)

    return Columns((Heading(key, heading),), cells)


def count_ones(values: Sequence[float | None]) -> str:
    return str(values.count(1))


def count_defined(values: Sequence[float | None]) -> str:
    return str(len(values) - values.count(None))


def is_hidden_roots(setting: str) -> bool:
    return setting in ("Hidden-roots", "Hid-Roots")


@dataclass(frozen=True)
class TableSpec:
    """A table with a row for each pool and system.

    where: setting -> whether it has rows in the table; searches_only: whether language models have no rows in it
    """

    id: str
    title: str
    caption: str
    columns: tuple[Columns, ...]
    where: Callable[[str], bool] = lambda setting: not is_alternative(setting)
    searches_only: bool = False

    @property
    def headings(self) -> tuple[Heading, ...]:
        return tuple(heading for column in self.columns for heading in column.headings)

    def make(self, rows: Sequence[Row], *, with_paper: bool) -> Table | None:
        """Return the table of the rows that belong in it; None if there are none."""
        matching = [row for row in rows if self.where(row.setting) and not (self.searches_only and is_model(row))]
        lines = tuple(self._line(row) for group in by_pools(matching) for row in group)
        if not lines:
            return None
        crashes = tuple(crash_note(row) for row in matching if row.outcomes["crashed"])
        table = Table(self.id, self.title, self.caption, ROW_LABELS, self.headings, lines, crashes)
        others = (pool_name(row) for row in matching if not self._is_papers(row))
        return table if printed_table(self.id) is None else with_printed(table, others, with_paper=with_paper)

    def _is_papers(self, row: Row) -> bool:
        return row.num_items == row.num_expected and is_papers(row.setting, self.id, row.pools)

    def _line(self, row: Row) -> TableRow:
        labels = row.setting, row.system, pool_name(row), size_text(row)
        cells = tuple(cell for column in self.columns for cell in column.cells({ALONE: row}))
        return TableRow(labels, cells, fits=fits_printed(row))


def crash_note(row: Row) -> str:
    """Return a note on crashes among a row's answers."""
    num_crashed = row.outcomes["crashed"]
    answers = (
        f"{num_crashed} of {plural(row.num_answers, 'answers')} of {row.system} to {pool_name(row)} ({row.setting})"
    )
    return f"{answers} are crashes; rates count them as not valid."


ZERO_FILLED = "(--means paper; CEx always)"  # MetricReader.world_rate
CORE = TableSpec(
    "1",
    "Replay",
    "Valid: executable submissions. TrainExact: every scored training cell is right. HeldoutWorld: mean share of"
    f" held-out worlds replayed exactly, over valid answers unless invalid ones count as 0 {ZERO_FILLED}."
    " HeldoutExact: train-exact, and every held-out world too. HW|TE, HE|TE: among train-exact answers.",
    (
        metrics(
            "valid train_exact heldout_world heldout_exact heldout_world_given_train_exact"
            " heldout_exact_given_train_exact"
        ),
    ),
)
STRUCTURE = TableSpec(
    "2",
    "Parents and mechanisms",
    "Functional parents against gold, among executable answers (Hidden-roots: those with the right root set). SHD:"
    " structural Hamming distance, lower is better. ParentExact: share of variables with the right parents. MapExact:"
    " all of them. LocalMatch: share of mechanisms that mean the same. TE|Map, HE|Map: among answers with MapExact.",
    (
        metrics(
            "parent_recall parent_f1 parent_shd parent_exact parent_map_exact local_match"
            " train_exact_given_parent_map_exact heldout_exact_given_parent_map_exact"
        ),
    ),
)
HIDDEN_ROOTS = TableSpec(
    "3B",
    "Hidden-roots",
    "RootExact: the predicted root set is the true one. TrainExact and HeldoutExact are those of the mechanisms,"
    " whatever the root set; |RE: among answers with the right root set.",
    (
        metrics(
            "root_exact train_exact heldout_world heldout_exact train_exact_given_root_exact"
            " heldout_world_given_root_exact heldout_exact_given_root_exact"
        ),
    ),
    is_hidden_roots,
)
FUNNEL = TableSpec(
    "C.1",
    "Stages of validity",
    "Share of answers that pass each stage of the evaluator, in its order; an answer that fails one fails all after it."
    " StrictJSON is known of texts only.",
    (metrics("strict_json extracted schema keys parse legal acyclic valid"),),
    lambda setting: True,
)
DISTANCE = TableSpec(
    "C.3",
    "Structural distance",
    "Valid and TrainExact are over all answers; F1, SHD, MapExact, LocalMatch and AllMatch among executable ones"
    " (Hidden-roots: those with the right root set); HeldoutWorld over valid ones unless invalid ones count as 0"
    f" {ZERO_FILLED}. AllMatch: every mechanism means the same as gold.",
    (metrics("valid parent_f1 parent_shd parent_map_exact local_match local_map_exact train_exact heldout_world"),),
)
RETENTION = TableSpec(
    "C.4",
    "Held-out replay among train-exact answers",
    "What fitting the training worlds is worth on the held-out ones.",
    (
        metrics("train_exact heldout_world heldout_world_given_train_exact heldout_exact_given_train_exact"),
        count("num_train_exact", "n train-exact", "train_exact"),
    ),
)
ATTRIBUTION = TableSpec(
    "attribution",
    "What the evidence had decided",
    "Decided: every SCM of the class that fits the training worlds replays the held-out worlds alike. Earned, missed:"
    " decided and held-out exact, not; lucky, short: undecided and held-out exact, not. Fits: train-exact. Wrong"
    " answers are none, refused, not train-exact, or fit where several do (NoAnswer, Invalid, Misfit, OpenError)."
    " Chance, Best: expected rate of a draw from the SCMs that fit, by the generator's prior, and of the best answer;"
    " Skill: rate less chance, over best less chance; Uniform: chance with all SCMs alike. The class is the smallest"
    " number of functional parents that has gold; answers to items where it cannot be counted are left out. " + BASE,
    (metrics(" ".join(metric.key for metric in ATTRIBUTION_METRICS)),),
)
CALIBRATION = TableSpec(
    "H.2",
    "Calibration rows",
    "TaskCorrect: correct in everything the task asks for; on Hidden-roots that includes the root set.",
    (metrics("task_correct train_exact heldout_world heldout_exact"),),
    searches_only=True,
)
PER_SYSTEM = TableSpec(
    "F.12",
    "Alternatives discovered, by system",
    "How many train-exact answers differ in meaning from gold, per answer and per train-exact answer. These are"
    " discoveries: what no system found may still be there. Dashes: some answer has no structure metrics.",
    (
        count("num_train_exact", "Train-exact", "train_exact"),
        where_known(count("num_alternatives", "Alternatives", "alternative"), "alternative"),
        where_known(metrics("alternative alternative_given_train_exact"), "alternative"),
    ),
)
SPECS = (CORE, STRUCTURE, HIDDEN_ROOTS, FUNNEL, DISTANCE, RETENTION, PER_SYSTEM, CALIBRATION)


# --- Differences of rates over the same problems, with paired intervals -----------------------------------------------
TRAIN_EXACT, HELDOUT_WORLD, HELDOUT_EXACT = (
    next(column for column in REPLAY_METRICS if column.key == key)
    for key in ("train_exact", "heldout_world", "heldout_exact")
)
DIFFERENCES = (TRAIN_EXACT, HELDOUT_WORLD, HELDOUT_EXACT)
RUNGS: Mapping[str, tuple[str, int]] = {
    setting: (family, rung)
    for family, ladder in {
        "": (("Ordered", "Ord-Full"), ("Block",), ("Hidden-order", "Hid-Full"), ("Hidden-roots", "Hid-Roots")),
        "Ext": (("Ord-Ext",), (), ("Hid-Ext",), ()),
        "CEx": (("Ord-CEx",), (), ("Hid-CEx",), ()),
    }.items()
    for rung, settings in enumerate(ladder)
    for setting in settings
}
STEPS = ((0, 1), (1, 2), (0, 2), (2, 3))  # the pairs of the paper's Table D.1, in its order


def disclosure_deltas(rows: Sequence[Row], *, with_paper: bool) -> Table | None:
    """Return Table D.1: differences of each system between two disclosures of the same latent SCMs."""
    lines: list[tuple[Any, TableRow]] = []
    for first, second in combinations(rows, 2):
        (family, low), (other_family, high) = RUNGS.get(first.setting, ("-", 0)), RUNGS.get(second.setting, ("-", 0))
        step = (low, high)
        if first.system != second.system or family != other_family or step not in STEPS:
            continue
        if not first.units & second.units:
            continue
        deltas = differences(first, second, AnswerFrame.unit_means, [metric.key for metric in DIFFERENCES])
        pair = PAIR.join((first.setting, second.setting))
        pools = PAIR.join(dict.fromkeys((pool_name(first), pool_name(second))))
        texts = pair, first.system, pools, str(deltas[0].num_units)
        fits = fits_printed(first) and fits_printed(second)
        line = TableRow(texts, tuple(map(difference_cell, deltas)), fits=fits)
        lines.append(((family, STEPS.index(step), len(lines)), line))
    if not lines:
        return None
    table_lines = tuple(line for _, line in sorted(lines, key=lambda item: item[0]))
    labels = (Heading("pair", "Disclosures"), Heading("system", "System"), Heading("pool", "Pools"), Heading("n", "n"))
    caption = (
        "The same latent SCMs under two disclosures; first minus second, so that positive is what hiding costs."
        f" In brackets: {LEVEL:.0%} percentile bootstrap over the latent SCMs, both disclosures of one drawn together."
        " n: matched SCMs; HeldoutWorld is over those in which both answers have one."
    )
    headings = difference_headings(DIFFERENCES)
    table = Table("D.1", "What less disclosure costs", caption, labels, headings, table_lines)
    return with_printed(table, (line.labels[2] for line in table_lines), with_paper=with_paper)
