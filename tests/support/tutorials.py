"""The cells of a tutorial in this process, one after another.

They show what the site shows, without a kernel for each page and a process for each command. `make docs` and the soak
run them as they are.
"""

from __future__ import annotations

import ast
import io
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from glob import glob
from pathlib import Path
from typing import Any

from calibrant.bench.cli import main

CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?P<tags>(?::[^\n]*\n)*)(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"\s*(?P<sign>\||2>&1|2>|>)\s*")
WRITTEN = "%%writefile "


def cells(page: Path) -> list[str]:
    return [cell["text"].strip() for cell in CELL.finditer(page.read_text(encoding="utf-8"))]


def outputs(page: Path) -> Iterator[str]:
    """Yield the output of each cell. A command that fails, like an exception of a cell, is one here too."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells(page):
        printed = io.StringIO()
        if cell.startswith(WRITTEN):
            name, _, text = cell.removeprefix(WRITTEN).partition("\n")
            Path(name).write_text(f"{text}\n", encoding="utf-8")
        elif cell.startswith("!"):
            printed.write("".join(_command(line.removeprefix("!")) for line in cell.splitlines()))
        else:
            with redirect_stdout(printed):
                _run(cell, names)
        yield printed.getvalue()


def _run(cell: str, names: dict[str, Any]) -> None:
    """Statements, and the value of the last if it is an expression without a semicolon."""
    *statements, last = ast.parse(cell).body
    shown = isinstance(last, ast.Expr) and not cell.endswith(";")
    exec(compile(ast.Module([*statements, *([] if shown else [last])], []), "cell", "exec"), names)
    if shown and isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        if value is not None:
            print(repr(value))


def _command(line: str) -> str:
    """Return the output of a line of one `calibrant` command; a filter after it is not run, nor /dev/null written."""
    command, *redirected = SHELL.split(line)
    program, *words = shlex.split(command)
    assert program == "calibrant", line
    printed, said = io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(said):
        code = main([name for word in words for name in (sorted(glob(word)) if "*" in word else [word])])
    assert code == 0, f"{line}: {said.getvalue()}"
    places = dict(zip(redirected[::2], redirected[1::2], strict=True))
    if ">" not in places:
        return printed.getvalue() + ("" if "2>" in places else said.getvalue())
    if places[">"] != "/dev/null":
        Path(places[">"]).write_text(printed.getvalue(), encoding="utf-8")
    return ""
