"""The README's worked problem prints what its comments say, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pages import BLOCK, printed_and_promised

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_worked_problem_prints_what_it_says() -> None:
    ((_, printed, promised),) = printed_and_promised(README)
    assert len(printed) == 4
    for said, was in zip(promised, printed, strict=True):
        assert said.startswith(was)


def test_the_worked_problem_needs_only_public_names() -> None:
    (code,) = BLOCK.findall(README)
    assert re.findall(r"^(?:import|from) .*", code, re.MULTILINE) == ["import calibrant"]


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:docs|dsl|solvers|audits|bench)/[\w/.]+)`", README))))
def test_files_that_are_named_exist(name: str) -> None:
    assert (ROOT / name).exists()
