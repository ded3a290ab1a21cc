"""Objects of a prediction file, each with where it stands: JSON lines, bounded, or a log of Inspect (`.eval`).

A log is a ZIP archive of JSON files. It is read with the standard library, as untrusted as any other input; nothing of
Inspect is imported. Its entries are compressed with Zstandard, which Python has from 3.14 on and a package of the extra
`inspect` brings before.
"""

from __future__ import annotations

import gzip
import json
import math
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

from calibrant.dsl.errors import CalibrantError, MissingExtraError, in_one_line, short_repr
from calibrant.dsl.parse_limits import (
    MAX_JSON_BYTES,
    TooDeepError,
    check_json_text,
    load_json,
    quote_deep_members,
    unique_keys,
)

# --- Predictions in a log of Inspect (`.eval`): its samples as lines of a prediction file, epochs as samples ----------
_ZIP = b"PK\x03\x04"
_ZSTANDARD = 93
_HEADERS = ("header.json", "_journal/start.json")  # a log that was not finished has the second one only
_UNREADABLE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError, OverflowError)
_OWN_ROWS = "calibrant/protocol"


def is_eval_log(path: Path) -> bool:
    """Return whether a file begins as a log does; standard input is none."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_ZIP)) == _ZIP


class EvalLog:
    """The samples of a log, in the order of its data set and by epochs; `CalibrantError` names what cannot be read.

    num_failed: samples that ended with an error, so far; they have no answer and are left out
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.num_failed = 0

    def lines(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Return where each prediction stands in the log, and the prediction."""
        try:
            with zipfile.ZipFile(self._path) as archive:
                header = _header(archive)
                system = _system(header)
                for name in _samples(archive, header):
                    where = f"sample {short_repr(name)}"
                    sample = _sample_object(archive, name)
                    if sample.get("error"):
                        self.num_failed += 1
                    else:
                        yield where, _prediction(sample, system, where)
        except CalibrantError:
            raise
        except _UNREADABLE as error:
            raise CalibrantError(f"not a whole log of Inspect: {in_one_line(str(error))[:200]}") from None


def _header(archive: zipfile.ZipFile) -> Mapping[str, Any]:
    names = set(archive.namelist())
    for name in _HEADERS:
        if name in names:
            return _sample_object(archive, name)
    raise CalibrantError(f"not a log of Inspect: there is no {_HEADERS[0]} in the archive")


def _sample_object(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    """Return the JSON object in an entry."""
    entry = archive.getinfo(name)
    if entry.compress_type == _ZSTANDARD:
        _with_zstandard()
    try:
        with archive.open(entry) as file:
            raw = file.read(MAX_JSON_BYTES + 1)
    except (NotImplementedError, RuntimeError) as error:  # another compression; encryption
        raise CalibrantError(f"{short_repr(name)}: {in_one_line(str(error))[:200]}") from None
    except Exception as error:  # each decompressor has errors of its own
        raise CalibrantError(f"{short_repr(name)}: damaged: {in_one_line(str(error))[:200]}") from None
    if len(raw) > MAX_JSON_BYTES:
        raise CalibrantError(f"{short_repr(name)}: larger than {MAX_JSON_BYTES} bytes")
    try:
        value = load_json(raw, object_pairs_hook=unique_keys)
    except CalibrantError as error:
        raise CalibrantError(f"{short_repr(name)}: {error}") from None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise CalibrantError(f"{short_repr(name)}: not a JSON object in UTF-8")
    return value


def _with_zstandard() -> None:
    """Teach zipfile the compression, where it does not know it."""
    if hasattr(zipfile, "ZIP_ZSTANDARD"):
        return
    try:
        import_module("zipfile_zstd")
    except ImportError:
        raise MissingExtraError(
            "a log of Inspect, compressed with Zstandard: pip install 'calibrant[inspect]' has what reads it"
        ) from None


def _samples(archive: zipfile.ZipFile, header: Mapping[str, Any]) -> list[str]:
    """Return the entries of samples; of two of one name the later counts, as Inspect reads them."""
    ids = _at(header, "eval", "dataset", "sample_ids")
    order = {str(sample_id): place for place, sample_id in enumerate(ids if isinstance(ids, list) else ())}

    def place(name: str) -> tuple[int, str, int, str]:
        sample, _, epoch = name.removeprefix("samples/").removesuffix(".json").rpartition("_epoch_")
        number = int(epoch) if epoch.isascii() and epoch.isdecimal() and len(epoch) < 10 else 0
        return order.get(sample, len(order)), sample, number, name

    names = {name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json")}
    return sorted(names, key=place)


def _system(header: Mapping[str, Any]) -> str | None:
    """Return who answered: the model, or the row of ours that did without one, with its options."""
    steps = _at(header, "plan", "steps")
    for step in steps if isinstance(steps, list) else ():
        if _at(step, "solver") == _OWN_ROWS:
            params = _at(step, "params")
            options = dict(params) if isinstance(params, Mapping) else {}
            name = options.pop("name", "")
            return " ".join([str(name), *(f"{key}={value}" for key, value in sorted(options.items()))])
    model = _at(header, "eval", "model")
    return model if isinstance(model, str) else None


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _prediction(sample: Mapping[str, Any], system: str | None, where: str) -> dict[str, Any]:
    """Return a sample as a line of predictions; `CalibrantError` if its id is none that Inspect writes.

    What an episode handed in is in its steps, not in what was said last.
    Seconds are those of a row of ours, else the sample's working time: waiting and retries are not in it.
    """
    instance = sample.get("id")
    if type(instance) not in (str, int):
        raise CalibrantError(
            f"{where}: id is {short_repr(instance)}; it has to be the item's id, a text or a whole number"
        )
    line: dict[str, Any] = {"instanceId": str(instance), "model": system}
    epoch = sample.get("epoch")
    if epoch is not None:
        line["sample"] = epoch - 1 if type(epoch) is int else epoch
    pool = _at(sample, "metadata", "poolDigest")
    if pool is not None:
        line["pool"] = pool
    store = _at(sample, "store")
    steps = _at(store, "Transcript:steps") or None
    if steps is not None:
        line["steps"] = steps
    if steps is None or _at(store, "Transcript:handed_in") is not True:
        line["response"] = _at(sample, "output", "completion") or ""
    seconds = _at(store, "Transcript:seconds") or sample.get("working_time")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and math.isfinite(seconds) and seconds >= 0:
        line["seconds"] = seconds
    return line


# --- JSON lines from a file, a compressed file or standard input, each bounded before it is read ----------------------
STANDARD_INPUT = Path("-")
_SPACE = " \t\r\n"
Scanner: TypeAlias = Callable[[str, int], tuple[Any, int]]
# as `json.loads`, but made once, and without its two searches for space: together they take a fifth of a line's time
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_scan_unique_keys = json.JSONDecoder(object_pairs_hook=unique_keys).scan_once  # type: ignore[attr-defined]
_GZIP, _BYTE_ORDER_MARK = b"\x1f\x8b", b"\xef\xbb\xbf"


def shown_name(path: Path) -> str:
    """Return what messages call the file."""
    return "standard input" if path == STANDARD_INPUT else str(path)


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
    else:
        with path.open("rb") as file:
            yield file


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers; first bytes tell gzip and a byte order mark.

    `CalibrantError` for a line of more than MAX_JSON_BYTES, and for a compressed file that breaks off or is damaged.
    """
    with _open(path) as file:
        source = file if hasattr(file, "peek") else BufferedReader(cast(Any, file))
        first = cast(Any, source).peek(2)[:2]
        lines: BinaryIO = cast(BinaryIO, gzip.GzipFile(fileobj=source)) if first == _GZIP else source
        try:
            # a line without end must not be read: 19 MB of gzip can hold one of 4 GB
            for number, line in enumerate(iter(partial(lines.readline, MAX_JSON_BYTES + 1), b""), 1):
                if len(line) > MAX_JSON_BYTES:
                    limit = f"longer than {MAX_JSON_BYTES} bytes; give one object a line"
                    raise CalibrantError(f"{shown_name(path)}: line {number}: {limit}")
                text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
                if text and not text.isspace():
                    yield number, text
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise CalibrantError(f"{shown_name(path)}: not whole as a gzip file: {error}") from None


def json_object(raw: bytes) -> dict[str, Any] | None:
    """Return the object that a line spells, or None.

    `TooLargeError` for one of too many values, `PoolError` for a key that occurs twice in one object.
    """
    return _object(raw, _scan_unique_keys)


def prediction_object(raw: bytes) -> dict[str, Any] | None:
    """Return the object of a prediction's line as `json_object`, but a member that nests too deeply as its text.

    What a system wrote is not the file's fault: as a text it is scored like other responses without an answer.
    """
    try:
        return json_object(raw)
    except TooDeepError:
        return json_object(quote_deep_members(raw.decode("utf-8")).encode("utf-8"))


def answer_object(raw: bytes) -> dict[str, Any] | None:
    """Return the object that a system's text spells; None if there is none, or it nests too deeply.

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
    except (ValueError, RecursionError, StopIteration):  # bad JSON or UTF-8, endless integer; endless nesting; nothing
        return None
    return value if end == len(text) and isinstance(value, dict) else None


# --- The objects of a file of predictions, each with where it stands: JSON lines, or a log of Inspect -----------------


class PredictionFile:
    """A file of predictions.

    num_failed: samples of a log that ended with an error and are left out, so far
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.num_failed = 0

    def objects(self) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """Return where each stands, and what it says; None for what is no object. `CalibrantError` names the file."""
        if not is_eval_log(self._path):
            for number, raw in numbered_lines(self._path):
                try:
                    line = prediction_object(raw)
                except CalibrantError as error:
                    raise CalibrantError(f"{shown_name(self._path)}: line {number}: {error}") from None
                yield f"line {number}", line
            return
        log = EvalLog(self._path)
        try:
            yield from log.lines()
        except MissingExtraError as error:
            raise MissingExtraError(f"{shown_name(self._path)}: {error}") from None
        except CalibrantError as error:
            raise CalibrantError(f"{shown_name(self._path)}: {error}") from None
        self.num_failed = log.num_failed
