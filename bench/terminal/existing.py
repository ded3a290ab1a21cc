"""Files that are there already: a command does not take their place, unless they are an earlier page or picture."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from calibrant.bench.terminal.hints import HintedError
from calibrant.bench.terminal.next_commands import invocation, unused_path
from calibrant.dsl.atomic_write import is_open_file

HEAD = 4096  # bytes of a file that show whether it is a page or a picture, and whose


def refuse_existing(
    files: Iterable[Path], option: str, path: Path, replaced: tuple[bytes, ...] = (), marks: tuple[bytes, ...] = (b"",)
) -> None:
    """Raise `HintedError`, with the same command and a free path, if one of the files would be lost.

    path: the value of the option, of which these are the files; replaced: first bytes, in small letters, of files that
        may be replaced, if they have one of these marks
    """
    existing = next((file for file in files if _has_content(file, replaced, marks)), None)
    if existing is not None:
        message = f"{option}: {existing} is there already; give another path, or remove it first"
        raise elsewhere_error(message, path, unused_path(str(path)))


def elsewhere_error(message: str, path: Path, free: Path) -> HintedError:
    """Return an error beside the command that runs with another path in the place of this one."""
    words = [_respelled(word, str(path), str(free)) for word in invocation.get()]
    num_changed = sum(word != before for word, before in zip(words, invocation.get(), strict=True))
    return HintedError(message, command=words if num_changed == 1 else ())  # of two, one is perhaps an input


def _has_content(file: Path, replaced: tuple[bytes, ...], marks: tuple[bytes, ...]) -> bool:
    """Return whether this is an ordinary file that is not empty, and no page or picture of ours."""
    # what is written to /dev/stdout is added at its end
    if not file.is_file() or file.stat().st_size == 0 or is_open_file(file):
        return False
    with file.open("rb") as content:
        head = content.read(HEAD)
    return not (head.lstrip().lower().startswith(replaced) and any(mark in head for mark in marks))


def _respelled(word: str, path: str, free: str) -> str:
    """Return a word of a command line with another path where it is this one."""
    option, equals, value = word.partition("=")
    if option.startswith("--") and equals and value == path:
        return f"{option}={free}"
    return free if word == path else word
