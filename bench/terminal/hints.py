"""Hints after errors: a command that would work instead, or the one that lists what there is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from typing import Any

from calibrant.dsl.errors import CalibrantError, UnknownItemError, UnknownNameError

POOLS_FIRST = ("score", "show", "separate", "play", "list", "audit", "harden", "prompts", "export", "training")
POOLS_LAST = ("run", "verify")
OFFERED = re.compile(r"'(?P<name>[^']+)'[^']*; did you mean (?P<near>[^ ?]+)")  # of calibrant.dsl.text
MISSING = re.compile("no such file|cannot be read|does not exist", re.IGNORECASE)  # of a message on a file
MIN_LIKENESS = 0.75  # of a name that is offered
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
    for place, word in enumerate(arguments):
        head, equals, names = word.rpartition("=")
        parts = names.split(",")
        if offered["name"] in map(str.strip, parts):
            renamed = ",".join(offered["near"] if part.strip() == offered["name"] else part for part in parts)
            return [*arguments[:place], f"{head}{equals}{renamed}", *arguments[place + 1 :]]
    return []


def _respelled(error: Exception, arguments: Sequence[str], command: Any) -> list[str]:
    """Return the arguments with a command, an option or a missing file by its nearest name; empty without one."""
    for place, word in enumerate(arguments):
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
            return [*arguments[:place], *close, *arguments[place + 1 :]] if close else []
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
