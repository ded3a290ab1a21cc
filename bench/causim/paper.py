"""The paper's tables of pass@1: printed figures, the items that they are about, and rows of runs beside them.

The paper's systems answered questions with one right answer about programs that are not public; ours answered those of
our pools that are labelled so. The figures stand side by side, they are not about the same questions.
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

# --- Items that the paper's tables are about: which questions belong beside their printed rows ------------------------
NIHSS: Final = "nihss"
MEDICAL: Final = "medical"
NONSENSE: Final = "nonsense"
OTHER: Final = "other"
_TEXTS: Final = re.compile(r"'([^'\\\n]*)'|\"([^\"\\\n]*)\"")
GENERATED: Final = ("inverted_star", "chain", "layered")  # topologies of the paper's sets
OF_NIHSS: Final = "33"
OF_NETWORKS: Final = "25"
PASS_OF_NIHSS: Final = "34"
ASKED_KINDS: Final = ("counterfactual", "intervention")  # of tables about all questions: they print the means of both


class ShownProgram(NamedTuple):
    """View and vocabulary of an item, from the item itself.

    vocabulary: as `vocabulary_of`
    """

    view: View | None
    vocabulary: str


def shown_programs(items: Mapping[Item, CausimItem]) -> dict[Item, ShownProgram]:
    """Return what each of these items shows; programs that items share are read once."""
    by_source: dict[str, str] = {}
    programs = {}
    for key, item in items.items():
        source = item.task.source
        if source not in by_source:
            by_source[source] = vocabulary_of(source)
        vocabulary = item.vocabulary if item.vocabulary != NONSENSE else by_source[source]
        programs[key] = ShownProgram(item.task.view, vocabulary)
    return programs


def vocabulary_of(source: str) -> str:
    """Return the vocabulary that the texts of a program are from: medical, nonsense, or other.

    A record without a vocabulary is read as nonsense, whatever its program is; the words tell.
    """
    texts = {text for pair in _TEXTS.findall(source) for text in pair}
    kinds = [kind for kind in (NONSENSE, MEDICAL) if not texts.isdisjoint((*VALUE_WORDS[kind], *NOISE_WORDS[kind]))]
    return kinds[0] if len(kinds) == 1 else OTHER


class QuestionFacts(NamedTuple):
    """Properties of a question on which printed rows depend; None where they are not known.

    view: code, or prose; vocabulary: of the values of its program
    """

    view: View | None
    vocabulary: str | None
    topology: str
    nodes: int
    scenario: str


class Declared(NamedTuple):
    """Items of one table.

    nodes: the numbers that it has columns for; empty for any
    """

    view: View
    vocabulary: str | None
    topologies: tuple[str, ...]
    nodes: range
    words: str

    def fits(self, facts: QuestionFacts) -> bool:
        """Return whether a question is one that the table is about."""
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


# --- The paper's tables of pass@1 that runs can stand beside: by number of nodes, on built-in networks, on NIHSS ------


def paper() -> Paper:
    return read_paper("causim", Paper)


_CAPTION = "Share of right answers {by}. Ours: other questions with one right answer, Wilson's 95 %."
ANSWERS_OF_CELL: Final[Mapping[str, int]] = {
    # 3 to 6: all 160 printed figures are k/600, rounded (20 programs x 3 topologies x 5 questions x 2); 12, 13, 25:
    # k/100, and 11 is over both types
    **dict.fromkeys(("3", "4", "5", "6"), 600),
    "11": 200,
    **dict.fromkeys(("12", "13", OF_NETWORKS), 100),
}
NUM_TRIES: Final = 8  # k of pass@k in Table 34
INTERVALS: Final = "intervals beside printed rows"
_NODES, _GRAPHS = "by number of nodes", "on networks of the bnlearn repository"


class Level(NamedTuple):
    """Topology and number of nodes, as a stratum states them."""

    topology: str
    nodes: int


class Asked(NamedTuple):
    """Accuracy of a system on one question: the share of right answers to it.

    kind, scenario: of the question
    view: of its prompt, None where neither the item nor the score states it; vocabulary: of its program's values
    samples: number of answers; item: digest of the pool and id
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


def questions_asked(answers: Iterable[NamedAnswer], programs: Mapping[Item, ShownProgram] | None = None) -> list[Asked]:
    """Return the accuracy of each system on each question, in the order in which they came.

    programs: what the items at hand show; of others a score states view and vocabulary, unless they are the usual ones
    """
    groups = group_answers(answers, lambda answer: (answer.system, answer.context.pool_digest, answer.context.instance))
    questions = []
    for (system, *item), group in groups.items():
        kind, _, scenario = group[0].context.setting.partition("-")
        right = exact_mean(METRICS.success.rate(answer.score, "") or 0.0 for answer in group)
        score, level = group[0].score, level_of(group[0].context.stratum)
        key = (item[0], item[1])
        usual = ShownProgram(score.get("view"), str(score.get("vocabulary", NONSENSE)))
        view, vocabulary = (programs or {}).get(key, usual)
        questions.append(Asked(system, kind, scenario, level, right, view, vocabulary, len(group), key))
    return questions


class _OurRow(NamedTuple):
    """Questions of a row of ours, by column."""

    labels: tuple[str, ...]
    columns: tuple[Mapping[Item, float], ...]


R = TypeVar("R", TableRow, _OurRow)


def paper_tables(questions: Iterable[Asked] = (), against: Sequence[str] = ()) -> tuple[Table, ...]:
    """Return all in the order of their numbers: printed rows, then ours about questions that fit the table.

    against: systems, printed or ours; the others minus these are rows below
    """
    unique = list(questions)
    tables = [
        _on_networks(unique, against) if number == OF_NETWORKS else _by_nodes(number, printed, unique, against)
        for number, printed in paper().tables.items()
        if printed.questions or number in (OF_NETWORKS, PASS_OF_NIHSS)
    ]
    return tuple(sorted(tables, key=lambda table: int(table.id)))


def _by_nodes(number: str, printed: PrintedTable, questions: Sequence[Asked], against: Sequence[str]) -> Table:
    """Return a table whose columns are numbers of nodes; for pass@k rows of ours need NUM_TRIES answers a question."""
    is_pass = number == PASS_OF_NIHSS
    kinds = ASKED_KINDS if is_pass or printed.questions == "all" else (printed.questions,)
    matching = [q for q in questions if q.kind in kinds and DECLARED[number].fits(q.facts)]
    values = [(q, value) for q in matching if (value := q.pass_at_tries if is_pass else q.right) is not None]
    rows = [TableRow((row[0],), _printed_cells(number, row[1:]), Source.PAPER) for row in printed.rows]
    nodes = [int(column.removeprefix("nodes_")) for column in printed.columns]
    counted = []
    for system in _systems(question for question, _ in values):
        of_system = [(question, value) for question, value in values if question.system == system]
        columns = ({q.item: value for q, value in of_system if q.level.nodes == count} for count in nodes)
        counted.append(_OurRow((system,), tuple(columns)))
    headings = tuple(map(Heading, printed.columns, map(str, nodes)))
    return _table(number, _NODES, (Heading("system", "System"),), headings, rows, counted, against)


def _on_networks(questions: Sequence[Asked], against: Sequence[str]) -> Table:
    """Return a printed table with the paper's columns before and after training as two rows."""
    kinds = ("overall", "counterfactual", "intervention")
    declared = DECLARED[OF_NETWORKS]
    matching = [question for question in questions if question.kind in kinds[1:] and declared.fits(question.facts)]
    rows, counted = [], []
    for (graph,), figures in paper().tables[OF_NETWORKS].figures:
        for system in ("base", "trained"):
            cells = _printed_cells(OF_NETWORKS, [figures[f"{kind}_{system}"] for kind in kinds])
            rows.append(TableRow((graph, system.capitalize()), cells, Source.PAPER))
        on_graph = [question for question in matching if question.level.topology == graph.lower()]
        for system in _systems(on_graph):
            of_system = [question for question in on_graph if question.system == system]
            columns = ({q.item: q.right for q in of_system if kind in ("overall", q.kind)} for kind in kinds)
            counted.append(_OurRow((graph, system), tuple(columns)))
    headings = tuple(Heading(kind, kind.capitalize()) for kind in kinds)
    labels = (Heading("setting", "Graph"), Heading("system", "System"))
    return _table(OF_NETWORKS, _GRAPHS, labels, headings, rows, counted, against)


def _printed_cells(number: str, texts: Sequence[str]) -> tuple[Cell, ...]:
    """Return printed figures, with Wilson intervals where the printed digits tell the number of answers."""
    answers = ANSWERS_OF_CELL.get(number)
    if answers is None:
        return tuple(map(Cell, texts))
    if number == OF_NETWORKS:  # overall is over both types of questions
        return tuple(_with_interval(text, 2 * answers if index == 0 else answers) for index, text in enumerate(texts))
    return tuple(_with_interval(text, answers) for text in texts)


def _with_interval(text: str, answers: int) -> Cell:
    share = float(text)
    return cell(text, Interval(*wilson(round(share * answers), answers)))  # the digits tell the whole number


def _table(
    number: str,
    by: str,
    labels: tuple[Heading, ...],
    headings: tuple[Heading, ...],
    printed_rows: Sequence[TableRow],
    counted: Sequence[_OurRow],
    against: Sequence[str],
) -> Table:
    printed = paper().tables[number]
    caption, notes = _CAPTION.format(by=by), [f"{printed.where} of the paper"]
    if number in ANSWERS_OF_CELL:
        notes.append(f"{INTERVALS}: {ANSWERS_OF_CELL[number]} answers a cell, as their digits allow")
    rows = [
        *printed_rows,
        *(TableRow(row.labels, tuple(map(_share, row.columns))) for row in counted),
    ]
    if against:
        rows += [*_printed_increments(printed_rows, against), *_increments_of_ours(counted, against)]
        notes.append("A - B: increments over B; ours over the questions that both answered, normal 95 %")
    words = DECLARED[number].words
    return Table(
        number, printed.title, caption, labels, headings, tuple(rows), tuple(notes), printed=words, fits=bool(counted)
    )


def _printed_increments(rows: Sequence[TableRow], against: Sequence[str]) -> Iterator[TableRow]:
    """Yield printed rows minus the reference, in the printed digits."""
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
    """Yield each row with every reference that has its other labels."""
    for reference in rows:
        for row in rows:
            is_compared = reference.labels[-1] in against and row.labels[-1] != reference.labels[-1]
            if is_compared and row.labels[:-1] == reference.labels[:-1]:
                yield row, reference


def _increment(values: Means, reference: Means) -> Cell:
    mean, interval, _ = normal_difference(values, reference)
    return NOTHING if mean is None else cell(f"{mean + 0.0:+.3f}", interval, signed=True)


def check_references(tables: Sequence[Table], against: Sequence[str], pools: Mapping[str, str]) -> None:
    """Refuse a system to compare with that no table has.

    pools: names of pools by systems whose answers are in no table of the paper because their items are not read
    """
    systems = {row.labels[-1] for table in tables for row in table.rows if " - " not in row.labels[-1]}
    for name in against:
        if name not in systems and name in pools:
            raise CalibrantError(
                f"{short_repr(name)} is compared in the paper's tables, which need what its items show; "
                f"add the pool {pools[name]}: --pool POOL"
            )
        if name not in systems:
            listed = ", ".join(sorted(systems, key=natural))
            raise CalibrantError(f"no system {short_repr(name)} to compare with; there are {listed}")


def with_sources(table: Table, *, with_paper: bool) -> Table:
    """With a label that says whose a row is; without the paper's rows if they are not wanted."""
    rows = tuple(
        replace(row, labels=(*row.labels, row.source.value))
        for row in table.rows
        if with_paper or row.source is Source.OURS
    )
    notes = tuple(note for note in table.notes if with_paper or not note.startswith(INTERVALS))
    return replace(table, labels=(*table.labels, Heading("source", "Rows")), rows=rows, notes=notes)


def _systems(questions: Iterable[Asked]) -> list[str]:
    return sorted({question.system for question in questions}, key=natural)


def _share(rights: Mapping[Item, float]) -> Cell:
    return rate_cell((item, METRICS.unit(item[1]), right) for item, right in rights.items())
