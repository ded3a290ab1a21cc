"""Files that are there already: a command does not take their place, unless they are an earlier page or picture."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from calibrant.dsl.atomic_write import is_open_file

HEAD = 100  # bytes of a file that show whether it is a page or a picture


def refuse_existing(files: Iterable[Path], option: str, path: Path, replaced: tuple[bytes, ...] = ()) -> None:
    """Raise `HintedError`, with the same command and a free path, if one of the files would be lost.

    path: the value of the option, of which these are the files; replaced: first bytes, in small letters, of files that
        may be replaced
    """
    from calibrant.bench.terminal.hints import HintedError
    from calibrant.bench.terminal.next_commands import invocation, unused_path

    existing = next((file for file in files if _has_content(file, replaced)), None)
    if existing is None:
        return
    free = str(unused_path(str(path)))
    words = [_respelled(word, str(path), free) for word in invocation.get()]
    message = f"{option}: {existing} is there already; give another path, or remove it first"
    raise HintedError(message, command=words if words != [*invocation.get()] else ())


def _has_content(file: Path, replaced: tuple[bytes, ...]) -> bool:
    """Return whether this is an ordinary file that is not empty and begins in none of these ways."""
    # what is written to /dev/stdout is added at its end
    if not file.is_file() or file.stat().st_size == 0 or is_open_file(file):
        return False
    with file.open("rb") as content:
        return not content.read(HEAD).lstrip().lower().startswith(replaced)


def _respelled(word: str, path: str, free: str) -> str:
    """Return a word of a command line with another path where it is this one."""
    option, equals, value = word.partition("=")
    if option.startswith("--") and equals and value == path:
        return f"{option}={free}"
    return free if word == path else word
