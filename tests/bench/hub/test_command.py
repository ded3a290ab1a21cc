"""calibrant export: what is refused, before anything is written."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from calibrant.bench.core.registry import bundled_pool
from tests.support.commands import refused


def test_a_folder_that_is_there_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kept").write_text("kept")
    said = refused(capsys, "export", str(bundled_pool("ordered")), "--out", str(tmp_path))
    assert said.endswith("there already; an export is a folder of its own")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="pyarrow is installed here")
def test_without_pyarrow_one_line_says_what_to_install(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "export", str(bundled_pool("ordered")), "--out", str(tmp_path / "out"))
    assert said.endswith("an export needs pyarrow; install it with pip install 'calibrant[hub]'")
    assert not list(tmp_path.iterdir())
