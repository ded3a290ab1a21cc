"""The rows of an export, in a file while it is made: none is kept, however many there are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.hub.columns import DIFFICULTY, Row, canary_of, prompt_digest, record_text, text_digest
from calibrant.bench.scoring.ids import PublicIds
from calibrant.dsl.records import pool_digest


class ExportRows:
    """The rows of pools, in the order of their files, with all columns; they can be gone through again and again.

    by_id: in the order of their public ids, which tells nothing of what items are drawn together
    pool_digests: of the pools' files; drawn_from_seeds: every pool states a seed in its metadata
    """

    def __init__(self, pools: Sequence[Path], file: Path) -> None:
        """file: to keep them in. `PoolError` as the readers of pools have it."""
        digests: list[str] = []
        self.pool_digests: list[str] = []
        self.drawn_from_seeds = True
        places: list[tuple[str, int]] = []
        encode = msgspec.json.Encoder().encode
        with file.open("xb") as lines:
            for path in pools:
                of = benchmark_of(path)
                pool: Any = of.items.read_pool(path)
                digest = pool_digest(path)
                self.pool_digests.append(digest)
                self.drawn_from_seeds &= "seed" in pool.metadata
                for row in _rows(of, path, pool, digest):
                    places.append((row["id"], lines.tell()))
                    lines.write(encode(row) + b"\n")
                    digests.append(row["digest"])
        self._file, self._places = file, [place for _, place in places]
        self._sorted = [place for _, place in sorted(places)]
        self._canary = canary_of(sorted(digests))

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Row]:
        return self._rows(self._places)

    def by_id(self) -> Iterator[Row]:
        return self._rows(self._sorted)

    def _rows(self, places: Sequence[int]) -> Iterator[Row]:
        decode = msgspec.json.Decoder(dict[str, Any]).decode
        with self._file.open("rb") as lines:
            for place in places:
                lines.seek(place)
                yield {**decode(lines.readline()), "canary": self._canary}


def _rows(of: Benchmark[Any], path: Path, pool: Any, digest: str) -> Iterator[Row]:
    public = PublicIds.of_pool(path, pool.items)
    for item in pool.items:
        *system, user = of.items.messages(item)
        system_text = "\n\n".join(message["content"] for message in system)
        record = record_text(of.items.record(item))
        gold = of.training.gold(item)
        labels = of.training.difficulty(item)
        yield {
            "id": public.public(item.id),
            "benchmark": of.name,
            "item": item.id,
            "salt": public.salt,
            "pool": pool.name,
            "setting": item.setting,
            "stratum": item.stratum,
            "system": system_text,
            "prompt": user["content"],
            "digest": prompt_digest(system_text, user["content"]),
            "record": record,
            "answer": "" if gold is None else json.dumps(gold, sort_keys=True),
            "record_digest": text_digest(record),
            "pool_digest": digest,
            **{f"{DIFFICULTY}{name}": value for name, value in labels.items()},
        }
