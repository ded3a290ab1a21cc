"""Items that stay in their file: a pool of 100,000 takes the memory of one of 2,000, for any benchmark.

A file is read through once, and every item in it is checked then. Of a small pool the items are kept. Of a large one it
is kept where each begins, and an item is made of its line anew whenever it is asked for. The file stays open, so one
that takes its name meanwhile changes nothing; one whose bytes change meanwhile is refused.
"""

from __future__ import annotations

import os
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from tempfile import TemporaryFile
from typing import IO, Any, Generic, TypeVar, overload
from zlib import crc32

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.item import Item
from calibrant.dsl.pool_text import Line

MAX_CACHED_ITEMS = 2000  # items of a file that are kept as they are; of ReplaySCM they take 80 MB
AT_HAND = 64  # items found by their id that are kept, of those that are not

I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item
F = TypeVar("F")  # what is found in a file: an item, or what one is made of


def stored_items(file: IO[bytes], lines_with_items: Iterable[tuple[Line, I]], again: Callable[[str], I]) -> Sequence[I]:
    """Return the items of a file (`dsl.pool_text.plain_pool`); a large number stays on disk.

    again: the item of a line that has been found to be one; it can be pickled
    """
    items: list[I] = []
    ids: list[str] = []
    lines = _Lines(array("Q"), array("I"), array("I"))
    for line, item in lines_with_items:
        ids.append(item.id)
        lines.add(line)
        if len(ids) <= MAX_CACHED_ITEMS:
            items.append(item)
        elif items:
            items.clear()
    return (
        tuple(items) if len(ids) <= MAX_CACHED_ITEMS else StoredItems(_Source(os.dup(file.fileno())), lines, ids, again)
    )


def copied_items(
    sources: Iterator[F], item: Callable[[F], I], line: Callable[[F], bytes], again: Callable[[str], I]
) -> Sequence[I]:
    """Items of a file that does not hold each in a line of its own: of many, lines go into an unnamed file.

    item, line: of what was found; again: the item of such a line; it can be pickled
    """
    first = list(islice(sources, MAX_CACHED_ITEMS + 1))
    if len(first) <= MAX_CACHED_ITEMS:
        return tuple(item(source) for source in first)
    with TemporaryFile() as copy:
        return stored_items(copy, _write_lines(copy, chain(first, sources), item, line), again)


def _write_lines(
    copy: IO[bytes], sources: Iterable[F], item: Callable[[F], I], line: Callable[[F], bytes]
) -> Iterator[tuple[Line, I]]:
    place = 0
    for number, source in enumerate(sources, 1):
        raw = line(source)
        copy.write(raw)
        yield Line(number, place, len(raw), raw.decode()), item(source)
        place += len(raw)
    copy.flush()


def item_ids(items: Sequence[Item[Any, Any]]) -> list[str]:
    """Ids of items, none of which is made for it."""
    return items.ids if isinstance(items, StoredItems) else [item.id for item in items]


def items_by_id(items: Sequence[I]) -> Mapping[str, I]:
    """Items by their ids, of which stored ones are made when they are asked for; the last few are kept."""
    return _ById(items) if isinstance(items, StoredItems) else {item.id: item for item in items}


class _Source:
    """An open file that any number of sequences read from; closed when none is left.

    A process that is started by this one inherits it; it can be sent to no other.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def __reduce__(self) -> tuple[Callable[[Any], _Source], tuple[Any]]:
        from multiprocessing import reduction  # which reading a pool does not need

        return _inherit_file, (reduction.DupFd(self._descriptor),)

    def text(self, place: int, size: int, check: int) -> str:
        raw = os.pread(self._descriptor, size, place)
        if crc32(raw) != check:
            raise PoolError("the pool file changed while it was read")
        return raw.decode()


def _inherit_file(file: Any) -> _Source:
    return _Source(file.detach())


class _Lines:
    """The index of the lines: starts, sizes in bytes, checksums."""

    def __init__(self, places: array[int], sizes: array[int], checks: array[int]) -> None:
        self._places, self._sizes, self._checks = places, sizes, checks

    def add(self, line: Line) -> None:
        raw = line.text.encode()
        self._places.append(line.place)
        self._sizes.append(len(raw))
        self._checks.append(crc32(raw))

    def __getitem__(self, which: slice) -> _Lines:
        return _Lines(self._places[which], self._sizes[which], self._checks[which])

    def line(self, index: int) -> tuple[int, int, int]:
        return self._places[index], self._sizes[index], self._checks[index]


class StoredItems(Sequence[I], Generic[I]):
    """Items of a file, each made of its line when it is asked for; equal to any sequence of equal items.

    ids: of the items, in their order. `PoolError` if the file's bytes change. Handed to a process that is being started
    it goes on reading the same file; pickled and copied otherwise it becomes a tuple.
    """

    def __init__(self, source: _Source, lines: _Lines, ids: list[str], again: Callable[[str], I]) -> None:
        self.ids = ids
        self._source, self._lines, self._again = source, lines, again

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[I]:
        return (self._item(index) for index in range(len(self)))

    @overload
    def __getitem__(self, which: int) -> I: ...
    @overload
    def __getitem__(self, which: slice) -> Sequence[I]: ...
    def __getitem__(self, which: int | slice) -> I | Sequence[I]:
        if isinstance(which, slice):
            return StoredItems(self._source, self._lines[which], self.ids[which], self._again)
        return self._item(which)

    def _item(self, index: int) -> I:
        try:
            return self._again(self._source.text(*self._lines.line(index)))
        except PoolError as error:
            raise error.with_location(instance=short_repr(self.ids[index])) from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(item == other_item for item, other_item in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as for a list: it would have to read the file

    def __reduce__(self) -> tuple[Any, ...]:
        from multiprocessing.context import get_spawning_popen

        if get_spawning_popen() is None:
            return tuple, (tuple(self),)
        return StoredItems, (self._source, self._lines, self.ids, self._again)

    def __repr__(self) -> str:
        return f"<{len(self)} stored items>"


class _ById(Mapping[str, I]):
    def __init__(self, items: StoredItems[I]) -> None:
        self._items = items
        self._indices = {name: index for index, name in enumerate(items.ids)}
        self._item = lru_cache(AT_HAND)(items.__getitem__)

    def __getitem__(self, name: str) -> I:
        item: I = self._item(self._indices[name])
        return item

    def __reduce__(self) -> tuple[Callable[[Sequence[I]], Mapping[str, I]], tuple[Sequence[I]]]:
        return items_by_id, (self._items,)

    def __contains__(self, name: object) -> bool:
        return name in self._indices

    def __iter__(self) -> Iterator[str]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)
