"""Plain YAML from events says what the safe loader says, type by type; whatever else there is goes to that loader."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import PoolError
from calibrant.dsl.yaml_text import UNREADABLE, NotPlainError, load_whole, load_yaml, plain_document
from tests.support.effort import examples

SCALARS = [
    "~", "null", "Null", "NULL", "nUll", "yes", "Yes", "no", "No", "on", "On", "OFF", "off", "true", "True", "TRUE",
    "tRUE", "y", "n", "0", "-0", "+1", "-17", "012", "08", "0o7", "0x1F", "0xfg", "0b11", "0b2", "1_000", "_1",
    "1__0", "190:20:30", "-1:30", "1:90", "9223372036854775808", "1.5", "-.5", "1.", ".5", "1e3", "1.0e+3", "1.0e3",
    "1_0.5", "1:30.5", ".inf", "-.INF", "+.Inf", ".nan", ".NaN", "nan", "inf", "1e999", "2001-01-01", "2001-1-1",
    "2001-12-14t21:59:43.10-05:00", "2001-12-14T21:59:43Z", "2001-12-14", "'0101'", '"1"', "''", '"~"', "'a''b'",
    '"\\x41\\u263a\\n"', "X1", "a:b", "a#b", "-x", "?x", "(and-X1)", "\u263a",
]  # fmt: skip


def shape(value: Any) -> Any:
    """Return a value with the types of everything in it, in order."""
    if isinstance(value, dict):
        return [(shape(key), shape(one)) for key, one in value.items()]
    return [shape(one) for one in value] if isinstance(value, list) else (type(value), repr(value))


@pytest.mark.parametrize("scalar", [*SCALARS, "2001-12-14 21:59:43", "|\n  two\n  lines\n", ">-\n  folded\n  text"])
def test_scalars_are_what_the_loader_makes_of_them(scalar: str) -> None:
    text = f"a: {scalar}\nb:\n- {scalar}\n"
    assert shape(plain_document(text)) == shape(load_whole(text))


def test_keys_are_scalars_too() -> None:
    text = "".join(f"{scalar}: {i}\n" for i, scalar in enumerate(["1", "~", "1.5", "2001-01-01", "no", "'1'", "? x\n"]))
    assert shape(plain_document(text)) == shape(load_whole(text))


NOT_PLAIN = [
    "a: &a x\nb: *a", "&a [x]", "!!str 1", "! 1", "a: !!binary eA==", "<<: {a: b}", "{a: 1, <<: {a: 2}}", "a: 1\na: 2",
    "1: a\n1.0: b\n", "{[a]: b}", "? {a: b}\n: c", "a: =", "=: a", "a: 2024-13-45", "--- a\n--- b", "", "# nothing",
    "[" * 201 + "]" * 201,
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_what_is_not_plain_is_left_to_the_loader(text: str) -> None:
    with pytest.raises(NotPlainError):
        plain_document(text)
    assert outcome(load_yaml, text) == outcome(load_whole, text)


def outcome(load: Any, text: str) -> Any:
    try:
        return shape(load(text))
    except PoolError as error:
        return str(error)


PIECES = [
    *SCALARS,
    " ", "\n", "\n  ", "\n- ", "- ", ": ", "? ", "{", "}", "[", "]", ", ", "&a ", "*a", "!!int ", "<<: ", "|", ">",
    "#", "a: ", "b: ", "---\n", "...\n", "%YAML 1.1\n", "\t", "\0", "\ufeff", "\u2028", "\x85",
]  # fmt: skip


@settings(max_examples=examples(600), deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_any_text_is_read_or_refused_as_by_the_loader(text: str) -> None:
    expected = outcome(load_whole, text)
    assert outcome(load_yaml, text) == expected
    try:
        made = plain_document(text)
    except (NotPlainError, *UNREADABLE):
        return
    assert shape(made) == expected
