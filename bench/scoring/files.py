"""Objects of a prediction file with their locations: JSON lines or documents, tables, or a log of Inspect."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from calibrant.bench.core.scoring import ID_FIELDS
from calibrant.bench.scoring.formats import (
    GZIP,
    OPTIONAL_CELLS,
    SAMPLE_FIELDS,
    EvalLog,
    is_eval_log,
    line_of_cells,
    log_system,
    read_beginning,
    sample_line,
    uncompress,
)
from calibrant.bench.scoring.providers import as_objects, is_assistant, is_generated_list
from calibrant.dsl.errors import CalibrantError, MissingExtraError, in_one_line, short_repr
from calibrant.dsl.parse_limits import (
    BLANK_LINES,
    MAX_BLANK_LINES,
    MAX_JSON_BYTES,
    TooDeepError,
    TooLargeError,
    check_json_text,
    quote_deep_members,
    stated_delimiter,
    unique_keys,
)
from calibrant.dsl.text import plural

# --- JSON lines from a file, a compressed file or standard input, of bounded length -----------------------------------
STANDARD_INPUT = Path("-")
_SPACE = " \t\r\n"
# a decoder made once, without the two searches for space of `json.loads`: these take a fifth of the time of a line
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_scan_unique_keys = json.JSONDecoder(object_pairs_hook=unique_keys).scan_once  # type: ignore[attr-defined]
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def shown_name(path: Path) -> str:
    """Return the name of the file in messages."""
    return "standard input" if path == STANDARD_INPUT else str(path)


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
    else:
        with path.open("rb", buffering=READ_AHEAD) as file:
            yield file


READ_AHEAD = 1 << 18  # bytes per system call: about a hundred verdicts; Python's default holds three
TOO_LONG = f"longer than {MAX_JSON_BYTES} bytes; give one object a line"
MAX_SKIPPED_BYTES = (
    1 << 29
)  # length of a line that may be skipped; bounds time, as 2 MB of gzip can hold a line of 2 GB


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (line number, line) of lines that are not blank; gzip and a byte order mark are recognised.

    `CalibrantError` for a line longer than MAX_JSON_BYTES, and for a truncated or damaged compressed file.
    """
    for number, line in bounded_lines(path):
        if line is None:
            raise CalibrantError(f"{shown_name(path)}: line {number}: {TOO_LONG}")
        yield number, line


def bounded_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Yield lines as `numbered_lines`, but None in place of a line longer than MAX_JSON_BYTES, which is skipped."""
    with _open(path) as file:
        lines, last = uncompress(file), 0
        try:
            # never read a whole line at once: 19 MB of gzip can hold one of 4 GB
            for number, line in enumerate(iter(partial(lines.readline, MAX_JSON_BYTES + 1), b""), 1):
                if len(line) > MAX_JSON_BYTES:
                    if not _skip_rest(lines, line):
                        raise CalibrantError(f"{shown_name(path)}: line {number}: {TOO_LONG}")
                    yield number, None
                    continue
                text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
                if text and not text.isspace():
                    last = number
                    yield number, text
                elif number - last > MAX_BLANK_LINES:
                    raise CalibrantError(f"{shown_name(path)}: line {number}: {BLANK_LINES}")
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise CalibrantError(f"{shown_name(path)}: not whole as a gzip file: {error}") from None


def _skip_rest(lines: BinaryIO, line: bytes) -> bool:
    """Skip the rest of a partly read line; return whether the line ends within MAX_SKIPPED_BYTES."""
    num_bytes = len(line)
    while line and not line.endswith(b"\n") and num_bytes <= MAX_SKIPPED_BYTES:
        line = lines.readline(1 << 20)
        num_bytes += len(line)
    return num_bytes <= MAX_SKIPPED_BYTES


def json_object(raw: bytes) -> dict[str, Any] | None:
    """Parse the JSON object of a line; None if the line is no JSON object.

    `TooLargeError` if it has too many values, `PoolError` for a key that occurs twice in one object.
    """
    fast = _object_by_msgspec(raw)
    return _object(raw, _scan_unique_keys) if fast is None else fast


def _object_by_msgspec(raw: bytes) -> dict[str, Any] | None:
    """Parse a line with msgspec, in half of the time of Python's parser; None if only that parser can decide.

    Python's parser accepts more, such as NaN and lone surrogates. Of equal keys msgspec silently keeps the last. No
    member was lost if the object encodes to as many colons as the line has; a line with escaped colons is left to
    Python.
    """
    try:
        check_json_text(raw)
        value = msgspec.json.decode(raw)
    except (TooLargeError, ValueError, RecursionError):  # ValueError: msgspec's errors and those of UTF-8
        return None
    if not isinstance(value, dict) or b"u003" in raw:
        return None
    return value if raw.count(b":") == msgspec.json.encode(value).count(b":") else None


def prediction_object(raw: bytes) -> dict[str, Any] | None:
    """Parse a prediction's line as `json_object` does, but keep members that nest too deeply as texts.

    The system wrote them, so the file is no error: as texts they are scored like other responses without an answer.
    """
    try:
        return json_object(raw)
    except TooDeepError:
        return json_object(quote_deep_members(raw.decode("utf-8")).encode("utf-8"))


def answer_object(raw: bytes) -> dict[str, Any] | None:
    """Parse the JSON object of a system's text; None if it is none, or nests too deeply.

    Of equal keys the last counts, as in all replies.
    """
    try:
        return _object(raw, _scan)
    except TooDeepError:
        return None


def _object(raw: bytes, scan: Callable[[str, int], tuple[Any, int]]) -> dict[str, Any] | None:
    try:
        text = raw.decode("utf-8").strip(_SPACE)
        check_json_text(text)
        value, end = scan(text, 0)
    # bad JSON or UTF-8, a huge integer: ValueError; deep nesting: RecursionError; an empty text: StopIteration
    except (ValueError, RecursionError, StopIteration):
        return None
    return value if end == len(text) and isinstance(value, dict) else None


# --- The objects of a file of predictions with their locations --------------------------------------------------------
MAX_DOCUMENT_BYTES = 1 << 29  # size of a JSON document, which is held in memory
PARTIAL, BROKEN = "partial_last_line", "skipped_line"
_PARQUET = b"PAR1"
_UNREAD_FILES = {  # first bytes -> kind of file and remedy
    b"\xff\xfe": "text in UTF-16; save it in UTF-8",
    b"\xfe\xff": "text in UTF-16; save it in UTF-8",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard; gzip is read, or the file as it was: zstd -d FILE",
    b"BZh": "compressed with bzip2; gzip is read, or the file as it was: bunzip2 FILE",
    b"\xfd7zXZ": "compressed with xz; gzip is read, or the file as it was: unxz FILE",
}
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?", re.ASCII)
_USUAL_COLUMNS = (  # (names of the columns that are read, words in other names for them): sample, seconds
    (
        SAMPLE_FIELDS,
        frozenset(["sample", "epoch", "run", "trial", "repeat", "repetition", "replicate", "attempt"]),
    ),
    (("seconds",), frozenset(["seconds", "secs", "sec", "time", "duration", "elapsed", "latency", "took", "runtime"])),
)
_FAILURE_COLUMNS = (  # the same for errors and stops, which are suggested only if a column has such a word in its name
    (("error",), frozenset(["error", "errors", "exception", "traceback"])),
    (("finish_reason", "stop_reason"), frozenset(["finish", "truncated"])),
)
_ENTRY_KEYS = ("request_states", "samples")  # lists of entries in documents: HELM's scenario state, a log of Inspect


class FileEntry(NamedTuple):
    """A line, row, element or sample of a file of predictions.

    where: location for messages; number: index from 1; line: its object; None if it holds none, and `problem` says why
    kind: kind of the problem, a key of WARNINGS; digest: hash of the whole entry, to recognise duplicates
    """

    where: str
    number: int
    line: dict[str, Any] | None
    problem: str = ""
    kind: str = BROKEN
    digest: int = 0


def _words(name: str) -> set[str]:
    """Return the words of a column's name in lower case: {run, index} for runIndex and run_index."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def _num_turns(line: Mapping[str, Any]) -> int:
    """Return the number of messages of the assistant in the field that has most of them; 0 beside steps."""
    if line.get("steps") is not None:
        return 0
    return max((sum(map(is_assistant, as_objects(value))) for value in line.values()), default=0)


class PredictionFile:
    """A file of predictions: JSON lines, one JSON document, CSV or TSV, Parquet, a log of Inspect; also compressed.

    has_replies: whether its lines may have replies that are played
    """

    def __init__(self, path: Path, *, has_replies: bool = False) -> None:
        self.path = path
        self._has_replies = has_replies
        self._name = path.name.lower().removesuffix(".gz")
        self._delimiter = next((mark for suffix, mark in _DELIMITERS.items() if self._name.endswith(suffix)), None)

    def objects(self) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """Yield (location, object), None for entries that are no object; `CalibrantError` for other problems."""
        for entry in self.entries():
            if entry.line is None and entry.problem != NO_OBJECT:
                raise CalibrantError(f"{shown_name(self.path)}: {entry.where}: {entry.problem}")
            yield entry.where, entry.line

    def entries(self) -> Iterator[FileEntry]:
        """Yield the entries one at a time; `CalibrantError` for a file that is unreadable as a whole."""
        try:
            if problem := next((text for magic, text in _UNREAD_FILES.items() if self._begins_with(magic)), ""):
                raise CalibrantError(problem)
            if self._name.endswith((".xlsx", ".ods")) or (self._delimiter is not None and self._begins_with(b"PK")):
                raise CalibrantError("a workbook; save the sheet as CSV in UTF-8")
            if is_eval_log(self.path):
                log = EvalLog(self._binary())
                yield from (FileEntry(where, k, line) for k, (where, line) in enumerate(log.lines(), 1))
            elif self._name.endswith(".parquet") or self._begins_with(_PARQUET):
                yield from _parquet_entries(self._binary())
            elif self._delimiter is not None:
                yield from _csv_entries(read_document(self.path), self._delimiter)
            else:
                yield from self._json_entries(is_document=self._name.endswith(".json"))
        except MissingExtraError as error:
            raise MissingExtraError(f"{shown_name(self.path)}: {error}") from None
        except CalibrantError as error:
            named = f"{shown_name(self.path)}: "
            raise CalibrantError(str(error) if str(error).startswith(named) else f"{named}{error}") from None

    def list_unread(self, line: Mapping[str, Any], form: str, fields: Collection[str | None]) -> str:
        """Return a text that lists columns that look like samples or times but are not read, and the names that are.

        Empty without such columns. In a CSV, any unread column with a number in this row counts.
        line: a row; form: form of its answer (AnswerField); fields: names that are read for item, model and answer
        """
        if self._has_replies and form not in ("dialogue", "transcript") and _num_turns(line) > 1:
            return "earlier messages of the assistant (`replies`, a list of all, plays them)"
        if form == "format" and self._delimiter is None:  # all of its fields are known
            return ""
        unread = [name for name in line if name and name not in {*fields, *ID_FIELDS, *OPTIONAL_CELLS}]
        present = {word for name in unread for word in _words(name)}
        failures = [(names, words) for names, words in _FAILURE_COLUMNS if not present.isdisjoint(words)]
        missing = [(names, words) for names, words in (*_USUAL_COLUMNS, *failures) if line.keys().isdisjoint(names)]
        words_of_missing = {word for _, words in missing for word in words}
        is_number = _NUMBER.fullmatch if self._delimiter is not None else lambda text: None
        columns = [
            name for name in unread if not words_of_missing.isdisjoint(_words(name)) or is_number(str(line[name]))
        ]
        allowed = ", ".join(" or ".join(names) for names, _ in missing)
        return f"{', '.join(columns)} (columns that are: {allowed})" if columns and missing else ""

    def _begins_with(self, magic: bytes) -> bool:
        return read_beginning(self.path, len(magic)) == magic

    def _binary(self) -> Path | BinaryIO:
        """Return the file, or its content if it is compressed."""
        with self.path.open("rb") as file:
            is_compressed = file.read(len(GZIP)) == GZIP
        return io.BytesIO(read_document(self.path)) if is_compressed else self.path

    def _json_entries(self, *, is_document: bool) -> Iterator[FileEntry]:
        lines = bounded_lines(self.path)
        first = next(lines, None)
        if first is None:
            return
        beginning = (first[1] or b"").lstrip()[:1]
        if first[1] is not None and (
            beginning == b"[" or (beginning == b"{" and (is_document or _may_open_document(first[1])))
        ):
            if self.path == STANDARD_INPUT:  # cannot be read again
                following = [*lines]
                raw = first[1] + b"".join(_require_line(number, line) for number, line in following)
                lines = iter(following)
            else:
                raw = read_document(self.path)
            document = _document_entries(raw)
            if document is not None:
                yield from document
                return
            if self.path != STANDARD_INPUT:
                lines = bounded_lines(self.path)
                next(lines, None)
        yield from _line_entries(first, lines)


NO_OBJECT = "not a JSON object in UTF-8"


def _may_open_document(raw: bytes) -> bool:
    """Return whether a first line is no whole object, so that it may begin a document printed over many lines."""
    try:
        return prediction_object(raw) is None
    except CalibrantError:
        return False


NUM_TRIED_LINES = 100  # a text with a line break inside is two lines or a few, after which whole ones follow


def _has_object(lines: Sequence[str]) -> bool:
    """Return whether a line is a whole object with members, as none is inside a document printed over many lines."""
    return any(
        line.startswith('{"') and not _may_open_document(line.encode("utf-8", "surrogatepass")) for line in lines
    )


def _require_line(number: int, line: bytes | None) -> bytes:
    """Return the line; `CalibrantError` if it is None, too long to be read."""
    if line is None:
        raise CalibrantError(f"line {number}: {TOO_LONG}")
    return line


def _line_entries(first: tuple[int, bytes | None], lines: Iterator[tuple[int, bytes | None]]) -> Iterator[FileEntry]:
    """Yield the lines of a file; a line that is a whole document, such as HELM's, is expanded into its entries."""
    for number, raw in chain((first,), lines):
        entry = _line_entry(number, raw)
        if entry.line is None or entry.line.keys().isdisjoint(_ENTRY_KEYS):
            yield entry
            continue
        entries_key = next((key for key in _ENTRY_KEYS if isinstance(entry.line.get(key), list)), None)
        if entries_key is None:
            yield entry
        else:
            yield from _expand(entry.line, entries_key)


def _line_entry(number: int, raw: bytes | None) -> FileEntry:
    """Return the entry of a line. raw: None if it was too long."""
    where = f"line {number}"
    if raw is None:
        return FileEntry(where, number, None, TOO_LONG)
    try:
        line = prediction_object(raw)
    except CalibrantError as error:
        return FileEntry(where, number, None, str(error))
    if line is not None:
        return FileEntry(where, number, line, digest=hash(raw.strip()))
    is_partial = not raw.endswith(b"\n") and raw.lstrip()[:1] == b"{"
    breaks_off = f"{NO_OBJECT}: the line breaks off, as of a run that was killed or still writes"
    problem = breaks_off if is_partial else _problem_of(raw)
    return FileEntry(where, number, None, problem, PARTIAL if is_partial else BROKEN)


def _problem_of(raw: bytes) -> str:
    """Return why a line is no object: invalid UTF-8, a list, a row of a table, a JSON error or text behind it."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"{NO_OBJECT}: byte {error.start} is 0x{raw[error.start]:02x}; save the file in UTF-8"
    text = raw.strip()
    if text[:1] == b"[":
        return f"{NO_OBJECT}, but a list"
    if text.startswith((b"data:", b"event:")):
        return f"{NO_OBJECT}, but an event of a stream; collect the response first"
    if text[:1].isalpha() and any(mark in text for mark in (b",", b"\t", b";")):
        return f"{NO_OBJECT}; a table is read if its name ends in .csv or .tsv"
    if text[:1] != b"{":
        return NO_OBJECT
    try:
        _, end = _scan(text.decode("utf-8"), 0)
    except json.JSONDecodeError as error:
        fault = f"{error.msg[:1].lower()}{error.msg[1:]}".removesuffix(" at")
        return f"{NO_OBJECT}: {fault} at character {error.pos + 1}"
    except StopIteration as error:
        return f"{NO_OBJECT}: no value at character {error.value + 1}"
    except (ValueError, RecursionError):
        return NO_OBJECT
    return f"{NO_OBJECT} alone: text behind it from character {end + 1} on; a line holds one object"


def read_document(path: Path) -> bytes:
    """Return a whole file, uncompressed; `CalibrantError` for one larger than MAX_DOCUMENT_BYTES."""
    with _open(path) as file:
        try:
            raw = uncompress(file).read(MAX_DOCUMENT_BYTES + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise CalibrantError(f"not whole as a gzip file: {error}") from None
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise CalibrantError(f"a document larger than {MAX_DOCUMENT_BYTES} bytes; give JSON lines")
    return raw.removeprefix(_BYTE_ORDER_MARK)


def _document_entries(raw: bytes) -> Iterator[FileEntry] | None:
    """Return the entries of a JSON document; None for JSON lines. `CalibrantError` for a truncated document."""
    try:
        text = raw.decode("utf-8").strip(_SPACE)
    except UnicodeDecodeError:
        return None
    if text.startswith("["):
        first_line, _, rest = text.partition("\n")
        return None if rest.strip() and _is_array(first_line.strip(_SPACE)) else _array_entries(text)
    try:
        value, end = _scan_unique_keys(text, 0)
    except (ValueError, RecursionError, StopIteration, CalibrantError):
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) == 1 or lines[1].lstrip().startswith("{") or _has_object(lines[2 : 2 + NUM_TRIED_LINES]):
            return None
        raise CalibrantError("a JSON document that breaks off, or is none; give it whole, or JSON lines") from None
    if text[end:].strip():
        if "\n" in text[:end]:
            raise CalibrantError("JSON objects printed over many lines each; give one a line, as `jq -c .` prints them")
        return None
    entries_key = next((key for key in _ENTRY_KEYS if isinstance(value.get(key), list)), None)
    if entries_key is None and {"eval", "plan", "version"} <= value.keys():
        raise CalibrantError("a log of Inspect without samples, as of its header alone; give the whole log")
    return iter((FileEntry("element 1", 1, value),)) if entries_key is None else _expand(value, entries_key)


def _expand(document: Mapping[str, Any], entries_key: str) -> Iterator[FileEntry]:
    """Yield the entries of HELM's request states, or of the samples of a log of Inspect."""
    system = log_system(document) if entries_key == "samples" else None
    for number, entry in enumerate(document[entries_key], 1):
        where = f"element {number}"
        if not isinstance(entry, dict):
            yield FileEntry(where, number, None, NO_OBJECT)
        elif entries_key == "samples":
            try:
                yield FileEntry(where, number, sample_line(entry, system, where))
            except CalibrantError as error:
                yield FileEntry(where, number, None, str(error).removeprefix(f"{where}: "))
        else:
            yield FileEntry(where, number, entry)


def _is_array(text: str) -> bool:
    """Return whether a text is one JSON array."""
    try:
        check_json_text(text[:MAX_JSON_BYTES])
        return bool(_scan(text, 0)[1] == len(text))
    except (ValueError, RecursionError, StopIteration, CalibrantError):
        return False


def _array_entries(text: str) -> Iterator[FileEntry]:
    """Yield the elements of an array, each decoded with a check for repeated keys, once the whole array is valid."""
    try:
        check_json_text(text[:MAX_JSON_BYTES])
        values, end = _scan(text, 0)
    except CalibrantError as error:
        raise CalibrantError(f"line 1: {error}") from None
    except (ValueError, RecursionError, StopIteration):
        raise CalibrantError("a JSON array that breaks off, or is none; give it whole, or JSON lines") from None
    if text[end:].strip():
        raise CalibrantError("a JSON array with text behind it; give one array, or JSON lines")
    position = 1
    for number, value in enumerate(values, 1):
        while text[position] in _SPACE + ",":
            position += 1
        start = position
        problem = ""
        try:
            _, position = _scan_unique_keys(text, start)
        except CalibrantError as error:
            problem = str(error)
            _, position = _scan(text, start)
        if is_generated_list(value):
            value = {"response": value}
        if not isinstance(value, dict):
            problem = problem or _problem_of(text[start:position].encode())
        line = None if problem else value
        yield FileEntry(f"element {number}", number, line, problem, digest=hash(text[start:position]))


def _csv_entries(raw: bytes, delimiter: str) -> Iterator[FileEntry]:
    """Yield the rows below the header of a CSV; a semicolon is recognised as the delimiter."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise CalibrantError("not UTF-8; save the table as CSV in UTF-8") from None
    csv.field_size_limit(MAX_JSON_BYTES)
    first_line = text.partition("\n")[0]
    skipped = 0
    if stated := stated_delimiter(first_line):
        delimiter, skipped = stated, 1
        text = text.partition("\n")[2]
    elif delimiter not in first_line:  # spreadsheets write semicolons where the comma is decimal
        delimiter = next((mark for mark in ";\t," if mark in first_line), delimiter)
    # strict, because otherwise a quote that is never closed takes all rows below into its cell
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number, start = 0, 1 + skipped  # number of the current row, and of its first line in the file
    try:
        header = next(rows, [])
        if twice := [name for name in dict.fromkeys(header) if name and header.count(name) > 1]:
            raise CalibrantError(f"row 0, the header: {short_repr(twice[0])} is there twice; name each column once")
        number, start = 1, rows.line_num + 1 + skipped
        for row in rows:
            if row:
                yield _csv_entry(row, header, number, start, decimal_comma=delimiter == ";")
            number, start = number + bool(row), rows.line_num + 1 + skipped
    except csv.Error as error:
        fault, is_open = str(error), str(error) == "unexpected end of data"
        if is_open or fault.endswith("""expected after '"'"""):
            fault = f"a quote is {'never closed' if is_open else 'closed inside a cell'}"
            fault += '; end each quoted cell with a quote, and double quotes inside it ("")'
        raise CalibrantError(f"row {number}, which begins in line {start}: {fault}") from None


QUOTING = 'quote cells that have the delimiter, with "" for each quote inside'


def _csv_entry(row: list[str], header: list[str], number: int, start: int, *, decimal_comma: bool) -> FileEntry:
    """Return the entry of a row. start: number of its first line in the file."""
    where, digest = f"row {number}", hash(tuple(row))
    if len(row) != len(header):
        problem = f"{plural(len(row), 'cells')}, but the header has {len(header)}; it begins in line {start}"
        is_short = len(row) < len(header)
        problem += f"; {'give each row all of its cells, also empty ones' if is_short else QUOTING}"
        return FileEntry(where, number, None, problem)
    return FileEntry(where, number, line_of_cells(header, row, decimal_comma=decimal_comma), digest=digest)


def _parquet_entries(content: Path | BinaryIO) -> Iterator[FileEntry]:
    """Yield the rows of a Parquet file, with pyarrow of the extra `parquet`."""
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtraError("a Parquet file: pip install 'calibrant[parquet]' has what reads it") from None
    try:
        file = parquet.ParquetFile(content)
        number = 0
        for batch in file.iter_batches(batch_size=1_000):
            for row in batch.to_pylist():
                number += 1
                line = {key: value for key, value in row.items() if value is not None or key not in OPTIONAL_CELLS}
                yield FileEntry(f"row {number}", number, line, digest=hash(repr(row)))
    except CalibrantError:
        raise
    except Exception as error:  # pyarrow has errors of many kinds for damaged files
        raise CalibrantError(f"not a whole Parquet file: {in_one_line(str(error))[:200]}") from None
