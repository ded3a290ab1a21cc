"""The README's worked problem needs public names alone, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_worked_problem_needs_only_public_names() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert re.findall(r"^(?:import|from) .*", code, re.MULTILINE) == ["import calibrant"]


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:docs|dsl|solvers|audits|bench)/[\w/.]+)`", README))))
def test_files_that_are_named_exist(name: str) -> None:
    assert (ROOT / name).exists()
