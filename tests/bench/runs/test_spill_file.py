"""Values and lines that stay in files: in order, as often as asked for, and refused where the file was cut off."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import calibrant.dsl.records
from calibrant.bench.runs.spill_file import SpillBuffer, StoredLines
from calibrant.dsl.errors import CalibrantError


@pytest.mark.parametrize("kept", [1, 2000])
def test_values_come_in_the_order_of_their_places(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", kept)
    with SpillBuffer[tuple[str, ...]]() as aside:
        for place in [(1, 0), (0, 10), (0, 9)]:
            aside.add(place, (str(place),))
        values = aside.values()
    expected = [("(0, 9)",), ("(0, 10)",), ("(1, 0)",)]
    assert list(values) == list(values) == expected
    assert list(values[1:]) == expected[1:]
    assert values[-1] == expected[-1]


def test_a_file_that_is_cut_off_is_refused_and_one_that_is_replaced_is_not(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"first\nsecond\n")
    with path.open("rb") as file:
        lines = StoredLines(file.fileno(), [(6, 6), (0, 5)])
    (tmp_path / "other").write_bytes(b"else")
    path.rename(tmp_path / "moved")
    (tmp_path / "other").rename(path)
    assert [lines.line(0), lines.line(1)] == [b"second", b"first"]
    os.truncate(tmp_path / "moved", 8)
    assert lines.line(1) == b"first"
    with pytest.raises(CalibrantError, match="cut off while it was read"):
        lines.line(0)
