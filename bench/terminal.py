"""Output of the command: printable text, its width, hints after errors, and commands to run next."""

from __future__ import annotations

import glob
import io
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import typer

from calibrant.dsl.atomic_write import is_open_file
from calibrant.dsl.errors import CalibrantError, UnknownItemError, UnknownNameError, in_one_line

# --- What is printed cannot act on a terminal: ids, names and texts come from files that anybody may have written -----
# Control characters but line feed and tab; marks that reorder, join or hide text; line separators; half characters.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\U000e0001\U000e0020-\U000e007f]"
)


def printable(text: str) -> str:
    r"""Spell such characters of a text as \u001b, which in JSON means the same."""
    return _ACTING.sub(_spelled, text)


def _spelled(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


class PrintableStream(io.TextIOBase):
    """A text stream in front of another one, which gets printable text only.

    It has no `buffer`: what is handed around it would be handed around the rule.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a property in the streams of the standard library too
        return self.stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.stream.errors

    def write(self, text: str) -> int:
        self.stream.write(printable(text))
        return len(text)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()


@contextmanager
def printable_streams() -> Iterator[None]:
    """Restrict standard output and standard error to printable text while the block runs."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = PrintableStream(before[0]), PrintableStream(before[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def drawn_on(stream: TextIO) -> TextIO:
    """Return the stream itself, for what moves the cursor on purpose and prints no text of others as it is."""
    return stream.stream if isinstance(stream, PrintableStream) else stream


# --- Width of the output in columns -----------------------------------------------------------------------------------
DEFAULT_WIDTH = 80
MIN_WIDTH, MAX_WIDTH = 40, 400  # of COLUMNS: narrower is no table, wider is no line
RECORDS_BELOW = 60  # columns under which a table is printed as a paragraph for each row


def width_of(stream: TextIO) -> int:
    """Return the columns that COLUMNS states, else those of the terminal, else 80."""
    return stated_width(stream) or DEFAULT_WIDTH


def stated_width(stream: TextIO) -> int | None:
    """Return the columns that COLUMNS states, else those of the terminal; None for a pipe or a file."""
    stated = os.environ.get("COLUMNS", "")
    if stated.isascii() and stated.isdigit() and len(stated) < 10 and int(stated) > 0:
        return _limited(int(stated))
    try:
        return _limited(os.get_terminal_size(stream.fileno()).columns or DEFAULT_WIDTH)
    except (OSError, ValueError, AttributeError):  # a pipe, a file, a stream of a test
        return None


def _limited(columns: int) -> int:
    return min(MAX_WIDTH, max(MIN_WIDTH, columns))


# --- Hints after errors: a command that would work instead, or the one that lists what there is -----------------------
POOLS_FIRST = ("score", "show", "separate", "play", "list", "audit", "harden", "prompts", "export", "training")
POOLS_LAST = ("run", "verify")
OFFERED = re.compile(r"'(?P<name>[^']+)'[^']*; did you mean (?P<near>[^?]+?)(?: or [^?]*)?\?")  # of calibrant.dsl.text
MISSING = re.compile("no such file|cannot be read|does not exist", re.IGNORECASE)  # of a message on a file
MIN_LIKENESS = 0.75  # likeness of a name that is offered
POOL_NAMES = (".jsonl", ".yaml", ".yml", ".jsonl.gz", ".yaml.gz", ".yml.gz")  # tried beside the answers of a pool


class HintedError(CalibrantError):
    """An error beside which a command stands that works instead.

    command: its words after `calibrant`; option: words to add to the command that failed
    """

    def __init__(self, message: str, *, command: Sequence[object] = (), option: Sequence[object] = ()) -> None:
        self.command = tuple(map(str, command))
        self.option = tuple(map(str, option))
        super().__init__(message)


def hint_for(error: Exception, arguments: Sequence[str], command: Any) -> str:
    """Return a command that would work where these arguments failed, to be pasted; empty if none is known.

    command: the root of the command tree
    """
    words = _exchanged(arguments, command) or _corrected(error, arguments) or _respelled(error, arguments, command)
    return shlex.join(["calibrant", *words]) if words else ""


def help_command(arguments: Sequence[str], command: Any) -> str:
    """Return the command that prints the help of the command that these arguments name, or of all."""
    words = []
    for word in arguments:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        words.append(word)
    return shlex.join(["calibrant", *words, "--help"])


def _corrected(error: Exception, arguments: Sequence[str]) -> list[str]:
    """Return the arguments with what the error says put right, or a command that lists what is there."""
    if isinstance(error, HintedError):
        return [*error.command] or ([*arguments, *error.option] if error.option else [])
    if isinstance(error, UnknownItemError) and error.item_id in arguments:
        if error.close and get_close_matches(error.item_id, error.close[:1]):
            return _replaced(arguments, error.item_id, error.close[0])
        return ["list", str(pool)] if (pool := _first_pool(arguments)) else []
    if isinstance(error, UnknownNameError) and error.name in arguments:
        close = get_close_matches(error.name, error.allowed, 1)
        return _replaced(arguments, error.name, close[0]) if close and not error.owners else []
    return _renamed(str(error), arguments)


def _renamed(message: str, arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the name that the message offers, alone or between commas; empty without one."""
    offered = OFFERED.search(message)
    if offered is None:
        return []
    for index, word in enumerate(arguments):
        head, equals, names = word.rpartition("=")
        parts = names.split(",")
        if offered["name"] in map(str.strip, parts):
            renamed = ",".join(offered["near"] if part.strip() == offered["name"] else part for part in parts)
            return [*arguments[:index], f"{head}{equals}{renamed}", *arguments[index + 1 :]]
    return []


def _respelled(error: Exception, arguments: Sequence[str], command: Any) -> list[str]:
    """Return the arguments with a command, an option or a missing file by its nearest name; empty without one."""
    for index, word in enumerate(arguments):
        if hasattr(command, "commands"):
            if word.startswith("-"):
                continue
            near, command = list(command.commands), command.commands.get(word)
            is_known = command is not None
        elif word.startswith("--") and word.partition("=")[0] in str(error):
            near = [name for parameter in command.params for name in parameter.opts]
            is_known = word.partition("=")[0] in near
        else:
            near, is_known = _names_beside(word, error)
        if not is_known:
            close = get_close_matches(word, near, 1, MIN_LIKENESS)
            return [*arguments[:index], *close, *arguments[index + 1 :]] if close else []
    return []


def _names_beside(word: str, error: Exception) -> tuple[list[str], bool]:
    """Return paths in the folder of a missing file that the error names, and whether it is there after all."""
    path = Path(word)
    is_missing = isinstance(error, OSError) or MISSING.search(str(error))
    if not is_missing or path.name not in str(error) or path.exists() or not path.parent.is_dir():
        return [], True
    near = [entry.name for entry in sorted(path.parent.iterdir()) if _is_alike(entry.stem, path.stem)]  # suffixes agree
    return [str(path.with_name(name)) for name in near], False


def _is_alike(name: str, word: str) -> bool:
    return SequenceMatcher(None, name, word).ratio() >= MIN_LIKENESS


def _replaced(arguments: Sequence[str], word: str, replacement: str) -> list[str]:
    place = list(arguments).index(word)
    return [*arguments[:place], replacement, *arguments[place + 1 :]]


def _exchanged(arguments: Sequence[str], command: Any) -> list[str]:
    """Return the arguments with pools where they belong; empty if they are there, or no argument is a pool."""
    name = arguments[0] if arguments else ""
    if name not in (*POOLS_FIRST, *POOLS_LAST):
        return []
    words = _positional(command.commands[name], name, arguments[1:])
    pools = [word for word in words if is_pool(Path(word))]
    others = [word for word in words if word not in pools]
    ordered = [*pools, *others] if name in POOLS_FIRST else [*others, *pools]
    if not pools or ordered == words:
        return []
    changed = list(arguments)
    start = 1
    for word, replacement in zip(words, ordered, strict=True):
        start = arguments.index(word, start)
        changed[start] = replacement
        start += 1
    return changed


def _positional(command: Any, name: str, arguments: Sequence[str]) -> list[str]:
    """Return the words that are arguments and no options, in their order."""
    context = command.make_context(name, [], resilient_parsing=True)  # unknown options raise nothing then
    values, _, _ = command.make_parser(context).parse_args(list(arguments))
    declared = [parameter.name for parameter in command.params if parameter.param_type_name == "argument"]
    words = [values.get(parameter) for parameter in declared]
    # click marks an argument that is not given by an object of its own, older versions by None
    lists = [[value] if isinstance(value, str) else value for value in words if isinstance(value, str | list | tuple)]
    return [word for values in lists for word in values if isinstance(word, str) and word]


def is_pool(path: Path) -> bool:
    """Return whether this is a file of a pool, by its name or its first line."""
    from calibrant.bench.core.registry import is_native_pool

    return path.is_file() and (path.name.removesuffix(".gz").endswith((".yaml", ".yml")) or is_native_pool(path))


def _first_pool(arguments: Sequence[str]) -> str | None:
    return next((word for word in arguments if is_pool(Path(word))), None)


def pool_beside(name: str, digest: str, folders: Sequence[Path]) -> Path | None:
    """Return the file of a pool by its name and digest, looked for in these folders; None if it is not there."""
    from calibrant.dsl.records import file_digest

    candidates = (folder / f"{name}{suffix}" for folder in folders for suffix in POOL_NAMES)
    return next((path for path in candidates if path.is_file() and file_digest(path) == digest), None)


# --- Commands to run next, with the paths that a command has just written, to be pasted -------------------------------
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


def command_without_option(*names: str) -> tuple[str, ...]:
    """Return the arguments of the command that runs without these options and their values."""
    return _words_without(lambda option, value: option in names)


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


is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)
"""Whether the command that runs was told --quiet: no progress, no lines on kernels, no commands to go on with."""


def print_next(commands: Iterable[NextCommand]) -> None:
    """Print the commands on standard error, each at the end of its line; none that has characters to be escaped."""
    if is_quiet.get():
        return
    listed = [command for command in commands if printable(command.line) == command.line and "\n" not in command.line]
    width = max((len(command.purpose) for command in listed), default=0)
    for index, command in enumerate(listed):
        heading = "" if index else HEADING
        print(f"{heading:<{len(HEADING)}}  {command.purpose:<{width}}  {command.line}", file=sys.stderr)


# --- Files that are there already: a command does not take their place, unless they are an earlier page or picture ----
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
    words = [_respelled_path(word, str(path), str(free)) for word in invocation.get()]
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


def _respelled_path(word: str, path: str, free: str) -> str:
    """Return a word of a command line with another path where it is this one."""
    option, equals, value = word.partition("=")
    if option.startswith("--") and equals and value == path:
        return f"{option}={free}"
    return free if word == path else word


# --- Lines about files that a command has written ---------------------------------------------------------------------


def print_written(path: Path, kind: str = "page") -> None:
    """Print on standard error that a file was written; kind: of the file."""
    typer.echo(in_one_line(f"{kind} written to {path}"), err=True)


# --- Folders that a command makes: complete or not at all, and never over something that is there ---------------------
_LOCK, _MADE, _SCRATCH = "calibrant.lock", "made", "scratch"


def require_free(out: Path, name: str) -> None:
    """Raise `HintedError`, with a free path, if there is something at a path; name: of what would be written."""
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise elsewhere_error(f"{out}: there already; {name} is a folder of its own", out, unused_path(str(out)))


@contextmanager
def making_folder(out: Path) -> Iterator[tuple[Path, Path]]:
    """Give the path of a folder to make, which becomes `out` in the end, and of one for files that do not stay.

    Both are in a folder beside `out`, which the next call for the same `out` removes if this process was killed.
    """
    from tempfile import mkdtemp  # this and the lock take the help longer than all else that it does

    from filelock import FileLock

    existing = next(folder for folder in out.absolute().parents if folder.exists())
    prefix = f".{out.name}."
    _remove_leftovers(existing, prefix)
    work = Path(mkdtemp(dir=existing, prefix=prefix))
    lock = FileLock(work / "new.lock")
    try:
        lock.acquire()
        os.rename(work / "new.lock", work / _LOCK)  # under this name it is locked while its process lives
        yield work / _MADE, work / _SCRATCH
        out.parent.mkdir(parents=True, exist_ok=True)
        os.rename(work / _MADE, out)  # onto an empty folder too
    finally:
        shutil.rmtree(work, ignore_errors=True)
        lock.release()


def _remove_leftovers(parent: Path, prefix: str) -> None:
    """Remove folders of killed processes: with our lock, which nobody holds, and nothing that is not ours."""
    from filelock import FileLock, Timeout

    for leftover in parent.glob(f"{glob.escape(prefix)}????????"):
        lock = leftover / _LOCK
        is_ours = not leftover.is_symlink() and lock.is_file() and not lock.is_symlink()
        if not is_ours or {entry.name for entry in leftover.iterdir()} - {_LOCK, _MADE, _SCRATCH}:
            continue
        try:
            with FileLock(lock, timeout=0):
                shutil.rmtree(leftover, ignore_errors=True)
        except (Timeout, OSError):  # its process is at work; a folder of another user
            continue


def typed_json(value: Any, *, indent: int | None = None) -> str:
    """Return the JSON text of a value for a file in UTF-8: names as they were typed, but what acts on a terminal."""
    import json

    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return text if text.isascii() else _ACTING.sub(lambda match: json.dumps(match[0])[1:-1], text)


def json_text(value: Any, *, indent: int | None = 1) -> str:
    """Return the JSON text of a value for standard output: as `typed_json` where its encoding has all letters."""
    import json

    text = typed_json(value, indent=indent)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return json.dumps(value, indent=indent)
    return text


def write_json(path: Path, value: Any) -> None:
    """Write a value as a JSON text."""
    import json

    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
