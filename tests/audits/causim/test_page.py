"""The page on CauSim: its examples print what they say, and what it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pages import printed_and_promised

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "causim.md").read_text(encoding="utf-8")


def test_the_examples_print_what_they_say() -> None:
    blocks = list(printed_and_promised(PAGE))
    assert len(blocks) == 3
    for _, printed, promised in blocks:
        assert printed == promised


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:dsl|solvers|audits)(?:\.\w+)+)", PAGE))))
def test_modules_that_are_named_exist(name: str) -> None:
    parts = name.split(".")
    assert any((ROOT / Path(*parts[:k])).with_suffix(".py").exists() for k in range(2, len(parts) + 1))
