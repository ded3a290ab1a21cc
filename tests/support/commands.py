"""Calling the command in tests."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.cli import main

FONT_CACHE = "building the font cache"
PROGRESS = re.compile(
    r"^.*(?:reading, after \d+ s|: \d+ of \d+ done after \d+ s.*|running \S.* on \S.*"
    rf"|compiling kernels: .*|{FONT_CACHE}.*)\n",
    re.MULTILINE,
)
"""Lines that a command prints where its work takes long: on a busy machine, or until kernels and fonts are cached."""
NEXT = re.compile(r"^(?:next| {4})  \S.*  calibrant .*\n", re.MULTILINE)
"""Lines that name what can be done next: tests/bench/terminal pastes them."""

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, with warnings as errors."""
    return program("-m", "calibrant.bench.cli", *arguments, **options)


def called(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command in this process; return exit code and output. For tests that need no process of its own."""
    line, printed, said = [str(argument) for argument in arguments], io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(said):
        code = main(line)
    errors = NEXT.sub("", PROGRESS.sub("", said.getvalue()))
    return subprocess.CompletedProcess(line, code, printed.getvalue(), errors)


def program(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Return an interpreter of its own, in the checkout, with warnings as errors."""
    line = [sys.executable, "-W", "error", *map(str, arguments)]
    settings = {"cwd": CHECKOUT} | options
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False, **settings)
    done.stderr = NEXT.sub("", PROGRESS.sub("", done.stderr))
    return done


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the line with which the command refuses these arguments, without its hint."""
    return refusal(capsys, *arguments)[0]


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, str]:
    """Return the error and the hint with which the command refuses these arguments; an empty hint if there is none."""
    assert main([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    said = PROGRESS.sub("", printed.err)
    assert printed.out == ""
    error, _, hint = said.removesuffix("\n").partition("\n")
    assert error.startswith("error  ")
    assert "\n" not in hint
    assert not hint or hint.startswith("hint   calibrant ")
    return error.removeprefix("error  "), hint.removeprefix("hint   ")


def jsonl(path: Path, *lines: Any) -> Path:
    """Return a file of JSON lines; texts are written as they are."""
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path
