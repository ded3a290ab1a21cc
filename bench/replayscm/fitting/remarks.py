"""Lines on tables whose head or words may mean something else than was read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from shlex import quote

import numpy as np

from calibrant.bench.replayscm.fitting.columns import Column, RawColumn, RawTable, measure_of
from calibrant.bench.replayscm.fitting.interventions import Head, remark_on_positions
from calibrant.dsl.errors import CalibrantError, readable_repr
from calibrant.dsl.text import plural

MAX_PROBED_LINES = 50  # by which a text of another kind is recognised


def refuse_other_files(name: str, first: str, file: Iterable[str]) -> None:
    """Raise `CalibrantError` for a text that is no table. first: its first line with a text; file: its lines."""
    start = first.lstrip()
    if re.match(r'\{"|\[\s*[\[{]', start):
        json_kind = "JSON lines" if start[0] == "{" else "a JSON list"
        raise CalibrantError(
            f"{name} is {json_kind}, no CSV; of a pool, see its items by: calibrant list {name}, then show"
        )
    if re.match(r"<(?:[?!]|[A-Za-z][^,;\t]*$)", start):  # a name may begin so, as in <3,>3
        raise CalibrantError(f"{name}: XML, no CSV; calibrant network reads SBML and GINML")
    if any(mark in first for mark in ",;\t|"):
        return
    from calibrant.dsl.networks.text_formats import describe_other_format, looks_like  # most tables do without

    kind = describe_other_format("".join(islice(file, MAX_PROBED_LINES)))
    if kind is not None and not kind[0].endswith("truth table"):  # of cells between blanks, which is said better
        raise CalibrantError(f"{name}: {looks_like(*kind)}")


def table_remarks(
    raw: RawTable,
    raws: Mapping[str, RawColumn],
    columns: Sequence[Column],
    do_columns: Sequence[RawColumn],
    head: Head,
    missing: frozenset[str],
) -> Iterator[str]:
    """Yield what was remarked while reading, and lines on positions, on a head that may be a row, and on lone words."""
    yield from raw.remarks
    lone = [(column.name, words[0]) for column in columns if len(words := _words_of_numbers(column, raws)) == 1]
    if lone:
        name, word = lone[0]
        row = raw.lines[int(np.argmax(raws[name].cells == list(raws[name].words).index(word)))]
        others = f", and so in {plural(len(lone) - 1, 'more columns')}" if len(lone) > 1 else ""
        option = f"--missing {quote(word)} if it stands for no value"
        yield f"{name} has numbers and one word, {readable_repr(word)} in row {row}{others}; {option}"
    yield from remark_on_positions(do_columns, head, missing)
    is_file = raw.delimiter is not None
    if is_file and len(raw.columns) > 1 and all(column.name in column.words for column in raw.columns):
        yield "each name is a value of its column too: if the first line is a row, put a line of names above it"


def _words_of_numbers(column: Column, raws: Mapping[str, RawColumn]) -> list[str]:
    """Return the words of a column that are no numbers; [] of a column of two values, whose code is stated."""
    if column.kind != "categories" or column.name not in raws:
        return []
    return [word for word in column.words if measure_of(word) is None]


def describe_values(column: Column, raws: Mapping[str, RawColumn]) -> str:
    """Return the kind of a column that is refused, with its first words."""
    raw = raws.get(column.name)
    words = [word for word in (raw.words if raw else ()) if word]
    examples = ", ".join([*map(readable_repr, words[:3]), *(["..."] if len(words) > 3 else [])])
    kinds = {"measured": "measured", "many": "more than 64 values", "categories": "more than two values"}
    return f"{kinds[column.kind]}: {examples}"
