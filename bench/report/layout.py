"""Tables of text cells, and their formats: terminal, Markdown, CSV, LaTeX."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache

from calibrant.bench.answers.rates import Interval, drop_option
from calibrant.bench.core.metrics import UNDEFINED
from calibrant.bench.core.scoring import GROUP
from calibrant.bench.pages.terminal_tables import GAP, aligned, paragraphs
from calibrant.bench.terminal import RECORDS_BELOW
from calibrant.dsl.errors import in_one_line

# --- A table: headings, rows of cells, caption and notes. Every cell is text, equal in all formats --------------------


class Source(Enum):
    """Origin of a row's numbers."""

    OURS = "ours"
    PAPER = "paper"
    PROTOTYPE = "prototype"  # numbers of this project's prototype


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    text: a number, `*` (suppressed) or a dash; low, high: ends of its interval, empty if it has none
    """

    text: str
    low: str = ""
    high: str = ""

    @property
    def interval(self) -> str:
        return f"[{self.low}, {self.high}]" if self.low else ""


NOTHING = Cell(UNDEFINED)


@lru_cache(1 << 14)  # the 4 * 10^5 cells of a report of 125 systems have a few thousand distinct values
def cell(text: str, interval: Interval | None = None, *, decimals: int = 3, signed: bool = False) -> Cell:
    """Return the cell of a formatted number with its interval. signed: with a + before positive ends."""
    if interval is None:
        return Cell(text)
    sign = "+" if signed else ""
    low, high = (f"{end + 0.0:{sign}.{decimals}f}" for end in interval)
    return Cell(text, low, high)


def percent_cell(share: float, interval: tuple[float, float] | None) -> Cell:
    """Return the cell of a share with its interval, in percent with one decimal."""
    return Cell(*(f"{100 * figure:.1f}" for figure in (share, *(interval or ()))))


@dataclass(frozen=True, slots=True)
class Heading:
    """A column's heading; key: its name in CSV."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class TableRow:
    """Row of a table.

    labels: texts, one for each of `Table.labels`; cells: one for each of `Table.headings`
    fits: whether a row of this run is about the items of the paper's table
    """

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    source: Source = Source.OURS
    fits: bool = True


@dataclass(frozen=True)
class Table:
    """A table of a report.

    id: the paper's table number, or a word for a table that is in no paper
    labels: headings of the label columns, such as setting and system; headings: headings of the columns of numbers
    printed: description of the items of the paper's table; empty for a table that is in no paper
    fits: whether some rows of this run are about these items; only such rows are shown beside the paper's
    is_result: whether this run's rows are also shown as a table of their own
    """

    id: str
    title: str
    caption: str
    labels: tuple[Heading, ...]
    headings: tuple[Heading, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...] = field(default=())
    printed: str = ""
    fits: bool = True
    is_result: bool = False

    @property
    def anchor(self) -> str:
        return anchor_of(f"table {self.id}")


def anchor_of(name: str) -> str:
    """Return a name as an anchor in a page or the stem of a file name: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


# --- Tables as text: terminal, Markdown, CSV and LaTeX. Equal tables give equal text ----------------------------------
TEXT_WIDTH = 110  # largest width of captions and notes, in characters
CSV_FIELDS = ("table", "source", "setting", "system", "other", "pool", "n", "column", "value", "low", "high", "text")
SIZE_TEXT = "n_text"  # column with the words of n, such as "8 of 24" or "10 x 3 samples"
_CSV_LABELS = {
    "pair": "setting",
    "systems": "system",
    "way": "other",
    "condition": "setting",
    "agent": "system",
}  # key of a label heading -> its column in CSV_FIELDS

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    UNDEFINED: "--",
    "“": "``",
    "”": "''",
    "Δ": r"$\Delta$",
}


def as_terminal(tables: Iterable[Table], width: int | None = None) -> str:
    """Return tables with aligned columns, every number followed by its interval.

    A table wider than `width` is split into blocks below each other, which repeat the labels. If `width` is below
    RECORDS_BELOW, or too small for the labels and one column, each row is a paragraph.

    width: characters; None for no limit
    """
    parts = []
    for table in tables:
        notes = [textwrap.fill(note, min(TEXT_WIDTH, width or TEXT_WIDTH)) for note in (table.caption, *table.notes)]
        parts.append("\n".join([heading_of(table), *_blocks(table, width), *notes]))
    return "\n\n".join(parts) + "\n"


def _blocks(table: Table, width: int | None) -> Iterator[str]:
    """Yield the table in blocks of at most that width."""
    headings, lines = _grid(table)
    lines = _align_figures(table, lines)
    widths = [max(map(len, column)) + GAP for column in zip(headings, *lines, strict=True)]
    if width is None or sum(widths) - GAP <= width:
        yield aligned(headings, lines)
        return
    num_labels = len(table.labels)
    labels_width = sum(widths[:num_labels])
    if width < RECORDS_BELOW or labels_width + max(widths[num_labels:], default=0) - GAP > width:
        keys = [str(index) for index in range(len(headings))]
        records = [dict(zip(keys, line, strict=True)) for line in _grid(table)[1]]
        # labels stand in a paragraph without their headings, but for n
        names = [key for key, label in zip(keys, table.labels, strict=False) if label.key != "n"]
        yield "\n\n".join(paragraphs(dict(zip(keys, headings, strict=True)), records, names, width))
        return
    for columns in _column_groups(widths, num_labels, width + GAP - labels_width):
        chosen = [*range(num_labels), *columns]
        yield aligned([headings[k] for k in chosen], [[line[k] for k in chosen] for line in lines])


def _column_groups(widths: Sequence[int], first: int, max_width: int) -> Iterator[list[int]]:
    """Yield groups of columns, from index `first` on, whose widths add up to at most `max_width`."""
    group: list[int] = []
    for column in range(first, len(widths)):
        if group and sum(widths[k] for k in group) + widths[column] > max_width:
            yield group
            group = []
        group.append(column)
    yield group


def _align_figures(table: Table, lines: list[list[str]]) -> list[list[str]]:
    """Return the lines with each number padded to the widest interval of its column."""
    widths = [max((len(row.cells[k].interval) for row in table.rows), default=0) for k in range(len(table.headings))]
    first = len(table.labels)
    return [
        [
            *line[:first],
            *(_pad_figure(figure_cell, width) for figure_cell, width in zip(row.cells, widths, strict=True)),
        ]
        for row, line in zip(table.rows, lines, strict=True)
    ]


def _pad_figure(cell: Cell, width: int) -> str:
    """Return a number padded to the interval's width; a final no-break space survives the stripping of lines."""
    if not width:
        return cell.text
    return (
        f"{cell.text} {cell.interval:<{width - 1}}" if cell.low else f"{cell.text} {'':{width - 1}}\N{NO-BREAK SPACE}"
    )


def as_markdown(tables: Iterable[Table]) -> str:
    """Return pipe tables with the paper's rows in italics."""
    parts = []
    for table in tables:
        headings, lines = _grid(table)
        rules = ["---"] * len(table.labels) + ["---:"] * len(table.headings)
        rows = [_markdown_row(row, line) for row, line in zip(table.rows, lines, strict=True)]
        grid = [[_in_markdown(text) for text in headings], rules, *rows]
        text = "\n".join(f"| {' | '.join(line)} |" for line in grid)
        below = "\n\n".join(_in_markdown(note) for note in (table.caption, *table.notes))
        parts.append(f"## {_in_markdown(heading_of(table))}\n\n{text}\n\n{below}\n")
    return "\n".join(parts)


def _markdown_row(row: TableRow, line: Sequence[str]) -> list[str]:
    cells = [_in_markdown(text) for text in line]
    if row.source is Source.PAPER:
        index = 1 if cells[1] else 0  # a row over all groups may have only its first label
        cells[index] = f"*{cells[index]}*"
    return cells


def as_csv(tables: Iterable[Table]) -> str:
    """Return one line per cell: table, labels of its row, column, number and ends of its interval.

    The columns of numbers are empty in a cell without a number; its words, or `*` for a suppressed number, are in
    `text`. Labels that are not in CSV_FIELDS become further columns.
    """
    tables = list(tables)
    keys = (_CSV_LABELS.get(heading.key, heading.key) for table in tables for heading in table.labels)
    fields = [*CSV_FIELDS, *dict.fromkeys(key for key in keys if key not in CSV_FIELDS)]
    rows = [(table, row, _row_fields(table, row)) for table in tables for row in table.rows]
    fields += [SIZE_TEXT] if any(SIZE_TEXT in row_fields for _, _, row_fields in rows) else []
    out = io.StringIO()
    writer = csv.DictWriter(out, fields, restval="", lineterminator="\n")
    writer.writeheader()
    for table, row, row_fields in rows:
        for heading, cell in zip(table.headings, row.cells, strict=True):
            cell_fields = {"column": heading.key, "low": cell.low, "high": cell.high}
            number = _number_text(cell.text)
            cell_fields |= {"value": number} if number else {"text": "" if cell.text == UNDEFINED else cell.text}
            writer.writerow({key: inert(text) for key, text in (row_fields | cell_fields).items()})
    return out.getvalue()


def _row_fields(table: Table, row: TableRow) -> dict[str, str]:
    """Return the fields that the cells of a row share: its table, its source and its labels."""
    fields = {
        _CSV_LABELS.get(h.key, h.key): in_one_line(text) for h, text in zip(table.labels, row.labels, strict=True)
    }
    fields |= {"table": table.id, "source": row.source.value}
    return fields | _size_cells(fields["n"]) if "n" in fields else fields


_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_SIZE = re.compile(r"[\d,]*\d")


def _number_text(text: str) -> str:
    """Return a number without separators of thousands; empty for a text that is no number."""
    plain = text.replace(",", "") if _GROUPED.fullmatch(text) else text
    return plain if _NUMBER.fullmatch(plain) else ""


def _size_cells(text: str) -> dict[str, str]:
    """Return the fields of a number of items: n, and SIZE_TEXT if the text has words besides the number."""
    size = _SIZE.match(text)
    fields = {"n": _number_text(size[0]) if size else ""}
    return fields if _number_text(text) or text == UNDEFINED else fields | {SIZE_TEXT: text}


def inert(text: str) -> str:
    """Quote a cell whose first character would make it a formula in a spreadsheet; numbers stay as they are."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) and not _NUMBER.fullmatch(text) else text


def as_latex(tables: Iterable[Table]) -> str:
    """Return one table environment per table, for the booktabs package, with intervals in small print."""
    return "\n".join(map(_latex_table, tables))


def _latex_table(table: Table) -> str:
    alignment = "l" * len(table.labels) + "r" * len(table.headings)
    headings = [in_latex(heading.text) for heading in (*table.labels, *table.headings)]
    lines = [_latex_row(row) for row in table.rows]
    notes = in_latex(" ".join((f"{table.title}.", table.caption, *table.notes)))
    return "\n".join(
        (
            r"\begin{table}",
            r"\centering\footnotesize",
            rf"\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
            " & ".join(headings) + r" \\",
            r"\midrule",
            *_with_rules(table.rows, lines),
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{notes}}}",
            rf"\label{{tab:{table.anchor}}}",
            r"\end{table}",
            "",
        )
    )


def _with_rules(rows: Sequence[TableRow], lines: Sequence[str]) -> list[str]:
    """Return the lines with extra space before each new setting; the paper's rows belong to the setting before them."""
    separated: list[str] = []
    for index, line in enumerate(lines):
        is_ours = rows[index].source is Source.OURS
        if index and is_ours and (rows[index - 1].labels[0] != rows[index].labels[0]):
            separated.append(r"\addlinespace")
        separated.append(line)
    return separated


def _latex_row(row: TableRow) -> str:
    labels = [in_latex(in_one_line(label)) for label in row.labels]
    if row.source is Source.PAPER:
        labels[1] = rf"\textit{{{labels[1]}}}"
    return " & ".join([*labels, *map(_latex_cell, row.cells)]) + r" \\"


def _latex_cell(cell: Cell) -> str:
    text = re.sub(r"^([+-])(?=\d)", r"$\1$", in_latex(cell.text))
    if not cell.low:
        return text
    return rf"{text} {{\scriptsize [${cell.low}$, ${cell.high}$]}}"


def in_latex(text: str) -> str:
    """Escape LaTeX's special characters."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _in_markdown(text: str) -> str:
    """Escape characters of pipe tables, emphasis, links and HTML."""
    return re.sub(r"([\\`*_|<>\[\]~&])", r"\\\1", text)


def heading_of(table: Table) -> str:
    """Return the title, with the paper's table number if every row of this run is about the paper's items."""
    is_numbered = table.id[0].isdigit() or "." in table.id
    has_other_items = bool(table.printed) and any(row.source is Source.OURS and not row.fits for row in table.rows)
    return f"Table {table.id}. {table.title}" if is_numbered and not has_other_items else table.title


def _grid(table: Table) -> tuple[list[str], list[list[str]]]:
    headings = [heading.text for heading in (*table.labels, *table.headings)]
    lines = [
        [*map(in_one_line, row.labels), *(f"{cell.text} {cell.interval}".strip() for cell in row.cells)]
        for row in table.rows
    ]
    return headings, lines


def own_rows(table: Table) -> Table:
    """Return a table without the paper's rows and without columns that only those define."""
    return shown_columns(replace(table, rows=tuple(row for row in table.rows if row.source is Source.OURS)))


def with_groups(table: Table, groups: Mapping[str, str]) -> Table:
    """Return a table with a column for groups of people, if it has any. groups: name of a system -> group."""
    system_index = next((k for k, heading in enumerate(table.labels) if heading.key == "system"), None)
    if system_index is None or not any(row.labels[system_index] in groups for row in table.rows):
        return table
    rows = []
    for row in table.rows:
        system, group = row.labels[system_index], groups.get(row.labels[system_index], "")
        cells = (drop_option(system, GROUP, group) if group else system, group)
        rows.append(replace(row, labels=(*row.labels[:system_index], *cells, *row.labels[system_index + 1 :])))
    labels = (*table.labels[: system_index + 1], Heading(GROUP, "Group"), *table.labels[system_index + 1 :])
    return replace(table, labels=labels, rows=tuple(rows))


def shown_columns(table: Table) -> Table:
    """Return the table without columns that are undefined in every row, the paper's included."""
    columns = [k for k in range(len(table.headings)) if any(row.cells[k].text != UNDEFINED for row in table.rows)]
    rows = tuple(replace(row, cells=tuple(row.cells[k] for k in columns)) for row in table.rows)
    headings = tuple(table.headings[k] for k in columns)
    return replace(table, headings=headings, rows=rows)


TEXTS: Mapping[str, Callable[[Iterable[Table]], str]] = {
    "terminal": as_terminal,
    "markdown": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
}
