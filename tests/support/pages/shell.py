"""Command lines in this process, so that each costs its work and not half a second of imports."""

from __future__ import annotations

import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from glob import glob
from itertools import takewhile
from pathlib import Path
from unittest.mock import patch

from calibrant.bench.cli import main
from tests.support.commands import PROGRESS

REDIRECTION = re.compile(r"\s*(?P<sign>\||2>&1|2>|>)\s*")
ASSIGNMENT = re.compile(r"[A-Z_]+=.*")


def run_line(line: str) -> subprocess.CompletedProcess[str]:
    """Run one line of `calibrant` or `python`: exit code, and what it leaves on the screen.

    A filter after it is not run, and /dev/null is not written. Standard input is empty.
    """
    command, *redirected = REDIRECTION.split(line)
    words = shlex.split(command)
    settings = dict(word.split("=", 1) for word in takewhile(ASSIGNMENT.fullmatch, words))
    words = [name for word in words[len(settings) :] for name in (sorted(glob(word)) if "*" in word else [word])]
    printed, said = io.StringIO(), io.StringIO()
    streams = redirect_stdout(printed), redirect_stderr(said), patch.object(sys, "stdin", io.StringIO())
    with streams[0], streams[1], streams[2], patch.dict(os.environ, settings):
        code = _run_program(*words)
    places = dict(zip(redirected[::2], redirected[1::2], strict=True))
    errors = "" if "2>" in places else PROGRESS.sub("", said.getvalue())
    if ">" not in places:
        return subprocess.CompletedProcess(words, code, printed.getvalue(), errors)
    if places[">"] != "/dev/null":
        Path(places[">"]).write_text(printed.getvalue(), encoding="utf-8")
    return subprocess.CompletedProcess(words, code, "", "" if "2>&1" in places else errors)


def _run_program(program: str, *arguments: str) -> int:
    if program == "calibrant":
        return main(list(arguments))
    assert program in ("python", "python3"), f"{program}: not run in this process"
    try:
        if arguments[0] == "-m":
            with patch.object(sys, "argv", list(arguments[1:])), _not_imported(arguments[1]):
                runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            with patch.object(sys, "argv", list(arguments)):
                runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as stopped:
        return stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    return 0


@contextmanager
def _not_imported(name: str) -> Iterator[None]:
    """Prepare the program as in a new process: runpy warns of one that an earlier test has imported."""
    modules = {name: sys.modules.get(name) for name in (name, f"{name}.__main__")}
    held = {name: module for name, module in modules.items() if module and not hasattr(module, "__path__")}
    for program in held:
        del sys.modules[program]
    try:
        yield
    finally:
        sys.modules.update(held)
