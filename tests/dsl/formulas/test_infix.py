"""Formulas as people write them, read back by Python's own rules of precedence."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given

from calibrant.dsl.errors import ParseError
from calibrant.dsl.formulas.formula import OPERATORS, Formula
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.text import Grammar, infix, parse, parse_infix, render
from tests.support.replayscm.strategies import formulas


class Bit(SimpleNamespace):
    """A bit under Python's operators: ~ binds tightest, as `not` does in what `infix` writes."""

    value: bool

    def __invert__(self) -> Bit:
        return Bit(value=not self.value)

    def __and__(self, other: Bit) -> Bit:
        return Bit(value=self.value and other.value)

    def __or__(self, other: Bit) -> Bit:
        return Bit(value=self.value or other.value)

    def __xor__(self, other: Bit) -> Bit:
        return Bit(value=self.value != other.value)

    def __lshift__(self, other: Bit) -> Bit:  # iff
        return Bit(value=self.value == other.value)


def _calls(name: str) -> object:
    return lambda *bits: Bit(value=OPERATORS[name].truth([bit.value for bit in bits]))


def read_by_python(text: str, row: dict[str, int]) -> int:
    spelled = f" {text} ".replace("not ", "~").replace(" and ", " & ").replace(" or ", " | ").replace(" xor ", " ^ ")
    names = {name: Bit(value=bool(bit)) for name, bit in row.items()}
    calls = {f"call_{name}": _calls(name) for name in OPERATORS}
    for name in OPERATORS:
        spelled = spelled.replace(f"{name}(", f"call_{name}(")
    return int(eval(spelled.replace(" iff ", " << "), {}, names | calls).value)


@given(formulas(("X1", "X2", "X3", "X4")))
def test_infix_means_the_same(formula: Formula) -> None:
    names = formula.variables[:4]
    for bits in product((0, 1), repeat=len(names)):
        row = dict.fromkeys(formula.variables, 0) | dict(zip(names, bits, strict=True))
        assert read_by_python(infix(formula), row) == evaluate(formula, row)


def test_infix_has_few_parentheses() -> None:
    assert infix(parse("(and X1 (not X2))")) == "X1 and not X2"
    assert infix(parse("(not (or X1 (and X2 X3)))")) == "not (X1 or (X2 and X3))"
    assert infix(parse("(xor X1 X2 X3)")) == "X1 xor X2 xor X3"
    assert infix(parse("(iff X1 (and X2 X3))")) == "X1 iff (X2 and X3)"
    assert infix(parse("(iff X1 X2 X3)")) == "iff(X1, X2, X3)"


@given(formulas(("X1", "X2", "X3", "X4")))
def test_what_is_written_in_infix_is_read_back(formula: Formula) -> None:
    grammar = Grammar(tuple(OPERATORS), allow_constants=True)
    names = ("X1", "X2", "X3", "X4")
    assert parse_infix(infix(formula), grammar, names) == formula
    assert parse_infix(render(formula), grammar, names) == formula


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("x1 & !x2 | x3", "(or (and X1 (not X2)) X3)"),
        ("X1 or X2 and not X3", "(or X1 (and X2 (not X3)))"),
        ("not (X1 xor X2) and X3", "(and (not (xor X1 X2)) X3)"),
        ("(not X1) and X2", "(and (not X1) X2)"),
        ("(X1 and X2) and X3", "(and (and X1 X2) X3)"),
        ("iff(X1, X2, X3) == X1", "(iff (iff X1 X2 X3) X1)"),
    ],
)
def test_infix_binds_as_people_expect(text: str, prefix: str) -> None:
    assert parse_infix(text, variables=("X1", "X2", "X3")) == parse(prefix)


@pytest.mark.parametrize(
    ("text", "kind", "position"),
    [
        ("X1 xor X2 and X3", "trailing", 10),
        ("X1 or X2 xor X3", "trailing", 9),
        ("X1 iff X2 iff X3", "trailing", 10),
        ("X1 and", "unexpected_end", 6),
        ("X1 and or X2", "invalid_symbol", 7),
        ("X9", "variable_not_allowed", 0),
        ("(X1", "missing_close", 3),
        ("X1 X2", "trailing", 3),
        ("X1  <", "invalid_symbol", 4),
        ("", "empty", 0),
        ("1", "constants_forbidden", 0),
        ("(and X1)", "arity_low", 1),
        ("if(X1, X2, X3)", "operator_not_allowed", 13),
        ("not " * 200 + "X1", "too_deep", 396),
        ("(" * 5_000, "too_long", 4_000),
        ("(" * 500, "too_deep", 100),
    ],
)
def test_what_is_no_infix_formula_is_refused_at_its_place(text: str, kind: str, position: int) -> None:
    with pytest.raises(ParseError) as refusal:
        parse_infix(text, variables=("X1", "X2", "X3"))
    assert (refusal.value.kind, refusal.value.position) == (kind, position)
