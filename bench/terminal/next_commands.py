"""Commands to run next, with the paths that a command has just written, to be pasted."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from calibrant.bench.terminal import printable

HEADING = "next"
invocation: ContextVar[tuple[str, ...]] = ContextVar("invocation", default=())
"""The arguments of the command that runs."""


class NextCommand(NamedTuple):
    """A command and its purpose in a few words."""

    words: tuple[object, ...]
    purpose: str

    @property
    def line(self) -> str:
        return shlex.join(["calibrant", *map(str, self.words)])


def unused_path(name: str) -> Path:
    """Return a path that no file has: the name, or the name with a number."""
    path = Path(name)
    number = 2
    while path.exists():
        # `.`, `..` and `/` have no stem
        taken = Path(name) if Path(name).name not in ("", "..") else Path(name).resolve() / "new"
        path = taken.with_stem(f"{taken.stem}-{number}")
        number += 1
    return path


def command_without(*written: Path | None) -> tuple[str, ...]:
    """Return the arguments of the command that runs without options for these paths: it writes no file twice."""
    paths = {str(path) for path in written if path is not None}
    return _words_without(lambda option, value: value in paths)


def command_without_option(name: str) -> tuple[str, ...]:
    """Return the arguments of the command that runs without this option and its value."""
    return _words_without(lambda option, value: option == name)


def _words_without(drops: Callable[[str, str], bool]) -> tuple[str, ...]:
    """Return the arguments without the options with values that are to be dropped, in both spellings."""
    words = list[str]()
    for word in invocation.get():
        option, sign, value = word.partition("=")
        if words and words[-1].startswith("-") and drops(words[-1], word):
            words.pop()
        elif not (option.startswith("-") and sign and drops(option, value)):
            words.append(word)
    return tuple(words)


def pool_commands(pool: Path) -> list[NextCommand]:
    """Return what can be done with a pool that was written."""
    return [NextCommand(("pool", "check", pool), "is it sound"), NextCommand(("list", pool), "what is in it")]


def print_next(commands: Iterable[NextCommand]) -> None:
    """Print the commands on standard error, each at the end of its line; none that has characters to be escaped."""
    listed = [command for command in commands if printable(command.line) == command.line and "\n" not in command.line]
    width = max((len(command.purpose) for command in listed), default=0)
    for place, command in enumerate(listed):
        heading = "" if place else HEADING
        print(f"{heading:<{len(HEADING)}}  {command.purpose:<{width}}  {command.line}", file=sys.stderr)
