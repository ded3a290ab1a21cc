"""The paper's tables of pass@1: printed rows, and rows of our runs below them.

The paper's questions have one right answer and are about programs that are not public. Our rows are about the
questions of our pools that have one right answer too. Hence printed rows and ours are not about the same questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import comb
from typing import Final, NamedTuple, TypeVar

from calibrant.bench.answers.rates import Interval, Means, exact_mean, natural, normal_difference, wilson
from calibrant.bench.causim.verdict import METRICS
from calibrant.bench.core.metrics import Item
from calibrant.bench.papers import Paper, PrintedTable, group_answers, rate_cell, read_paper
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Source, Table, TableRow, cell
from calibrant.bench.report.rows import NamedAnswer
from calibrant.dsl.causim.generated_functions import NOISE_WORDS, VALUE_WORDS
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.networks import NETWORKS
from calibrant.dsl.causim.prompt import View
from calibrant.dsl.errors import CalibrantError, short_repr

# --- Questions that each of the paper's tables is about ---------------------------------------------------------------
NIHSS: Final = "nihss"
MEDICAL: Final = "medical"
NONSENSE: Final = "nonsense"
OTHER: Final = "other"
_TEXTS: Final = re.compile(r"'([^'\\\n]*)'|\"([^\"\\\n]*)\"")
GENERATED: Final = ("inverted_star", "chain", "layered")  # topologies of the paper's sets
OF_NIHSS: Final = "33"
OF_NETWORKS: Final = "25"
PASS_OF_NIHSS: Final = "34"
ASKED_KINDS: Final = ("counterfactual", "intervention")  # tables about "all" questions print the means of both


class ShownProgram(NamedTuple):
    """View and vocabulary of an item, read from the item itself.

    vocabulary: nonsense, medical or other, as `vocabulary_of` returns it
    """

    view: View | None
    vocabulary: str


def shown_programs(items: Mapping[Item, CausimItem]) -> dict[Item, ShownProgram]:
    """Return view and vocabulary of each item."""
    vocabularies: dict[str, str] = {}
    programs = {}
    for key, item in items.items():
        source = item.task.source
        if source not in vocabularies:
            vocabularies[source] = vocabulary_of(source)
        vocabulary = item.vocabulary if item.vocabulary != NONSENSE else vocabularies[source]
        programs[key] = ShownProgram(item.task.view, vocabulary)
    return programs


def vocabulary_of(source: str) -> str:
    """Return the vocabulary of the string literals of a program: medical, nonsense, or other.

    Records without a vocabulary are read as nonsense whatever their program is, so the literals decide.
    """
    texts = {text for pair in _TEXTS.findall(source) for text in pair}
    kinds = [kind for kind in (NONSENSE, MEDICAL) if not texts.isdisjoint((*VALUE_WORDS[kind], *NOISE_WORDS[kind]))]
    return kinds[0] if len(kinds) == 1 else OTHER


class QuestionFacts(NamedTuple):
    """Properties of a question that decide which tables it belongs to; None where unknown.

    view: code, or prose; vocabulary: of the values of its program
    """

    view: View | None
    vocabulary: str | None
    topology: str
    nodes: int
    scenario: str


class Declared(NamedTuple):
    """Questions that one table is about.

    vocabulary: None for any; nodes: numbers of nodes that have columns, empty for any; words: description in a caption
    """

    view: View
    vocabulary: str | None
    topologies: tuple[str, ...]
    nodes: range
    words: str

    def fits(self, facts: QuestionFacts) -> bool:
        """Return whether the table is about a question."""
        return (
            facts.scenario == "deterministic"
            and facts.view == self.view
            and (self.vocabulary is None or facts.vocabulary == self.vocabulary)
            and facts.topology in self.topologies
            and (not self.nodes or facts.nodes in self.nodes)
        )


_TO_TEN, _TO_NINE = range(1, 11), range(4, 10)
_PROGRAMS = Declared(
    "code", NONSENSE, GENERATED, _TO_TEN, "with one right answer; programs of 1 to 10 nodes, shown as code"
)
_MEDICAL = Declared("prose", MEDICAL, GENERATED, _TO_TEN, "with one right answer; medical prose, 1 to 10 nodes")
_STARS = Declared("prose", NONSENSE, GENERATED[:1], _TO_TEN, "nonsense prose, inverted stars of 1 to 10 nodes")
_SEVERAL = Declared("prose", NONSENSE, GENERATED, _TO_TEN, "nonsense prose of 1 to 10 nodes, topologies together")
DECLARED: dict[str, Declared] = {
    **dict.fromkeys(("3", "4", "5", "6"), _PROGRAMS),
    **dict.fromkeys(("11", "12", "13"), _MEDICAL),
    **dict.fromkeys(("17", "18", "19"), _STARS),
    **dict.fromkeys(("20", "21", "22"), _SEVERAL),
    OF_NETWORKS: Declared("code", None, tuple(NETWORKS), range(0), "programs of asia, cancer and survey"),
    OF_NIHSS: Declared("code", None, (NIHSS,), _TO_NINE, "programs of the NIH stroke scale, 4 to 9 nodes"),
    PASS_OF_NIHSS: Declared(
        "code", None, (NIHSS,), range(1, 10), "programs of the NIH stroke scale, 8 answers to each question"
    ),
}


# --- The paper's tables with our rows: by number of nodes, on built-in networks, on NIHSS -----------------------------


def paper() -> Paper:
    return read_paper("causim", Paper)


_CAPTION = "Share of right answers {by}. Ours: other questions with one right answer, Wilson's 95 %."
ANSWERS_OF_CELL: Final[Mapping[str, int]] = {
    # Tables 3 to 6: all 160 printed figures are rounded k/600 (20 programs x 3 topologies x 5 questions x 2 types).
    # Tables 12, 13 and 25: k/100; Table 11 is over both types, hence 200.
    **dict.fromkeys(("3", "4", "5", "6"), 600),
    "11": 200,
    **dict.fromkeys(("12", "13", OF_NETWORKS), 100),
}
NUM_TRIES: Final = 8  # k of pass@k in Table 34
INTERVALS: Final = "intervals beside printed rows"
_NODES, _GRAPHS = "by number of nodes", "on networks of the bnlearn repository"


class Level(NamedTuple):
    """Topology and number of nodes, the two parts of a stratum."""

    topology: str
    nodes: int


class Asked(NamedTuple):
    """Accuracy of a system on one question: the share of right answers to it.

    kind: type of the question; right: share of right answers, 0 to 1; samples: number of answers
    view: code or prose, as the prompt showed it; None if neither the item nor the score states it
    item: digest of the pool, and id of the question
    """

    system: str
    kind: str
    scenario: str
    level: Level
    right: float
    view: View | None = None
    vocabulary: str = NONSENSE
    samples: int = 1
    item: Item = ("", "")

    @property
    def pass_at_tries(self) -> float | None:
        """The unbiased estimate of pass@NUM_TRIES; None with fewer than NUM_TRIES answers."""
        wrong = self.samples - round(self.right * self.samples)
        if self.samples < NUM_TRIES:
            return None
        return 1 - comb(wrong, NUM_TRIES) / comb(self.samples, NUM_TRIES)

    @property
    def facts(self) -> QuestionFacts:
        """Facts for `Declared.fits`."""
        return QuestionFacts(self.view, self.vocabulary, self.level.topology, self.level.nodes, self.scenario)


def level_of(stratum: str) -> Level:
    """Return topology and number of nodes of a stratum such as `chain-4`; 0 nodes without a number at its end."""
    topology, _, nodes = stratum.rpartition("-")
    return Level(topology, int(nodes)) if nodes.isascii() and nodes.isdigit() else Level(stratum, 0)


def questions_asked(answers: Iterable[NamedAnswer], programs: Mapping[Item, ShownProgram] | None = None) -> list[Asked]:
    """Return the accuracy of each system on each question, in order of first occurrence.

    programs: view and vocabulary of the items that were read; those of other items are taken from the scores
    """
    groups = group_answers(answers, lambda answer: (answer.system, answer.context.pool_digest, answer.context.instance))
    questions = []
    for (system, *item), item_answers in groups.items():
        kind, _, scenario = item_answers[0].context.setting.partition("-")
        right = exact_mean(METRICS.success.rate(answer.score, "") or 0.0 for answer in item_answers)
        score, level = item_answers[0].score, level_of(item_answers[0].context.stratum)
        key = (item[0], item[1])
        from_score = ShownProgram(score.get("view"), str(score.get("vocabulary", NONSENSE)))
        view, vocabulary = (programs or {}).get(key, from_score)
        questions.append(Asked(system, kind, scenario, level, right, view, vocabulary, len(item_answers), key))
    return questions


class _OurRow(NamedTuple):
    """One of our rows: for each column, accuracy (or pass@k) by question."""

    labels: tuple[str, ...]
    columns: tuple[Mapping[Item, float], ...]


R = TypeVar("R", TableRow, _OurRow)


def paper_tables(questions: Iterable[Asked] = (), against: Sequence[str] = ()) -> tuple[Table, ...]:
    """Return the tables by ascending number: printed rows, then ours about the questions that the table is about.

    against: reference systems, printed or ours; further rows are the differences of other systems to them
    """
    question_list = list(questions)
    tables = [
        _on_networks(question_list, against)
        if number == OF_NETWORKS
        else _by_nodes(number, printed, question_list, against)
        for number, printed in paper().tables.items()
        if printed.questions or number in (OF_NETWORKS, PASS_OF_NIHSS)
    ]
    return tuple(sorted(tables, key=lambda table: int(table.id)))


def _by_nodes(number: str, printed: PrintedTable, questions: Sequence[Asked], against: Sequence[str]) -> Table:
    """Return a table whose columns are numbers of nodes; pass@k needs NUM_TRIES answers to each question."""
    is_pass = number == PASS_OF_NIHSS
    kinds = ASKED_KINDS if is_pass or printed.questions == "all" else (printed.questions,)
    matching = [q for q in questions if q.kind in kinds and DECLARED[number].fits(q.facts)]
    values = [(q, value) for q in matching if (value := q.pass_at_tries if is_pass else q.right) is not None]
    rows = [TableRow((row[0],), _printed_cells(number, row[1:]), Source.PAPER) for row in printed.rows]
    nodes = [int(column.removeprefix("nodes_")) for column in printed.columns]
    our_rows = []
    for system in _systems(question for question, _ in values):
        of_system = [(question, value) for question, value in values if question.system == system]
        columns = ({q.item: value for q, value in of_system if q.level.nodes == count} for count in nodes)
        our_rows.append(_OurRow((system,), tuple(columns)))
    headings = tuple(map(Heading, printed.columns, map(str, nodes)))
    return _table(number, _NODES, (Heading("system", "System"),), headings, rows, our_rows, against)


def _on_networks(questions: Sequence[Asked], against: Sequence[str]) -> Table:
    """Return the table on networks; the paper's columns before and after training are two rows here."""
    kinds = ("overall", "counterfactual", "intervention")
    declared = DECLARED[OF_NETWORKS]
    matching = [question for question in questions if question.kind in kinds[1:] and declared.fits(question.facts)]
    rows, our_rows = [], []
    for (graph,), figures in paper().tables[OF_NETWORKS].figures:
        for system in ("base", "trained"):
            cells = _printed_cells(OF_NETWORKS, [figures[f"{kind}_{system}"] for kind in kinds])
            rows.append(TableRow((graph, system.capitalize()), cells, Source.PAPER))
        on_graph = [question for question in matching if question.level.topology == graph.lower()]
        for system in _systems(on_graph):
            of_system = [question for question in on_graph if question.system == system]
            columns = ({q.item: q.right for q in of_system if kind in ("overall", q.kind)} for kind in kinds)
            our_rows.append(_OurRow((graph, system), tuple(columns)))
    headings = tuple(Heading(kind, kind.capitalize()) for kind in kinds)
    labels = (Heading("setting", "Graph"), Heading("system", "System"))
    return _table(OF_NETWORKS, _GRAPHS, labels, headings, rows, our_rows, against)


def _printed_cells(number: str, texts: Sequence[str]) -> tuple[Cell, ...]:
    """Return printed figures, with Wilson intervals if the number of answers of a cell is known."""
    answers = ANSWERS_OF_CELL.get(number)
    if answers is None:
        return tuple(map(Cell, texts))
    if number == OF_NETWORKS:  # overall is over both types of questions
        return tuple(_with_interval(text, 2 * answers if index == 0 else answers) for index, text in enumerate(texts))
    return tuple(_with_interval(text, answers) for text in texts)


def _with_interval(text: str, answers: int) -> Cell:
    share = float(text)
    return cell(text, Interval(*wilson(round(share * answers), answers)))  # the digits determine k of k/n


def _table(
    number: str,
    by: str,
    labels: tuple[Heading, ...],
    headings: tuple[Heading, ...],
    printed_rows: Sequence[TableRow],
    our_rows: Sequence[_OurRow],
    against: Sequence[str],
) -> Table:
    printed = paper().tables[number]
    caption, notes = _CAPTION.format(by=by), [f"{printed.where} of the paper"]
    if number in ANSWERS_OF_CELL:
        notes.append(f"{INTERVALS}: {ANSWERS_OF_CELL[number]} answers a cell, as their digits allow")
    rows = [
        *printed_rows,
        *(TableRow(row.labels, tuple(map(_share, row.columns))) for row in our_rows),
    ]
    if against:
        rows += [*_printed_increments(printed_rows, against), *_increments_of_ours(our_rows, against)]
        notes.append("A - B: increments over B; ours over the questions that both answered, normal 95 %")
    subject = DECLARED[number].words
    return Table(
        number,
        printed.title,
        caption,
        labels,
        headings,
        tuple(rows),
        tuple(notes),
        printed=subject,
        fits=bool(our_rows),
    )


def _printed_increments(rows: Sequence[TableRow], against: Sequence[str]) -> Iterator[TableRow]:
    """Yield printed rows minus the reference row, with as many digits as are printed."""
    for row, reference in _pairs(rows, against):
        texts = [(first.text, second.text) for first, second in zip(row.cells, reference.cells, strict=True)]
        cells = (Cell(f"{float(a) - float(b) + 0.0:+.{len(a.partition('.')[2])}f}") for a, b in texts)
        yield TableRow((*row.labels[:-1], f"{row.labels[-1]} - {reference.labels[-1]}"), tuple(cells), Source.PAPER)


def _increments_of_ours(rows: Sequence[_OurRow], against: Sequence[str]) -> Iterator[TableRow]:
    for row, reference in _pairs(rows, against):
        pairs = zip(row.columns, reference.columns, strict=True)
        cells = tuple(_increment(values, reference) for values, reference in pairs)
        yield TableRow((*row.labels[:-1], f"{row.labels[-1]} - {reference.labels[-1]}"), cells)


def _pairs(rows: Sequence[R], against: Sequence[str]) -> Iterator[tuple[R, R]]:
    """Yield each row with each row of a reference system whose labels before the system's are equal."""
    for reference in rows:
        for row in rows:
            is_compared = reference.labels[-1] in against and row.labels[-1] != reference.labels[-1]
            if is_compared and row.labels[:-1] == reference.labels[:-1]:
                yield row, reference


def _increment(values: Means, reference: Means) -> Cell:
    mean, interval, _ = normal_difference(values, reference)
    return NOTHING if mean is None else cell(f"{mean + 0.0:+.3f}", interval, signed=True)


def check_references(tables: Sequence[Table], against: Sequence[str], pools: Mapping[str, str]) -> None:
    """Raise `CalibrantError` for a reference system that is in no table.

    pools: pool name by system, of the systems that are in no table because the items of that pool were not read
    """
    systems = {row.labels[-1] for table in tables for row in table.rows if " - " not in row.labels[-1]}
    for name in against:
        if name not in systems and name in pools:
            raise CalibrantError(
                f"{short_repr(name)} is compared in the paper's tables, which need what its items show; "
                f"add the pool {pools[name]}: --pool POOL"
            )
        if name not in systems:
            names = ", ".join(sorted(systems, key=natural))
            raise CalibrantError(f"no system {short_repr(name)} to compare with; there are {names}")


def with_sources(table: Table, *, with_paper: bool) -> Table:
    """Return the table with a column that says whose each row is, with or without the paper's rows."""
    rows = tuple(
        replace(row, labels=(*row.labels, row.source.value))
        for row in table.rows
        if with_paper or row.source is Source.OURS
    )
    notes = tuple(note for note in table.notes if with_paper or not note.startswith(INTERVALS))
    return replace(table, labels=(*table.labels, Heading("source", "Rows")), rows=rows, notes=notes)


def _systems(questions: Iterable[Asked]) -> list[str]:
    return sorted({question.system for question in questions}, key=natural)


def _share(right_by_item: Mapping[Item, float]) -> Cell:
    return rate_cell((item, METRICS.unit(item[1]), right) for item, right in right_by_item.items())
