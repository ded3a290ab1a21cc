"""Programs from mechanism texts in compiled code: those that the parser's formulas come to, and the parser's errors."""

from __future__ import annotations

import random

import pytest

from calibrant.dsl.errors import ParseError
from calibrant.dsl.formulas.formula import OPERATORS
from calibrant.dsl.formulas.text import Grammar
from calibrant.dsl.replayscm import _kernels_evaluator, evaluator
from calibrant.dsl.replayscm.evaluator import Programs, compile_texts
from tests.fuzz.texts import case
from tests.support.effort import effort

LOAD, STORE = 6, 8


def program(text: str, names: tuple[str, ...] = ("X1", "X2", "X10"), grammar: Grammar | None = None) -> list[int]:
    found = compile_texts([text], names, names[-1:], grammar or Grammar())
    *code, stored = found.code.tolist()
    assert stored == (len(names) - 1) << 4 | STORE
    return list(code)


def test_operations_follow_their_arguments() -> None:
    """Written down from the grammar: X2 is variable 1, an n-ary `xor` is one instruction of arity n."""
    load = [0 << 4 | LOAD, 1 << 4 | LOAD, 2 << 4 | LOAD]
    assert program("X2") == [load[1]]
    assert program("  (xor X1 X10   X2)") == [load[0], load[2], load[1], 3 << 4 | OPERATORS["xor"].code]
    inner = [load[0], 1 << 4 | OPERATORS["not"].code, load[1]]
    assert program("(and(not X1)X2)") == [*inner, 2 << 4 | OPERATORS["and"].code]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        ("X1)", "trailing"),
        ("X1 X2", "trailing"),
        ("(not X1", "missing_close"),
        ("(nand X1 X2)", "unknown_operator"),
        ("(if X1 X2 X10)", "operator_not_allowed"),
        ("(not X1 X2)", "arity_high"),
        ("(and X1)", "arity_low"),
        ("X1!", "invalid_symbol"),
        ("X100", "variable_not_allowed"),
        ("(and X1 0)", "constants_forbidden"),
        (f"{'(not ' * 497}X1{')' * 497}", "too_deep"),
    ],
)
def test_what_is_no_mechanism_is_refused_as_the_parser_does(text: str, kind: str) -> None:
    with pytest.raises(ParseError) as refused:
        program(text)
    assert refused.value.kind == kind


def test_unusual_spellings_mean_the_same() -> None:
    """White space of every kind, parentheses around atoms, more nesting than the kernel has room for, long names."""
    plain = program("(or X1 X2)")
    assert program("( or\u2003(X1) \tX2\n)") == plain
    assert program(f"{'(not ' * 100}X1{')' * 100}").count(1 << 4 | OPERATORS["not"].code) == 100
    assert program("(or X12345678 X1234567)", ("X1234567", "X12345678", "Y")) == [
        1 << 4 | LOAD,
        0 << 4 | LOAD,
        2 << 4 | OPERATORS["or"].code,
    ]
    assert program("(and and or)", ("and", "or", "Y"))[:2] == [LOAD, 1 << 4 | LOAD]


def test_numbers_are_those_of_the_kernels() -> None:
    """The evaluator imports its kernels on use, and has some of their numbers itself."""
    for name in ("LOAD", "CONSTANT", "STORE", "OPERATOR", "MAX_HEIGHT", "RIGHT", "OTHER"):
        assert getattr(_kernels_evaluator, name) == getattr(evaluator, name)
    assert (_kernels_evaluator.FACTS, int(_kernels_evaluator.SPREAD)) == (evaluator.NUM_FACTS, evaluator.HASH_FACTOR)
    assert [OPERATORS[name].code for name in ("not", "and", "or", "xor", "iff", "if")] == [*range(6)]


def test_parents_are_those_of_each_mechanism() -> None:
    parents = {"X2": frozenset({"X1"}), "X10": frozenset({"X2"})}

    def compiled(texts: list[str]) -> Programs:
        return compile_texts(texts, ("X1", "X2", "X10"), ("X2", "X10"), parents=parents)

    assert len(compiled(["X1", "X2"] * 3)) == 3
    with pytest.raises(ParseError, match="'X1' is not allowed here"):
        compiled(["X1", "X2", "X1", "X1"])
    with pytest.raises(ValueError, match="3 texts; each candidate has 2"):
        compiled(["X1", "X2", "X1"])
    assert len(compiled([])) == 0


@pytest.mark.soak
def test_texts_and_formulas_come_to_the_same_programs_and_errors() -> None:
    """The fuzzer's cases: names that begin with each other, operators that are not allowed, damaged texts."""
    outcomes = {case(random.Random(f"texts {number}")) for number in range(effort(400, 20_000))}
    assert {"programs", "refused, missing_close", "refused, variable_not_allowed"} <= outcomes
