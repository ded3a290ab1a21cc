"""The fast reader of ordinary spellings gives what the full parser gives, and refuses what it refuses."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import ParseError
from calibrant.dsl.formulas import text as reading
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.text import MAX_NESTING, STANDARD, Grammar, parse
from tests.support.effort import examples

VARIABLES = frozenset({"X1", "X2", "X3", "and"})
GRAMMARS = (STANDARD, Grammar(("not", "and", "if"), True), Grammar(("bogus", "or"), False))
TOKENS = [
    "(",
    ")",
    " ",
    "X1",
    "X2",
    "X9",
    "and",
    "or",
    "not",
    "xor",
    "iff",
    "if",
    "0",
    "(and",
    "(not ",
    "(X1)",
    "\t",
    "\u2003",
    "((",
]


def _operator(arguments: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = st.sampled_from(["and", "or", "not", "xor", "iff", "if"])
    return st.builds(lambda name, own: f"({name} {' '.join(own)})", names, st.lists(arguments, min_size=1, max_size=4))


FORMULAS = st.recursive(st.sampled_from(["X1", "X2", "X3", "(X1)", "and"]), _operator, max_leaves=12)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text = draw(FORMULAS)
    place = draw(st.integers(0, len(text) - 1))
    return text[:place] + draw(st.sampled_from(["", " ", "(", ")", "X1", "\x00"])) + text[place + 1 :]


def outcome(text: str, grammar: Grammar) -> Formula | tuple[str, str]:
    try:
        return parse(text, grammar, VARIABLES)
    except ParseError as error:
        return str(error), error.kind


@settings(max_examples=examples(600), deadline=None)
@example(text="and", grammar=STANDARD)
@example(text="(and and and)", grammar=STANDARD)
@given(
    text=FORMULAS | damaged() | st.lists(st.sampled_from(TOKENS), max_size=12).map("".join),
    grammar=st.sampled_from(GRAMMARS),
)
def test_both_readers_say_the_same(text: str, grammar: Grammar) -> None:
    either = outcome(text, grammar)
    with patch.object(reading, "_plain", return_value=None):
        assert outcome(text, grammar) == either


@pytest.mark.parametrize("depth", range(MAX_NESTING - 1, MAX_NESTING + 3))
@pytest.mark.parametrize("opening", ["(not ", "(and X1 "])
def test_both_readers_end_at_the_same_depth(depth: int, opening: str) -> None:
    text = opening * depth + "X1" + ")" * depth
    either = outcome(text, STANDARD)
    assert isinstance(either, Formula) == (depth <= MAX_NESTING)
    with patch.object(reading, "_plain", return_value=None):
        assert outcome(text, STANDARD) == either


def test_the_fast_reader_reads_ordinary_spellings() -> None:
    """Otherwise the comparison above would compare the parser with itself."""
    for text in ("X1", "(not X1)", "(and X1 (or X2 X3))", "  (iff X1 X2 X3) "):
        assert reading._plain(text, STANDARD, VARIABLES) is not None
