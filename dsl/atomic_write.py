"""Files that appear under their names complete or not at all, whatever stops the program; and files read as they are.

What a system lacks is replaced here. Windows has no O_NOFOLLOW and no `os.pread`, opens descriptors as text by default,
ignores modes but the owner's right to write, and keeps a file's name while somebody has it open, so that a file is
replaced there only once its readers have closed it (`OSError` until then).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from errno import ELOOP, ENOTDIR
from pathlib import Path
from typing import BinaryIO

READABLE, PRIVATE = 0o644, 0o600  # modes of files: for all, and for the owner alone
_BINARY = getattr(os, "O_BINARY", 0)  # Windows alone has it, and text there
_position_lock = threading.Lock()


def is_open_file(path: Path) -> bool:
    """Return whether this names a file that the process has open, such as /dev/stdout: it cannot be replaced."""
    link = os.readlink(path) if path.is_symlink() else ""
    return link.startswith("/proc/") or os.path.realpath(path.parent).startswith("/proc/")


def open_unlinked(path: Path) -> BinaryIO:
    """Open a file for reading, never through a link in its last place; `OSError` with ELOOP for a link."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | _BINARY)
    file = os.fdopen(handle, "rb")
    # without O_NOFOLLOW: what was opened is what stands there, and that is no link
    if not os.path.samestat(os.fstat(handle), path.lstat()):
        file.close()
        raise OSError(ELOOP, os.strerror(ELOOP), str(path))
    return file


def open_appending(path: Path, mode: int = READABLE) -> int:
    """Return a descriptor that reads anywhere (`read_at`) and writes at the end of a file, which is made if need be."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _BINARY, mode)
    if mode != READABLE:  # a file of an earlier version
        path.chmod(mode)
    return descriptor


def read_at(descriptor: int, size: int, start: int) -> bytes:
    """Return up to `size` bytes from the byte `start` on; where the next read or write happens stays as it was."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, start)
    with _position_lock:  # threads, and copies of a descriptor, have one position
        before = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, start, os.SEEK_SET)
        try:
            return os.read(descriptor, size)
        finally:
            os.lseek(descriptor, before, os.SEEK_SET)


@contextmanager
def whole_file(path: Path, mode: int = READABLE) -> Iterator[BinaryIO]:
    """Open a file that takes its name, and the place of an older one, when the block succeeds.

    Its folder is made if need be. A pipe or a device of that name is written to directly; an open file such as
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
    from tempfile import mkstemp  # with what it imports a fifth of the time that the help takes

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except FileExistsError:  # of mkdir: a file stands where the folder would be
        raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(path)) from None
    except OSError as error:  # which names the temporary file
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, mode)
        try:
            os.replace(temporary, path)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
    except BaseException:
        os.unlink(temporary)
        raise


def write_atomically(path: Path, text: str) -> None:
    """Write a text as UTF-8, with the same bytes on every system, in a folder that is made if need be."""
    write_pieces(path, (text,))


def write_pieces(path: Path, pieces: Iterable[str]) -> int:
    """Write a text atomically, piece by piece; return the number of pieces."""
    number = 0
    with whole_file(path) as file:
        for piece in pieces:
            file.write(piece.encode())
            number += 1
    return number


def write_privately(path: Path, text: str) -> None:
    """Write a text as UTF-8 into a file that its owner alone may read, at no moment anybody else."""
    with whole_file(path, PRIVATE) as file:
        file.write(text.encode())
