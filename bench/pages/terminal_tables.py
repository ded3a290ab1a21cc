"""Tables as plain text, equal on terminals, in pipes and in diffs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import NamedTuple

from calibrant.bench.core.attribution import KEY, SHARES
from calibrant.bench.core.metrics import SUPPRESSED, UNDEFINED, MetricSet
from calibrant.bench.core.responses import REASONS
from calibrant.bench.core.scoring import GROUP
from calibrant.bench.terminal import RECORDS_BELOW
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.text import nearest_names

ALL = "all"
REASONS_VIEW = "reasons"  # view of every benchmark: reasons why responses hold no answer
NOT_RUN_COLUMN, NO_ANSWER_COLUMN = "num_not_run", "num_no_answer"  # `no_answer` is the key of a share of attributions
OF_READERS = ("published", "lenient")
OF_LINES = (NOT_RUN_COLUMN, NO_ANSWER_COLUMN, *OF_READERS)  # columns that only tables of `calibrant score` have
LABELS = {"setting": "Setting", "system": "System", GROUP: "Group", "pool": "Pool", "stratum": "Stratum"}
NEEDED = 4  # number of metric columns for which label columns are dropped
MIN_RATES = 3  # n and two rates: if not even these fit, a label is shortened
MIN_LABEL = 12  # smallest width of a shortened label, in characters
GAP = 2  # number of spaces between two cells
ASKED = {KEY: ("n", *SHARES), REASONS_VIEW: ("n",)}
"""Views that are shown with all columns, in blocks -> columns that come first in them."""
MIN_TEXT_WIDTH = 24  # smallest width of wrapped cells; narrower lines would hold one or two words


class UnknownColumnError(CalibrantError):
    """A name is that of no column or view of a benchmark.

    name: the unknown name; allowed: known names
    """

    def __init__(self, name: str, allowed: Sequence[str], more: str = "") -> None:
        self.name, self.allowed = name, allowed
        near = nearest_names(name, allowed)
        question = f"did you mean {' or '.join(near)}?" if near else "`--columns all` shows those there are"
        super().__init__(f"unknown column {short_repr(name)}{more}; {question}")

    @staticmethod
    def allowed_of(measures: MetricSet) -> list[str]:
        """Return the names of a benchmark's views, then headings and keys of its columns, but no labels."""
        columns = {key: text for view in measures.views for key, text in headings_of(measures, view).items()}
        columns = {key: text for key, text in columns.items() if key not in LABELS}
        return [*measures.views, ALL, *columns.values(), *columns]


def reason_key(reason: str) -> str:
    """Return the key of a reason's column, distinct from keys of metrics."""
    return f"reason:{reason}"


class Fitted(NamedTuple):
    """A table as text.

    left_out: headings of the columns that did not fit; included: headings of the others
    """

    text: str
    left_out: tuple[str, ...]
    included: tuple[str, ...] = ()


def headings_of(measures: MetricSet, view: str) -> dict[str, str]:
    """Return key -> heading for the columns of a view, labels first."""
    keys = LABELS | {"n": "n", "samples": "Samples", "coverage": "Coverage"}
    if view == REASONS_VIEW:
        return keys | {reason_key(reason): reason for reason in REASONS}
    metrics = measures.views[view].metrics
    for column in metrics:
        keys[column.key] = column.heading
        if view == measures.default_view and column.key == measures.first[1]:  # the rate on which readers may differ
            keys |= {reader: reader for reader in OF_READERS}
    if view == measures.default_view:
        keys |= {NOT_RUN_COLUMN: "not_run", NO_ANSWER_COLUMN: "no_answer"}
        keys |= {"out_of_budget": "NoBudget", "seconds_median": "s median", "seconds_max": "s max"}
    return keys


def table_text(
    rows: Iterable[Mapping[str, str]],
    measures: MetricSet,
    *,
    view: str | None = None,
    width: int | None = None,
    line_width: int | None = None,
) -> Fitted:
    """Return rows as aligned columns, without columns that are undefined in every row or do not fit the width.

    For views in ASKED the columns that do not fit follow in further blocks.

    view: name of a view, by default the first; `all`; or comma-separated headings or keys of columns, which are shown
        whatever the width; `CalibrantError` for an unknown one
    width: of a line of the table, None for any; line_width: of the terminal, for which `all` is divided into blocks,
        None for a single block
    """
    rows = list(rows)
    view = measures.default_view if view is None else view
    first = _with_readers(measures, rows) if view in (measures.default_view, ALL) else measures.first
    if view in measures.views or view == REASONS_VIEW:
        headings = headings_of(measures, view)
        if all(row["coverage"] in ("1.000", UNDEFINED) for row in rows):
            del headings["coverage"]
        headings = {k: head for k, head in headings.items() if any(row.get(k, UNDEFINED) != UNDEFINED for row in rows)}
        if view in ASKED:
            blocks = "\n\n".join(_blocks(headings, rows, ASKED[view], width))
            return Fitted(blocks, (), tuple(headings.values()))
    else:
        headings, width = named_columns(measures, view), None
        headings = {k: h for k, h in headings.items() if k not in ("stratum", GROUP) or any(k in row for row in rows)}
        if view == ALL:
            absent = _absent_columns(rows, measures)
            headings = {k: h for k, h in headings.items() if k not in absent}
            if line_width is not None:
                blocks = "\n\n".join(_blocks(headings, rows, first, line_width))
                return Fitted(blocks, (), tuple(headings.values()))
    return fit_columns(headings, rows, first=first, width=width)


def _with_readers(measures: MetricSet, rows: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Return the columns to keep longest; rates of the other readers follow the first rate if some row has them."""
    if all(row.get("lenient", UNDEFINED) == UNDEFINED for row in rows):
        return measures.first
    number, rate, *others = measures.first
    return (number, rate, *OF_READERS, *others)


def _absent_columns(rows: Sequence[Mapping[str, str]], measures: MetricSet) -> frozenset[str]:
    """Return columns to leave out: those of OF_LINES without a value, and those of optional views without any value."""
    absent = [key for key in OF_LINES if all(row.get(key, UNDEFINED) == UNDEFINED for row in rows)]
    for view in measures.views.values():
        keys = [column.key for column in view.metrics]
        if view.optional and all(row.get(key, UNDEFINED) == UNDEFINED for row in rows for key in keys):
            absent += keys
    return frozenset(absent)


def named_columns(measures: MetricSet, names: str) -> dict[str, str]:
    """Return key -> heading of the labels and the named columns; `UnknownColumnError` for an unknown name."""
    if names == ALL:
        return {key: heading for view in measures.views for key, heading in headings_of(measures, view).items()}
    chosen = dict(LABELS)
    for name in filter(None, (part.strip() for part in names.split(","))):
        if (column := named_column(measures, name)) is None:
            raise UnknownColumnError(name, UnknownColumnError.allowed_of(measures))
        chosen |= dict([column])
    return chosen


def named_column(measures: MetricSet, name: str) -> tuple[str, str] | None:
    """Return key and heading of the first column with this heading or key; None if there is none."""
    for view in (*measures.views, REASONS_VIEW):
        for key, heading in headings_of(measures, view).items():
            if name in (key, heading):
                return key, heading
    return None


def fit_columns(
    headings: Mapping[str, str],
    rows: Sequence[Mapping[str, str]],
    *,
    first: Sequence[str] = (),
    labels: Collection[str] = LABELS.keys(),
    needed: int = NEEDED,
    width: int | None,
) -> Fitted:
    """Return the rows with as many columns as fit the width; those of `first` are kept before others.

    A label is dropped to make room for the first `needed` columns, and only if rows stay distinct without it.
    If the width is below RECORDS_BELOW, rows that do not fit are paragraphs with all columns.

    headings: key -> heading; labels: keys of columns that name a row; width: in characters, None for any
    """
    cells = {key: [in_one_line(row.get(key, UNDEFINED)) for row in rows] for key in headings}
    widths = {key: max(map(len, (heading, *cells[key]))) + GAP for key, heading in headings.items()}
    chosen, shortened = list(headings), ""
    if width is not None and sum(widths.values()) - GAP > width:
        if width < RECORDS_BELOW:
            return Fitted("\n\n".join(paragraphs(headings, rows, labels, width)), (), tuple(headings.values()))
        chosen = _choose_columns(list(headings), labels, first, needed, cells, widths, width + GAP)
        if len({*first} & {*chosen}) < min(needed, MIN_RATES, len({*first} & headings.keys())):
            fitted = _shorten(headings, labels, first, cells, widths, width + GAP)
            chosen, shortened = fitted or (chosen, "")
    text = aligned(
        [headings[key] for key in chosen], [list(row) for row in zip(*(cells[k] for k in chosen), strict=True)]
    )
    left_out = tuple(headings[key] for key in headings if key not in chosen)
    left_out += (f"middles of {headings[shortened]}",) if shortened else ()
    return Fitted(text, left_out, tuple(headings[key] for key in chosen))


def blocks_text(rows: Sequence[Mapping[str, str]], first: Sequence[str], width: int) -> str:
    """Return rows with equal keys as blocks of as many columns as fit the width, each block with labels.

    Columns that are undefined in every row are left out.

    first: keys of the columns in the first block
    """
    headings = {key: key for key in rows[0] if key in LABELS or any(row[key] != UNDEFINED for row in rows)}
    return "\n\n".join(_blocks(headings, rows, first, width))


def _distinct_labels(labels: Sequence[str], rows: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Return the first smallest set of labels by which all rows differ; all labels if there is none."""
    choices = chain.from_iterable(combinations(labels, number) for number in range(1, len(labels)))
    is_distinct = (keys for keys in choices if len({tuple(map(row.get, keys)) for row in rows}) == len(rows))
    return next(is_distinct, tuple(labels))


def _blocks(
    headings: Mapping[str, str], rows: Sequence[Mapping[str, str]], first: Sequence[str], width: int | None
) -> Iterator[str]:
    """Yield blocks of as many columns as fit the width; later blocks have only labels that distinguish the rows."""
    fitted = fit_columns(headings, rows, first=first, needed=len(first), width=width)
    yield fitted.text
    first_labels = [key for key in LABELS if key in headings and headings[key] not in fitted.left_out]
    labels = {key: headings[key] for key in _distinct_labels(first_labels, rows)}
    remaining = {key: heading for key, heading in headings.items() if heading in fitted.left_out and key not in LABELS}
    while remaining:
        fitted = fit_columns(labels | remaining, rows, needed=1, width=width)
        yield fitted.text
        remaining = {key: heading for key, heading in remaining.items() if heading in fitted.left_out}


def paragraphs(
    headings: Mapping[str, str], rows: Iterable[Mapping[str, str]], labels: Collection[str], width: int
) -> Iterator[str]:
    """Yield a paragraph for each row: its labels in a line, then every column as `Heading value`, wrapped."""
    for row in rows:
        cells = {key: in_one_line(row.get(key, UNDEFINED)) for key in headings}
        title = "  ".join(text for key, text in cells.items() if key in labels and text)
        stated = {key: text for key, text in cells.items() if key not in labels and text not in ("", UNDEFINED)}
        pairs = [f"{headings[key]} {text}".strip() for key, text in stated.items()]
        body = [line for pair in _fill_lines(pairs, width - GAP) for line in textwrap.wrap(pair, width - GAP)]
        yield "\n".join([*textwrap.wrap(title, width), *(f"{'':{GAP}}{line}" for line in body)])


def _fill_lines(pairs: Iterable[str], width: int) -> Iterator[str]:
    """Yield lines of as many pairs as fit into the width."""
    line = ""
    for pair in pairs:
        if line and len(line) + GAP + len(pair) > width:
            yield line
            line = ""
        line = f"{line}{'':{GAP}}{pair}" if line else pair
    if line:
        yield line


def wrapped_row(cells: Sequence[str], width: int) -> Iterator[list[str]]:
    """Yield a row for each line of the last cell, wrapped to the width; later rows have empty labels."""
    *labels, text = cells
    for line in textwrap.wrap(text, width, break_on_hyphens=False) or [""]:
        yield [*labels, line]
        labels = [""] * len(labels)


def _choose_columns(
    keys: Sequence[str],
    possible_labels: Collection[str],
    first_keys: Sequence[str],
    num_needed: int,
    cells: Mapping[str, Sequence[str]],
    widths: Mapping[str, int],
    width: int,
) -> list[str]:
    """Return the columns to show, in their order: see `fit_columns`. widths: of columns with the gap after them."""
    labels = [key for key in keys if key in possible_labels]
    first = [key for key in first_keys if key in keys]
    candidates = first + [key for key in keys if key not in labels and key not in first]
    needed = set(candidates[:num_needed])
    chosen: set[str] = set()
    num_rows = len(next(iter(cells.values()), ()))
    # rows on several samples of a system have equal labels
    are_distinct = _are_distinct([cells[key] for key in labels], num_rows)
    for dropped in ((), ("pool",), ("pool", "setting"), ("setting",)):
        shown_labels = [key for key in labels if key not in dropped]
        if are_distinct and not _are_distinct([cells[key] for key in shown_labels], num_rows):
            continue
        remaining_width = width - sum(widths[key] for key in shown_labels)
        chosen = set(shown_labels)
        for key in candidates:
            if widths[key] <= remaining_width:
                chosen.add(key)
                remaining_width -= widths[key]
        if needed <= chosen:
            break
    if not any(key in chosen for key in candidates):
        chosen |= set(candidates[:num_needed])  # too wide, but labels alone would say nothing
    return [key for key in keys if key in chosen]


def _shorten(
    headings: Mapping[str, str],
    possible_labels: Collection[str],
    first: Sequence[str],
    cells: dict[str, list[str]],
    widths: Mapping[str, int],
    width: int,
) -> tuple[list[str], str] | None:
    """Shorten the widest label in its middle, in `cells`, so that the first MIN_RATES columns of `first` fit.

    Return the keys of the columns to show and the key of the shortened label; None if rows would become equal.
    """
    labels = [key for key in headings if key in possible_labels]
    rates = [key for key in first if key in headings][:MIN_RATES]
    num_rows = len(next(iter(cells.values()), ()))
    for dropped in ((), ("pool",), ("setting",)):
        remaining = [key for key in labels if key not in dropped]
        widest = max(remaining, key=lambda key: widths[key])
        room = width - sum(widths[key] for key in (*remaining, *rates) if key != widest) - GAP
        short = [text if len(text) <= room else _cut(text, room) for text in cells[widest]]
        if room >= MIN_LABEL and _are_distinct([short if key == widest else cells[key] for key in remaining], num_rows):
            cells[widest] = short
            return [key for key in headings if key in (*remaining, *rates)], widest
    return None


def _cut(text: str, width: int) -> str:
    """Return a text of this width: the beginning and the end, with an ellipsis between."""
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}\N{HORIZONTAL ELLIPSIS}{text[-end:]}"


def _are_distinct(columns: Sequence[Sequence[str]], num_rows: int) -> bool:
    """Return whether no two rows are equal in all these columns."""
    return len(set(zip(*columns, strict=True))) == num_rows if columns else num_rows <= 1


def aligned(headings: list[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a plain text table; numbers are right-aligned, other columns left-aligned, each cell on one line."""
    rows = [[in_one_line(cell) for cell in row] for row in rows]
    form = _measure(headings, rows)
    return "\n".join(map(form.line, [headings, *rows]))


NUMBER = re.compile(rf"[\d.{SUPPRESSED}{UNDEFINED}]*")


class _Form(NamedTuple):
    """Form of a plain text table. widths: of the columns; numeric: whether all cells below the heading are numbers."""

    widths: Sequence[int]
    numeric: Sequence[bool]

    def line(self, cells: Sequence[str]) -> str:
        padded = [c.rjust(w) if n else c.ljust(w) for c, w, n in zip(cells, self.widths, self.numeric, strict=True)]
        return f"{'':{GAP}}".join(padded).rstrip()


def _measure(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> _Form:
    widths, numeric = list(map(len, headings)), [True] * len(headings)
    for row in rows:
        widths = [max(width, len(cell)) for width, cell in zip(widths, row, strict=True)]
        numeric = [was and NUMBER.fullmatch(cell) is not None for was, cell in zip(numeric, row, strict=True)]
    return _Form(widths, numeric)


def wrapped_lines(
    headings: list[str], read_rows: Callable[[], Iterable[Sequence[str]]], width: int | None
) -> Iterator[str]:
    """Yield the lines of a table whose last column is wrapped to the width.

    If the width is below RECORDS_BELOW, each row is a paragraph.

    read_rows: returns the rows; called again for each pass, so that no row stays in memory (10^5 rows took 400 MB)
    width: of a line, exceeded if the last column would get less than MIN_TEXT_WIDTH; None: one line for each row
    """

    def rows() -> Iterator[list[str]]:
        return (list(map(in_one_line, row)) for row in read_rows())

    if width is not None and width < RECORDS_BELOW:
        records = (dict(zip(headings, row, strict=True)) for row in rows())
        for number, paragraph in enumerate(paragraphs(dict.fromkeys(headings, ""), records, headings[:-1], width)):
            yield from ["", *paragraph.split("\n")] if number else paragraph.split("\n")
        return
    form = _measure(headings, rows())
    if width is None:
        yield from map(form.line, chain([headings], rows()))
        return
    text_width = max(MIN_TEXT_WIDTH, width - sum(label + GAP for label in form.widths[:-1]))

    def lines() -> Iterator[list[str]]:
        return chain.from_iterable(wrapped_row(row, text_width) for row in rows())

    if all(NUMBER.fullmatch(row[-1].replace(" ", "")) for row in rows()):  # its lines may be numbers, set to the right
        form = _measure(headings, lines())
    else:
        form = _Form([*form.widths[:-1], 0], [*form.numeric[:-1], False])
    yield from map(form.line, chain([headings], lines()))
