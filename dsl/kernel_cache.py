"""Compiled kernels: the folder of their cache, and the lock of processes that compile.

Compiled code is loaded from the folder without a check. So a folder is used only if no other user can write to it,
replace it or replace a folder above it, and if all its entries belong to this user.

This module imports no compiler, so that a program can set a listener before one is loaded.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import FileLock

# --- The folder of the cache, whose name has a digest of all kernel sources -------------------------------------------
_ROOT = Path(__file__).resolve().parent.parent
_KERNEL_PACKAGES = ("dsl", "solvers", "baselines")


def kernel_files(root: Path = _ROOT) -> Iterator[Path]:
    """Yield the kernel sources of a checkout or an installation, in a fixed order."""
    for package in _KERNEL_PACKAGES:
        yield from sorted((root / package).rglob("_kernels*.py"))


def cache_name(compiler_version: str, root: Path = _ROOT) -> str:
    """Return the name of the folder, which depends on all kernel sources and the compiler's version."""
    import hashlib  # imported here because only compiling needs it, and every command imports this module

    digest = hashlib.sha256(compiler_version.encode())
    for path in kernel_files(root):
        digest.update(path.read_bytes())
    return f"kernels-{digest.hexdigest()[:16]}"


def cache_folder(compiler_version: str) -> Path:
    """Return the folder, created if missing.

    If the user's cache cannot be used, it is a private folder among the temporary files.
    """
    from tempfile import gettempdir

    name = cache_name(compiler_version)
    return user_folder(name) or private_folder(Path(gettempdir()).resolve(), f"calibrant-{name}")


def user_folder(name: str) -> Path | None:
    """Return a folder of the user's cache, created if missing; None if it cannot be created or is not private."""
    from platformdirs import user_cache_path

    folder = user_cache_path("calibrant").absolute() / name
    with suppress(OSError):
        _make(folder)
        if is_private(folder.resolve()):
            return folder.resolve()
    return None


def private_folder(parent: Path, name: str) -> Path:
    """Return a private folder in `parent`, named after `name` and the user; a new one if that is not private."""
    from tempfile import mkdtemp

    folder = parent / f"{name}-{_user()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700)
    with suppress(OSError):
        if is_private(folder):
            return folder
    return Path(mkdtemp(prefix=f"{name}-", dir=parent))


def is_private(folder: Path) -> bool:
    """Return whether only this user can write to or replace a folder, and only this user has written to it.

    The folder and its entries belong to this user and are no links; nobody else may write to it, nor to the folders
    above it unless they are sticky (others' entries cannot be replaced there). `folder` is absolute, without links.
    """
    if not hasattr(os, "getuid"):  # Windows has no such modes; folders of the user's profile are private there
        return True
    if not all(_is_protected(above.lstat()) for above in folder.parents):
        return False
    state = folder.lstat()
    is_closed = not state.st_mode & (stat.S_IRWXG | stat.S_IRWXO)  # if so, modes of its entries do not matter
    if not (stat.S_ISDIR(state.st_mode) and state.st_uid == _user() and not _open_to_others(state)):
        return False
    return all(
        entry.st_uid == _user() and not stat.S_ISLNK(entry.st_mode) and (is_closed or not _open_to_others(entry))
        for entry in _entries(folder)
    )


def _entries(folder: Path) -> Iterator[os.stat_result]:
    """Yield the state of all entries below, except those that a process compiling now has just renamed."""
    for above, folders, files in os.walk(folder):  # takes half the time of `Path.rglob` for a thousand files
        for name in (*folders, *files):
            with suppress(FileNotFoundError):
                yield os.lstat(os.path.join(above, name))


def _is_protected(above: os.stat_result) -> bool:
    """Return whether only this user and the administrator can replace an entry of a folder."""
    trusted = above.st_uid in (0, _user())
    return (
        trusted and stat.S_ISDIR(above.st_mode) and (not _open_to_others(above) or bool(above.st_mode & stat.S_ISVTX))
    )


def _open_to_others(state: os.stat_result) -> bool:
    return bool(state.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _make(folder: Path) -> None:
    """Create a folder and its parents, closed to others whatever the umask is."""
    if not folder.parent.exists():
        _make(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def _user() -> int:
    """Return the user id; 0 on systems without user ids, where files have owner 0 too."""
    return os.getuid() if hasattr(os, "getuid") else 0


# --- Compilation of kernels: one process compiles, others wait and load; a listener is notified -----------------------
MAX_WAIT_SECONDS = 300.0  # after this wait for another process, this one compiles too


class CompileListener:
    """The callback that receives the name of a kernel before it is compiled; None by default."""

    listener: Callable[[str], None] | None = None


class CompileLock:
    """A reentrant lock between processes that compile into a folder; callers must serialize threads."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "compiling.lock"
        self._lock: FileLock | None = None  # created, and its library imported, only when compiling
        self._depth = 0

    def __enter__(self) -> CompileLock:
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._lock is not None and self._lock.is_locked:
            self._lock.release()

    def wait(self) -> None:
        """Wait until no other process compiles, at most MAX_WAIT_SECONDS; return at once if files cannot be locked."""
        from filelock import FileLock

        self._lock = self._lock or FileLock(self._path, timeout=MAX_WAIT_SECONDS)
        if not self._lock.is_locked:
            with suppress(OSError, NotImplementedError):  # a timeout is one of them
                self._lock.acquire()

    @staticmethod
    def notify(kernel: str) -> None:
        logging.getLogger("calibrant.kernels").debug("compiling %s", kernel)
        if CompileListener.listener is not None:
            CompileListener.listener(kernel)


class PlainWork:
    """Count of cells that this process replays by numpy before it compiles, so that small inputs need no compiler."""

    num_cells = 0
    limit = 1 << 18  # some 0.2 s in calls of 500 cells; compiling the kernel takes 0.9 s

    @classmethod
    def take(cls, num_cells: int) -> bool:
        """Count `num_cells` further cells; return whether the total is within the limit."""
        cls.num_cells += num_cells
        return cls.num_cells <= cls.limit
