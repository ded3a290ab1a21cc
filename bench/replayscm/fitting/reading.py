"""Tables of one's own from CSV and Parquet files, data frames, mappings and arrays; every fault is one line."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib import import_module
from io import StringIO
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from calibrant.audits.replayscm.fits.evidence import ReadingRecord
from calibrant.bench.replayscm.fitting.columns import (
    MAX_NAMED,
    RULES,
    Column,
    RawColumn,
    RawTable,
    binarize_column,
    check_missing_words,
    make_column,
    measure_of,
    notes_on,
    reasons_left_out,
)
from calibrant.bench.replayscm.fitting.interventions import Head, fill_gaps, flag_columns, name_columns, read_sets
from calibrant.bench.replayscm.fitting.pla import is_pla, read_pla
from calibrant.bench.replayscm.fitting.remarks import describe_values, refuse_other_files, table_remarks
from calibrant.bench.replayscm.fitting.table import RuledCells, Table, TableLayout, column_names, patterns_of
from calibrant.dsl.errors import CalibrantError, readable_repr
from calibrant.dsl.parse_limits import advise_row, describe_blanks, describe_no_text, stated_delimiter
from calibrant.dsl.text import known_names, plural

MAX_ROWS = 1_000_000
MAX_COLUMNS: Mapping[str, int] = {"formulas": 60, "networks": 62}  # used ones
MAX_HEAD = 10_000  # columns of a file, used or not
MAX_NAMED_ROWS = 3  # of those that have another length than the head
CHUNK = 20_000  # rows of a file that are converted at a time
FRAMES = "a path, a data frame, a mapping of columns, a list of mappings or an array of two dimensions"
Purpose = Literal["formulas", "networks"]


class Reading(TypedDict, total=False):
    do: str | Sequence[str] | None
    do_flags: str | None
    one: Mapping[str, str] | Sequence[str]
    binarize: Mapping[str, str | Sequence[str]] | Sequence[str | Sequence[str]]
    drop: str | Sequence[str]
    missing: str | Sequence[str]
    columns: Sequence[str] | None


"""Options of reading a table, for `read_table`, `fit` and `learn_networks`.

do: column, or columns, that name the columns set in each row; do_flags: pattern of flag columns, `I_*`
one: column -> its word that is 1, or texts `COL=WORD`
binarize: column -> rule or rules, pairs of them, or texts `COL:RULE`; rules are `>50`, `>=`, `<`, `<=`, `red|blue`
    (1 for these words) and `median` (1 above it)
drop: columns to leave out; missing: further words for cells without a value; columns: names of an array's columns
"""


@dataclass(frozen=True)
class ReadingOptions:
    """See `Reading`; texts of the command line and objects of Python alike."""

    do: Any = None
    do_flags: str | None = None
    ones: Any = ()
    binarize: Any = ()
    drop: Any = ()
    missing: Any = ()
    columns: Sequence[str] | None = None

    @cached_property
    def do_columns(self) -> tuple[str, ...]:
        """Columns that name what was set."""
        return _as_texts(self.do)

    def record(self, purpose: Purpose) -> ReadingRecord:
        """Return how the table is read, as certificates state it."""
        rules = self.binarize.items() if isinstance(self.binarize, Mapping) else _as_items(self.binarize)
        return ReadingRecord(
            purpose,
            list(self.do_columns),
            self.do_flags,
            _as_records(self.ones.items() if isinstance(self.ones, Mapping) else _as_items(self.ones)),
            _as_records(
                item if isinstance(item, str) else (item[0], rule)
                for item in rules
                for rule in ([""] if isinstance(item, str) else _as_texts(item[1]))
            ),
            list(_as_texts(self.drop)),
            list(_as_texts(self.missing)),
        )

    @cached_property
    def missing_words(self) -> frozenset[str]:
        """Further words for missing cells."""
        return frozenset(word.strip() for word in _as_texts(self.missing))

    def choices(self, names: Sequence[str], source: str) -> dict[str, str]:
        """Return column -> its word that is 1."""
        pairs = (
            self.ones.items() if isinstance(self.ones, Mapping) else _as_pairs(self.ones, "=", names, "--one", source)
        )
        return {_require(str(name), names, "--one", source): str(word).strip() for name, word in pairs}

    def rules(self, names: Sequence[str], source: str) -> dict[str, list[str]]:
        """Return column -> rules by which it becomes columns of two values."""
        pairs = self.binarize.items() if isinstance(self.binarize, Mapping) else _as_pairs(
            self.binarize, ":", names, "--binarize", source
        )  # fmt: skip
        rules: dict[str, list[str]] = {}
        for name, rule in pairs:
            rules.setdefault(_require(str(name), names, "--binarize", source), []).extend(_as_texts(rule))
        return rules

    def dropped(self, names: Sequence[str], source: str) -> frozenset[str]:
        """Return the columns to leave out; a text of the command line may list several, quoted as CSV cells are."""
        listed = split_names(self.drop, names) if isinstance(self.drop, str) else [
            part for text in self.drop or () for part in split_names(str(text), names)
        ]  # fmt: skip
        return frozenset(_require(name, names, "--drop", source) for name in listed)


def reading_options(reading: Mapping[str, Any]) -> ReadingOptions:
    """Return the options that keywords of `Reading` state; `CalibrantError` for another keyword."""
    names = list(Reading.__annotations__)
    for key in reading:
        if key not in names:
            raise CalibrantError(f"unknown option {readable_repr(key)}; {known_names(key, names)}")
    return ReadingOptions(**{"ones" if key == "one" else key: value for key, value in reading.items()})


def _as_texts(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return (str(value),) if isinstance(value, str | int) else tuple(map(str, value))


def _as_items(items: Any) -> Iterator[Any]:
    yield from (items,) if isinstance(items, str) else items or ()


def _as_records(items: Iterable[Any]) -> list[str | tuple[str, str]]:
    """Return texts as they are, and pairs of texts."""
    return [item if isinstance(item, str) else (str(item[0]), str(item[1])) for item in items]


def options_of_record(record: ReadingRecord) -> ReadingOptions:
    """Return the options of reading that a certificate states."""
    return ReadingOptions(
        do=record.do,
        do_flags=record.do_flags,
        ones=record.ones,
        binarize=record.binarize,
        drop=record.drop,
        missing=record.missing,
    )


def split_names(text: str, names: Sequence[str]) -> list[str]:
    """Return the names of a list with commas, quoted as CSV cells are; a text that is a name is that name."""
    if text in names:
        return [text]
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), []) if name.strip()]


def join_names(names: Sequence[str]) -> str:
    """Return names as `split_names` takes them."""
    line = StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def _as_pairs(items: Any, separator: str, names: Sequence[str], option: str, source: str) -> Iterator[tuple[str, str]]:
    """Yield pairs as they are, and texts split at the separator where the left part is a column."""
    for item in _as_items(items):
        if not isinstance(item, str):
            name, word = item
            yield str(name), str(word)
            continue
        ends = [match.start() for match in re.finditer(re.escape(separator), item)]
        end = next((end for end in reversed(ends) if item[:end].strip() in names), ends[0] if ends else None)
        if end is None:
            form = "COL=WORD" if separator == "=" else f"COL:RULE; rules are {RULES}"
            raise CalibrantError(f"{source}: {option} {readable_repr(item)}: write {form}")
        yield item[:end].strip(), item[end + 1 :].strip()


def _require(name: str, names: Sequence[str], option: str, source: str) -> str:
    if name not in names:
        has_title = "column 2" in names and "column 1" not in names
        title = "; if the first line is a title, take it out" if has_title else ""
        raise CalibrantError(
            f"{source} has no column {readable_repr(name)} ({option}); {known_names(name, names)}{title}"
        )
    return name


# --- From columns of words to a table ---------------------------------------------------------------------------------


def read_table(data: Any, *, purpose: Purpose = "formulas", **reading: Unpack[Reading]) -> Table:
    """Read a table of columns with two values, or for networks with up to 64, as it was published.

    data: a path to a CSV, TSV or Parquet file, a data frame, a mapping of columns, a list of mappings, or an array
    purpose: `formulas` refuse columns of more than two values, `networks` take up to 64
    reading: see docs/tables.md
    """
    return read_with(data, reading_options(reading), purpose)


def read_with(data: Any, options: ReadingOptions, purpose: Purpose) -> Table:
    """Read a table as `read_table` does."""
    if purpose not in MAX_COLUMNS:
        raise CalibrantError(f"purpose is {readable_repr(purpose)}; allowed: {', '.join(MAX_COLUMNS)}")
    if isinstance(data, str | Path) and is_pla(Path(data)):
        if any(getattr(options, field.name) for field in fields(options)):
            raise CalibrantError(f"{Path(data).name}: options of reading a table are not for PLA files; leave them out")
        return read_pla(Path(data))
    raw = _raw_table(data, options.columns)
    source, names = raw.source, [column.name for column in raw.columns]
    _check_head(names, source, len(raw.lines))
    for name in options.do_columns:
        _require(name, names, "--do", source)
    others = [name for name in names if name not in options.do_columns]
    flags = {} if options.do_flags is None else flag_columns(others, options.do_flags, source)
    raws = {column.name: column for column in raw.columns}
    rules = options.rules(names, source)
    check_missing_words(raw.columns, options.missing_words, source)
    do_columns = [raws[name] for name in options.do_columns]
    columns, origin, head = _code_columns(raw, raws, options, purpose, flags)
    lone = {c.name: c.num_missing for c in columns if c.kind in ("empty", "constant") and c.name in raws}
    gapped = {name: raws[name] for name, number in lone.items() if number}
    filled = fill_gaps(do_columns, raw.lists or {}, gapped, head, options.missing_words) if gapped else {}
    if filled:
        raws |= filled
        columns, origin, head = _code_columns(raw, raws, options, purpose, flags)
        columns = [replace(c, num_missing=lone[c.name]) if c.name in filled else c for c in columns]
    _check_columns(columns, raws, source, purpose, raw.counting, options.do_columns)
    used = head.columns
    masks = read_sets(do_columns, raw.lists or {}, flags, raws, head, options.missing_words)
    codes, set_masks, counts, first, pattern_of_row = patterns_of(used, masks)
    ruled = {
        name: RuledCells(
            raws[name],
            tuple(column for column, source_name in zip(columns, origin, strict=True) if source_name == name),
        )
        for name in rules
        if name in origin
    }
    layout = None if raw.delimiter is None else TableLayout(tuple(names), options.do_columns, raw.delimiter, ruled)
    notes = notes_on(columns, codes, set_masks, counts)
    remarks = tuple(table_remarks(raw, raws, columns, do_columns, head, options.missing_words))
    has_targets = bool(options.do_columns or flags)
    hand = (*options.do_columns, *flags)
    left_out = reasons_left_out(columns, options.dropped(names, source), hand, len(raw.lines))
    return Table(source, raw.counting, tuple(columns), notes, codes, set_masks, counts, first, pattern_of_row,
                 raw.lines, has_targets, layout, remarks, (), options.record(purpose), left_out)  # fmt: skip


def _code_columns(
    raw: RawTable,
    raws: Mapping[str, RawColumn],
    options: ReadingOptions,
    purpose: Purpose,
    flags: Mapping[str, str],
) -> tuple[list[Column], list[str], Head]:
    """Return the columns with their codes, the column of the file that each is made of, and what can be set."""
    source, names = raw.source, [column.name for column in raw.columns]
    dropped = options.dropped(names, source)
    head_names = [name for name in names if name not in options.do_columns and name not in flags]
    words_for_one, rules = options.choices(names, source), options.rules(names, source)
    for option, coded in (("--one", words_for_one), ("--binarize", rules)):
        if uncoded := sorted({*options.do_columns, *flags} & coded.keys()):
            problem = f"{readable_repr(uncoded[0])} states what was set by hand and has no code"
            raise CalibrantError(f"{source}: {option}: column {problem}; leave {option} out")
    columns: list[Column] = []
    origin: list[str] = []
    for name in head_names:
        if name in dropped:
            continue
        column = raws[name] if purpose == "networks" else RawColumn(name, raws[name].words, raws[name].cells)
        results = [binarize_column(column, rule, options.missing_words, raw) for rule in rules.get(name, ())]
        results = results or [make_column(column, options.missing_words, words_for_one.get(name), source)]
        columns += results
        origin += [name] * len(results)
    used = [column for column in columns if column.is_used]
    by_name: dict[str, list[int]] = {name: [] for name in head_names}
    places = {column.name: index for index, column in enumerate(used)}
    for result, name in zip(columns, origin, strict=True):
        if result.is_used:
            by_name[name].append(places[result.name])
            if result.name != name:
                by_name.setdefault(result.name, []).append(places[result.name])
    return columns, origin, Head(head_names, by_name, used, raw)


def _check_head(names: Sequence[str], source: str, num_rows: int) -> None:
    if not names or not num_rows:
        raise CalibrantError(f"{source} has no {'rows' if names else 'columns'}")
    broken = next((name for name in names if "\n" in name or "\r" in name), None)
    if broken is not None:
        raise CalibrantError(f"{source}, column {readable_repr(broken)}: a name has a line break; write it on one line")
    names_before: set[str] = set()
    for name in names:
        if name in names_before:
            is_row = all(measure_of(part) is not None for part in names)
            advice = "put a line of names above the rows" if is_row else "rename one of them"
            raise CalibrantError(f"{source} has two columns {readable_repr(name)}; {advice}")
        names_before.add(name)


def _check_columns(
    columns: Sequence[Column], raws: Mapping[str, RawColumn], source: str, purpose: Purpose, counting: str,
    do_columns: Sequence[str],
) -> None:  # fmt: skip
    """Refuse columns of more values than the purpose takes, all in one line, and too many columns."""
    refused_kinds = ("measured", "many") if purpose == "networks" else ("measured", "many", "categories")
    wide = [column for column in columns if column.kind in refused_kinds]
    if wide:
        described = ", ".join(f"{readable_repr(c.name)} ({describe_values(c, raws)})" for c in wide[:MAX_NAMED])
        more = f" and {len(wide) - MAX_NAMED} more" if len(wide) > MAX_NAMED else ""
        noun = "column" if len(wide) == 1 else "columns"
        allowed = "two values" if purpose == "formulas" else "at most 64 values, words or whole numbers,"
        way = wide[0].name
        reason = f"{source}, {noun} {described}{more}: {allowed} a column are read"
        reason += f"; give --binarize '{way}:RULE' (RULE is {RULES}) or --drop '{way}'"
        if all(column.kind == "categories" for column in wide):
            reason += "; networks take up to 64 values (--score bde); a word for no value is one of --missing WORD"
        others = {name for name in raws if name not in do_columns}
        naming = [
            column.name
            for column in wide
            if column.name in raws and any(name_columns(raws[column.name].words, others - {column.name}))
        ]
        if not do_columns and naming:
            reason += f"; if {readable_repr(naming[0])} names the columns set in each row, give do (--do '{naming[0]}')"
        raise CalibrantError(reason)
    used = [column for column in columns if column.is_used]
    if not used:
        raise CalibrantError(f"{source}: no column has values to fit; all are empty or different in every row")
    if len(used) > MAX_COLUMNS[purpose]:
        limit = MAX_COLUMNS[purpose]
        raise CalibrantError(f"{source} has {len(used):,} columns; at most {limit} are fitted: leave some out (--drop)")
    names = [column.name for column in columns]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise CalibrantError(f"{source} has two columns {readable_repr(repeated)} after --binarize; rename one of them")


# --- Sources ----------------------------------------------------------------------------------------------------------


def _raw_table(data: Any, columns: Sequence[str] | None) -> RawTable:
    """Return the columns of a path, a frame, a mapping, rows as mappings, or an array with `columns`."""
    if isinstance(data, str | Path):
        path = Path(data)
        return _read_parquet(path) if path.suffix.lower() in (".parquet", ".pq") else _read_csv(path)
    if isinstance(data, Mapping):
        for name, values in data.items():
            if not isinstance(values, Iterable):
                no_list = f"{readable_repr(values)} is no list of cells"
                raise CalibrantError(f"the data, column {readable_repr(name)}: {no_list}")
        return _from_lists(column_names(data), map(list, data.values()))
    if hasattr(data, "shape") and not hasattr(data, "columns"):
        return _from_array(data, columns)
    if isinstance(data, Sequence) and data and all(isinstance(row, Mapping) for row in data):
        names = list(data[0])
        different = next((n for n, row in enumerate(data, 1) if list(row) != names), None)
        if different is not None:
            raise CalibrantError(f"the data, row {different}: other columns than row 1")
        return _from_lists(column_names(names), ([row[name] for row in data] for name in names))
    return _from_frame(data)


class _Words(dict[str, int]):
    """Positions of words, in the order in which they are first looked up."""

    def __missing__(self, word: str) -> int:
        self[word] = position = len(self)
        return position


def _from_lists(
    names: Sequence[str], columns: Iterable[list[Any]], declared: Mapping[str, Sequence[str]] | None = None
) -> RawTable:
    columns = list(columns)
    number = len(columns[0]) if columns else 0
    _check_rows(number, "the data")
    raws, lists = [], {}
    for name, values in zip(names, columns, strict=True):
        if len(values) != number:
            raise CalibrantError(f"the data, column {readable_repr(name)}: {len(values)} values, not {number}")
        words = _Words()
        cells = np.fromiter((words[_cell_text(value)] for value in values), np.int32, number)
        raws.append(RawColumn(name, list(words), cells, (declared or {}).get(name, ())))
        parts = {
            words[_cell_text(v)]: tuple(v) for v in values if isinstance(v, list | tuple | set | frozenset | np.ndarray)
        }
        if parts:
            lists[name] = parts
    return RawTable("the data", raws, np.arange(1, number + 1), lists=lists)


def _cell_text(value: Any) -> str:
    """Return a cell's word; "" for values that stand for none."""
    if isinstance(value, str):
        return value.strip()
    if value is None or type(value).__name__ in ("NaTType", "NAType"):
        return ""
    if isinstance(value, float) and value != value:  # NaN is the only number that differs from itself
        return ""
    return str(value).strip()


def _check_rows(number: int, source: str) -> None:
    if number > MAX_ROWS:
        raise CalibrantError(f"{source} has {number:,} rows; at most {MAX_ROWS:,} are read")


def _from_array(data: Any, columns: Sequence[str] | None) -> RawTable:
    if len(data.shape) != 2:
        raise CalibrantError(f"the data is an array of {len(data.shape)} dimensions; rows and columns are needed")
    names = [f"X{k + 1}" for k in range(data.shape[1])] if columns is None else column_names(columns)
    if len(names) != data.shape[1]:
        raise CalibrantError(f"the data has {data.shape[1]} columns; {len(names)} names were given")
    _check_rows(data.shape[0], "the data")
    return _from_lists(names, (data[:, k].tolist() for k in range(len(names))))


def _from_frame(data: Any) -> RawTable:
    """Return the columns of a frame of pandas, polars, pyarrow and their like, through narwhals (extra `frames`)."""
    try:
        narwhals = import_module("narwhals.stable.v2")
    except ImportError:
        kind = type(data).__name__
        raise CalibrantError(
            f"a {kind} is read with narwhals, which is missing: pip install 'calibrant[frames]', or give a mapping"
        ) from None
    if hasattr(data, "collect"):
        raise CalibrantError(f"a {type(data).__name__} has no rows yet: give data.collect()")
    if type(data).__name__ == "RecordBatch":  # of pyarrow; narwhals takes its tables alone
        data = import_module("pyarrow").Table.from_batches([data])
    heads: Iterable[Any] = data.column_names if hasattr(data, "column_names") else getattr(data, "columns", ())
    names = column_names(heads)
    if names:
        _check_head(names, "the data", 1)
    if any(not isinstance(name, str) for name in getattr(data, "columns", ())) and hasattr(data, "set_axis"):
        data = data.set_axis(names, axis=1)  # narwhals takes names that are texts
    try:
        frame = narwhals.from_native(data, eager_only=True)
    except TypeError:
        raise CalibrantError(f"the data must be {FRAMES}, got {type(data).__name__}") from None
    names = names or frame.columns
    declared = {
        name: [str(word) for word in series.cat.get_categories().to_list()]
        for name, series in zip(names, frame.iter_columns(), strict=True)
        if series.dtype in (narwhals.Categorical, narwhals.Enum)
    }
    table = _from_lists(names, (series.to_list() for series in frame.iter_columns()), declared)
    named = [str(name) for name in getattr(getattr(data, "index", None), "names", ()) if name is not None]
    remark = f"the index is no column: {', '.join(named)}; data.reset_index() makes it one"
    return replace(table, remarks=(remark,)) if named else table


def _read_parquet(path: Path) -> RawTable:
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        hint = "pip install 'calibrant[parquet]'"
        raise CalibrantError(f"{path.name}: Parquet is read with pyarrow, which is missing: {hint}") from None
    errors = import_module("pyarrow").ArrowException
    try:
        table = parquet.ParquetFile(path).read()  # parquet.read_table imports data sets, for .6 s
        _check_rows(table.num_rows, path.name)
        names = column_names(table.column_names)
        columns = [_arrow_column(name, table.column(k)) for k, name in enumerate(names)]
    except (OSError, errors) as error:
        raise CalibrantError(f"{path.name} is not Parquet: {str(error).splitlines()[0]}") from None
    return RawTable(path.name, columns, np.arange(1, table.num_rows + 1))


def _arrow_column(name: str, column: Any) -> RawColumn:
    """Return a column by its dictionary, without a Python object a cell."""
    combined = column.combine_chunks()
    chunks = combined.chunks if hasattr(combined, "chunks") else [combined]
    words = _Words()
    cells = []
    for chunk in chunks:
        encoded = chunk if hasattr(chunk, "dictionary") else chunk.dictionary_encode()
        places = [words[_cell_text(value)] for value in encoded.dictionary.to_pylist()]
        indices = encoded.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)
        cells.append(np.array([*places, -1], np.int32)[indices])
    merged = np.concatenate(cells) if cells else np.zeros(0, np.int32)
    return RawColumn(name, list(words), merged)


def _read_csv(path: Path) -> RawTable:
    """Return a CSV file with a head; the delimiter is a comma, a semicolon or a tab, whichever the head has first."""
    encoding = "utf-8-sig"
    try:
        with path.open("rb") as file:
            beginning = file.read(1 << 16)
        if beginning[:2] in (b"\xff\xfe", b"\xfe\xff"):
            encoding = "utf-16"
        elif problem := describe_no_text(beginning):
            raise CalibrantError(f"{path.name}: {problem}")
        try:
            return _read_text(path, encoding, ())
        except UnicodeDecodeError:
            remarks = (f"read as Windows-1252: {path.name} is not UTF-8",)
            return _read_text(path, "cp1252", remarks)
    except UnicodeDecodeError:
        raise CalibrantError(f"{path.name} is not text in UTF-8") from None
    except OSError as error:
        raise CalibrantError(f"{path}: {error.strerror or error}") from None
    except csv.Error as error:
        raise CalibrantError(f"{path.name} is not CSV: {error}") from None


def _read_text(path: Path, encoding: str, remarks: tuple[str, ...]) -> RawTable:
    with path.open(encoding=encoding, newline="") as file:
        first = next((line for line in file if line.strip()), "")
        file.seek(0)
        refuse_other_files(path.name, first, file)
        file.seek(0)
        if problem := describe_blanks(file):
            raise CalibrantError(f"{path.name}: {problem}")
        if not first:
            raise CalibrantError(f"{path.name} is empty; the first line has the names of the columns")
        stated = stated_delimiter(first)
        bare = re.sub(r'"[^"]*"', "", first)
        delimiter = stated or min((c for c in ",;\t" if c in bare), key=bare.index, default=",")
        file.seek(0)
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        if stated:
            next(reader)
            remarks += (
                f"the first line states the delimiter, {readable_repr(delimiter)}; the names are in the second",
            )
        return _from_lines(path.name, reader, delimiter, remarks)


def _from_lines(source: str, reader: Any, delimiter: str, remarks: tuple[str, ...]) -> RawTable:
    numbered = _numbered(reader)
    _, head = next(numbered, (0, [""]))
    names = column_names(name.strip() for name in head)
    separator = next((c for c in "|;\t" if c != delimiter and c in names[0]), None) if len(names) == 1 else None
    if separator is not None:
        raise CalibrantError(
            f"{source} has one column only, {readable_repr(names[0])}, whose name holds {readable_repr(separator)};"
            " cells are separated by commas, semicolons or tabs: write them so"
        )
    if len(names) > MAX_HEAD:
        raise CalibrantError(f"{source} has {len(names):,} columns; at most {MAX_HEAD:,} are read, and 60 fitted")
    words = [_Words() for _ in names]
    cells: list[list[npt.NDArray[np.int32]]] = [[] for _ in names]
    lines: list[int] = []
    while chunk := list(islice(numbered, CHUNK)):
        wrong = next(((n, row) for n, row in chunk if len(row) != len(names)), None)
        if wrong is not None:
            values = f"{plural(len(wrong[1]), 'values')} under {plural(len(names), 'names')}"
            advice = advise_row(names, wrong[1], reader.dialect.delimiter)
            different = [n for n, row in chain(chunk, numbered) if len(row) != len(names)]
            listed = ", ".join(map(str, different[:MAX_NAMED_ROWS])) + ", ..." * (len(different) > MAX_NAMED_ROWS)
            more = f"; {len(different):,} such rows: lines {listed}" if len(different) > 1 else ""
            raise CalibrantError(f"{source}, row {wrong[0]} (lines of the file): {values}; {advice}{more}")
        lines += [number for number, _ in chunk]
        _check_rows(len(lines), source)
        for k, column in enumerate(zip(*(row for _, row in chunk), strict=True)):
            cells[k].append(np.fromiter(map(words[k].__getitem__, column), np.int32, len(chunk)))
    raws = [_trim(name, list(w), parts) for name, w, parts in zip(names, words, cells, strict=True)]
    return RawTable(source, raws, np.array(lines, np.int64), "lines of the file", delimiter, None, remarks)


def _trim(name: str, words: Sequence[str], parts: Sequence[npt.NDArray[np.int32]]) -> RawColumn:
    """Return a column with trimmed words, each once."""
    trimmed = _Words()
    places = np.array([trimmed[word.strip()] for word in words], np.int32)
    cells = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    return RawColumn(name, list(trimmed), places[cells] if len(places) else cells)


def _numbered(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the values of each row that is not empty."""
    previous = 0
    for values in reader:
        number, previous = previous + 1, reader.line_num
        if values:
            yield number, values
