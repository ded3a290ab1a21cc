"""Unused fields of an official file: those that the reader does not touch, recorded while it reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.dsl.records import plain_pool, pool_lines
from calibrant.dsl.replayscm.pools.documents import raw_records
from calibrant.dsl.replayscm.pools.official import problem_from_official


class _Watched(dict[str, Any]):
    """A mapping that remembers which of its keys were asked for."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        super().__init__({key: _watch(value) for key, value in raw.items()})
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)

    def items(self) -> Any:
        self.asked.update(self.keys())
        return super().items()

    def values(self) -> Any:
        self.asked.update(self.keys())
        return super().values()


def _watch(value: Any) -> Any:
    if isinstance(value, dict):
        return _Watched(value)
    return [_watch(item) for item in value] if isinstance(value, list) else value


def count_unused_fields(path: Path) -> Mapping[str, int]:
    """Paths of fields that were not read, and in how many records; list elements are told as `name[]`.

    Empty for the native format, whose fields are all read. The file has been read without error before.
    """
    with plain_pool(path) as plain:
        first = next(pool_lines(plain), None)
    if first is not None and first.text.lstrip().startswith("{"):
        return {}
    counts: Counter[str] = Counter()
    for index, raw in enumerate(raw_records(path)):
        record = _Watched(raw)
        problem_from_official(record, index)
        counts.update(set(_unread(record, "")))
    return dict(sorted(counts.items()))


def _unread(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _unread(item, f"{path}[]")
    if not isinstance(value, _Watched):
        return
    for key in value.keys() - value.asked:
        yield f"{path}.{key}".lstrip(".")
    for key in value.asked & value.keys():
        child = dict.__getitem__(value, key)
        if not isinstance(child, _Watched) or child.asked:  # a mapping that was taken whole was not asked by key
            yield from _unread(child, f"{path}.{key}")
