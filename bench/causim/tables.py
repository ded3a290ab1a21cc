"""The paper's tables of pass@1 that runs can stand beside: by number of nodes, on built-in networks, on NIHSS.

The paper's systems answered questions with one right answer about programs that are not public; ours answered those of
our pools that are labelled so. The figures stand side by side, they are not about the same questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final, NamedTuple

from calibrant.bench.causim.paper import PrintedTable, paper
from calibrant.bench.causim.verdict import is_right
from calibrant.bench.report.intervals import Interval
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Source, Table, TableRow, cell
from calibrant.bench.report.named_answers import NamedAnswer
from calibrant.bench.report.rows import natural
from calibrant.bench.statistics import wilson
from calibrant.dsl.causim.networks import NETWORKS

NIHSS: Final = "nihss"
INVERTED_STAR: Final = ("17", "18", "19")  # tables about one topology
OF_NIHSS: Final = "33"
OF_NETWORKS: Final = "25"
_CAPTION = "Share of right answers {by}. Ours: other questions with one right answer, Wilson's 95 %."
_NODES, _GRAPHS = "by number of nodes", "on networks of the bnlearn repository"


class Level(NamedTuple):
    """What a stratum says."""

    topology: str
    nodes: int


class Asked(NamedTuple):
    """How right a system was on one question: the share of its answers to it.

    kind, scenario: of the question
    """

    system: str
    kind: str
    scenario: str
    level: Level
    right: float


def level_of(stratum: str) -> Level:
    """Topology and number of nodes; 0 nodes where a stratum does not end in a number."""
    topology, _, nodes = stratum.rpartition("-")
    return Level(topology, int(nodes)) if nodes.isascii() and nodes.isdigit() else Level(stratum, 0)


def questions_asked(answers: Iterable[NamedAnswer]) -> list[Asked]:
    """One for each system and question, in the order in which they came."""
    groups: dict[tuple[str, str, str], list[NamedAnswer]] = {}
    for one in answers:
        groups.setdefault((one.system, one.context.pool_digest, one.context.instance), []).append(one)
    made = []
    for (system, _, _), group in groups.items():
        kind, _, scenario = group[0].context.setting.partition("-")
        right = fmean(is_right(one.score) for one in group)
        made.append(Asked(system, kind, scenario, level_of(group[0].context.stratum), right))
    return made


def paper_tables(asked: Iterable[Asked] = ()) -> tuple[Table, ...]:
    """In the order of their numbers, each with the rows of ours that belong there."""
    unique = [one for one in asked if one.scenario == "deterministic"]
    printed = paper().tables
    made = {number: _by_nodes(number, table, unique) for number, table in printed.items() if table.questions}
    made[OF_NETWORKS] = _on_networks(printed[OF_NETWORKS], unique)
    return tuple(made[number] for number in sorted(made, key=int))


def _by_nodes(number: str, printed: PrintedTable, asked: Sequence[Asked]) -> Table:
    own = [one for one in asked if printed.questions in (one.kind, "all") and _belongs(number, one.level.topology)]
    rows = [TableRow((row[0],), tuple(map(Cell, row[1:])), Source.PAPER) for row in printed.rows]
    for system in _systems(own):
        mine = [one for one in own if one.system == system]
        nodes = [int(column.removeprefix("nodes_")) for column in printed.columns]
        cells = (_share([one.right for one in mine if one.level.nodes == number]) for number in nodes)
        rows.append(TableRow((system,), tuple(cells)))
    headings = tuple(Heading(column, column.removeprefix("nodes_")) for column in printed.columns)
    return _table(number, printed, _NODES, (Heading("system", "System"),), headings, rows)


def _belongs(number: str, topology: str) -> bool:
    if number in INVERTED_STAR:
        return topology == "inverted_star"
    if number == OF_NIHSS:
        return topology == NIHSS
    return topology not in (*NETWORKS, NIHSS)


def _on_networks(printed: PrintedTable, asked: Sequence[Asked]) -> Table:
    """The paper's columns before and after training are two rows here."""
    kinds = ("overall", "counterfactual", "intervention")
    own = [one for one in asked if one.level.topology in NETWORKS]
    rows = []
    for graph, *figures in printed.rows:
        of = dict(zip(printed.columns, figures, strict=True))
        for system in ("base", "trained"):
            theirs = tuple(Cell(of[f"{kind}_{system}"]) for kind in kinds)
            rows.append(TableRow((graph, system.capitalize()), theirs, Source.PAPER))
        here = [one for one in own if one.level.topology == graph.lower() and one.kind in kinds]
        for system in _systems(here):
            mine = [one for one in here if one.system == system]
            cells = (_share([one.right for one in mine if kind in ("overall", one.kind)]) for kind in kinds)
            rows.append(TableRow((graph, system), tuple(cells)))
    headings = tuple(Heading(kind, kind.capitalize()) for kind in kinds)
    labels = (Heading("setting", "Graph"), Heading("system", "System"))
    return _table(OF_NETWORKS, printed, _GRAPHS, labels, headings, rows)


def _table(
    number: str,
    printed: PrintedTable,
    by: str,
    labels: tuple[Heading, ...],
    headings: tuple[Heading, ...],
    rows: Sequence[TableRow],
) -> Table:
    caption, notes = _CAPTION.format(by=by), (f"{printed.where} of the paper",)
    return Table(number, printed.title, caption, labels, headings, tuple(rows), notes)


def with_sources(table: Table, *, with_paper: bool) -> Table:
    """With a label that says whose a row is; without the paper's rows if they are not wanted."""
    rows = tuple(
        replace(row, labels=(*row.labels, row.source.value))
        for row in table.rows
        if with_paper or row.source is Source.OURS
    )
    return replace(table, labels=(*table.labels, Heading("source", "Rows")), rows=rows)


def _systems(asked: Iterable[Asked]) -> list[str]:
    return sorted({one.system for one in asked}, key=natural)


def _share(rights: Sequence[float]) -> Cell:
    if not rights:
        return NOTHING
    return cell(f"{fmean(rights):.3f}", Interval(*wilson(sum(rights), len(rights))))
