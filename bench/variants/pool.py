"""Pools of variants: native pools whose header has the original and the map of each copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.variants.checking import VariantChecker
from calibrant.bench.variants.contract import VARIANTS, CopyMap
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.item import Pool
from calibrant.dsl.records import pool_digest, pool_head
from calibrant.dsl.text import known_names

KEY = "variants"  # in the metadata of a pool
MAX_MAP_BYTES = 15 << 20  # of the maps in a header, which is read up to 16 MiB


class VariantMaps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Maps of a pool of variants, by id of the copy; pool, pool_digest: of the originals."""

    pool: str
    pool_digest: str
    seed: int
    copies: dict[str, CopyMap]


def write_variants(source: Path, target: Path, kinds: Sequence[str], copies: int, seed: int) -> tuple[int, int]:
    """Write so many copies of each item, kinds taking turns; return their number and that of items without one.

    Every copy is checked before the file appears; `CalibrantError` names one that is not the image of its original.
    """
    of = benchmark_of(source)
    variable = of.require(VARIANTS)
    for kind in kinds:
        if kind not in variable.kinds:
            raise CalibrantError(f"unknown kind {short_repr(kind)} for {of.title}; {known_names(kind, variable.kinds)}")
    pool: Any = of.items.read_pool(source)
    checker = VariantChecker(of)
    items: list[Any] = []
    maps: dict[str, CopyMap] = {}
    num_without = 0
    for item in pool.items:
        before = len(items)
        for number in range(copies):
            kind = kinds[number % len(kinds)]
            random = Random(f"{seed} {item.id} {kind} {number}")
            variant = variable.vary(of.items.record(item), kind, random)
            if variant is None:
                continue
            name = f"{item.id}~{kind}-{number + 1}"
            image = of.items.item_of_record(variant.record | {"id": name})
            values = {key: dict(moved) for key, moved in variant.values.items()}
            stated = CopyMap(item.id, kind, dict(variant.names), values)
            problem = checker.problem(item, image, stated)
            if problem:
                raise CalibrantError(f"{name}: {problem}; nothing was written")
            items.append(image)
            maps[name] = stated
        num_without += len(items) == before
    if not items:
        reasons = (variable.absence(of.items.record(item)) for item in pool.items)
        reason = next(filter(None, reasons), "no item has a variant of these kinds")
        raise CalibrantError(f"{source.name}: {reason}")
    stated_maps = VariantMaps(pool.name, pool_digest(source), seed, maps)
    if len(msgspec.json.encode(stated_maps)) > MAX_MAP_BYTES:
        raise CalibrantError(f"{len(items)} copies have too many maps for one file; write fewer of --copies or --kinds")
    metadata = {KEY: msgspec.to_builtins(stated_maps)}
    of.items.write_pool(Pool(f"{pool.name}_variants", of.name, tuple(items), metadata), target)
    return len(items), num_without


def read_maps(path: Path) -> VariantMaps:
    """Return the maps of a pool of variants; `CalibrantError` for another pool."""
    try:
        metadata = benchmark_of(path).items.read_pool(path).metadata  # type: ignore[attr-defined]  # all have some
        return msgspec.convert(metadata[KEY], VariantMaps)
    except (msgspec.ValidationError, KeyError):
        raise CalibrantError(f"{path.name}: not a pool of variants; `calibrant variants` writes one") from None


def is_variants_pool(path: Path) -> bool:
    """Return whether a file is a pool of variants, by its header."""
    head = pool_head(path)
    return f'"{KEY}"' in head and '"copies"' in head


def check_variants(source: Path, path: Path) -> Iterator[tuple[str, str]]:
    """Yield copies of a file that are not what it states, with the problem; `CalibrantError` for other originals."""
    of = benchmark_of(source)
    maps = read_maps(path)
    if maps.pool_digest != pool_digest(source):
        raise CalibrantError(f"{path.name}: its originals are of another pool than {source.name}")
    originals = {item.id: item for item in of.items.read_pool(source).items}
    copies: Mapping[str, Any] = {item.id: item for item in of.items.read_pool(path).items}
    checker = VariantChecker(of)
    yield from ((name, "no map") for name in copies.keys() - maps.copies.keys())
    for name, stated in maps.copies.items():
        if name not in copies or stated.of not in originals:
            yield name, "its copy or its original is missing"
        elif problem := checker.problem(originals[stated.of], copies[name], stated):
            yield name, problem
