"""Commands with what Windows has of Python's library: `python tests/bench/windows.py LINES`, a JSON list of word lists.

They run one after another, until one fails.

Our modules, these alone, see `os`, `signal`, `multiprocessing` and others without the names that the stubs of typeshed
give to other systems only, and lack modules that have none but such names. What Windows does otherwise with files is
done too: a file that this process has open is neither replaced nor deleted, and modes of files are ignored.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from errno import EACCES
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

O_BINARY = 0x8000  # that Windows has, and Linux lacks
CHANGED = ("errno", "mmap", "multiprocessing.reduction", "os", "select", "signal", "socket", "time")
MISSING = (
    "crypt", "curses", "fcntl", "grp", "nis", "ossaudiodev", "posix", "pty", "pwd", "readline", "resource", "spwd",
    "syslog", "termios", "tty",
)  # fmt: skip


def stub_names(module: str, platform: str) -> set[str]:
    """Return the public names that the stub of a module defines on a platform, as `sys.platform` names it."""
    import mypy

    place = Path(mypy.__file__ or "").parent / "typeshed" / "stdlib" / module.replace(".", "/")
    stub = place / "__init__.pyi" if place.is_dir() else place.with_suffix(".pyi")
    names: set[str] = set()
    for statement in _statements(ast.parse(stub.read_text(encoding="utf-8")).body, platform):
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(statement.name)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                names.add(name)
            case ast.ImportFrom():
                names |= {alias.asname or alias.name for alias in statement.names}
    return {name for name in names if not name.startswith("__")}


def _statements(body: list[ast.stmt], platform: str) -> Iterator[ast.stmt]:
    """Yield the statements that hold on a platform."""
    system = SimpleNamespace(platform=platform, version_info=sys.version_info)
    for statement in body:
        if isinstance(statement, ast.If):
            holds = eval(compile(ast.Expression(statement.test), "stub", "eval"), {"sys": system})
            yield from _statements(statement.body if holds else statement.orelse, platform)
        else:
            yield statement


def missing_names(module: str) -> set[str]:
    """Return the names of a module that Linux has and Windows lacks."""
    return stub_names(module, "linux") - stub_names(module, "win32")


def without_posix(module: str) -> ModuleType:
    """Return a copy of a module without the names that Windows lacks."""
    real = importlib.import_module(module)
    lacking = missing_names(module)
    copy = ModuleType(module)
    vars(copy).update((name, value) for name, value in vars(real).items() if name not in lacking)
    return copy


class _WindowsSys(ModuleType):
    """`sys` as it is, but for the name of the platform."""

    platform = "win32"

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(sys, name, value)


def restrict_imports() -> None:
    """Let our modules import what Windows has."""
    copies = {name: without_posix(name) for name in CHANGED}
    vars(copies["os"]).update(O_BINARY=O_BINARY, open=_open_binary)
    copies["sys"] = _WindowsSys("sys")
    copies["multiprocessing"] = ModuleType("multiprocessing")
    vars(copies["multiprocessing"]).update(vars(multiprocessing) | {"reduction": copies["multiprocessing.reduction"]})
    real_import = builtins.__import__

    def import_restricted(name: str, *arguments: Any, **keywords: Any) -> ModuleType:
        importer = arguments[0].get("__name__", "") if arguments and arguments[0] else ""
        if importer.partition(".")[0] != "calibrant":
            return real_import(name, *arguments, **keywords)
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        module = real_import(name, *arguments, **keywords)
        return copies.get(module.__name__, module)

    builtins.__import__ = import_restricted


def _open_binary(path: Any, flags: int, mode: int = 0o777) -> int:
    """Open as os.open does; refuse text mode, which Windows has by default, with other line ends."""
    assert flags & O_BINARY or path == os.devnull, f"{path} is opened as text"
    return os.open(path, flags & ~O_BINARY, mode)


def keep_open_files() -> None:
    """Let no file be replaced, renamed or deleted that this process has open; ignore modes."""
    for name, position in (("replace", 1), ("rename", 1), ("unlink", 0), ("remove", 0)):
        setattr(os, name, _refuse_open(getattr(os, name), position))
    real_chmod = os.chmod

    def chmod(path: Any, *arguments: Any, **keywords: Any) -> None:
        if not _is_ours():
            real_chmod(path, *arguments, **keywords)

    os.chmod = chmod


def _refuse_open(real: Callable[..., None], position: int) -> Callable[..., None]:
    def guarded(*arguments: Any, **keywords: Any) -> None:
        paths = {os.path.realpath(os.fspath(path)) for path in arguments[: position + 1]}
        if _is_ours() and not paths.isdisjoint(_open_paths()):
            raise PermissionError(EACCES, "used by another process", str(arguments[position]))
        real(*arguments, **keywords)

    return guarded


def _is_ours() -> bool:
    """Return whether the call comes from our modules, or from pathlib."""
    caller = str(sys._getframe(2).f_globals.get("__name__"))
    return caller.partition(".")[0] in ("calibrant", "pathlib")


def _open_paths() -> Iterator[str]:
    for link in Path("/proc/self/fd").iterdir():
        try:
            yield os.readlink(link)
        except OSError:  # the folder itself
            continue


restrict_imports()
keep_open_files()
if __name__ == "__main__":  # worker processes import this file again
    from calibrant.bench.cli import main

    for line in json.loads(sys.argv[1]):
        if code := main(line):
            sys.exit(f"{line}: exit code {code}")
