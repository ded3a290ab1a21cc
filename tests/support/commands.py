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
    rf"^.*(?:reading, after \d+ s|: \d+ of \d+ done after \d+ s.*|compiling kernels: .*|{FONT_CACHE}.*)\n", re.MULTILINE
)
"""Lines that a command prints where its work takes long: on a busy machine, or until kernels and fonts are cached."""

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, with warnings as errors."""
    return program("-m", "calibrant.bench.cli", *arguments, **options)


def called(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command in this process; return exit code and output. For tests that need no process of its own."""
    line, printed, said = [str(argument) for argument in arguments], io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(said):
        code = main(line)
    return subprocess.CompletedProcess(line, code, printed.getvalue(), PROGRESS.sub("", said.getvalue()))


def program(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Return an interpreter of its own, in the checkout, with warnings as errors."""
    line = [sys.executable, "-W", "error", *map(str, arguments)]
    settings = {"cwd": CHECKOUT} | options
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False, **settings)
    done.stderr = PROGRESS.sub("", done.stderr)
    return done


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the one line with which the command refuses these arguments."""
    assert main([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    said = PROGRESS.sub("", printed.err)
    assert printed.out == ""
    assert said.count("\n") == 1
    assert said.startswith("calibrant: ")
    return said.removeprefix("calibrant: ").rstrip("\n")


def jsonl(path: Path, *lines: Any) -> Path:
    """Return a file of JSON lines; texts are written as they are."""
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path
