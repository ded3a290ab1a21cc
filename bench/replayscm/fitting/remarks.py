"""Lines on tables whose head or words may mean something else than was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

import numpy as np

from calibrant.bench.replayscm.fitting.columns import Column, RawColumn, RawTable, measure_of
from calibrant.dsl.errors import readable_repr
from calibrant.dsl.text import plural


def table_remarks(raw: RawTable, raws: Mapping[str, RawColumn], columns: Sequence[Column]) -> Iterator[str]:
    """Yield what was remarked while reading, and lines on a head that may be a row, and on lone words among numbers."""
    yield from raw.remarks
    lone = [(column.name, words[0]) for column in columns if len(words := _words_of_numbers(column, raws)) == 1]
    if lone:
        name, word = lone[0]
        row = raw.lines[int(np.argmax(raws[name].cells == list(raws[name].words).index(word)))]
        others = f", and so in {plural(len(lone) - 1, 'more columns')}" if len(lone) > 1 else ""
        option = f"--missing {quote(word)} if it stands for no value"
        yield f"{name} has numbers and one word, {readable_repr(word)} in row {row}{others}; {option}"
    is_file = raw.delimiter is not None
    if is_file and len(raw.columns) > 1 and all(column.name in column.words for column in raw.columns):
        yield "each name is a value of its column too: if the first line is a row, put a line of names above it"


def _words_of_numbers(column: Column, raws: Mapping[str, RawColumn]) -> list[str]:
    """Return the words of a column that are no numbers; [] of a column of two values, whose code is stated."""
    if column.kind != "categories" or column.name not in raws:
        return []
    return [word for word in column.words if measure_of(word) is None]
