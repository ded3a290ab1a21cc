"""Mutants are what they are said to be, and the command counts those that tests notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.__main__ import main
from tests.mutation.mutants import list_mutants


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("x = a < b", [("a < b", "a <= b")]),
        ("x = a + 1", [("a + 1", "a - 1"), ("1", "2")]),
        ("x = a and b", [("a and b", "a or b")]),
        ("x = not a", [("not a", "+a")]),
        ("x += True", [("x += True", "x -= True"), ("True", "False")]),
        ("for x in y:\n    continue", [("continue", "break")]),
        ('def f(x: "1 + 1" = 2) -> int:\n    """1 < 2"""', [("2", "3")]),
        ("raise E(f'{a + 1} of {b}')", []),
        ("x = a < b < c", []),
    ],
)
def test_each_change_is_made_once(source: str, changes: list[tuple[str, str]]) -> None:
    assert sorted((mutant.before, mutant.after) for mutant in list_mutants(source)) == sorted(changes)


def test_mutants_leave_each_other_alone() -> None:
    mutants = list_mutants("x = 1\ny = 2\n")
    assert [mutant.line for mutant in mutants] == [1, 2]
    assert {compile_value(mutant.tree) for mutant in mutants} == {(2, 2), (1, 3)}


def compile_value(tree: object) -> tuple[int, int]:
    names: dict[str, int] = {}
    exec(compile(tree, "mutant", "exec"), names)  # type: ignore[call-overload]
    return names["x"], names["y"]


def test_the_command_counts_what_tests_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of three: no test calls `g`. Starts pytest four times, a second each."""
    (tmp_path / "module.py").write_text("def f(a, b):\n    return a + b\n\ndef g(a):\n    return a - 1\n")
    (tmp_path / "test_module.py").write_text("from module import f\n\ndef test_f():\n    assert f(1, 2) == 3\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(__file__).resolve().parents[2]}")
    monkeypatch.chdir(tmp_path)
    assert main([str(tmp_path / "module.py"), str(tmp_path / "test_module.py")]) == 0
    *survivors, total = capsys.readouterr().out.splitlines()
    assert survivors == ["survived: line 5: a - 1 -> a + 1", "survived: line 5: 1 -> 2"]
    assert total.endswith("module.py: 1 of 3 mutants killed (33%)")
