"""Guard against overwriting inputs: declared roles of path parameters, and one check before any work.

Each path parameter is annotated by `READS` or a `Writes`; `guard_paths` wraps a command so that it refuses to write a
file that it reads, also under another name: a symbolic link, a hard link, standard input.
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
from typing import Annotated, Any, ParamSpec, TypeVar, get_args, get_type_hints

import typer

from calibrant.bench.core.options import OptionError
from calibrant.bench.help import OUTPUT
from calibrant.bench.terminal import is_quiet
from calibrant.dsl.kernel_cache import CompileListener

P = ParamSpec("P")
R = TypeVar("R")

STANDARD_INPUT, STANDARD_OUTPUT = Path("-"), Path("/dev/stdout")
RECORD_FILES = ("records.jsonl", "audits.jsonl")  # files that are read from an input folder


class StoppedError(Exception):
    """Ctrl-C in a command.

    is_resumable: whether finished work is stored, from which the same command resumes
    """

    def __init__(self, *, is_resumable: bool) -> None:
        super().__init__()
        self.is_resumable = is_resumable


@dataclass(frozen=True)
class Reads:
    """The parameter is a file that the command reads, or a folder of records."""


@dataclass(frozen=True)
class Writes:
    """The parameter is a file or folder that the command writes.

    inside: names of the files, or patterns of names, that are written into a folder; empty if the value is a file
    beside: names of further files in the same parent folder; `{}` stands for the name of the value,
        `{stem}` for that without its suffix
    is_resumable: after Ctrl-C the same command resumes from the files that it wrote
    replaces: first bytes, in lower case, of existing files that may be replaced; none may if empty
    marks: texts, one of which an existing file must contain to be replaced, as files of this program do
    """

    inside: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    is_resumable: bool = False
    replaces: tuple[bytes, ...] = ()
    marks: tuple[bytes, ...] = (b"",)

    def targets(self, option: str, path: Path) -> Iterator[_Target]:
        yield _Target(option, path, self.inside, is_resumable=self.is_resumable and bool(self.inside))
        for name in self.beside:
            yield _Target(option, path.parent / name.format(path.name, stem=path.stem), is_resumable=UNFINISHED in name)


READS = Reads()
WRITES = Writes()
WRITES_PAGE = Writes(replaces=(b"<!doctype html",), marks=(b'<meta name="generator" content="calibrant">',))
# of drawings by `standalone_svg` of bench/pages/page.py, and of those by earlier versions
PICTURE_MARKS = (
    b"<style>svg text { font-family: ",
    b"<style>:root{color-scheme:",
    b"<style>@media (prefers-color-scheme:dark){",
)
WRITES_PICTURE = Writes(replaces=(b"<svg", b"<?xml"), marks=PICTURE_MARKS)
WRITES_OR_READS = Writes(
    replaces=(b"",)
)  # any existing file passes: the command itself refuses those it may not replace
RUN_FOLDER = Writes(("records.jsonl", "records.replaced.jsonl", "records.lock"), is_resumable=True)
UNFINISHED = ".unfinished"  # suffix of a folder of records from which a command resumes
WRITES_POOL = Writes(
    beside=(f"{{}}{UNFINISHED}/instances.jsonl", f"{{}}{UNFINISHED}/instances.lock"), is_resumable=True
)


@dataclass(frozen=True)
class _Target:
    """A file, or the files of these names in a folder, that an option makes a command write.

    names: names of the files, or patterns of names, in the folder `path`; empty if `path` is the file
    is_resumable: the file holds finished work, from which the same command resumes
    """

    option: str
    path: Path
    names: tuple[str, ...] = ()
    is_resumable: bool = False

    def require_kind(self) -> None:
        """Raise `HintedError`, with a command that would work, for `-` and for a file in the place of a folder."""
        from calibrant.bench.terminal import elsewhere_error, unused_path

        if self.path == STANDARD_INPUT:
            message = f"{self.option}: - is not a path; "
            if self.names:
                # the same path twice: no command is proposed
                raise elsewhere_error(f"{message}a folder is expected", self.path, self.path)
            raise elsewhere_error(f"{message}/dev/stdout is standard output", self.path, STANDARD_OUTPUT)
        if self.names and self.path.is_file():
            message = f"{self.option}: {self.path} is a file; a folder is expected"
            raise elsewhere_error(message, self.path, unused_path(str(self.path.with_suffix(""))))

    def files(self) -> list[Path]:
        """Return the files that exist, or the file itself where no names are given."""
        return [file for name in self.names for file in self.path.glob(name)] if self.names else [self.path]

    def overwrites(self, path: Path, identity: tuple[int, int] | None) -> bool:
        """Return whether writing this target replaces a file, under this path or another; identity: see `_identity`."""
        resolved = path.resolve()
        if self.names:
            is_target = resolved.parent == self.path.resolve() and any(fnmatch(resolved.name, n) for n in self.names)
        else:
            is_target = resolved == self.path.resolve()
        return is_target or (identity is not None and any(_identity(file) == identity for file in self.files()))


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a regular file; None for a missing file, a terminal, a pipe or a device."""
    try:
        status = os.fstat(sys.stdin.fileno()) if path == STANDARD_INPUT else path.stat()
    except (OSError, ValueError):  # no such file; a standard input that is no file at all
        return None
    return (status.st_dev, status.st_ino) if S_ISREG(status.st_mode) else None


def require_apart(inputs: Iterable[Path], outputs: Iterable[_Target]) -> None:
    """Raise a usage error, before any work, if an output is also an input or another output."""
    files = [(path, _identity(path)) for source in inputs for path in _files_of(source)]
    earlier: list[_Target] = []
    for target in outputs:
        for path, identity in files:
            if target.overwrites(path, identity):
                where = "standard input" if path == STANDARD_INPUT else f"the input {path}"
                name = target.path if not target.names else f"a file in {target.path}"
                raise typer.BadParameter(f"{name} is {where} too", param_hint=target.option)
        for previous in earlier:
            if previous.option != target.option and _overlap(previous, target):
                raise typer.BadParameter(
                    f"{target.path} is what {previous.option} writes too", param_hint=target.option
                )
        earlier.append(target)


def _files_of(path: Path) -> list[Path]:
    return [path / name for name in RECORD_FILES] if path.is_dir() else [path]


def _overlap(first: _Target, second: _Target) -> bool:
    if not second.names:
        return first.overwrites(second.path, _identity(second.path))
    if not first.names:
        return second.overwrites(first.path, _identity(first.path))
    return first.path.resolve() == second.path.resolve() and not set(first.names).isdisjoint(second.names)


SILENT_COMMANDS = frozenset(["protocols", "schema", "stats"])
"""Functions of commands that print nothing but the requested output; all others have --quiet."""
QUIET = "No progress, legends and hints on standard error; warnings and errors stay."


def _add_quiet(wrapper: Callable[..., Any]) -> None:
    """Give a command the option --quiet, which the guard takes."""
    # from the command, because functools.wraps copies no annotations from Python 3.14 on
    signature, hints = inspect.signature(wrapper), get_type_hints(inspect.unwrap(wrapper), include_extras=True)
    kind = Annotated[bool, typer.Option("--quiet", help=QUIET, rich_help_panel=OUTPUT)]
    quiet = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
    stated = [part.replace(annotation=hints.get(name, part.annotation)) for name, part in signature.parameters.items()]
    wrapper.__signature__ = signature.replace(parameters=[*stated, quiet])  # type: ignore[attr-defined]  # typer reads it
    wrapper.__annotations__ = {**hints, "quiet": kind}


def guard_paths(command: Callable[P, R]) -> Callable[P, R]:
    """Wrap a command: check its paths first, turn Ctrl-C into `StoppedError`, and give most commands --quiet."""

    @functools.wraps(command)
    def run_checked(*arguments: P.args, **options: P.kwargs) -> R:
        if options.pop("quiet", False):
            is_quiet.set(True)
            CompileListener.listener = None  # started processes inherit it
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
            raise StoppedError(is_resumable=any(role.is_resumable for role in output_roles.values())) from None

    if command.__name__ not in SILENT_COMMANDS:
        _add_quiet(run_checked)
    return run_checked


def _require_all_new(command: Callable[..., Any], values: Mapping[str, Any], roles: Mapping[str, Writes]) -> None:
    """Raise for every existing output that may not be replaced, before any work; folders to resume from may exist."""
    from calibrant.bench.terminal import refuse_existing

    listed = [
        (role, target)
        for name, role in roles.items()
        for path in _paths(values[name])
        for target in role.targets(_option(command, name), path)
    ]
    resumes = any(file.exists() for _, target in listed if target.is_resumable for file in target.files())
    for role, target in listed:
        if not target.is_resumable and not (target.names and resumes):
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
    declaration = next((entry for entry in metadata if not isinstance(entry, Reads | Writes)), None)
    if isinstance(declaration, typer.models.OptionInfo):
        flags = [text for text in (declaration.default, *(declaration.param_decls or ())) if str(text).startswith("--")]
        return str(flags[0]) if flags else f"--{name.replace('_', '-')}"
    return str(getattr(declaration, "metavar", None) or name)
