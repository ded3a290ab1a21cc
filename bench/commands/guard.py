"""An input is never an output: what every command reads and writes, and one check of it before any work.

Each parameter that is a path carries `READS` or a `Writes`; `guard_paths` wraps a command so that a path that it would
write is refused if it is one that it reads, under whatever name: a symbolic link, a hard link, standard input.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from stat import S_ISREG
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

import typer

from calibrant.bench.core.options import OptionError

P = ParamSpec("P")
R = TypeVar("R")

STANDARD_INPUT, STANDARD_OUTPUT = Path("-"), Path("/dev/stdout")
RECORD_FILES = ("records.jsonl", "audits.jsonl")  # what is read of a folder that is an input


class StoppedError(Exception):
    """Ctrl-C in a command.

    goes_on: what is done is kept, and the same command goes on from it
    """

    def __init__(self, *, goes_on: bool) -> None:
        super().__init__()
        self.goes_on = goes_on


@dataclass(frozen=True)
class Reads:
    """The parameter is a file that the command reads, or a folder of records."""


@dataclass(frozen=True)
class Writes:
    """The parameter is what the command writes.

    inside: names, or patterns of names, of the files that are written where it is a folder; empty for a file
    beside: further files that are written, `{}` standing for its own name
    goes_on: after Ctrl-C the same command goes on from what is there
    replaces: first bytes, in small letters, of the files whose place it takes; marks: of which such a file begins
        with one, for others are not ours
    """

    inside: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    goes_on: bool = False
    replaces: tuple[bytes, ...] = ()
    marks: tuple[bytes, ...] = (b"",)

    def targets(self, option: str, path: Path) -> Iterator[_Target]:
        yield _Target(option, path, self.inside, goes_on=self.goes_on and bool(self.inside))
        for name in self.beside:
            yield _Target(option, path.parent / name.format(path.name), goes_on=UNFINISHED in name)


READS = Reads()
WRITES = Writes()
WRITES_PAGE = Writes(replaces=(b"<!doctype html",), marks=(b'<meta name="generator" content="calibrant">',))
# as pages/design/page.py writes now, and wrote before
PICTURE_MARKS = (
    b"<style>svg text { font-family: ",
    b"<style>:root{color-scheme:",
    b"<style>@media (prefers-color-scheme:dark){",
)
WRITES_PICTURE = Writes(replaces=(b"<svg", b"<?xml"), marks=PICTURE_MARKS)
WRITES_OR_READS = Writes(replaces=(b"",))  # the command itself refuses what is there
RUN_FOLDER = Writes(("records.jsonl", "records.replaced.jsonl", "records.lock"), goes_on=True)
UNFINISHED = ".unfinished"  # folders of records from which a command goes on
WRITES_POOL = Writes(beside=(f"{{}}{UNFINISHED}/instances.jsonl", f"{{}}{UNFINISHED}/instances.lock"), goes_on=True)


@dataclass(frozen=True)
class _Target:
    """A file, or the files of these names in a folder, that an option makes a command write.

    goes_on: it holds what is done, from which the same command goes on
    """

    option: str
    path: Path
    names: tuple[str, ...] = ()
    goes_on: bool = False

    def require_kind(self) -> None:
        """Raise `HintedError`, with what would work, for a file where a folder is written, and for `-`."""
        from calibrant.bench.terminal import elsewhere_error, unused_path

        if self.path == STANDARD_INPUT:
            message = f"{self.option}: - is not a path; "
            if self.names:
                raise elsewhere_error(f"{message}a folder is expected", self.path, self.path)
            raise elsewhere_error(f"{message}/dev/stdout is standard output", self.path, STANDARD_OUTPUT)
        if self.names and self.path.is_file():
            message = f"{self.option}: {self.path} is a file; a folder is expected"
            raise elsewhere_error(message, self.path, unused_path(str(self.path.with_suffix(""))))

    def files(self) -> list[Path]:
        """Return the files that exist, or the file itself where no names are given."""
        return [file for name in self.names for file in self.path.glob(name)] if self.names else [self.path]

    def takes(self, path: Path, identity: tuple[int, int] | None) -> bool:
        """Return whether writing this replaces the file, or the one of this device and number."""
        place = path.resolve()
        if self.names:
            is_target = place.parent == self.path.resolve() and any(fnmatch(place.name, name) for name in self.names)
        else:
            is_target = place == self.path.resolve()
        return is_target or (identity is not None and any(_identity(file) == identity for file in self.files()))


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and number of an ordinary file; None for what is not there, and for terminals, pipes and devices."""
    try:
        status = os.fstat(sys.stdin.fileno()) if path == STANDARD_INPUT else path.stat()
    except (OSError, ValueError):  # no such file; a standard input that is no file at all
        return None
    return (status.st_dev, status.st_ino) if S_ISREG(status.st_mode) else None


def require_apart(inputs: Iterable[Path], outputs: Iterable[_Target]) -> None:
    """Raise a usage error if an output is an input, or another output; said before the work, not after it."""
    files = [(path, _identity(path)) for source in inputs for path in _files_of(source)]
    earlier: list[_Target] = []
    for target in outputs:
        for path, identity in files:
            if target.takes(path, identity):
                where = "standard input" if path == STANDARD_INPUT else f"the input {path}"
                name = target.path if not target.names else f"a file in {target.path}"
                raise typer.BadParameter(f"{name} is {where} too", param_hint=target.option)
        for previous in earlier:
            if previous.option != target.option and _meet(previous, target):
                raise typer.BadParameter(
                    f"{target.path} is what {previous.option} writes too", param_hint=target.option
                )
        earlier.append(target)


def _files_of(path: Path) -> list[Path]:
    return [path / name for name in RECORD_FILES] if path.is_dir() else [path]


def _meet(first: _Target, second: _Target) -> bool:
    if not second.names:
        return first.takes(second.path, _identity(second.path))
    if not first.names:
        return second.takes(first.path, _identity(first.path))
    return first.path.resolve() == second.path.resolve() and not set(first.names).isdisjoint(second.names)


def guard_paths(command: Callable[P, R]) -> Callable[P, R]:
    """Return the command behind the check of its paths. Ctrl-C in it becomes `StoppedError`."""

    @functools.wraps(command)
    def run_checked(*arguments: P.args, **options: P.kwargs) -> R:
        values = inspect.signature(command).bind(*arguments, **options).arguments
        roles = path_roles(command)
        inputs = [path for name, role in roles.items() if isinstance(role, Reads) for path in _paths(values.get(name))]
        output_roles = {
            name: role for name, role in roles.items() if isinstance(role, Writes) and _paths(values.get(name))
        }
        targets = [
            target
            for name, role in output_roles.items()
            for path in _paths(values[name])
            for target in role.targets(_option(command, name), path)
        ]
        for target in targets:
            target.require_kind()
        require_apart(inputs, targets)
        _require_all_new(command, values, output_roles)
        try:
            return command(*arguments, **options)
        except OptionError as error:
            raise typer.BadParameter(str(error), param_hint=error.option) from None
        except KeyboardInterrupt:
            raise StoppedError(goes_on=any(role.goes_on for role in output_roles.values())) from None

    return run_checked


def _require_all_new(command: Callable[..., Any], values: Mapping[str, Any], roles: Mapping[str, Writes]) -> None:
    """Refuse every output that is there already, before the work."""
    from calibrant.bench.terminal import refuse_existing

    listed = [
        (role, target)
        for name, role in roles.items()
        for path in _paths(values[name])
        for target in role.targets(_option(command, name), path)
    ]
    resumes = any(file.exists() for _, target in listed if target.goes_on for file in target.files())
    for role, target in listed:
        if not target.goes_on and not (target.names and resumes):
            refuse_existing(target.files(), target.option, target.path, role.replaces, role.marks)


def path_roles(command: Callable[..., Any]) -> dict[str, Reads | Writes | None]:
    """Return the role of each parameter that is a path; None where no role is declared."""
    hints = get_type_hints(inspect.unwrap(command), include_extras=True)
    return {
        name: next((role for role in getattr(hint, "__metadata__", ()) if isinstance(role, Reads | Writes)), None)
        for name, hint in hints.items()
        if _holds_paths(hint)
    }


def _holds_paths(hint: Any) -> bool:
    return hint is Path or any(_holds_paths(part) for part in get_args(hint))


def _paths(value: object) -> list[Path]:
    if isinstance(value, Path):
        return [value]
    return [path for path in value if isinstance(path, Path)] if isinstance(value, list | tuple) else []


def _option(command: Callable[..., Any], name: str) -> str:
    """Return the name of a parameter on the command line."""
    metadata = getattr(get_type_hints(inspect.unwrap(command), include_extras=True)[name], "__metadata__", ())
    setting = next((mark for mark in metadata if not isinstance(mark, Reads | Writes)), None)
    if isinstance(setting, typer.models.OptionInfo):
        flags = [text for text in (setting.default, *(setting.param_decls or ())) if str(text).startswith("--")]
        return str(flags[0]) if flags else f"--{name.replace('_', '-')}"
    return str(getattr(setting, "metavar", None) or name)
