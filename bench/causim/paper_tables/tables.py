"""The paper's tables of pass@1 that runs can stand beside: by number of nodes, on built-in networks, on NIHSS.

The paper's systems answered questions with one right answer about programs that are not public; ours answered those of
our pools that are labelled so. The figures stand side by side, they are not about the same questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import comb
from statistics import fmean
from typing import Final, NamedTuple

from calibrant.bench.causim.paper_tables.declared import (
    ASKED_KINDS,
    DECLARED,
    NONSENSE,
    OF_NETWORKS,
    PASS_OF_NIHSS,
    QuestionFacts,
)
from calibrant.bench.causim.paper_tables.printed import PrintedTable, paper
from calibrant.bench.causim.verdict import is_right
from calibrant.bench.core.samples import Item
from calibrant.bench.report.answers.named import NamedAnswer
from calibrant.bench.report.intervals import Interval
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Source, Table, TableRow, cell
from calibrant.bench.report.rows import natural
from calibrant.bench.statistics import wilson
from calibrant.dsl.causim.prompt import View

_CAPTION = "Share of right answers {by}. Ours: other questions with one right answer, Wilson's 95 %."
NUM_TRIES: Final = 8  # k of pass@k in Table 34
_NODES, _GRAPHS = "by number of nodes", "on networks of the bnlearn repository"


class Level(NamedTuple):
    """Topology and number of nodes, as a stratum states them."""

    topology: str
    nodes: int


class Asked(NamedTuple):
    """Accuracy of a system on one question: the share of right answers to it.

    kind, scenario: of the question
    view: of its prompt, None where neither the item nor the score states it; vocabulary: of its program's values
    samples: number of answers
    """

    system: str
    kind: str
    scenario: str
    level: Level
    right: float
    view: View | None = None
    vocabulary: str = NONSENSE
    samples: int = 1

    @property
    def pass_at_tries(self) -> float | None:
        """Pass@NUM_TRIES, unbiased; None with fewer answers."""
        wrong = self.samples - round(self.right * self.samples)
        if self.samples < NUM_TRIES:
            return None
        return 1 - comb(wrong, NUM_TRIES) / comb(self.samples, NUM_TRIES)

    @property
    def facts(self) -> QuestionFacts:
        """Facts for `Declared.fits`."""
        return QuestionFacts(self.view, self.vocabulary, self.level.topology, self.level.nodes, self.scenario)


def level_of(stratum: str) -> Level:
    """Topology and number of nodes; 0 nodes where a stratum does not end in a number."""
    topology, _, nodes = stratum.rpartition("-")
    return Level(topology, int(nodes)) if nodes.isascii() and nodes.isdigit() else Level(stratum, 0)


def questions_asked(answers: Iterable[NamedAnswer], views: Mapping[Item, View] | None = None) -> list[Asked]:
    """Return the accuracy of each system on each question, in the order in which they came.

    views: of the items at hand
    """
    groups: dict[tuple[str, str, str], list[NamedAnswer]] = {}
    for answer in answers:
        groups.setdefault((answer.system, answer.context.pool_digest, answer.context.instance), []).append(answer)
    questions = []
    for (system, _, _), group in groups.items():
        kind, _, scenario = group[0].context.setting.partition("-")
        right = fmean(is_right(answer.score) for answer in group)
        score, level = group[0].score, level_of(group[0].context.stratum)
        view = (views or {}).get((group[0].context.pool_digest, group[0].context.instance), score.get("view"))
        vocabulary = str(score.get("vocabulary", NONSENSE))
        questions.append(Asked(system, kind, scenario, level, right, view, vocabulary, len(group)))
    return questions


def paper_tables(questions: Iterable[Asked] = ()) -> tuple[Table, ...]:
    """Return all in the order of their numbers: printed rows, then ours about questions that fit the table."""
    unique = list(questions)
    printed = paper().tables
    tables = {number: _by_nodes(number, table, unique) for number, table in printed.items() if table.questions}
    tables[OF_NETWORKS] = _on_networks(printed[OF_NETWORKS], unique)
    tables[PASS_OF_NIHSS] = _pass_of_nihss(printed[PASS_OF_NIHSS], unique)
    return tuple(tables[number] for number in sorted(tables, key=int))


def _by_nodes(number: str, printed: PrintedTable, questions: Sequence[Asked]) -> Table:
    matching = [
        question
        for question in questions
        if question.kind in (ASKED_KINDS if printed.questions == "all" else (printed.questions,))
        and DECLARED[number].fits(question.facts)
    ]
    rows = [TableRow((row[0],), tuple(map(Cell, row[1:])), Source.PAPER) for row in printed.rows]
    for system in _systems(matching):
        mine = [question for question in matching if question.system == system]
        nodes = [int(column.removeprefix("nodes_")) for column in printed.columns]
        cells = (_share([question.right for question in mine if question.level.nodes == number]) for number in nodes)
        rows.append(TableRow((system,), tuple(cells)))
    headings = tuple(Heading(column, column.removeprefix("nodes_")) for column in printed.columns)
    return _table(number, printed, _NODES, (Heading("system", "System"),), headings, rows)


def _pass_of_nihss(printed: PrintedTable, questions: Sequence[Asked]) -> Table:
    """Return the table of pass@k; rows of ours need NUM_TRIES answers to each question."""
    rows = [TableRow((row[0],), tuple(map(Cell, row[1:])), Source.PAPER) for row in printed.rows]
    matching = [
        question
        for question in questions
        if question.kind in ASKED_KINDS
        and question.pass_at_tries is not None
        and DECLARED[PASS_OF_NIHSS].fits(question.facts)
    ]
    nodes = [int(column.removeprefix("nodes_")) for column in printed.columns]
    for system in _systems(matching):
        mine = [question for question in matching if question.system == system]
        shares = ([question.pass_at_tries or 0.0 for question in mine if question.level.nodes == n] for n in nodes)
        rows.append(TableRow((system,), tuple(map(_share, shares))))
    headings = tuple(Heading(column, column.removeprefix("nodes_")) for column in printed.columns)
    return _table(PASS_OF_NIHSS, printed, _NODES, (Heading("system", "System"),), headings, rows)


def _on_networks(printed: PrintedTable, questions: Sequence[Asked]) -> Table:
    """Return a printed table with the paper's columns before and after training as two rows."""
    kinds = ("overall", "counterfactual", "intervention")
    declared = DECLARED[OF_NETWORKS]
    matching = [question for question in questions if question.kind in kinds[1:] and declared.fits(question.facts)]
    rows, our_rows = [], []
    for graph, *figures in printed.rows:
        of = dict(zip(printed.columns, figures, strict=True))
        for system in ("base", "trained"):
            printed_cells = tuple(Cell(of[f"{kind}_{system}"]) for kind in kinds)
            rows.append(TableRow((graph, system.capitalize()), printed_cells, Source.PAPER))
        on_graph = [question for question in matching if question.level.topology == graph.lower()]
        for system in _systems(on_graph):
            mine = [question for question in on_graph if question.system == system]
            cells = (
                _share([question.right for question in mine if kind in ("overall", question.kind)]) for kind in kinds
            )
            our_rows.append(TableRow((graph, system), tuple(cells)))
    headings = tuple(Heading(kind, kind.capitalize()) for kind in kinds)
    labels = (Heading("setting", "Graph"), Heading("system", "System"))
    return _table(OF_NETWORKS, printed, _GRAPHS, labels, headings, [*rows, *our_rows])


def _table(
    number: str,
    printed: PrintedTable,
    by: str,
    labels: tuple[Heading, ...],
    headings: tuple[Heading, ...],
    rows: Sequence[TableRow],
) -> Table:
    caption, notes = _CAPTION.format(by=by), (f"{printed.where} of the paper",)
    has_ours = any(row.source is Source.OURS for row in rows)
    words = DECLARED[number].words
    return Table(number, printed.title, caption, labels, headings, tuple(rows), notes, printed=words, fits=has_ours)


def with_sources(table: Table, *, with_paper: bool) -> Table:
    """With a label that says whose a row is; without the paper's rows if they are not wanted."""
    rows = tuple(
        replace(row, labels=(*row.labels, row.source.value))
        for row in table.rows
        if with_paper or row.source is Source.OURS
    )
    return replace(table, labels=(*table.labels, Heading("source", "Rows")), rows=rows)


def _systems(questions: Iterable[Asked]) -> list[str]:
    return sorted({question.system for question in questions}, key=natural)


def _share(rights: Sequence[float]) -> Cell:
    if not rights:
        return NOTHING
    return cell(f"{fmean(rights):.3f}", Interval(*wilson(sum(rights), len(rights))))
