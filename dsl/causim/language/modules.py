"""The statements of a module, parsed one by one so that nothing but the text is ever looked at.

Parsed as a whole file, a text with a syntax error makes Python try to open the file of its name, to show the line; a
single statement does not. A statement begins at a line without indentation outside strings and brackets; what a form
feed has before it is no indentation.
"""

from __future__ import annotations

import ast
import re
import unicodedata  # noqa: F401  # the parser imports it at the first name that is not ASCII; better now than then
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from calibrant.dsl.causim.language.randomness import Unsupported

MAX_SOURCE: Final = 200_000
MAX_CACHED_CHARS: Final = 2_000  # characters of a statement whose tree is kept; nobody changes a tree

# What decides where a statement ends: strings, comments, brackets, continued lines, line ends.
_PIECES: Final = re.compile(
    r'"{3}(?:[^\\]|\\.)*?(?:"{3}|\Z)|'  # an open one goes to the end, so that no text is gone through twice
    r"'{3}(?:[^\\]|\\.)*?(?:'{3}|\Z)|"
    r'"(?:[^"\\\n]|\\.)*"?|'
    r"'(?:[^'\\\n]|\\.)*'?|"
    r"#[^\n]*|\\\n|[()\[\]{}]|\n",
    re.DOTALL,
)
_EMPTY_LINES: Final = re.compile(r"(?:[ \t\f]*(?:#[^\n]*)?\n)*+")
# A form feed at the beginning of a line sets the indentation back to nothing (Python reference, 2.1.8).
_BEGINNING: Final = re.compile(r"(?:[ \t\f]*+(?<=\f))?(?![ \t\f\n#])")


class InvalidSyntax(Unsupported):
    """The source is no Python text. line: the line of the fault, counted from 1; None where it has no place."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def statements(source: str) -> list[ast.stmt]:
    """Return the statements at the top of a module; `Unsupported` in one line if the source does not parse."""
    return [statement for _, statement in located_statements(source)]


def located_statements(source: str) -> list[tuple[int, ast.stmt]]:
    """Return each statement at the top of a module with its line, counted from 1; `Unsupported` as `statements`."""
    if len(source) > MAX_SOURCE:
        raise Unsupported(f"the source is longer than {MAX_SOURCE} characters")
    if "\0" in source:
        raise InvalidSyntax("the source has a null character")
    text = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n") + "\n"
    body: list[tuple[int, ast.stmt]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape in a string is no concern of ours
        for line, part in _parts(text):
            body.extend((line + statement.lineno, statement) for statement in _parse_part(part, line))
    return body


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Each statement with the number of lines before it.

    Blank lines and comments before the first one belong to none, later ones to the statement before them.
    """
    start = _EMPTY_LINES.match(text).end()  # type: ignore[union-attr]  # it matches nothing, too
    line = lines_before = text.count("\n", 0, start)
    depth = 0
    for piece in _PIECES.finditer(text, start):
        token = piece.group()
        if token == "\n":
            line += 1
            if depth <= 0 and _BEGINNING.match(text, piece.end()):
                if text[start : piece.end()].strip():
                    yield lines_before, text[start : piece.end()]
                start, lines_before = piece.end(), line
        elif token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        else:
            line += token.count("\n")
    if text[start:].strip():
        yield lines_before, text[start:]


def _parse_part(part: str, lines_before: int) -> Sequence[ast.stmt]:
    try:
        return _cached_tree(part) if len(part) <= MAX_CACHED_CHARS else _tree(part)
    except SyntaxError as error:
        line = lines_before + (error.lineno or 1)
        raise InvalidSyntax(f"the source does not parse, line {line}", line) from None
    except (ValueError, RecursionError, MemoryError):
        line = lines_before + 1
        raise InvalidSyntax(f"the source does not parse, from line {line}", line) from None


def _tree(part: str) -> tuple[ast.stmt, ...]:
    tree = compile(part, "<program>", "single", ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Interactive)
    return tuple(tree.body)


_cached_tree = lru_cache(maxsize=512)(_tree)  # versions of a program have most of their functions in common
