"""A table as every format prints it: headings, rows of cells, caption and notes; and the formats."""

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

# --- A table as every format prints it: headings, rows of cells, caption and notes. Every cell is text already --------


class Source(Enum):
    """Origin of a row's numbers."""

    OURS = "ours"
    PAPER = "paper"
    PROTOTYPE = "prototype"  # of ours


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    text: the figure, `*` or a dash; low, high: ends of its interval, empty where there is none
    """

    text: str
    low: str = ""
    high: str = ""

    @property
    def interval(self) -> str:
        return f"[{self.low}, {self.high}]" if self.low else ""


NOTHING = Cell(UNDEFINED)


@lru_cache(1 << 14)  # 4 * 10^5 cells of a report of 125 systems have a few thousand different ones
def cell(text: str, interval: Interval | None = None, *, decimals: int = 3, signed: bool = False) -> Cell:
    """Return a figure with its interval, both with as many decimals."""
    if interval is None:
        return Cell(text)
    sign = "+" if signed else ""
    low, high = (f"{end + 0.0:{sign}.{decimals}f}" for end in interval)
    return Cell(text, low, high)


def percent_cell(share: float, interval: tuple[float, float] | None) -> Cell:
    """Return a share with its interval, in percent with one decimal."""
    return Cell(*(f"{100 * figure:.1f}" for figure in (share, *(interval or ()))))


@dataclass(frozen=True, slots=True)
class Heading:
    """A column's heading; key: its name in CSV."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class TableRow:
    """Row of a table.

    labels: one for each of the table's label headings; cells: one for each heading
    fits: whether a row of ours is about items that the paper's table is about
    """

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    source: Source = Source.OURS
    fits: bool = True


@dataclass(frozen=True)
class Table:
    """A table of a report.

    id: the number in the paper, or a word for what the paper has not
    printed: the items that the paper's table is about, in words; empty for a table that no paper prints
    fits: whether some rows of ours are about such items; those that are not do not stand in it
    is_result: whether our rows are a table of results by themselves, beside what the paper prints
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
    """Return a name as the address of a place in a page, or as that of a file."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


# --- Tables as text: for a terminal, Markdown, CSV and LaTeX. Equal tables give equal text ----------------------------
TEXT_WIDTH = 110
CSV_FIELDS = ("table", "source", "setting", "system", "other", "pool", "n", "column", "value", "low", "high")
_CSV_LABELS = {
    "pair": "setting",
    "systems": "system",
    "way": "other",
    "condition": "setting",
    "agent": "system",
}  # label headings that go under another name

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
    """Aligned columns; every figure is followed by its interval, and figures without one stand under the others.

    A table wider than `width` goes on below itself with its labels repeated; below 60 columns, or where the labels take
    the width, each row is a paragraph. None: tables are as wide as they are.
    """
    parts = []
    for table in tables:
        notes = [textwrap.fill(note, min(TEXT_WIDTH, width or TEXT_WIDTH)) for note in (table.caption, *table.notes)]
        parts.append("\n".join([heading_of(table), *_blocks(table, width), *notes]))
    return "\n\n".join(parts) + "\n"


def _blocks(table: Table, width: int | None) -> Iterator[str]:
    """Yield the table, in as many parts of at most that width as it needs."""
    headings, lines = _grid(table)
    lines = _figures_aligned(table, lines)
    widths = [max(map(len, column)) + GAP for column in zip(headings, *lines, strict=True)]
    if width is None or sum(widths) - GAP <= width:
        yield aligned(headings, lines)
        return
    num_labels = len(table.labels)
    labels_width = sum(widths[:num_labels])
    if width < RECORDS_BELOW or labels_width + max(widths[num_labels:], default=0) - GAP > width:
        keys = [str(place) for place in range(len(headings))]
        records = [dict(zip(keys, line, strict=True)) for line in _grid(table)[1]]
        names = [key for key, label in zip(keys, table.labels, strict=False) if label.key != "n"]  # n has its heading
        yield "\n\n".join(paragraphs(dict(zip(keys, headings, strict=True)), records, names, width))
        return
    for columns in _column_groups(widths, num_labels, width + GAP - labels_width):
        chosen = [*range(num_labels), *columns]
        yield aligned([headings[k] for k in chosen], [[line[k] for k in chosen] for line in lines])


def _column_groups(widths: Sequence[int], first: int, room: int) -> Iterator[list[int]]:
    """Yield the columns from the first on, as many at a time as there is room for."""
    group: list[int] = []
    for column in range(first, len(widths)):
        if group and sum(widths[k] for k in group) + widths[column] > room:
            yield group
            group = []
        group.append(column)
    yield group


def _figures_aligned(table: Table, lines: list[list[str]]) -> list[list[str]]:
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
    """Return a figure with its interval, or with as much room; a no-break space at the end is not stripped."""
    if not width:
        return cell.text
    return (
        f"{cell.text} {cell.interval:<{width - 1}}" if cell.low else f"{cell.text} {'':{width - 1}}\N{NO-BREAK SPACE}"
    )


def as_markdown(tables: Iterable[Table]) -> str:
    """Pipe tables; paper rows are in italics."""
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
        place = 1 if cells[1] else 0  # a row over all groups may have its first label alone
        cells[place] = f"*{cells[place]}*"
    return cells


def as_csv(tables: Iterable[Table]) -> str:
    """Return one line per figure: which table, row and column, the figure as printed, and the ends of its interval.

    Labels that only some benchmarks have are columns behind the others.
    """
    tables = list(tables)
    keys = (_CSV_LABELS.get(heading.key, heading.key) for table in tables for heading in table.labels)
    fields = (*CSV_FIELDS, *dict.fromkeys(key for key in keys if key not in CSV_FIELDS))
    out = io.StringIO()
    writer = csv.DictWriter(out, fields, restval="", lineterminator="\n")
    writer.writeheader()
    for table in tables:
        for row in table.rows:
            place = {
                _CSV_LABELS.get(h.key, h.key): in_one_line(text)
                for h, text in zip(table.labels, row.labels, strict=True)
            }
            place |= {"table": table.id, "source": row.source.value}
            for heading, cell in zip(table.headings, row.cells, strict=True):
                figures = {"column": heading.key, "value": cell.text, "low": cell.low, "high": cell.high}
                writer.writerow({key: inert(text) for key, text in (place | figures).items()})
    return out.getvalue()


_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def inert(text: str) -> str:
    """Return a cell that a spreadsheet does not take for a formula by its first character; numbers stay."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) and not _NUMBER.fullmatch(text) else text


def as_latex(tables: Iterable[Table]) -> str:
    """One table environment each, for the booktabs package; intervals are in small print behind their figures."""
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
    """Insert a line between settings, paper rows counting to ours before them."""
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
    """Return text with LaTeX's special characters as what they look like."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _in_markdown(text: str) -> str:
    """Return text in which nothing of a pipe table, emphasis or HTML is left to be read as markup."""
    return re.sub(r"([\\`*_|<>\[\]~&])", r"\\\1", text)


def heading_of(table: Table) -> str:
    """Return the title, with the number of the paper's table where it is one and every row belongs there."""
    is_numbered = table.id[0].isdigit() or "." in table.id
    has_strangers = bool(table.printed) and any(row.source is Source.OURS and not row.fits for row in table.rows)
    return f"Table {table.id}. {table.title}" if is_numbered and not has_strangers else table.title


def _grid(table: Table) -> tuple[list[str], list[list[str]]]:
    headings = [heading.text for heading in (*table.labels, *table.headings)]
    lines = [
        [*map(in_one_line, row.labels), *(f"{cell.text} {cell.interval}".strip() for cell in row.cells)]
        for row in table.rows
    ]
    return headings, lines


def own_rows(table: Table) -> Table:
    """Return a table without printed rows, and without columns that only they define."""
    return shown_columns(replace(table, rows=tuple(row for row in table.rows if row.source is Source.OURS)))


def with_groups(table: Table, groups: Mapping[str, str]) -> Table:
    """Return a table with a column for the groups of people, where it has any. groups: by the names of systems."""
    place = next((k for k, heading in enumerate(table.labels) if heading.key == "system"), None)
    if place is None or not any(row.labels[place] in groups for row in table.rows):
        return table
    rows = []
    for row in table.rows:
        system, group = row.labels[place], groups.get(row.labels[place], "")
        cells = (drop_option(system, GROUP, group) if group else system, group)
        rows.append(replace(row, labels=(*row.labels[:place], *cells, *row.labels[place + 1 :])))
    labels = (*table.labels[: place + 1], Heading(GROUP, "Group"), *table.labels[place + 1 :])
    return replace(table, labels=labels, rows=tuple(rows))


def shown_columns(table: Table) -> Table:
    """Return the table without columns that are undefined in every row, printed ones included."""
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
