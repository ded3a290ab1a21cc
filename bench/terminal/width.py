"""Width of the output in columns."""

from __future__ import annotations

import os
from typing import TextIO

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
