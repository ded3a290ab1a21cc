"""The README's worked problem prints what its comments say, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_worked_problem_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    promised = [line.split("# ", 1)[1] for line in code.splitlines() if line.startswith("print(")]
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(promised) == 4
    for said, was in zip(promised, printed, strict=True):
        assert said.startswith(was)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:docs|dsl|solvers|audits|bench)/[\w/.]+)`", README))))
def test_files_that_are_named_exist(name: str) -> None:
    assert (ROOT / name).exists()
