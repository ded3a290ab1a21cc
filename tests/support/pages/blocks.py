"""Code blocks of a page, cut into units: a command, a script, a program, or a text that is none of these."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

from tests.support.commands import CHECKOUT

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
