"""The page on CauSim: what it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "causim.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(?:calibrant\.)?((?:dsl|solvers|audits)(?:\.\w+)+)", PAGE))))
def test_modules_that_are_named_exist(name: str) -> None:
    parts = name.split(".")
    assert any((ROOT / Path(*parts[:k])).with_suffix(".py").exists() for k in range(2, len(parts) + 1))
