"""Crashes of methods: where the exception was raised, as records hold it and as people read it."""

from __future__ import annotations

import linecache
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from traceback import walk_tb
from typing import Any, NamedTuple

import msgspec

from calibrant.bench.runs.jobs import one_line
from calibrant.bench.runs.records import Key, Record
from calibrant.dsl.errors import in_one_line

MAX_FRAMES = 5  # last ones of a traceback
MAX_FRAME_CHARS = 200
MAX_CRASH_KINDS = 3  # that are printed after a run
# code in these folders is not the user's
_OTHERS_CODE = (
    str(Path(__file__).parents[2]),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    "<frozen",
)


class _Frame(NamedTuple):
    file: str
    line: int
    function: str

    @property
    def place(self) -> str:
        """Return folder and name of the file, which are the same on every machine, the line and the function."""
        return in_one_line(f"{'/'.join(Path(self.file).parts[-2:])}:{self.line} in {self.function}")[:MAX_FRAME_CHARS]

    @property
    def text(self) -> str:
        """Return the place and the line of source code, where it can be read."""
        source = in_one_line(linecache.getline(self.file, self.line).strip())
        return f"{self.place}: {source}"[:MAX_FRAME_CHARS] if source else self.place


def crash_provenance(error: BaseException, raised_by: str) -> dict[str, Any]:
    """Return error, place and last frames of an exception.

    raised_by: file that called the method, whose frames are left out
    """
    frames = [
        _Frame(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in walk_tb(error.__traceback__)
    ]
    frames = [frame for frame in frames if frame.file != raised_by]
    provenance: dict[str, Any] = {"error": f"{type(error).__name__}: {one_line(error)}"}
    if not frames:
        return provenance
    users = [frame for frame in frames if not frame.file.startswith(_OTHERS_CODE)]
    return provenance | {
        "at": (users or frames)[-1].place,
        "traceback": [frame.text for frame in frames[-MAX_FRAMES:]],
    }


def crash_text(provenance: Mapping[str, Any]) -> str:
    """Return the error of a crash in one line, with its place where the record has it."""
    error, place = provenance.get("error"), provenance.get("at")
    text = in_one_line(str(error)) if error else "no reason recorded"
    return f"{text}, at {in_one_line(str(place))}" if place else text


def crash_lines(record: Record, num_others: int = 0) -> Iterator[str]:
    """Yield what crashed and why, then the last frames; num_others: further items of the method that crashed alike."""
    more = f" and {num_others} more" if num_others else ""
    subject = in_one_line(f"{record.protocol} on {record.instance}{more}")
    yield f"{subject} crashed: {crash_text(record.provenance)}"
    frames = record.provenance.get("traceback")
    yield from (f"    {in_one_line(str(frame))}" for frame in (frames if isinstance(frames, list) else ())[:MAX_FRAMES])
    steps = 0 if record.steps is msgspec.UNSET else len(record.steps)
    if steps and not num_others:
        yield f"    after {steps} recorded step{'' if steps == 1 else 's'}"


def crash_summary(records: Iterable[Record], keys: Iterable[Key]) -> Iterator[str]:
    """Yield lines for the crashes with these keys; equal errors of a method are one."""
    chosen, alike = frozenset(keys), dict[tuple[str, str], list[Record]]()
    for record in records:
        if record.outcome == "crashed" and record.key in chosen:
            alike.setdefault((record.protocol, crash_text(record.provenance)), []).append(record)
    for crashes in list(alike.values())[:MAX_CRASH_KINDS]:
        yield from crash_lines(crashes[0], len(crashes) - 1)
    if len(alike) > MAX_CRASH_KINDS:
        yield f"{len(alike) - MAX_CRASH_KINDS} more kinds of crash: `calibrant list POOL --scores DIR` shows them"
