"""The paper's tables of pass@1 by number of nodes, with rows of ours beside them.

The paper's systems answered questions with one right answer about programs that are not public; ours answered those of
our pools that are labelled so. The figures stand side by side, they are not about the same questions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from bench.causim.paper import PrintedTable, paper
from bench.report.layout import NOTHING, Cell, Heading, Source, Table, TableRow
from bench.runs.records import Record
from bench.statistics import wilson

INVERTED_STAR = ("17", "18", "19")  # tables about one topology
_CAPTION = (
    "Share of right answers by number of nodes. Ours: other programs, questions with one right answer, Wilson's 95 %."
)


def paper_tables(ours: Iterable[Record] = ()) -> tuple[Table, ...]:
    """All that are by number of nodes and type of question; records of other benchmarks are in none."""
    records = [record for record in ours if record.benchmark == "causim"]
    printed = paper().tables
    return tuple(_table(number, printed[number], records) for number in printed if printed[number].questions)


def _table(number: str, printed: PrintedTable, records: Iterable[Record]) -> Table:
    rows = [TableRow((row[0],), tuple(map(Cell, row[1:])), Source.PAPER) for row in printed.rows]
    counts: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for record in records:
        topology, _, nodes = record.stratum.rpartition("-")
        if _asks(printed, record.setting) and (number not in INVERTED_STAR or topology == "inverted_star"):
            own = counts[_system(record)][f"nodes_{int(nodes)}"]
            own[0] += record.score["correct"] is True
            own[1] += 1
    for system in sorted(counts):
        rows.append(TableRow((system,), tuple(_cell(counts[system], column) for column in printed.columns)))
    headings = tuple(Heading(column, column.removeprefix("nodes_")) for column in printed.columns)
    labels = tuple(Heading(label, label.capitalize()) for label in printed.labels)
    return Table(number, printed.title, _CAPTION, labels, headings, tuple(rows), (f"{printed.where} of the paper",))


def _system(record: Record) -> str:
    """The protocol with its options."""
    options = ", ".join(f"{name}={value}" for name, value in sorted(record.config.items()) if value is not None)
    return f"{record.protocol} ({options})" if options else record.protocol


def _asks(printed: PrintedTable, setting: str) -> bool:
    kind, _, scenario = setting.partition("-")
    return scenario == "deterministic" and printed.questions in (kind, "all")


def _cell(counts: Mapping[str, list[int]], column: str) -> Cell:
    if column not in counts:
        return NOTHING
    right, number = counts[column]
    low, high = wilson(right, number)
    return Cell(f"{right / number:.3f}", f"{low:.3f}", f"{high:.3f}")
