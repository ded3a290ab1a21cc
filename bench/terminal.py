"""Output of the command: printable text, its width, hints after errors, next commands, and written files."""

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

# --- Printable text: ids, names and texts come from files of unknown origin, and must not control the terminal --------
# Control characters but line feed and tab; marks that reorder, join or hide text; line separators; half characters.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\U000e0001\U000e0020-\U000e007f]"
)


def printable(text: str) -> str:
    r"""Return a text with characters that control terminals written as \u001b, which is equivalent in JSON."""
    return _ACTING.sub(_spelled, text)


def _spelled(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


class PrintableStream(io.TextIOBase):
    """A text stream that passes printable text only to another stream.

    It has no `buffer`, through which bytes would bypass the rule.
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

    def close(self) -> None:
        """Leave the other stream open, and unflushed: it may be closed already when this one is collected."""

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
    """Return the underlying stream, for output that moves the cursor and holds no text of unknown origin."""
    return stream.stream if isinstance(stream, PrintableStream) else stream


# --- Width of the output in columns -----------------------------------------------------------------------------------
DEFAULT_WIDTH = 80
MIN_WIDTH, MAX_WIDTH = 40, 400  # columns; other values of COLUMNS are limited to this range
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
DECIMAL_COMMA = re.compile(r"(?P<head>(?:[^=]*=)?[-+]?)(?P<whole>\d*),(?P<part>\d+)")  # 0,8 --iss=0,5 seconds=1,5
NUMBER = re.compile("valid number|a number (or|from|above) ")  # of messages that may lack the value
WHOLE_NUMBER = re.compile("valid integer|whole number")
MIN_LIKENESS = 0.75  # least similarity of a suggested name, 0 to 1
POOL_NAMES = (".jsonl", ".yaml", ".yml", ".jsonl.gz", ".yaml.gz", ".yml.gz")  # suffixes of pools beside answers


class HintedError(CalibrantError):
    """An error with a command that would work instead.

    command: words after `calibrant`; option: words to add to the failed command
    """

    def __init__(self, message: str, *, command: Sequence[object] = (), option: Sequence[object] = ()) -> None:
        self.command = tuple(map(str, command))
        self.option = tuple(map(str, option))
        super().__init__(message)


_FIELD_ADVICE = {
    "--id-field names the one that does": "name the item in the field id",
    "--text-field names the one that holds it": "put it into the field response",
}


def without_options(error: CalibrantError) -> str:
    """Return the message on a line, for commands and boards that have no options of fields."""
    message = str(error)
    for option, advice in _FIELD_ADVICE.items():
        message = message.replace(option, advice)
    return message


def hint_for(error: Exception, arguments: Sequence[str], command: Any) -> str:
    """Return a command to paste that would work in place of these arguments; empty if none is known.

    command: the root of the command tree
    """
    words = _exchanged(arguments, command) or _corrected(error, arguments) or _respelled(error, arguments, command)
    return shlex.join(["calibrant", *words]) if words else ""


def help_command(arguments: Sequence[str], command: Any) -> str:
    """Return the command that prints the help of the command in these arguments, by default of all."""
    words = []
    for word in arguments:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        words.append(word)
    return shlex.join(["calibrant", *words, "--help"])


def _corrected(error: Exception, arguments: Sequence[str]) -> list[str]:
    """Return the arguments corrected by the error, or a command that lists the valid names; empty if none is known."""
    if isinstance(error, HintedError):
        return [*error.command] or ([*arguments, *error.option] if error.option else [])
    if isinstance(error, UnknownItemError) and error.item_id in arguments:
        if error.close and get_close_matches(error.item_id, error.close[:1]):
            return _replaced(arguments, error.item_id, error.close[0])
        return ["list", str(pool)] if (pool := _first_pool(arguments)) else []
    if isinstance(error, UnknownNameError) and error.name in arguments:
        close = get_close_matches(error.name, error.allowed, 1)
        return _replaced(arguments, error.name, close[0]) if close and not error.owners else []
    return _with_point(str(error), arguments) or _renamed(str(error), arguments)


def _with_point(message: str, arguments: Sequence[str]) -> list[str]:
    """Return the arguments with a decimal point in the number that the message refuses; empty without a comma in it."""
    if WHOLE_NUMBER.search(message):
        return []
    for index, word in enumerate(arguments):
        number = DECIMAL_COMMA.fullmatch(word)
        if number and (NUMBER.search(message) or repr(word.rpartition("=")[2]) in message):
            pointed = f"{number['head']}{number['whole'] or 0}.{number['part']}"
            return [*arguments[:index], pointed, *arguments[index + 1 :]]
    return []


def _renamed(message: str, arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the name that the message suggests, alone or between commas; empty without one."""
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
    """Return the arguments with a command, option or missing file replaced by its nearest name; empty without one."""
    for index, word in enumerate(arguments):
        if hasattr(command, "commands"):
            if word.startswith("-"):
                continue
            near, command = list(command.commands), command.commands.get(word)
            is_known = command is not None
        elif word.startswith("--") and word.partition("=")[0] in str(error):
            # arguments have names too, without dashes
            near = [name for parameter in command.params for name in parameter.opts if name.startswith("-")]
            is_known = word.partition("=")[0] in near
        else:
            near, is_known = _names_beside(word, error)
        if not is_known:
            close = get_close_matches(word, near, 1, MIN_LIKENESS)
            return [*arguments[:index], *close, *arguments[index + 1 :]] if close else []
    return []


def _names_beside(word: str, error: Exception) -> tuple[list[str], bool]:
    """Return paths in the folder of a missing file that the error names, and whether the file exists after all."""
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
    """Return the arguments with pools in their position; empty if they are there already or no argument is a pool."""
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
    """Return the positional arguments in their order."""
    context = command.make_context(name, [], resilient_parsing=True)  # unknown options raise nothing then
    values, _, _ = command.make_parser(context).parse_args(list(arguments))
    declared = [parameter.name for parameter in command.params if parameter.param_type_name == "argument"]
    words = [values.get(parameter) for parameter in declared]
    # click marks an argument that is not given by an object of its own, older versions by None
    lists = [[value] if isinstance(value, str) else value for value in words if isinstance(value, str | list | tuple)]
    return [word for values in lists for word in values if isinstance(word, str) and word]


def is_pool(path: Path) -> bool:
    """Return whether a file is a pool, by its name or its first line."""
    from calibrant.bench.core.registry import is_native_pool

    return path.is_file() and (path.name.removesuffix(".gz").endswith((".yaml", ".yml")) or is_native_pool(path))


def _first_pool(arguments: Sequence[str]) -> str | None:
    return next((word for word in arguments if is_pool(Path(word))), None)


def pool_beside(name: str, digest: str, folders: Sequence[Path]) -> Path | None:
    """Return the file in these folders of a pool with this name and digest; None if there is none."""
    from calibrant.dsl.records import file_digest

    candidates = (folder / f"{name}{suffix}" for folder in folders for suffix in POOL_NAMES)
    return next((path for path in candidates if path.is_file() and file_digest(path) == digest), None)


# --- Commands to run next, with the paths of files that a command has just written, to paste --------------------------
HEADING = "next"
invocation: ContextVar[tuple[str, ...]] = ContextVar("invocation", default=())
"""The arguments of the running command."""


class NextCommand(NamedTuple):
    """A command and its purpose in a few words."""

    words: tuple[object, ...]
    purpose: str

    @property
    def line(self) -> str:
        return shlex.join(["calibrant", *map(str, self.words)])


def unused_path(name: str) -> Path:
    """Return a path that does not exist: the name, or the name with a number."""
    path = Path(name)
    number = 2
    while path.exists():
        # `.`, `..` and `/` have no stem
        taken = Path(name) if Path(name).name not in ("", "..") else Path(name).resolve() / "new"
        # the suffix of `suite-1.0` is no ending of a file
        end = taken.suffix if taken.suffix[1:2].isalpha() else ""
        path = taken.with_name(f"{taken.name.removesuffix(end)}-{number}{end}")
        number += 1
    return path


def command_without(*written: Path | None) -> tuple[str, ...]:
    """Return the arguments of the running command without options for these paths, so that it writes no file twice."""
    paths = {str(path) for path in written if path is not None}
    return _words_without(lambda option, value: value in paths)


def command_without_option(*names: str) -> tuple[str, ...]:
    """Return the arguments of the running command without these options and their values."""
    return _words_without(lambda option, value: option in names)


def _words_without(drops: Callable[[str, str], bool]) -> tuple[str, ...]:
    """Return the arguments without options that `drops` accepts, spelled `--name value` or `--name=value`."""
    words = list[str]()
    for word in invocation.get():
        option, sign, value = word.partition("=")
        if words and words[-1].startswith("-") and drops(words[-1], word):
            words.pop()
        elif not (option.startswith("-") and sign and drops(option, value)):
            words.append(word)
    return tuple(words)


def pool_commands(pool: Path) -> list[NextCommand]:
    """Return the commands to run next with a written pool."""
    return [NextCommand(("pool", "check", pool), "is it sound"), NextCommand(("list", pool), "what is in it")]


is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)
"""Whether the running command has --quiet: no progress, lines on kernels or next commands."""


def print_next(commands: Iterable[NextCommand]) -> None:
    """Print the commands on standard error, each at the end of its line; none that has characters to be escaped."""
    if is_quiet.get():
        return
    listed = [command for command in commands if printable(command.line) == command.line and "\n" not in command.line]
    width = max((len(command.purpose) for command in listed), default=0)
    for index, command in enumerate(listed):
        heading = "" if index else HEADING
        print(f"{heading:<{len(HEADING)}}  {command.purpose:<{width}}  {command.line}", file=sys.stderr)


# --- Existing files: a command does not replace them, except for an earlier page or picture ---------------------------
HEAD = 4096  # bytes of a file that are read to recognize a page or picture of ours


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
    """Return an error with the running command as a hint, in which `free` replaces `path`."""
    words = [_respelled_path(word, str(path), str(free)) for word in invocation.get()]
    num_changed = sum(word != before for word, before in zip(words, invocation.get(), strict=True))
    return HintedError(message, command=words if num_changed == 1 else ())  # of two, one is perhaps an input


def _has_content(file: Path, replaced: tuple[bytes, ...], marks: tuple[bytes, ...]) -> bool:
    """Return whether a file is ordinary, not empty, and no page or picture of ours."""
    # what is written to /dev/stdout is added at its end
    if not file.is_file() or file.stat().st_size == 0 or is_open_file(file):
        return False
    with file.open("rb") as content:
        head = content.read(HEAD)
    return not (head.lstrip().lower().startswith(replaced) and any(mark in head for mark in marks))


def _respelled_path(word: str, path: str, free: str) -> str:
    """Return a word of a command line with `free` in place of `path`."""
    option, equals, value = word.partition("=")
    if option.startswith("--") and equals and value == path:
        return f"{option}={free}"
    return free if word == path else word


# --- Lines about files that a command has written ---------------------------------------------------------------------


def print_written(path: Path, kind: str = "page") -> None:
    """Print on standard error that a file was written; kind: of the file."""
    typer.echo(in_one_line(f"{kind} written to {path}"), err=True)


# --- Folders that a command makes: complete or not at all, and never in place of existing files -----------------------
_LOCK, _MADE, _SCRATCH = "calibrant.lock", "made", "scratch"


def require_free(out: Path, name: str) -> None:
    """Raise `HintedError` with a free path if a path exists and is no empty folder; name: words for the output."""
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise elsewhere_error(f"{out}: there already; {name} is a folder of its own", out, unused_path(str(out)))


@contextmanager
def making_folder(out: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the path of a folder to make, which becomes `out` in the end, and one of a folder for temporary files.

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
    if text.isascii() and "\x7f" not in text:  # JSON itself escapes every other ASCII character that acts
        return text
    return _ACTING.sub(lambda match: json.dumps(match[0])[1:-1], text)


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
