"""What error messages show of untrusted values, and where they say a problem is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import (
    CalibrantError,
    CycleError,
    MissingExtraError,
    ParseError,
    PoolError,
    TableError,
    short_repr,
)
from calibrant.dsl.formulas.text import Grammar, parse
from tests.support.effort import examples

LONGEST = 60


@given(st.text(st.characters(), max_size=100))
@settings(deadline=None, max_examples=examples(100))
def test_a_shown_value_is_one_short_printable_line(text: str) -> None:
    rendering = short_repr(text)
    assert rendering.isascii()
    assert rendering.isprintable()
    assert len(rendering) <= LONGEST
    if len(ascii(text)) <= LONGEST:
        assert rendering == ascii(text)  # nothing is cut that fits
    else:
        assert rendering == ascii(text)[: LONGEST - 3] + "..."


@pytest.mark.parametrize("num_characters", [LONGEST - 3, LONGEST - 2, LONGEST - 1, 1_000_000])
def test_what_does_not_fit_is_cut(num_characters: int) -> None:
    quoted = "'" + "x" * num_characters + "'"
    assert short_repr("x" * num_characters) == (quoted if len(quoted) <= LONGEST else quoted[:57] + "...")


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("(or X1 X2)", "allowed operators: and, not"),
        ("(nand X1 X2)", "allowed operators: and, not"),
        ("X3", "allowed variables: X1, X2"),
        ("(and X1)", "it takes 2 or more arguments"),
        ("(not X1 X2)", "it takes exactly 1 argument"),
        ("(and X1", "the '(' at character 0 is open"),
        ("(and X1 (not X2 ", "the '(' at character 8 is open"),
    ],
)
def test_a_parse_error_says_what_was_allowed(text: str, allowed: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text, Grammar(("and", "not")), {"X2", "X1"})
    assert caught.value.allowed == allowed
    assert str(caught.value) == f"{caught.value.message} at character {caught.value.position}; {allowed}"


def test_no_variable_at_all_may_be_allowed() -> None:
    with pytest.raises(ParseError, match="allowed variables: none"):
        parse("X1", variables=())


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PoolError("no rows"), "no rows"),
        (PoolError("no rows", file="a.yaml"), "a.yaml: no rows"),
        (PoolError("no rows", field="worlds[0]"), "worlds[0]: no rows"),
        (PoolError("no rows", file="a.yaml", instance="i7", field="worlds[0]"), "a.yaml: i7: worlds[0]: no rows"),
        (PoolError("no rows", field="rows").with_location(file="a.yaml", instance="i7"), "a.yaml: i7: rows: no rows"),
        (PoolError("no rows", file="a", instance="i").with_location(file="b", instance="j"), "a: i: no rows"),
        (PoolError("no rows", instance="i").with_location(file="b", instance="j"), "b: i: no rows"),
    ],
)
def test_a_pool_error_tells_where(error: PoolError, message: str) -> None:
    assert str(error) == message
    assert error.problem == "no rows"


@pytest.mark.parametrize("kind", [ParseError, CycleError, TableError, PoolError, MissingExtraError])
def test_bad_input_can_be_caught_as_one_kind(kind: type[Exception]) -> None:
    assert issubclass(kind, CalibrantError)
