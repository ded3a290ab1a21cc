"""A page from its first unit to its last, in a folder of its own."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.faults.scenarios import UNOBSERVED
from tests.support.commands import CHECKOUT
from tests.support.models import served
from tests.support.pages.blocks import ELLIPSIS, Unit, run_line, run_program
from tests.support.pages.declared import PageSetup

ENDPOINT = "http://127.0.0.1:8000/v1"  # of the pages' models; a server on a free port takes its place
SCHEDULER_PORT = "8786"
LOG = "logs/....eval"  # on pages: the first log of the session
MAX_SCRIPT_SECONDS = 300  # kernels may have to be compiled first
SCRIPT = """
set -eu
calibrant() {{ {python} -m calibrant.bench.cli "$@"; }}
dask() {{ exec {python} -m dask "$@"; }}
pip() {{ :; }}
{text}
"""


def has_shown_lines(printed: Sequence[str], shown: Sequence[str]) -> bool:
    """Return whether an output ends with the lines that a page shows; a line `...` stands for any lines."""
    if ELLIPSIS not in shown:
        return [*printed[-len(shown) :]] == [*shown]
    place = len(shown) - 1 - [*reversed(shown)].index(ELLIPSIS)
    head, tail = shown[:place], shown[place + 1 :]
    if tail and [*printed[-len(tail) :]] != [*tail]:
        return False
    before = printed[: len(printed) - len(tail)]
    return any(has_shown_lines(before[:end], head) for end in range(len(before) + 1))


@dataclass
class PageSession:
    """The folder, the names and the replaced texts that the units of a page share."""

    folder: Path
    setup: PageSetup
    url: str = ""
    tools: Sequence[str] = ()  # programs besides `calibrant` and `python` that may be started, in processes
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})

    def run(self, unit: Unit) -> None:
        """Run a unit in the current folder; an AssertionError has what it printed."""
        text = self._text(unit)
        self._write_files(text)
        if name := self._written_name(unit):
            (self.folder / name).write_text(text, encoding="utf-8")
        elif unit.kind == "python":
            run_program(text, f"{unit.page}:{unit.line}", self.names)
        elif unit.kind == "script":
            self._run_script(unit, text)
        else:
            assert unit.kind == "command", f"{unit}: neither run, nor written to a file, nor declared as not run"
            self._run_command(unit, text)

    def _text(self, unit: Unit) -> str:
        """Return what is run in place of the text of the page."""
        text = unit.text.replace(ENDPOINT, self.url) if self.url else unit.text
        for printed, smaller in self.setup.smaller.items():
            text = text.replace(printed, smaller)
        if LOG in text:
            text = text.replace(LOG, min(map(str, Path("logs").glob("*.eval"))))  # they begin with their time
        return text

    def _written_name(self, unit: Unit) -> str | None:
        return next((name for name, start in self.setup.written.items() if unit.text.startswith(start)), None)

    def _write_files(self, text: str) -> None:
        for name, write in self.setup.files.items():
            if re.search(rf"(?<![\w/.]){re.escape(name)}(?!\w)", text) and not (self.folder / name).exists():
                write(self.folder / name)

    def _run_command(self, unit: Unit, text: str) -> None:
        expected = next((code for start, code in self.setup.exits.items() if unit.text.startswith(start)), 0)
        if shlex.split(text)[0] in self.tools:
            code, printed = self._run_bash(text)
        else:
            done = run_line(text)
            code, printed = done.returncode, done.stdout + done.stderr
        assert code == expected, f"{unit}: exit code {code}: {printed[-2000:]}"
        assert "Traceback" not in printed, f"{unit}: {printed[-2000:]}"
        if unit.output:
            assert has_shown_lines(printed.splitlines(), unit.output), f"{unit}: {printed[-2000:]}"

    def _run_script(self, unit: Unit, text: str) -> None:
        script = SCRIPT.format(python=shlex.quote(sys.executable), text=text.replace(SCHEDULER_PORT, _free_port()))
        code, printed = self._run_bash(script)
        assert code == 0, f"{unit}: exit code {code}: {printed[-4000:]}"

    def _run_bash(self, script: str) -> tuple[int, str]:
        """Return exit code and output of a script; what it leaves in the background, or is late, is killed."""
        with (self.folder / "script.log").open("w+", encoding="utf-8") as log:  # a pipe would wait for all children
            line, nothing = ["bash", "-c", script], subprocess.DEVNULL
            process = subprocess.Popen(
                line, stdin=nothing, stdout=log, stderr=log, env=_variables(), start_new_session=True
            )
            try:
                code = process.wait(MAX_SCRIPT_SECONDS)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            log.seek(0)
            return code, log.read()


@contextmanager
def session(folder: Path, setup: PageSetup, units: Sequence[Unit], tools: Sequence[str] = ()) -> Iterator[PageSession]:
    """Give a session of these units; a model stands behind the endpoint that one of them names.

    Blocks that are files stand in the folder before anything is run.
    """
    model = setup.model(folder)
    server = served(model) if any(ENDPOINT in unit.text for unit in units) else _no_server()
    with patch.dict(os.environ, setup.variables), server as url:
        made = PageSession(folder, setup, url, tools)
        for unit in units:
            if made._written_name(unit):
                made.run(unit)
        yield made


@contextmanager
def _no_server() -> Iterator[str]:
    yield ""


def _variables() -> dict[str, str]:
    """Programs beside the interpreter come first, and what is imported is this checkout."""
    paths = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    variables = {"PATH": paths, "PYTHONPATH": str(CHECKOUT), "no_proxy": "*", "MODEL_KEY": "none"}
    return {**os.environ, **UNOBSERVED, **variables}


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])
