"""Predictions in a log of Inspect.

A log is a ZIP archive of JSON files. It is read with the standard library, as untrusted as any other input; nothing of
Inspect is imported. Its entries are compressed with Zstandard, which Python has from 3.14 on and a package of the extra
`inspect` brings before.
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from calibrant.dsl.errors import CalibrantError, MissingExtraError, in_one_line, short_repr
from calibrant.dsl.parse_limits import MAX_JSON_BYTES, load_json, unique_keys

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
    """The samples of a log, in the order of its data set and by epochs; `CalibrantError` names what cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Return where each prediction stands in the log, and the prediction."""
        try:
            with zipfile.ZipFile(self._path) as archive:
                header = _header(archive)
                system = log_system(header)
                for name in _samples(archive, header):
                    where = f"sample {short_repr(name)}"
                    yield where, sample_line(_sample_object(archive, name), system, where)
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


def log_system(header: Mapping[str, Any]) -> str | None:
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


_SAMPLE_KEYS = ("epoch", "messages", "output", "error", "limit", "input")  # by which the format is told


def sample_line(sample: Mapping[str, Any], system: str | None, where: str) -> dict[str, Any]:
    """Return a sample as a line of predictions; `CalibrantError` if its id is none that Inspect writes.

    What an episode handed in is in its steps, not in what was said last.
    Seconds are those of a row of ours, else the sample's working time: waiting and retries are not in it.
    """
    instance = sample.get("id")
    if type(instance) not in (str, int):
        raise CalibrantError(
            f"{where}: id is {short_repr(instance)}; it has to be the item's id, a text or a whole number"
        )
    sample = _with_attachments(sample)
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
        line |= {key: sample[key] for key in _SAMPLE_KEYS if key in sample}
        output = _at(sample, "output")
        if steps is not None or not isinstance(output, Mapping) or "choices" not in output:
            line["response"] = _at(sample, "output", "completion") or ""
    elif sample.get("error"):
        line["error"] = sample["error"]
    seconds = _at(store, "Transcript:seconds") or sample.get("working_time")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and math.isfinite(seconds) and seconds >= 0:
        line["seconds"] = seconds
    return line


_ATTACHMENT = "attachment://"


def _with_attachments(sample: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a sample with its long texts in place of their addresses."""
    attachments = sample.get("attachments")
    if not isinstance(attachments, Mapping) or not attachments:
        return sample

    def resolve(value: Any) -> Any:
        if isinstance(value, str) and value.startswith(_ATTACHMENT):
            return attachments.get(value.removeprefix(_ATTACHMENT), value)
        if isinstance(value, dict):
            return {key: resolve(part) for key, part in value.items()}
        return [resolve(part) for part in value] if isinstance(value, list) else value

    return {key: resolve(value) if key in ("output", "messages", "input") else value for key, value in sample.items()}
