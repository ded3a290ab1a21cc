"""What is printed cannot act on a terminal: ids, names and texts come from files that anybody may have written."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

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
