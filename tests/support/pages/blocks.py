"""Code blocks of pages, the programs that run them, and pages that need packages of integrations."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from glob import glob
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from markdown_it import MarkdownIt

from calibrant.bench.cli import main
from calibrant.dsl.causim import networks
from tests.support.commands import CHECKOUT, PROGRESS, called

# --- Code blocks of a page, cut into units: a command, a script, a program, or a text that is none of these -----------
PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
SITE_DIRECTIVES = (
    "{toctree}",
    "{eval-rst}",
    "{image}",
    "{include}",
)  # of the site's builder, which fails on a wrong one
CELL = "{code-cell}"  # of tutorials: tests/test_site.py runs them
SHELLS = ("bash", "sh", "console", "shell")
PROGRAMS = ("calibrant", "python", "python3", "make", "pip", "inspect", "dask", "lm_eval", "vf-validate", "vf-eval")
SCRIPT = re.compile(r"^(?:#!|export |for )|&$", re.MULTILINE)
ELLIPSIS = "..."  # a line of an output that stands for lines which the page leaves out
SETTING = re.compile(r"[A-Z_]+=\S*")


@dataclass(frozen=True)
class Unit:
    """What is run at once, and what the page shows that it prints."""

    page: str
    line: int  # of the page, from 1; of a block's first line for what is not a command
    kind: str  # "python", "command", "script", the language of a data format, or "text"
    text: str
    output: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text.partition(chr(10))[0]}"


def page_name(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


def page_units(page: str, text: str) -> list[Unit]:
    """Return the units of a page in its order; those of the site's builder and cells of tutorials are left out."""
    units: list[Unit] = []
    for token in MarkdownIt().parse(text):
        if token.type in ("fence", "code_block") and token.map is not None:
            words = token.info.split()
            if not words or words[0] not in (*SITE_DIRECTIVES, CELL):
                first = token.map[0] + 1 + (token.type == "fence")
                units += _block_units(page, first, words[-1] if words else "", token.content)
    return units


def cell_count(text: str) -> int:
    return sum(token.type == "fence" and token.info.startswith(CELL) for token in MarkdownIt().parse(text))


def _block_units(page: str, first: int, language: str, text: str) -> Iterator[Unit]:
    lines = text.splitlines()
    if language in SHELLS or (not language and all(map(_is_command, _joined(lines)))):
        if SCRIPT.search(text):
            yield Unit(page, first, "script", text)
        else:
            yield from _commands(page, first, lines, prompt=language == "console")
    else:
        yield Unit(page, first, language or "text", text)


def _joined(lines: list[str]) -> list[str]:
    return "\n".join(lines).replace("\\\n", " ").splitlines()


def _is_command(line: str) -> bool:
    """Whether a line of a block without a language begins with a program, after settings such as SEED=7."""
    words = [word for word in line.split() if not SETTING.fullmatch(word)]
    return bool(words) and words[0] in PROGRAMS and not re.search(r"\[\w+ \.\.\.\]", line)


def _commands(page: str, first: int, lines: list[str], *, prompt: bool) -> Iterator[Unit]:
    """Yield a unit for each command; with a prompt, lines without one are what it prints."""
    number = 0
    while number < len(lines):
        start, text = number, lines[number]
        while text.endswith("\\"):
            number += 1
            text = f"{text[:-1].rstrip()} {lines[number].lstrip()}"
        number += 1
        output = []
        while prompt and number < len(lines) and not lines[number].startswith("$ "):
            output.append(lines[number])
            number += 1
        assert text.startswith("$ ") is prompt, f"{page}:{first + start}: {text}"
        command = re.sub(r"\s+# .*$", "", text.removeprefix("$ "))
        yield Unit(page, first + start, "command", command, tuple(output))


# --- Command lines in this process, so that each costs its work and not half a second of imports ----------------------
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


# --- Python blocks of a page: each line that they print is compared with the comment behind its `print` ---------------
PROMISE = re.compile(r"^ *print\(.*\)  # (?P<output>.*)$")
FURTHER = re.compile(r"^ *# (?P<output>.*)$")
PROSE = "; "  # what stands behind it is about the output


def promised_lines(code: str) -> list[str]:
    """Return the comments behind prints, and of lines right below one: what a loop prints next."""
    promised: list[str] = []
    follows = False
    for line in code.splitlines():
        match = PROMISE.match(line) or (FURTHER.match(line) if follows else None)
        follows = match is not None
        if match is not None:
            promised.append(match["output"])
        else:
            assert not re.match(r" *print\((?!.*file=)", line), f"the page does not show what it prints: {line}"
    return promised


def is_as_promised(printed: str, promised: str) -> bool:
    return promised == printed or promised.startswith(printed + PROSE)


def run_program(code: str, where: str, names: dict[str, Any]) -> None:
    """Run a block in the names of its page; an AssertionError shows what it prints otherwise than the page says."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, where, "exec"), names)
    printed, promised = out.getvalue().splitlines(), promised_lines(code)
    assert len(printed) == len(promised), (printed, promised)
    for was, shown in zip(printed, promised, strict=True):
        assert is_as_promised(was, shown), f"{where}: prints {was!r}, the page shows {shown!r}"


# --- Programs that a reader of docs/causim.md has from elsewhere ------------------------------------------------------
LAYERED_NODES = 20


def write_layered_programs(path: Path) -> None:
    """Write a line with a layered program."""
    with TemporaryDirectory() as folder:
        _, item, *_ = _generate(Path(folder), "layered", LAYERED_NODES).read_text(encoding="utf-8").splitlines()
    line = json.dumps({"id": "drafted", "source": json.loads(item)["program"]})
    path.write_text(f"{line}\n", encoding="utf-8")


def write_score_program(path: Path) -> None:
    """Write the stroke scale with another name for its total."""
    path.write_text(networks.program(networks.MAX_NODES).replace(networks.TOTAL, "score"), encoding="utf-8")


def write_state(path: Path) -> None:
    """Write a state file of one tree."""
    with TemporaryDirectory() as folder:
        unpacked = Path(folder) / "unpacked"
        assert called("pool", "unpack", _generate(Path(folder), "tree", 4), unpacked).returncode == 0
        path.write_bytes((unpacked / "state.json").read_bytes())


def _generate(folder: Path, topology: str, num_nodes: int) -> Path:
    """Return a pool about one program."""
    pool = folder / "generated.jsonl"
    line = ("generate", "--benchmark", "causim", "--strata", topology, "--seed", 1, "--out", pool)
    plan = ("-o", "programs=1", "-o", f"versions={num_nodes}", "-o", "each=1")
    assert called(*line, *plan).returncode == 0
    return pool
