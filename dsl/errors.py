"""Error classes, with fields for callers.

Every error a user can cause derives from `CalibrantError`; the command turns it into one line and exit code 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Self


class CalibrantError(Exception):
    """Base of every error that bad input can cause."""

    def __reduce__(self) -> tuple[Callable[..., CalibrantError], tuple[object, ...]]:
        return _rebuilt, (type(self), self.args, self.__dict__)  # args is the message, not what __init__ takes


def _rebuilt(kind: type[CalibrantError], args: tuple[object, ...], fields: dict[str, object]) -> CalibrantError:
    """Rebuild an unpickled error: workers raise errors that the main process has to read."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


MAX_REPR_CHARS = 60  # hostile input may be megabytes long; a message must stay one line


def short_repr(value: object) -> str:
    """Render an untrusted value in one short, printable line."""
    return _shorten(ascii, value)


def readable_repr(value: object) -> str:
    """Render a name or word of the user's table in one short line, keeping letters of every script."""
    return _shorten(repr, value)  # escapes what is not printable


def _shorten(render: Callable[[object], str], value: object) -> str:
    try:
        text = render(value)
    except (ValueError, RecursionError):  # an integer beyond the interpreter's digit limit; a value nested too deeply
        text = f"<{type(value).__name__}>"
    return text if len(text) <= MAX_REPR_CHARS else text[: MAX_REPR_CHARS - 3] + "..."


def in_one_line(text: str) -> str:
    """Replace characters that are not printable by blanks."""
    if text.isprintable():  # 10 times as fast as a look at each letter
        return str(text)
    return "".join(letter if letter.isprintable() else " " for letter in text)


@dataclass(frozen=True, slots=True)
class Culprit:
    """The position at which parsing stopped: character offset and the offending token."""

    position: int
    token: str


class ParseError(CalibrantError):
    """A mechanism text is not a formula of the grammar.

    kind: empty | unexpected_end | unexpected_close | missing_close | trailing | empty_list | too_deep | too_long |
          unknown_operator | operator_not_allowed | arity_low | arity_high |
          invalid_symbol | variable_not_allowed | constants_forbidden
    position: 0-based character offset of the fault (the end of the text if something is missing)
    allowed: what is allowed there
    """

    def __init__(self, kind: str, culprit: Culprit, message: str, allowed: str) -> None:
        self.kind = kind
        self.position = culprit.position
        self.token = culprit.token
        self.allowed = allowed
        self.message = message
        super().__init__(f"{message} at character {culprit.position}; {allowed}")


class CycleError(CalibrantError):
    """Mechanisms mention each other in a cycle; variables: those that no topological order can place."""

    def __init__(self, variables: tuple[str, ...]) -> None:
        self.variables = variables
        super().__init__(f"mechanisms of {', '.join(variables)} mention each other in a cycle")


class TableError(CalibrantError):
    """An operation is undefined for a truth table (too many variables, different sizes)."""


class PoolError(CalibrantError):
    """A pool file has invalid content; names file, instance and field.

    The message is one printable line, whatever the names in the file.
    """

    def __init__(self, problem: str, *, file: str = "", instance: str = "", field: str = "") -> None:
        self.problem = problem
        self.file = file
        self.instance = instance
        self.field = field
        where = ": ".join(part for part in (file, instance, field) if part)
        super().__init__(_one_line(f"{where}: {problem}" if where else problem))

    def with_location(self, *, file: str = "", instance: str = "", field: str = "") -> PoolError:
        """Return the error with file, instance and field added if they are missing."""
        where = {"file": self.file or file, "instance": self.instance or instance, "field": self.field or field}
        return PoolError(self.problem, **where)


class RefusedError(PoolError):
    """A file of another tool has unsupported content; `reason` is a keyword for programs.

    reason: a keyword of docs/networks.md or docs/logic.md; line: None for the whole file; name: the node, or the column
    as the header writes it
    """

    def __init__(
        self,
        problem: str,
        *,
        reason: str,
        line: int | None = None,
        name: str | None = None,
        file: str = "",
        field: str = "",
    ) -> None:
        super().__init__(problem, file=file, instance="" if line is None else f"line {line}", field=field)
        self.reason = reason
        self.line = line
        self.name = name

    def with_problem(self, problem: str) -> Self:
        """Return the error with another problem at the same place."""
        return type(self)(
            problem,
            reason=self.reason,
            line=self.line,
            name=self.name,
            file=self.file,
            field=self.field,
        )

    def with_location(self, *, file: str = "", instance: str = "", field: str = "") -> Self:
        """Return the error with file and field added if they are missing."""
        return type(self)(
            self.problem,
            reason=self.reason,
            line=self.line,
            name=self.name,
            file=self.file or file,
            field=self.field or field,
        )


MAX_MESSAGE_CHARS = 1_000


def _one_line(text: str) -> str:
    shortened = text if len(text) <= MAX_MESSAGE_CHARS else text[: MAX_MESSAGE_CHARS - 3] + "..."
    return (
        shortened if shortened.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shortened)
    )


class UnknownItemError(CalibrantError, KeyError):
    """A pool has no item of that id.

    item_id: the unknown id; close: similar ids of the pool, the most similar first
    """

    def __init__(self, message: str, item_id: str = "", close: tuple[str, ...] = ()) -> None:
        self.item_id = item_id
        self.close = close
        super().__init__(message)

    __str__ = Exception.__str__  # of a KeyError it would be the repr


class UnknownNameError(CalibrantError):
    """A name that is none of those allowed.

    name: the unknown name; allowed: the known names; owners: others that have it, such as other benchmarks
    """

    def __init__(self, message: str, name: str, allowed: tuple[str, ...], owners: tuple[str, ...] = ()) -> None:
        self.name = name
        self.allowed = allowed
        self.owners = owners
        super().__init__(message)


class MissingExtraError(CalibrantError):
    """An optional dependency is not installed; the message says how to get it."""


def require_extra(extra: str, *modules: str) -> None:
    """Raise `MissingExtraError`, in one line, if a top-level module of the extra is not installed. Imports nothing."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        names = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'}"
        raise MissingExtraError(f"{names} missing; run: pip install 'calibrant[{extra}]'")
