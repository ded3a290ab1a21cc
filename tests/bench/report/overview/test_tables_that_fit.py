"""Under a printed table stand only systems that answered items which it is about: random runs, every benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.bench.blickets.report import blicket_tables
from calibrant.bench.causalab.paper import paper_tables as lab_tables
from calibrant.bench.causim.paper import ShownProgram, questions_asked
from calibrant.bench.causim.paper import paper_tables as question_tables
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.replayscm.report import report_tables
from calibrant.bench.report.layout import Source, Table
from calibrant.bench.report.rows import named_answers
from calibrant.bench.report.sections import ReportContents
from tests.support.report_rows import Answers, answer, graded, rows_of

SYSTEMS = ("mine", "yours")
LAB_SUITES = ("3nodes", "4nodes", "6nodes", "4nodes_quad_hard", "4nodes_golden", "4nodes_hidden_n1", "my own")
LAB_SCORE = {"activated": 1.0, "accuracy": 1.0, "settings": 3, "all_edge_f1": 0.5, "shd": 2, "imec": 4}


def our_systems(tables: Iterable[Table]) -> dict[str, set[str]]:
    """Systems with rows of ours, by table; and no row of ours where a table does not fit."""
    found = {}
    for table in tables:
        rows = [row for row in table.rows if row.source is Source.OURS and row.fits]
        assert bool(rows) == table.fits, table.id
        found[table.id] = {label for row in rows for label in row.labels if label in SYSTEMS}
    return found


def lab_expectation(number: str, suite: str, stratum: str) -> bool:
    """Return whether a table of the paper is about a suite, read off the paper's captions."""
    nodes = {"3nodes": 3, "6nodes": 6}.get(suite, 4)
    if suite == "my own" or stratum != f"{nodes} nodes":
        return False
    about = {
        "3": ("4nodes", "4nodes_quad_hard"),
        "4": ("4nodes", "4nodes_hidden_n1"),
        "5": ("4nodes", "6nodes"),
        "6": ("4nodes", "6nodes", "4nodes_golden"),
        "7": ("3nodes", "4nodes", "6nodes"),
        "8": ("3nodes", "4nodes"),
        "9": ("4nodes",),  # by budget, whatever it is: it stands in the row
        "10": ("6nodes",),
        "11": ("4nodes",),
        "12": ("6nodes",),
    }
    return suite in about.get(number, ())


@given(
    st.lists(
        st.tuples(st.sampled_from(SYSTEMS), st.sampled_from(LAB_SUITES), st.sampled_from(("3", "4", "6"))),
        min_size=1,
        max_size=8,
    )
)
@settings(deadline=None)
def test_laboratories(answers: list[tuple[str, str, str]]) -> None:
    named = named_answers(
        (AnswerContext(s, "p", "d", 9, f"i{k}", suite, f"{nodes} nodes", benchmark="causalab"), LAB_SCORE)
        for k, (s, suite, nodes) in enumerate(answers)
    )
    for number, systems in our_systems(lab_tables(named)).items():
        assert systems == {s for s, suite, nodes in answers if lab_expectation(number, suite, f"{nodes} nodes")}


TOPOLOGIES = ("chain", "layered", "inverted_star", "star", "asia", "nihss", "other")
KINDS = ("counterfactual", "intervention", "deduction")


def question_expectation(
    number: str, kind: str, scenario: str, topology: str, nodes: int, view: str | None, words: str
) -> bool:
    """Return whether a table is about a question, read off the paper's captions."""
    if scenario != "deterministic" or view is None or kind not in ("counterfactual", "intervention"):
        return False
    if number in ("3", "5", "12", "18", "21") and kind != "counterfactual":
        return False
    if number in ("4", "6", "13", "19", "22") and kind != "intervention":
        return False
    if number == "25":
        return view == "code" and topology == "asia"
    if number == "33":
        return view == "code" and topology == "nihss" and 4 <= nodes <= 9
    if number == "34" or not 1 <= nodes <= 10:
        return False  # 34: eight answers to each question
    shown = "code" if number in ("3", "4", "5", "6") else "prose"
    vocabulary = "medical" if number in ("11", "12", "13") else "nonsense"
    topologies = ("inverted_star",) if number in ("17", "18", "19") else ("chain", "layered", "inverted_star")
    return (view, words) == (shown, vocabulary) and topology in topologies


@given(
    st.lists(
        st.tuples(
            st.sampled_from(SYSTEMS),
            st.sampled_from(KINDS),
            st.sampled_from(("deterministic", "stochastic")),
            st.sampled_from(TOPOLOGIES),
            st.integers(1, 12),
            st.sampled_from(("code", "prose", None)),
            st.sampled_from(("nonsense", "medical")),
        ),
        min_size=1,
        max_size=8,
    )
)
@settings(deadline=None)
def test_questions(answers: list[Any]) -> None:
    programs, contexts = {}, []
    for k, (system, kind, scenario, topology, nodes, view, words) in enumerate(answers):
        setting, stratum = f"{kind}-{scenario}", f"{topology}-{nodes:02}"
        context = AnswerContext(system, "p", "d", 9, f"i{k}", setting, stratum, benchmark="causim")
        contexts.append((context, {"correct": True, "vocabulary": words}))
        if view is not None:
            programs["d", f"i{k}"] = ShownProgram(view, words)
    tables = question_tables(questions_asked(named_answers(contexts), programs))
    for number, systems in our_systems(tables).items():
        assert systems == {s for s, *facts in answers if question_expectation(number, *facts)}, number


DETECTOR_SUITES: dict[str, tuple[str, tuple[str, ...]]] = {  # suite: its condition, and the tables that are about it
    "easy-3": ("moderator", ("5a", "5b", "7")),
    "easy-5": ("moderator", ("11",)),
    "hard-3": ("moderator", ("6", "F2", "7", "8", "10")),
    "stochastic": ("stochastic", ("7",)),
    "order-3-of-4": ("order", ("7",)),
    "order": ("order", ()),  # of five objects
    "conjunctive": ("conjunctive", ()),
    "my own": ("moderator", ()),
}


@given(st.lists(st.tuples(st.sampled_from(SYSTEMS), st.sampled_from(sorted(DETECTOR_SUITES))), min_size=1, max_size=8))
@settings(deadline=None)
def test_detectors(answers: list[tuple[str, str]]) -> None:
    contexts = []
    for k, (system, suite) in enumerate(answers):
        setting, _ = DETECTOR_SUITES[suite]
        context = AnswerContext(system, "p", "d", 9, f"i{k}", setting, suite, benchmark="blickets")
        contexts.append((context, graded(exposed="RE")))
    tables = [table for table in blicket_tables(contexts, ReportContents(), {}) if table.printed]
    for number, systems in our_systems(tables).items():
        if number == "9":
            assert systems == set()  # about agents whose behaviours are recorded
        else:
            assert systems == {s for s, suite in answers if number in DETECTOR_SUITES[suite][1]}, number


@given(
    st.lists(
        st.tuples(
            st.sampled_from(SYSTEMS),
            st.sampled_from(("Ordered", "Block", "Hidden-order", "Ordered+noise")),
            st.sampled_from(("hs_n8_bridge", "t1_clean_hard", "", "my own stratum")),
        ),
        min_size=1,
        max_size=4,
        unique_by=lambda line: line[:2],
    )
)
@settings(deadline=None, max_examples=25)
def test_scms(answers: list[tuple[str, str, str]]) -> None:
    """Official pools apart, what fits is drawn in the published strata, under a published disclosure."""
    made = [
        Answers(s, [answer(1, 1, 1.0)] * 2, setting=setting, stratum=stratum, pool=f"{s} {setting}")
        for s, setting, stratum in answers
    ]
    fitting = {
        (s, setting)
        for s, setting, stratum in answers
        if stratum in ("hs_n8_bridge", "t1_clean_hard") and setting != "Ordered+noise"
    }
    tables = {table.id: table for table in report_tables(rows_of(*made), ReportContents())}
    core = tables["1"]
    assert {row.labels[1::-1] for row in core.rows if row.source is Source.OURS and row.fits} == fitting
    assert core.fits == bool(fitting)
    names = {"Ordered": "Ord-Full", "Block": "Block", "Hidden-order": "Hid-Full"}
    printed = {row.labels[0] for row in core.rows if row.source is Source.PAPER}
    assert printed == ({names[setting] for _, setting in fitting} if fitting else set(names.values()))


@pytest.mark.parametrize("make", [lambda: lab_tables([]), lambda: question_tables()])
def test_every_printed_table_states_its_items(make: Callable[[], tuple[Table, ...]]) -> None:
    tables = make()
    assert tables
    assert all(table.printed and not table.fits for table in tables)
