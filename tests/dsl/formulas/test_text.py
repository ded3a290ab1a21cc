"""Mechanism texts: the published vectors, and round trips between texts and formulas. Errors: test_text_errors."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import ParseError
from calibrant.dsl.formulas.formula import OPERATORS, Formula
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.table import from_formula
from calibrant.dsl.formulas.text import STANDARD, Grammar, parse, render
from tests.support.effort import examples
from tests.support.replayscm.oracles import Tree
from tests.support.replayscm.strategies import FULL_GRAMMAR, SPACES, any_formulas, formula_of, names, spellings, trees
from tests.support.shared import shared_records


def _grammar(vector: dict[str, Any]) -> Grammar:
    """Return the grammar of a vector.

    The published reader strips the listed operator names. It does not change case, and an empty list allows none.
    """
    return Grammar(tuple(name.strip() for name in vector["allowedOperators"]), vector["allowConstants"])


def _parsed(vector: dict[str, Any]) -> Formula | ParseError:
    allowed = vector["allowedVariables"]
    try:
        return parse(vector["expression"], _grammar(vector), None if allowed is None else frozenset(allowed))
    except ParseError as error:
        return error


def test_legal_vectors_parse_to_what_they_say() -> None:
    legal = [vector for vector in shared_records("dsl_vectors.jsonl") if vector["expect"]["ok"]]
    assert len(legal) == 291
    for vector in legal:
        expect, formula = vector["expect"], _parsed(vector)
        assert isinstance(formula, Formula), (vector["id"], formula)
        assert formula.size == expect["astSize"], vector["id"]
        assert formula.depth == expect["depth"], vector["id"]
        assert list(formula.variables) == expect["variablesNatural"], vector["id"]
        assert formula.operator_counts == expect["operatorCounts"], vector["id"]
        assert render(formula) == expect["sexpr"], vector["id"]


def test_legal_vectors_mean_what_they_say() -> None:
    """Both ways to a truth table: row by row, and on bit columns. The vectors put the first variable first."""
    for vector in shared_records("dsl_vectors.jsonl"):
        formula = _parsed(vector)
        if isinstance(formula, Formula):
            expected = vector["expect"]["truthTableMsbFirst"]
            rows = product((0, 1), repeat=len(formula.variables))
            values = [evaluate(formula, dict(zip(formula.variables, row, strict=True))) for row in rows]
            assert "".join(map(str, values)) == expected, vector["id"]
            assert from_formula(formula, formula.variables[::-1]).bits == int(expected[::-1], 2), vector["id"]


def test_illegal_vectors_are_refused_for_the_published_reason() -> None:
    illegal = [vector for vector in shared_records("dsl_vectors.jsonl") if not vector["expect"]["ok"]]
    assert len(illegal) == 228
    for vector in illegal:
        error, category = _parsed(vector), vector["expect"]["category"]
        assert isinstance(error, ParseError), (vector["id"], error)
        # where the published scorer overflows its stack, any clean refusal will do; ours says why
        assert error.kind == ("too_deep" if category == "crash" else category), vector["id"]
        assert vector["expression"].startswith(error.token, error.position), vector["id"]


@given(any_formulas(max_size=25))
@settings(deadline=None, max_examples=examples(150))
def test_what_is_rendered_parses_back(formula: Formula) -> None:
    text = render(formula)
    assert parse(text, FULL_GRAMMAR, formula.variables) == formula
    assert " ".join(text.replace("(", " ( ").replace(")", " ) ").split()).replace("( ", "(").replace(" )", ")") == text


@given(names().flatmap(lambda over: trees(over, grammar=FULL_GRAMMAR, max_size=10)), st.data())
@settings(deadline=None, max_examples=examples(150))
def test_spacing_and_parenthesised_atoms_do_not_matter(tree: Tree, data: st.DataObject) -> None:
    assert parse(data.draw(spellings(tree)), FULL_GRAMMAR) == formula_of(tree)


@pytest.mark.parametrize("space", SPACES, ids=ascii)
def test_white_space_separates(space: str) -> None:
    assert parse(f"{space}(and{space}X1{space}X2){space}") == parse("(and X1 X2)")


def test_only_the_standard_operators_are_allowed_unless_others_are_listed() -> None:
    assert STANDARD.operators == ("not", "and", "or", "xor", "iff")
    with pytest.raises(ParseError, match="operator 'if' is not allowed"):
        parse("(if X1 X2 X3)")
    assert parse("(if X1 X2 X3)", Grammar(tuple(OPERATORS))).operator_counts == {"if": 1}
    with pytest.raises(ParseError, match="operator 'not' is not allowed"):
        parse("(not X1)", Grammar(()))
