"""Statements about networks: forms, and the two lines that clash."""

from __future__ import annotations

import pytest

from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.knowledge import parse_knowledge, parse_statement, state_knowledge

COLUMNS = ("A", "B", "C", "age>50", "colour=red|blue", 'x, "y"')


def test_every_word_of_a_file_is_read() -> None:
    text = """# comment
require A -> B, B -> age>50
forbid colour=red|blue -> A
order C, A
roots "x, ""y\"""
max-parents 3
max-parents-of B=2, colour=red|blue=1, "x, ""y\"""=0
"""
    checked = parse_knowledge(text, "k.txt").check(COLUMNS)
    assert checked.required == (0, 0b1, 0, 0b10, 0, 0)
    assert not checked.allowed[0] & (1 << 4 | 1 << 1)  # forbidden, and the reverse of a required arc
    assert not checked.allowed[2] & 1  # A comes after C
    assert checked.allowed[5] == 0
    assert checked.limits == (3, 2, 3, 3, 1, 0)
    assert checked.earlier == (0b100, 0, 0, 0, 0, 0)


def test_tiers_forbid_arcs_to_an_earlier_tier() -> None:
    checked = parse_knowledge("tiers A, B < C", "k.txt").check(("A", "B", "C"))
    assert checked.allowed == (0b010, 0b001, 0b011)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("require A -> B\nforbid A -> B", ("k.txt, line 1", "k.txt, line 2")),
        ("require A -> B\nrequire B -> C\nrequire C -> A", ("k.txt, line 3", "cycle")),
        ("require B -> A\ntiers A < B, C", ("k.txt, line 1", "k.txt, line 2")),
        ("require A -> C\nrequire B -> C\nmax-parents 1", ("k.txt, line 2", "k.txt, line 3")),
        ("require A -> C\nroots C", ("k.txt, line 1", "k.txt, line 2")),
        ("require B -> A\norder A, B", ("k.txt, line 1", "k.txt, line 2")),
        ("forbid A -> Z", ("k.txt, line 1", "'Z' is no column")),
        ("tiers A < B", ("no tier has C",)),
        ("tiers A < B, C < A", ("two tiers",)),
        ("require A -> A", ("itself",)),
        ("like A -> B", ("unknown word",)),
        ("require A B", ("form A -> B",)),
        ("max-parents two", ("whole number",)),
        ("max-parents-of A", ("form B=1",)),
        ("increasing A", ("k.txt, line 1", "form A -> B")),
        ("no-common-parent A", ("k.txt, line 1", "two or more")),
        ("no-common-parent A, Z", ("'Z' is no column",)),
        ("(assert |A -> Z|)", ("k.txt, line 1", "'Z' is no column")),
        ("(assert (=> |A -> B|))", ("k.txt, line 1", "=> has 1 arguments", "2 or more")),
        ("(assert (not |A -> B| |B -> C|))", ("not has 2 arguments",)),
        ("(assert (implies |A -> B| |B -> C|))", ("unknown operator 'implies'", "=>")),
        ("(assert (and |A -> B|)", ("k.txt, line 1", "1 parentheses are open")),
        ("(assert |A -> B|) (assert |B -> C|)", ("k.txt, line 1", "one command")),
        ("(maximize 3)", ("k.txt, line 1", "unknown command 'maximize'")),
        (f"(assert {'(not ' * 80}|A -> B|{')' * 80})", ("more than 50",)),
    ],
)
def test_a_refusal_names_both_lines(text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(CalibrantError) as refusal:
        parse_knowledge(text, "k.txt").check(("A", "B", "C"))
    assert all(word in str(refusal.value) for word in words)
    assert "\n" not in str(refusal.value)


def test_python_takes_texts_and_objects() -> None:
    texts = state_knowledge(require="A -> B", forbid=["C -> A"], tiers="A < B, C", max_parents=2).check(("A", "B", "C"))
    objects = state_knowledge(
        require=[("A", "B")],
        forbid=[("C", "A")],
        tiers=[["A"], ["B", "C"]],
        max_parents=2,
    ).check(("A", "B", "C"))
    assert (texts.allowed, texts.required, texts.limits) == (objects.allowed, objects.required, objects.limits)
    assert texts.admits(1, 0b101)
    assert not texts.admits(1, 0b100)
    assert texts.violations((0, 0, 0b1)) == ["A -> B is required"]


@pytest.mark.parametrize("limit", [-1, True, "1"])
def test_numbers_of_parents_are_whole(limit: object) -> None:
    with pytest.raises(CalibrantError, match="whole number"):
        state_knowledge(max_parents=limit)  # type: ignore[arg-type]


def test_a_statement_of_the_command_line_names_its_option() -> None:
    statement = parse_statement("require", "A -> B", "--require 'A -> B'")
    assert statement.arcs == (("A", "B"),)
    assert statement.source == "--require 'A -> B'"


def test_formulas_have_the_meaning_of_smt_lib() -> None:
    text = """; for a solver too
(set-logic QF_UF)
(declare-const |A -> B| Bool)
(assert (=> |A -> B| |B -> C| (ite |A -> C| true false))) ; to the right
(check-sat)
no-common-parent B, C
"""
    checked = parse_knowledge(text, "k.txt").check(("A", "B", "C"))
    arrow, apart = checked.relations
    networks = (("AB", "BC"), ("AB", "BC", "AC"), ("AB",), ("AB", "AC"), ())
    values = {}
    for arcs in networks:
        present = {(arc[0], arc[1]) for arc in arcs}
        values[arcs] = arrow.holds(present.__contains__), apart.holds(present.__contains__)
    assert values == {
        ("AB", "BC"): (False, True),
        ("AB", "BC", "AC"): (True, False),
        ("AB",): (True, True),
        ("AB", "AC"): (True, False),
        (): (True, True),
    }


def test_networks_refuse_what_is_about_mechanisms() -> None:
    with pytest.raises(CalibrantError, match=r"k.txt, line 2: 'increasing' is about"):
        parse_knowledge("forbid A -> B\nincreasing A -> B", "k.txt").refuse_scm_words("is about mechanisms")
