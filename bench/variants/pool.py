"""Pools of variants, and checks of each copy and its map.

A right map turns the original's record into the copy's, what its kind of change may change apart. Beside that: as many
hypotheses fit, and mapped answers (the gold, and the one that stands in for none) have the verdicts of the originals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from calibrant.audits.why import Why
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.runs.audits import explain_item
from calibrant.bench.variants.contract import VARIANTS, CopyMap, rename_json
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.item import Pool
from calibrant.dsl.records import pool_digest, pool_head
from calibrant.dsl.text import known_names

# --- Checks of a copy and its map: nothing that a file of variants states about itself is believed --------------------


class VariantChecker:
    """Checks copies of the items of one benchmark; what belongs to an original is computed once."""

    def __init__(self, of: Benchmark[Any]) -> None:
        self._of = of
        self._variable = of.require(VARIANTS)
        self._counts: dict[str, tuple[str, str]] = {}

    def problem(self, original: Any, copy: Any, stated: CopyMap) -> str:
        """Return why a copy is not the image of its original under a map; empty if it is."""
        if stated.kind not in self._variable.kinds:
            return "its kind of change is unknown"
        if not all(map(_is_permutation, (stated.names, *stated.values.values()))):
            return "the map is not a permutation of names"
        try:
            mapped = self._variable.map_record(self._of.items.record(original), stated)
            form = self._variable.normal_form(mapped, stated.kind)
        except CalibrantError as error:
            return f"the map cannot be applied: {error}"
        if form != self._variable.normal_form(self._of.items.record(copy), stated.kind):
            return "the map does not turn the original into the copy"
        if original.id not in self._counts:
            self._counts[original.id] = self._count(original)
        if self._count(copy) != self._counts[original.id]:
            return "another number of hypotheses fits the copy"
        return self._verdict_problem(original, copy, stated)

    def _verdict_problem(self, original: Any, copy: Any, stated: CopyMap) -> str:
        gold = self._of.training.gold(original)
        wrong = None if gold is None or not stated.names else rename_json(gold, stated.names)
        for answer in (gold, wrong, self._of.scoring.no_answer(original)):
            if answer is None:
                continue
            if self._is_right(original, answer) != self._is_right(copy, self._variable.map_answer(answer, stated)):
                return "a mapped answer has another verdict"
        return ""

    def _count(self, item: Any) -> tuple[str, str]:
        """Return bounds of the number of hypotheses that fit, equal where the count is exact."""
        why = explain_item(self._of, item)
        return (why.count.lower, why.count.upper or "") if isinstance(why, Why) else ("", "")

    def _is_right(self, item: Any, answer: Mapping[str, Any]) -> bool:
        return self._of.metrics.success.is_right(self._of.scoring.score(item, answer, ()), item.setting)


def _is_permutation(names: Mapping[str, str]) -> bool:
    return set(names) == set(names.values())


# --- Pools of variants: native pools whose header has the original and the map of each copy ---------------------------
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
