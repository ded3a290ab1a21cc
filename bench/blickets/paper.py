"""The tables of the blicket paper: printed rows, the items that they are about, and our rows beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from calibrant.audits.blickets.printed import PrintedTest, Sides, TwoByTwo
from calibrant.baselines.blickets.context import BEHAVIOURS, GRAPH, THRESHOLD, Behaviour
from calibrant.baselines.blickets.dialogue import BASE, CG, CG_DB, Prompting
from calibrant.bench.blickets import rates
from calibrant.bench.papers import Paper, PrintedTable, group_answers, rate_cell, read_paper
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Source, Table, TableRow, percent_cell
from calibrant.dsl.blickets.item import BlicketItem, Condition, Exposure, Form, SwitchBy
from calibrant.dsl.blickets.score import Exposed

# --- Conditions for which the paper prints statistics, and the items under them ---------------------------------------


def _is_switched(item: BlicketItem, form: Form, size: int, switch: int) -> bool:
    """Return whether a conjunctive pair becomes, after `switch` activations, a disjoint rule of that form and size."""
    if item.condition is not Condition.MODERATOR or len(item.sealed.mechanisms) != 2 or item.task.n != 5:
        return False
    sealed = item.sealed
    if sealed.switch_by is not SwitchBy.ACTIVATIONS or sealed.exposure != Exposure() or item.task.graded:
        return False
    first, second = (mechanism.rule.canonical for mechanism in sealed.mechanisms)
    return (
        sealed.switches == (switch,)
        and first.form is Form.CONJUNCTIVE
        and (first.blickets.bit_count(), second.form, second.blickets.bit_count()) == (2, form, size)
        and not first.blickets & second.blickets
    )


def is_easy(item: BlicketItem, switch: int) -> bool:
    """Return whether any single one of the others suffices after `switch` activations, with a budget of 75 moves."""
    return _is_switched(item, Form.DISJUNCTIVE, 1, switch) and item.task.budget == 75


def is_hard(item: BlicketItem) -> bool:
    """Return whether the other three objects are all needed after three activations, with any budget."""
    return _is_switched(item, Form.CONJUNCTIVE, 3, 3)


def is_stochastic(item: BlicketItem) -> bool:
    """Return whether it is an unreliable detector of five objects, p = .7."""
    return item.condition is Condition.STOCHASTIC and item.sealed.p == 0.7 and item.task.n == 5


def is_order(item: BlicketItem) -> bool:
    """Return whether an order matters among four objects."""
    return item.condition is Condition.ORDER and item.task.n == 4


# --- Items that the paper's tables are about, in words ----------------------------------------------------------------
_FIVE = "five objects, all of a pair needed at first"
_EASY = f"{_FIVE}; after N activations any single one is enough; 75 moves"
_HARD = f"{_FIVE}; after N = 3 activations the three others are needed"
PRINTED_BUDGETS = (75, 50)  # of Table 8

WORDS = {
    "5a": f"{_EASY}; N = 3",
    "5b": f"{_EASY}; N = 3",
    "6": f"{_HARD}; 75 moves",
    "F2": f"{_HARD}; 75 moves",
    "7": "the easy and the hard switch (N = 3, 75 moves), unreliable detectors of five objects with p = 0.7, and orders"
    " of four objects",
    "8": f"{_HARD}; 75 or 50 moves",
    "9": f"{_EASY}; N = 3 or 5; agents whose behaviours are recorded",
    "10": f"{_HARD}; 75 moves",
    "11": f"{_EASY}; N = 5",
}


# --- Statistics that the paper prints, with their locations in it; nothing here is computed ---------------------------


class PrintedComparison(msgspec.Struct, frozen=True):
    """Comparison of the paper, as printed.

    counts: successes and failures of the first, then of the second; p, h, odds_ratio (with its interval): as printed
    """

    name: str
    counts: tuple[int, int, int, int]
    p: str
    sides: Sides
    h: str | None = None
    odds_ratio: tuple[str, str, str] | None = None

    @property
    def test(self) -> PrintedTest:
        return PrintedTest(self.name, TwoByTwo(*self.counts), self.p, self.sides)


class PrintedStrata(msgspec.Struct, frozen=True):
    """A comparison over several tables of counts."""

    name: str
    strata: list[tuple[int, int, int, int]]
    p: str
    odds_ratio: tuple[str, str, str]


class PrintedOdds(msgspec.Struct, frozen=True):
    """Posterior odds that the first rate is the greater one."""

    name: str
    counts: tuple[int, int, int, int]
    odds: str


class BlicketPaper(Paper, frozen=True, kw_only=True):
    """Printed tables, and the paper's tests on them; `-`: not printed, or not run."""

    tests: list[PrintedComparison]
    stratified: PrintedStrata
    posterior_odds: PrintedOdds


def paper() -> BlicketPaper:
    return read_paper("blickets", BlicketPaper)


# --- Tables 5 to 11 of the blicket paper: rates recomputed from the printed counts, with our rows beside them ---------
NOT_PRINTED = "-"
OURS = "ours"  # in place of the paper's number of a run


class PlayedEpisode(NamedTuple):
    """One graded episode of one of our rows.

    fired: whether dynamic behaviour DB4 fired; None for agents without behaviours
    suite: name of the plan that the item was sampled from, or empty
    pool: digest of the item's pool
    """

    agent: str
    item: BlicketItem
    grade: rates.Graded
    fired: bool | None = None
    suite: str = ""
    pool: str = ""


def paper_tables(our_episodes: Iterable[PlayedEpisode] = ()) -> tuple[Table, ...]:
    """Return all tables, each with our episodes under its condition."""
    episodes = list(our_episodes)
    tables = (
        _count_table("5a", episodes, lambda item: is_easy(item, 3)),
        _count_table("5b", episodes, lambda item: is_easy(item, 3)),
        _count_table("6", episodes, lambda item: is_hard(item) and item.task.budget == 75),
        _condition_table(episodes),
        _class_table(episodes),
        _count_table("8", episodes, lambda item: is_hard(item) and item.task.budget in PRINTED_BUDGETS),
        _detection_table(episodes),
        _error_table(episodes),
        _count_table("11", episodes, lambda item: is_easy(item, 5)),
    )
    return tuple(
        replace(table, printed=WORDS[table.id], fits=any(row.source is Source.OURS for row in table.rows))
        for table in tables
    )


# --- counts and rates: 5a, 5b, 6, 8, 11 -------------------------------------------------------------------------------

_COUNTED = (
    Heading("episodes", "Episodes"),
    Heading("correct", "Correct"),
    Heading("accuracy", "Accuracy"),
    Heading("eligible", "RE"),
    Heading("eligible_rate", "RE rate"),
    Heading("eligible_correct", "RE correct"),
    Heading("eligible_accuracy", "RE accuracy"),
    Heading("exactly_n", "Exactly N"),
    Heading("exactly_n_rate", "Exactly-N rate"),
    Heading("switch_rate", "Switch rate"),
    Heading("switched_accuracy", "All switched"),
)
_COUNTED_CAPTION = (
    "Rates in percent: of the paper from its counts, of ours over items, of which several episodes count by their mean."
    " An episode without an answer is not correct."
    " RE: episodes with more than N activations; exactly N: with N of them; switch rate: with N or more."
    " All switched: accuracy over both together, whose denominator the agent does not choose after the switch."
)


def _count_table(number: str, our_episodes: Sequence[PlayedEpisode], belongs: Callable[[BlicketItem], bool]) -> Table:
    printed = paper().tables[number]
    rows = [TableRow(tuple(labels), _count_cells(counts), Source.PAPER) for labels, counts in printed_counts(number)]
    for labels, episodes in _by_labels(printed, (e for e in our_episodes if belongs(e.item))):
        rows.append(TableRow(labels, _count_cells(rates.count_classes(e.grade for e in episodes), episodes)))
    notes = [paper().where(number)]
    if number == "8":
        notes.append("The exactly-N count of Base at 50 steps is not printed; appendix B.3 implies 5.")
    return Table(number, printed.title, _COUNTED_CAPTION, _labels(printed), _COUNTED, tuple(rows), tuple(notes))


def printed_counts(number: str) -> list[tuple[list[str], rates.Counts]]:
    """Return labels and counts of the rows of a printed table."""
    rows = []
    for labels, figures in paper().tables[number].figures:
        values = {column: _count(text) for column, text in figures.items()}
        episodes, correct = values["n"], values["correct"]
        assert episodes is not None
        assert correct is not None
        rows.append(
            ([*labels], rates.Counts(episodes, correct, values["re"], values["re_correct"], values["exactly_n"]))
        )
    return rows


def _count(text: str) -> int | None:
    return None if text == NOT_PRINTED else int(text)


def _count_cells(counts: rates.Counts, episodes: Sequence[PlayedEpisode] = ()) -> tuple[Cell, ...]:
    """Return cells of counts and rates; episodes: those of our rows, whose rates are means over items."""

    def percent(name: str) -> Cell:
        return _rate_cell(episodes, RATES[name]) if episodes else share_cell(getattr(counts, name))

    return (
        Cell(str(counts.episodes)),
        Cell(str(counts.correct)),
        percent("accuracy"),
        _number(counts.eligible),
        percent("eligible_rate"),
        _number(counts.eligible_correct),
        percent("eligible_accuracy"),
        _number(counts.exactly_n),
        percent("exactly_n_rate"),
        percent("switch_rate"),
        percent("switched_accuracy"),
    )


def _rate_cell(episodes: Iterable[PlayedEpisode], read: Callable[[PlayedEpisode], bool | None]) -> Cell:
    """Return a rate over items in percent; several episodes of an item count with their mean."""
    return rate_cell(
        (((e.pool, e.item.id), e.item.id, None if (value := read(e)) is None else float(value)) for e in episodes),
        lambda rate: percent_cell(rate.mean, rate.interval),
    )


def _is_exposed(*classes: Exposed) -> Callable[[PlayedEpisode], bool | None]:
    return lambda episode: None if episode.grade.exposed is None else episode.grade.exposed in classes


def _right_if_exposed(*classes: Exposed) -> Callable[[PlayedEpisode], bool | None]:
    return lambda episode: _is_right(episode) if episode.grade.exposed in classes else None


def _is_right(episode: PlayedEpisode) -> bool:
    return episode.grade.correct is True


RATES: Mapping[str, Callable[[PlayedEpisode], bool | None]] = {
    "accuracy": _is_right,
    "eligible_rate": _is_exposed(Exposed.RE),
    "eligible_accuracy": _right_if_exposed(Exposed.RE),
    "exactly_n_rate": _is_exposed(Exposed.EXACTLY_N),
    "switch_rate": _is_exposed(Exposed.EXACTLY_N, Exposed.RE),
    "switched_accuracy": _right_if_exposed(Exposed.EXACTLY_N, Exposed.RE),
}


def _number(count: int | None) -> Cell:
    return NOTHING if count is None else Cell(str(count))


def share_cell(share: rates.Share | None, *, with_interval: bool = False) -> Cell:
    """Return a share in percent with one decimal; an empty cell without episodes."""
    if share is None or not share.total:
        return NOTHING
    return percent_cell(share.rate, share.interval) if with_interval else Cell(f"{100 * share.rate:.1f}")


# --- Figure 2: classes ------------------------------------------------------------------------------------------------

CLASSES = {
    "pre_right": "Pre-switch right",
    "pre_wrong": "Pre-switch wrong",
    "exactly_n": "Exactly N",
    "re_right": "RE right",
    "re_wrong": "RE wrong",
}


def _class_table(our_episodes: Sequence[PlayedEpisode]) -> Table:
    """Return Figure 2 as counts: those that follow from the printed Table 6, and our episodes."""
    rows = [TableRow(tuple(labels), _class_cells(counts), Source.PAPER) for labels, counts in printed_counts("6")]
    for agent, episodes in _by_agent(e for e in our_episodes if is_hard(e.item) and e.item.task.budget == 75):
        rows.append(TableRow((agent,), _class_cells(rates.count_classes(e.grade for e in episodes))))
    headings = tuple(Heading(key, text) for key, text in CLASSES.items())
    caption = "Episodes by class. The paper counts no wrong answer before the switch and no right one at exactly N."
    printed = paper().tables["6"]
    title = "Rule {C,D,E} after the switch by class (Figure 2)"
    return Table("F2", title, caption, _labels(printed), headings, tuple(rows), (paper().where("6"),))


def _class_cells(counts: rates.Counts) -> tuple[Cell, ...]:
    pre, eligible, correct = counts.pre_switch, counts.eligible, counts.eligible_correct
    if pre is None or eligible is None or correct is None:
        return (NOTHING,) * len(CLASSES)
    return tuple(_number(number) for number in (*pre, counts.exactly_n, correct, eligible - correct))


# --- 7: agents by condition -------------------------------------------------------------------------------------------

_CONDITIONS: tuple[tuple[str, Callable[[BlicketItem], bool], str], ...] = (
    ("hidden moderator, easy, raw accuracy", lambda item: is_easy(item, 3), "accuracy"),
    (
        "hidden moderator, hard, RE accuracy",
        lambda item: is_hard(item) and item.task.budget == 75,
        "eligible_accuracy",
    ),
    ("stochastic p=0.70, raw accuracy (30 each)", is_stochastic, "accuracy"),
    ("order, 4 objects, raw accuracy (30 each)", is_order, "accuracy"),
)
PRINTED_AGENTS = ("Base", "CG", "CG+DB")


def _condition_table(our_episodes: Sequence[PlayedEpisode]) -> Table:
    printed = paper().tables["7"]
    rows: list[TableRow] = []
    our_rows: list[TableRow] = []
    for line, (condition, belongs, rate) in zip(printed.rows, _CONDITIONS, strict=True):
        assert line[0] == condition
        rows += [
            TableRow((condition, agent), (Cell(text) if text != NOT_PRINTED else NOTHING,), Source.PAPER)
            for agent, text in zip(PRINTED_AGENTS, line[1:], strict=True)
        ]
        for agent, episodes in _by_agent(e for e in our_episodes if belongs(e.item)):
            named = condition.partition(" (")[0]  # without the number of printed episodes
            our_rows.append(TableRow((named, agent), (_rate_cell(episodes, RATES[rate]),)))
    caption = (
        "Percent correct, of all episodes or of those that the condition's name says; an episode without an answer is"
        " not correct."
    )
    labels = (Heading("condition", "Condition"), Heading("agent", "Agent"))
    headings, notes = (Heading("percent", "Percent"),), (paper().where("7"),)
    return Table("7", printed.title, caption, labels, headings, (*rows, *our_rows), notes)


# --- 9: detection by DB4; 10: errors ----------------------------------------------------------------------------------

_DETECTED = (
    Heading("switched", "Switched"),
    Heading("firings", "Firings"),
    Heading("true", "True"),
    Heading("false", "False"),
    Heading("missed", "Missed"),
    Heading("sensitivity", "Sensitivity"),
    Heading("precision", "PPV"),
)


def printed_detections() -> list[tuple[list[str], rates.Detections]]:
    """Return the rows of Table 9, the printed total last."""
    return [(row[:3], rates.Detections(*(int(text) for text in row[3:]))) for row in paper().tables["9"].rows]


def _detection_table(our_episodes: Sequence[PlayedEpisode]) -> Table:
    printed = paper().tables["9"]
    rows = [TableRow(tuple(labels), _detection_cells(d), Source.PAPER) for labels, d in printed_detections()]
    for switch in (3, 5):
        for agent, episodes in _by_agent(e for e in our_episodes if e.fired is not None and is_easy(e.item, switch)):
            detections = rates.count_detections((e.grade, bool(e.fired)) for e in episodes)
            rows.append(TableRow((agent, "5", str(switch)), _detection_cells(detections, episodes)))
    caption = (
        "True: DB4 fired in an RE episode with a correct answer; false: any other firing; missed: RE, correct, no"
        " firing. Sensitivity: true of true and missed; PPV: true of all firings. Percent."
    )
    return Table("9", printed.title, caption, _labels(printed), _DETECTED, tuple(rows), (paper().where("9"),))


def _detection_cells(detections: rates.Detections, episodes: Sequence[PlayedEpisode] = ()) -> tuple[Cell, ...]:
    positives = detections.true_positives, detections.false_positives
    counts = (detections.switched, detections.firings, *positives, detections.false_negatives)
    if episodes:
        shares = [_rate_cell(episodes, read) for read in (_detected_if_right, _right_if_fired)]
    else:
        shares = [share_cell(detections.sensitivity), share_cell(detections.precision)]
    return (*(Cell(str(count)) for count in counts), *shares)


def _detected_if_right(episode: PlayedEpisode) -> bool | None:
    return bool(episode.fired) if _right_if_exposed(Exposed.RE)(episode) else None


def _right_if_fired(episode: PlayedEpisode) -> bool | None:
    return bool(_right_if_exposed(Exposed.RE)(episode)) if episode.fired else None


_ERRORS = (
    Heading("errors", "Errors"),
    Heading("exactly_n", "At exactly N"),
    Heading("eligible", "In RE"),
    Heading("detail", "What was wrong in RE"),
)


def _error_table(our_episodes: Sequence[PlayedEpisode]) -> Table:
    printed = paper().tables["10"]
    rows = [TableRow((row[0],), tuple(Cell(text) for text in row[1:]), Source.PAPER) for row in printed.rows]
    for agent, episodes in _by_agent(e for e in our_episodes if is_hard(e.item) and e.item.task.budget == 75):
        rows.append(TableRow((agent,), _error_cells(rates.count_errors(e.grade for e in episodes))))
    caption = (
        "Wrong and missing answers by class of episode. Errors that are in neither class were made before the switch."
    )
    return Table("10", printed.title, caption, _labels(printed), _ERRORS, tuple(rows), (paper().where("10"),))


def _error_cells(errors: rates.Errors) -> tuple[Cell, ...]:
    counts = (errors.errors, errors.exactly_n, errors.eligible)
    return (*(Cell(str(count)) for count in counts), Cell(errors.detail) if errors.detail else NOTHING)


# --- Common parts of all tables ---------------------------------------------------------------------------------------

_HEADINGS = {"agent": "Agent", "run": "Run", "steps": "Steps", "objects": "Objects", "switch_point": "N"}


def _labels(printed: PrintedTable) -> tuple[Heading, ...]:
    return tuple(Heading(key, _HEADINGS[key]) for key in printed.labels)


PRINTED_NAMES = {"base": "Base", "cg": "CG", "cg+db": "CG+DB"}
"""Our name of an agent -> the paper's name."""


def printed_name(agent: str) -> str:
    """Return the paper's name of our agent, with its options; the agent's own name if the paper lacks it."""
    name, separator, options = agent.partition(" (")
    return PRINTED_NAMES.get(name, name) + separator + options


def _by_agent(episodes: Iterable[PlayedEpisode]) -> Iterable[tuple[str, list[PlayedEpisode]]]:
    """Group episodes by agent, in the order in which agents first occur, under the paper's names."""
    return group_answers(episodes, lambda episode: printed_name(episode.agent)).items()


def _by_labels(
    printed: PrintedTable, episodes: Iterable[PlayedEpisode]
) -> Iterable[tuple[tuple[str, ...], list[PlayedEpisode]]]:
    """Group episodes by the table's labels, in the order in which they first occur."""

    def labels(episode: PlayedEpisode) -> tuple[str, ...]:
        texts = {"agent": printed_name(episode.agent), "steps": str(episode.item.task.budget), "run": OURS}
        return tuple(texts[key] for key in printed.labels)

    return group_answers(episodes, labels).items()


# --- Tables 1 to 4 of the blicket paper: agents, behaviours and classes, from the code; and the paper's runs ----------
AGENTS = (BASE, CG, CG_DB)
_ACTIVATIONS = {Exposed.PRE: "< N", Exposed.EXACTLY_N: "= N", Exposed.RE: "> N"}


def setup_tables() -> tuple[Table, ...]:
    """Return Tables 1, 2 and 3, generated from the code, and 4, with the paper's conclusions from its runs."""
    return _agents(), _behaviours(), _classes(), _runs()


def _agents() -> Table:
    def yes(values: list[bool]) -> list[str]:
        return ["yes" if value else "no" for value in values]

    graphs = [agent.start is not None for agent in AGENTS]
    extended = [bool(agent.behaviours) for agent in AGENTS]
    properties = {
        "task description in the system prompt": yes([True] * len(AGENTS)),
        "context graph": [_graph_text(agent) for agent in AGENTS],
        "state transitions declared by the agent": yes(graphs),
        "dynamic behaviours": [str(len(agent.behaviours)) if agent.behaviours else "no" for agent in AGENTS],
        "notices during the episode": yes(extended),
    }
    rows = tuple(TableRow((name,), tuple(map(Cell, cells))) for name, cells in properties.items())
    headings = tuple(Heading(agent.name, agent.name) for agent in AGENTS)
    return Table("1", "What the agents have", "", (Heading("property", "Property"),), headings, rows)


def _graph_text(agent: Prompting) -> str:
    if agent.start is None:
        return "no"
    states = f"{len(GRAPH.states)} states"
    return f"{states}, up to {len(agent.behaviours)} more" if agent.behaviours else states


def _behaviours() -> Table:
    headings = (
        Heading("state", "State (type)"),
        Heading("from", "From"),
        Heading("to", "To"),
        Heading("condition", "Condition"),
        Heading("min_steps", "Steps, at least"),
        Heading("fire_threshold", "Fires from"),
    )
    rows = tuple(TableRow((f"{b.key} {b.name}",), _behaviour_cells(b)) for b in BEHAVIOURS)
    return Table("2", "Dynamic behaviours", "", (Heading("behaviour", "Behaviour"),), headings, rows)


def _behaviour_cells(behaviour: Behaviour) -> tuple[Cell, ...]:
    texts = (
        f"{behaviour.state.name} ({behaviour.state.type})",
        ", ".join(behaviour.sources),
        ", ".join(behaviour.targets),
        behaviour.condition,
        str(behaviour.minimum),
        f"{THRESHOLD} of 10",
    )
    return tuple(map(Cell, texts))


def _classes() -> Table:
    rows = tuple(TableRow((str(name),), (Cell(text),)) for name, text in _ACTIVATIONS.items())
    return Table(
        "3",
        "Classes of episodes",
        "By the paper, all answers before the switch are right, and none at exactly N.",
        (Heading("class", "Class"),),
        (Heading("activations", "Activations"),),
        rows,
    )


def _runs() -> Table:
    table, headlines = paper().tables["4"], {row[0]: row[1] for row in paper().tables["4h"].rows}
    names = {"episodes": "Episodes", "condition": "Condition", "objects": "Objects", "agents": "Agents"}
    names |= {"manipulation": "Manipulation"}
    headings = (*(Heading(key, names[key]) for key in table.columns), Heading("headline", "Credited with"))
    rows = tuple(
        TableRow((row[0],), (*map(Cell, row[1:]), Cell(headlines[row[0]]) if row[0] in headlines else NOTHING))
        for row in table.rows
    )
    return Table("4", "Runs, and what they are credited with", "", (Heading("run", "Run"),), headings, rows)
