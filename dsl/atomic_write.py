"""Atomic writing: a file appears under its name complete or not at all; and safe opening of files.

Differences of systems are handled here. Windows has no O_NOFOLLOW and no `os.pread`, opens descriptors as text by
default, ignores modes except the owner's right to write, and does not replace a file while it is open (`OSError`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, ELOOP, ENOSPC, ENOTDIR
from pathlib import Path
from typing import BinaryIO

READABLE, PRIVATE = 0o644, 0o600  # file modes: readable by all, or by the owner alone
_BINARY = getattr(os, "O_BINARY", 0)  # on Windows alone, where text is the default
_FULL = (ENOSPC, EDQUOT, EFBIG)  # errors of writing that name no file
_position_lock = threading.Lock()


def is_open_file(path: Path) -> bool:
    """Return whether a path is an open file of the process, such as /dev/stdout, which cannot be replaced."""
    # the folder too: /dev/fd is a link to /proc/self/fd
    link = os.readlink(path) if path.is_symlink() else ""
    return link.startswith("/proc/") or os.path.realpath(path.parent).startswith("/proc/")


def open_no_follow(path: Path) -> BinaryIO:
    """Open a file for reading; `OSError` with ELOOP if the path itself is a link."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | _BINARY)
    file = os.fdopen(handle, "rb")
    # for systems without O_NOFOLLOW: the opened file is the one at the path, not a link's target
    if not os.path.samestat(os.fstat(handle), path.lstat()):
        file.close()
        raise OSError(ELOOP, os.strerror(ELOOP), str(path))
    return file


def open_appending(path: Path, mode: int = READABLE) -> int:
    """Return a descriptor that reads anywhere (`read_at`) and appends; the file is created if missing."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _BINARY, mode)
    if mode != READABLE:  # a file that an earlier version wrote has another mode
        path.chmod(mode)
    return descriptor


def read_at(descriptor: int, size: int, start: int) -> bytes:
    """Return up to `size` bytes from byte `start` on, without moving the file position."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, start)
    with _position_lock:  # threads, and copies of a descriptor, share the position
        before = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, start, os.SEEK_SET)
        try:
            return os.read(descriptor, size)
        finally:
            os.lseek(descriptor, before, os.SEEK_SET)


@contextmanager
def open_atomically(path: Path, mode: int = READABLE) -> Iterator[BinaryIO]:
    """Open a temporary file that takes the path, replacing an older file, when the block succeeds.

    Missing folders are created. A pipe or a device of that name is written to directly; an open file such as
    /dev/stdout is appended to. `OSError` as from `open`.
    """
    if is_open_file(path):
        with path.open("ab") as file:
            yield file
        return
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    from tempfile import mkstemp  # its imports take a fifth of the time of `--help`

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except FileExistsError:  # from mkdir: a file has the name of the folder
        raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(path)) from None
    except OSError as error:  # raised again with the path, because it names the temporary file
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, mode)
        try:
            os.replace(temporary, path)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def write_atomically(path: Path, text: str) -> None:
    """Write a text as UTF-8, with equal bytes on every system; missing folders are created."""
    write_pieces(path, (text,))


def write_pieces(path: Path, pieces: Iterable[str]) -> int:
    """Write a text atomically, piece by piece; return the number of pieces."""
    num_pieces = 0
    with open_atomically(path) as file:
        for piece in pieces:
            file.write(piece.encode())
            num_pieces += 1
    return num_pieces


def write_privately(path: Path, text: str) -> None:
    """Write a text as UTF-8 into a file that only its owner may read, at every moment."""
    with open_atomically(path, PRIVATE) as file:
        file.write(text.encode())
