"""Limits on JSON texts: what is counted, what is not, and that short texts are parsed as ever."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from calibrant.dsl import parse_limits
from calibrant.dsl.parse_limits import (
    MAX_DEPTH,
    TooLargeError,
    check_json_depth,
    check_json_size,
    load_json,
    quote_deep_members,
    read_bounded,
)


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse_limits, "MAX_UNCHECKED_BYTES", 10)
    monkeypatch.setattr(parse_limits, "MAX_JSON_TOKENS", 20)
    monkeypatch.setattr(parse_limits, "MAX_JSON_BYTES", 400)


@pytest.mark.parametrize("kind", [str, str.encode])
@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("[" + "1," * 18 + "1]", True),
        ("[" + "1," * 20 + "1]", False),
        ("[" + "[]," * 9 + "[]]", True),
        ("[" + "[]," * 11 + "[]]", False),
        (json.dumps({"a": "x, y, " * 20}), True),  # commas of prose
        (json.dumps({"a": '"quoted", ' * 20}), True),  # quotes and commas of prose
        (json.dumps(["x," * 10, *[1] * 18]), True),  # a list, a text and 18 commas
        (json.dumps(["x," * 10, *[1] * 19]), False),
        (json.dumps({"a": "{" * 19}), True),
        (json.dumps({"a": "{" * 21}), False),  # a response is decoded again
        (json.dumps({str(n): n for n in range(9)}), True),
        (json.dumps({str(n): n for n in range(11)}), False),
        (json.dumps("x" * 398), True),
        (json.dumps("x" * 399), False),
    ],
)
def test_what_is_refused(text: str, kind: type, is_read: bool) -> None:
    if is_read:
        assert load_json(kind(text)) == json.loads(text)
    else:
        with pytest.raises(TooLargeError):
            load_json(kind(text))


def test_a_broken_text_costs_no_more_than_a_whole_one() -> None:
    for text in ('"' * 399, "\\" * 399, '"\\' * 199, "[" * 399):
        try:
            check_json_size(text)
        except TooLargeError:
            continue
        with pytest.raises(ValueError, match=r"."):
            json.loads(text)


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    file.write_bytes(b" " * 400)
    assert len(read_bounded(file)) == 400
    file.write_bytes(b" " * 401)
    with pytest.raises(TooLargeError, match="more than 400 bytes"):
        read_bounded(file)


@pytest.mark.parametrize("kind", [str, str.encode])
@pytest.mark.parametrize(
    "around", [("[", "]"), ('{"a":', "}"), ('[{"]": "\\\\", "b": ', "}]"), ('{"[{\\"": 1, "é\\"": ', "}")]
)
def test_depth_is_that_of_lists_and_objects_outside_of_strings(around: tuple[str, str], kind: type) -> None:
    opening, closing = around
    levels = MAX_DEPTH // len(closing)
    beside = '"' + "[{" * 500 + '\\"' + "[" * 500 + '"'
    for text in (opening * levels + beside + closing * levels, "[" + "[[]]," * 900 + "0]"):
        json.loads(text)
        check_json_depth(kind(text))
    for text in (opening * levels + "[0]" + closing * levels, opening * 5_000, "[" * 5_000 + '"'):
        with pytest.raises(TooLargeError, match=f"nested more than {MAX_DEPTH} deep"):
            check_json_depth(kind(text))


DEEP = 100  # levels; json refuses some hundreds more
SHAPES = {
    "empty lists": "[" + "[]," * 40_000 + "[]]",
    "numbers": "[" + "1.5," * 40_000 + "1]",
    "long integers": "[" + "12345678901," * 40_000 + "1]",
    "nested lists": "[" + ",".join("[" * DEEP + "]" * DEEP for _ in range(400)) + "]",
    "one object": json.dumps({str(n): n for n in range(40_000)}),
    "small objects": json.dumps([{str(n): n} for n in range(40_000)]),
    "nested objects": "["
    + ",".join("".join(f'{{"{row * DEEP + n}":' for n in range(DEEP)) + "1.5" + "}" * DEEP for row in range(400))
    + "]",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_values_take_no_more_memory_a_token_than_stated(shape: str) -> None:
    text = SHAPES[shape]
    # tokens by hand: quoted strings (none of them with escapes here), brackets, commas
    num_tokens = text.count('"') // 2 + sum(text.count(sign) for sign in "[{,")
    tracemalloc.start()
    try:
        json.loads(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak / num_tokens <= parse_limits.MAX_TOKEN_BYTES


def test_members_that_nest_too_deeply_become_their_own_text_and_others_stay() -> None:
    deep = "[" * MAX_DEPTH + r'"]\"]"' + "]" * MAX_DEPTH
    shallow = r'{"a": "[[{\"", "b": [{"c": []}]}'
    text = f'{{"x": {shallow}, "y": {deep}, "z": [{deep}, 1], "w": 2}}'
    expected = json.loads(shallow)
    assert json.loads(quote_deep_members(text)) == {"x": expected, "y": deep, "z": f"[{deep}, 1]", "w": 2}
    assert quote_deep_members(f'{{"x": {shallow}}}') == f'{{"x": {shallow}}}'
    assert quote_deep_members(f'{{"x": {deep[:-1]}') == f'{{"x": {deep[:-1]}'  # a member without an end
    assert quote_deep_members(f"[{deep}]") == f"[{deep}]"
