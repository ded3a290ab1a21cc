"""Formulas as people write them, read back by Python's own rules of precedence."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

from hypothesis import given

from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.infix import infix
from calibrant.dsl.formulas.operators import OPERATORS
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.text import parse
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
