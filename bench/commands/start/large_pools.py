"""Large pools, of which `calibrant list` reads the ids of all items and checks those alone that it shows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from calibrant.bench.core.benchmark import Benchmark
from calibrant.dsl.parse_limits import TooLargeError, decode_json
from calibrant.dsl.records import MAX_CACHED_ITEMS, plain_pool


class _IdOnly(msgspec.Struct):
    id: str


def large_pool_ids(path: Path) -> list[str] | None:
    """Return the ids of a native pool of more than 2,000 items; None for others, and where a line is no item."""
    with plain_pool(path) as file:
        next(file, b"")
        try:
            ids = [decode_json(line, _IdOnly).id for line in file if not line.isspace()]
        except (msgspec.DecodeError, UnicodeDecodeError, TooLargeError):  # the reader of pools names it
            return None
    return ids if len(ids) > MAX_CACHED_ITEMS else None


def first_items(of: Benchmark[Any], path: Path, number: int) -> Sequence[Any]:
    """Return the first items of a native pool, checked, without reading the others."""
    with TemporaryDirectory(prefix="calibrant-list-") as folder, plain_pool(path) as file:
        head = Path(folder) / path.name.removesuffix(".gz")
        lines = (line for line in file if not line.isspace())
        head.write_bytes(b"".join(islice(lines, number + 1)))
        items: Sequence[Any] = of.items.read_pool(head).items
        return items
