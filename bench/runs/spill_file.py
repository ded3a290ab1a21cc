"""Sequences of values stored in a file, so that results of 100,000 items take no more memory than those of 2,000."""

from __future__ import annotations

import os
import pickle
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from tempfile import TemporaryFile
from typing import Generic, Self, TypeVar, overload

from calibrant.dsl import records
from calibrant.dsl.atomic_write import read_at
from calibrant.dsl.errors import CalibrantError

T = TypeVar("T")


class StoredLines:
    """Lines of an open file, which may be replaced, appended to or deleted while they are read, but not truncated."""

    def __init__(self, descriptor: int, spans: Sequence[tuple[int, int]]) -> None:
        """Open the lines of a file for reading.

        descriptor: file descriptor, which is duplicated; spans: (offset, number of bytes) of each line
        """
        self._descriptor = os.dup(descriptor)
        weakref.finalize(self, os.close, self._descriptor)
        self._starts = array("Q", (start for start, _ in spans))
        self._sizes = array("Q", (size for _, size in spans))

    def __len__(self) -> int:
        return len(self._starts)

    def line(self, index: int) -> bytes:
        raw = read_at(self._descriptor, self._sizes[index], self._starts[index])
        if len(raw) < self._sizes[index]:
            raise CalibrantError("a file of records was cut off while it was read")
        return raw

    def read_as(self, read: Callable[[bytes], T]) -> Sequence[T]:
        """Return the decoded values: up to MAX_CACHED_ITEMS values are read now; of more, each is read at access."""
        values = _StoredValues(self, range(len(self)), read)
        return tuple(values) if len(self) <= records.MAX_CACHED_ITEMS else values


class SpillBuffer(Generic[T]):
    """Buffer in an unnamed file for values that arrive in any order and are read in the order of their keys.

    Leaving the context ends adding; sequences that `values` returned stay readable.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115  # closed by `__exit__`
        self._spans: dict[tuple[int, ...], tuple[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._file.close()

    def add(self, key: tuple[int, ...], value: T) -> None:
        raw = pickle.dumps(value)
        self._spans[key] = self._file.tell(), len(raw)
        self._file.write(raw)

    def values(self) -> Sequence[T]:
        """Return the values added so far, in the order of their keys."""
        self._file.flush()
        lines = StoredLines(self._file.fileno(), [self._spans[key] for key in sorted(self._spans)])
        return lines.read_as(pickle.loads)


class _StoredValues(Sequence[T], Generic[T]):
    def __init__(self, lines: StoredLines, indices: range, read: Callable[[bytes], T]) -> None:
        self._lines, self._indices, self._read = lines, indices, read

    def __len__(self) -> int:
        return len(self._indices)

    def __iter__(self) -> Iterator[T]:
        return (self[index] for index in range(len(self)))

    @overload
    def __getitem__(self, indices: int) -> T: ...
    @overload
    def __getitem__(self, indices: slice) -> Sequence[T]: ...
    def __getitem__(self, indices: int | slice) -> T | Sequence[T]:
        if isinstance(indices, slice):
            return _StoredValues(self._lines, self._indices[indices], self._read)
        return self._read(self._lines.line(self._indices[indices]))
