"""The benchmark's official runtime files: one YAML document, read a record at a time where it is plain.

Official files are 34 to 86 MB because they embed model results. Those blocks are cut out by indentation before the
YAML parser sees them and are parsed when somebody asks. Of a large pool the records are put, as native ones, into an
unnamed file, where items stay (dsl.records). What only the whole document tells is left to `load_yaml`: the same
problems come of it, and the same errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

import msgspec

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.memory import rare_collections
from calibrant.dsl.records import copied_items, plain_pool, text_lines
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.build import Fields, ResultsInMemory, problem_from_record
from calibrant.dsl.replayscm.pools.official import EmbeddedResults, OfficialRecord, ResultsCut, cut_results
from calibrant.dsl.replayscm.pools.records import ProblemRecord
from calibrant.dsl.yaml_text import UNREADABLE, ListedRecords, NotPlainError, load_yaml

RECORDS = "problems"
_FORGOTTEN = ResultsInMemory(())
_LINES = 512  # that are handed to the parser together


def read_official(file: IO[bytes], name: str, *, keep_results: bool = True) -> Pool:
    """Read the pool of an official runtime file; `PoolError` names instance and field.

    file: that can be read from any place again
    keep_results: keep the embedded model results (as text, parsed on demand); otherwise they are forgotten
    """
    cut = ResultsCut()
    try:
        return _stream_pool(file, name, cut, keep_results=keep_results)
    except NotPlainError:
        return read_official_whole(file, name, keep_results=keep_results)
    except PoolError:
        if cut.is_whole:
            raise
    try:  # perhaps an unusual layout: let the parser see everything
        return _stream_pool(file, name, None, keep_results=keep_results)
    except NotPlainError:
        return read_official_whole(file, name, keep_results=keep_results)


def raw_records(path: Path) -> Iterator[Any]:
    """Yield the records of an official file as the YAML parser gives them, their results left out where they can be.

    The file has been read without error before.
    """
    with plain_pool(path) as file:
        index = 0
        try:
            with _open_records(file, ResultsCut()) as document:
                for raw in document:
                    yield raw
                    index += 1
        except (NotPlainError, PoolError):
            yield from islice(load_yaml(_text(file))[RECORDS], index, None)


class _Text:
    """Lines of a text as the parser reads them; `failed` is what kept it from being read to the end."""

    name = "<unicode string>"  # which errors of texts in memory say

    def __init__(self, lines: Iterator[str]) -> None:
        self.failed: PoolError | OSError | None = None
        self._lines = lines
        self._some = BytesIO()
        self._between = ""

    def read(self, size: int = -1, /) -> bytes:
        """Read at most so many bytes; b"" only at the end of the text."""
        if chunk := self._some.read(size):
            return chunk
        try:
            lines = list(islice(self._lines, _LINES))
        except (PoolError, OSError) as error:  # which would get lost in the parser
            self.failed = error
            return b""
        if not lines:
            return b""
        self._some = BytesIO((self._between + "\n".join(lines)).encode())
        self._between = "\n"
        return self.read(size)

    def require_read(self, lines: Iterable[str]) -> None:
        """Raise what is wrong with the text itself, up to its end, which is reported before anything else."""
        if self.failed is None:
            for _ in lines:
                pass
        else:
            raise self.failed


@contextmanager
def _open_records(file: IO[bytes], cut: ResultsCut | None) -> Iterator[ListedRecords]:
    file.seek(0)
    lines = text_lines(file)
    text = _Text(lines if cut is None else cut.lean(lines))
    try:
        yield ListedRecords(text, RECORDS)
    except (NotPlainError, PoolError):
        text.require_read(lines)
        raise
    text.require_read(lines)


def _top(raw: Any) -> Fields:
    """Return the outermost fields of an official file."""
    if not isinstance(raw, Mapping):
        content = "it is empty" if raw is None else f"it is {short_repr(raw)}"
        raise PoolError(f"no pool: {content}; expected JSON lines with a header, or YAML in the official format")
    return Fields(raw, "the file")


def _stream_pool(file: IO[bytes], name: str, cut: ResultsCut | None, *, keep_results: bool) -> Pool:
    with rare_collections(), _open_records(file, cut) as document:
        problems = copied_items(_parse_records(document, cut, keep_results), attrgetter("problem"), _line, _again)
        top = _top(document.rest)
        top.sequence(RECORDS)
        if cut is not None and not cut.is_whole and not (cut.are_self_contained and len(cut.blocks) == len(problems)):
            raise PoolError("results that belong to no record", field="modelResults")
        return Pool(name, problems, top.mapping("metadata", {}), num_extended=0)


def _parse_records(document: Iterable[Any], cut: ResultsCut | None, keep_results: bool) -> Iterator[OfficialRecord]:
    """Parse the records; raise the error of the first invalid one at the end, after any YAML error."""
    refusal: PoolError | None = None
    for index, raw in enumerate(document):
        if refusal is not None:
            continue
        block = cut.take(index) if cut is not None else ""
        results = (EmbeddedResults(block) if block else None) if keep_results else _FORGOTTEN
        try:
            record = OfficialRecord(raw, index, results)
        except PoolError as error:
            refusal = error
        else:
            yield record
    if refusal is not None:
        raise refusal


def read_official_whole(file: IO[bytes], name: str, *, keep_results: bool = True) -> Pool:
    """Read the pool by parsing the whole document."""
    text = _text(file)
    lean, cut = cut_results(text)
    if not cut.is_whole and cut.are_self_contained:
        try:
            return _parse_whole(lean, cut.blocks, name, keep_results=keep_results)
        except PoolError:
            pass
    return _parse_whole(text, [], name, keep_results=keep_results)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return "\n".join(text_lines(file))


def _parse_whole(text: str, blocks: list[str], name: str, *, keep_results: bool) -> Pool:
    """Parse the whole text; `blocks` are the results that were cut out of it, empty where it still holds them."""
    top = _top(load_yaml(text))
    records = top.sequence(RECORDS)
    if blocks and len(blocks) != len(records):
        raise PoolError(f"results of {len(blocks)} records, but {len(records)} records", field="modelResults")
    problems = []
    for index, raw in enumerate(records):
        results = EmbeddedResults(blocks[index]) if blocks and blocks[index] else None
        problems.append(OfficialRecord(raw, index, results if keep_results else _FORGOTTEN).problem)
    return Pool(name, tuple(problems), top.mapping("metadata", {}), num_extended=0)


class _Stored(msgspec.Struct):
    """A line of the unnamed file.

    results: YAML, as `EmbeddedResults` takes it; empty if there are none
    """

    record: ProblemRecord
    results: str


def _line(official: OfficialRecord) -> bytes:
    try:
        results = official.results.as_text() if isinstance(official.results, EmbeddedResults) else ""
    except UNREADABLE:  # such as an integer of more digits than are written
        raise NotPlainError from None
    return msgspec.json.encode(_Stored(official.native, results))


def _again(line: str) -> Problem:
    stored = msgspec.json.decode(line, type=_Stored)
    return problem_from_record(stored.record, EmbeddedResults(stored.results) if stored.results else None)
