"""Limits on JSON texts: what is counted, what is not, and that short texts are parsed as ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibrant.dsl import parse_limits
from calibrant.dsl.parse_limits import TooLargeError, check_json_size, load_json, read_bounded


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse_limits, "UNCHECKED_JSON", 10)
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
