"""Candidates judged from their texts in compiled code: the same as the parser, the statistics and replay say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.dsl.formulas.formula import OPERATORS, Formula
from calibrant.dsl.formulas.table import full_mask, projection
from calibrant.dsl.formulas.text import Grammar, parse, render
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.evaluator import MAX_CANDIDATE_CHARS, MAX_WORD_VARS, Judge
from calibrant.dsl.replayscm.reference import replay_world
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.submission import MANY, NOVELTY, JudgedMechanism, mechanism_stats
from calibrant.dsl.replayscm.world import Panel, World
from calibrant.dsl.text import natural_key
from tests.support.replayscm.strategies import arbitrary_worlds, scms
from tests.support.replayscm.written import written_problem, written_scm, written_world

GRAMMAR = Grammar(tuple(OPERATORS))


def _judge(model: Scm, panel: Panel) -> tuple[Judge, tuple[str, ...], tuple[str, ...]]:
    """For its own endogenous variables, in any order that is not told; variables as bits, and the order of places."""
    variables = tuple(sorted(model.variables, key=natural_key))
    order = tuple(sorted(model.mechanisms, key=natural_key, reverse=True))
    parents = {variable: frozenset(variables) - {variable} for variable in order}
    return Judge(variables, order, GRAMMAR, parents, panel), variables, order


def _checked(model: Scm, worlds: tuple[World, ...]) -> None:
    panel = Panel(model.variables, worlds)
    judge, variables, order = _judge(model, panel)
    verdict = judge.judge([f" {render(model.mechanisms[variable])}" for variable in order])
    assert verdict is not None
    wrong = verdict.wrong or [0] * len(order)
    evaluated = [order[place] for place in verdict.order or range(len(order))]
    assert [v for v in evaluated if model.mechanisms[v].mentioned & set(evaluated[evaluated.index(v) :])] == []
    found = dict.fromkeys(order, 0)
    for world, start in zip(worlds, panel.starts, strict=False):
        for cell in replay_world(model, world, evaluated):
            found[cell.variable] |= (cell.predicted != cell.expected) << start + cell.row
    assert dict(zip(order, wrong, strict=True)) == found
    for place, variable in enumerate(order):
        formula, own = model.mechanisms[variable], judge.facts()[place]
        names = tuple(name for number, name in enumerate(variables) if own[2] >> number & 1)
        made = JudgedMechanism(render(formula), GRAMMAR, 0, names, own, found[variable])
        plain = mechanism_stats(formula)
        assert (made.stats.size, made.stats.depth, made.variables) == (plain.size, plain.depth, plain.variables)
        assert list(made.stats.operators.by_name.items()) == list(plain.operators.by_name.items())
        assert made.formula == formula
        _same_table(made, formula)


def _same_table(made: JudgedMechanism, formula: Formula) -> None:
    number = len(made.variables)
    if number > MAX_WORD_VARS:
        assert made.table is None
        return
    assert made.table is not None
    bits = {name: projection(place, number).bits for place, name in enumerate(made.variables)}
    assert made.table & full_mask(number) == formula.evaluate(bits.__getitem__, full_mask(number))


@given(st.data())
def test_all_of_a_verdict_is_what_the_reference_says(data: st.DataObject) -> None:
    model = data.draw(scms(operators=tuple(OPERATORS), max_roots=5, max_endogenous=4))
    _checked(model, data.draw(arbitrary_worlds(model)))


def test_mechanisms_of_many_variables_and_arguments_have_no_table_but_all_the_rest() -> None:
    names = [f"X{number}" for number in range(1, 9)]
    texts = {"Y": f"(iff {' '.join(names * 3)})", "Z": "(if Y (xor X1 X2 X8) (not X3))"}
    model = scm(names, {variable: parse(text, GRAMMAR) for variable, text in texts.items()})
    rows = " ".join(f"{number * 37 % 1024:010b}" for number in range(70))
    _checked(model, (written_world("w", " ".join([*names, "Y", "Z"]), rows),))


def test_without_rows_nothing_is_wrong() -> None:
    model = written_scm("A B", C="(or A B)")
    assert _judge(model, Panel(("A", "B", "C"), ()))[0].judge(["(or A B)"]) == (None, None)


@pytest.mark.parametrize(
    "texts",
    [
        *(["C", "D"], ["(and A B", "A"], ["A\nB", "A"], ["A", "0"], ["D", "C"], ["(A)", "A"], ["", "A"], ["A"], []),
        *(["\u00a0A", "A"], ["(nand A B)", "A"], ["E", "A"], [f"(and {' '.join('A' * MAX_CANDIDATE_CHARS)})", "A"]),
        *(["(or " * 65 + "A" + " B)" * 65, "A"], [f"(and {' '.join('A' * 129)})", "A"], ["A\n", "A"], ["A", "A", "A"]),
    ],
)
def test_what_is_not_plain_is_left_to_the_parser(texts: list[str]) -> None:
    model = written_scm("A B", C="A", D="B")
    judge, _, order = _judge(model, Panel(("A", "B", "C", "D"), ()))
    assert order == ("D", "C")
    assert judge.judge(texts) is None


def test_too_many_variables_are_left_to_the_parser() -> None:
    names = [f"X{number}" for number in range(70)]
    model = written_scm(" ".join(names), Y="X1")
    assert _judge(model, Panel((*names, "Y"), ()))[0].judge(["X1"]) is None


def test_compiled_code_reads_once_a_share_of_many_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    model = written_scm("A B", C="(or A B)")
    problem = written_problem(HiddenOrder(("A", "B", "C"), ("A", "B")), model, [written_world("w", "A B C", "000 011")])
    few = MANY - 3
    for new, asked, is_judged in ((0, 0, False), (MANY, MANY, True), (few, few, False), (MANY, 5 * MANY, False)):
        monkeypatch.setattr(NOVELTY, "new", new)
        monkeypatch.setattr(NOVELTY, "asked", asked)
        score = Evaluator(problem).score_answer({"mechanisms": {"C": "(or B (and A B))"}})
        assert score.submission is not None
        assert isinstance(score.submission.mechanisms["C"], JudgedMechanism) == is_judged
        assert score.submission.candidate.mechanisms["C"] == parse("(or B (and A B))")
