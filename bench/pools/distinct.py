"""Pools without duplicate items, and splits of a pool into parts that share no latent model."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.audits.claims import ItemIdentity
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import one_benchmark
from calibrant.bench.pools.capabilities import CHECK
from calibrant.bench.pools.generated import write_indices
from calibrant.bench.pools.soundness import FirstItems
from calibrant.bench.runs.executors import Progress
from calibrant.bench.terminal import making_folder, require_free, typed_json
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.text import plural

REPORT = "split.json"
PART_NAMES = {2: ("train", "test"), 3: ("train", "validation", "test")}
MAX_PARTS = 20


class Unit(StrEnum):
    """Unit that two pools must not share: an item (a question) or a latent model, up to renaming."""

    ITEM = "item"
    MODEL = "model"


def ignore_progress(name: str, done: int, total: int) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class DistinctPool:
    """A written pool. claims: id of each omitted item -> text on which item it repeats."""

    path: Path
    num_items: int
    claims: Mapping[str, str]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the terminal."""
        items = plural(self.num_items, "items")
        yield f"{items} written to {self.path}; {len(self.claims)} left out that ask what another asks"
        yield from (f"{name}: {claim}" for name, claim in list(self.claims.items())[:1])

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {"items": self.num_items, "left_out": dict(self.claims)}


def write_distinct(
    source: Path, target: Path, others: Sequence[Path], unit: Unit = Unit.ITEM, progress: Progress = ignore_progress
) -> DistinctPool:
    """Write a pool without items that duplicate (as in `pool check`) an earlier item or one of other pools.

    The first of equal items is kept. `CalibrantError` if no item is left, as a pool must not be empty.

    unit: MODEL also omits items about a latent model of the other pools
    """
    benchmark = one_benchmark([*others, source])
    pool: Any = benchmark.items.read_pool(source)
    claims = find_repeats(benchmark, others, source, pool, unit, progress)
    indices = [index for index, item in enumerate(pool.items) if item.id not in claims]
    if not indices:
        problem = "repeats one" if unit is Unit.ITEM else "is about a model"
        raise CalibrantError(f"{source}: each of its {plural(len(pool.items), 'items')} {problem} of the other pools")
    write_indices(benchmark, pool, source, indices, target)
    return DistinctPool(target, len(indices), claims)


def find_repeats(
    benchmark: Benchmark[Any],
    others: Sequence[Path],
    source: Path,
    pool: Any,
    unit: Unit = Unit.ITEM,
    progress: Progress = ignore_progress,
) -> dict[str, str]:
    """Return id -> text on the repeated item, for the items of a pool that repeat an earlier one or one of others."""
    identity = benchmark.require(CHECK).identity
    first_items, models = FirstItems(), dict[bytes, str]()
    for path in others:
        other_pool: Any = benchmark.items.read_pool(path)
        for item in _report_progress(other_pool.items, path.name, progress):
            first_items.note_repeat(path, item.id, identity.duplicate_key(item))
            for key in _model_keys(identity, item, path) if unit is Unit.MODEL else ():
                models.setdefault(key, f"{item.id} of {path}")
    claims: dict[str, str] = {}
    for item in _report_progress(pool.items, source.name, progress):
        note = first_items.note_repeat(source, item.id, identity.duplicate_key(item))
        if note is not None:
            claims[item.id] = note.claim
        elif models and (keys := [key for key in _model_keys(identity, item, source) if key in models]):
            claims[item.id] = f"about the same of the {identity.units} as {models[keys[0]]}"
    return claims


def _report_progress(items: Sequence[Any], name: str, progress: Progress) -> Iterator[Any]:
    for index, item in enumerate(items):
        progress(name, index, len(items))
        yield item
    progress(name, len(items), len(items))


def _model_keys(identity: ItemIdentity[Any], item: Any, path: Path) -> tuple[bytes, ...]:
    keys = identity.model_keys(item)
    if not keys:
        raise CalibrantError(
            f"{path.name}: {short_repr(item.id)} has no gold: which of the {identity.units} it is about is not known"
        )
    return keys


@dataclass(frozen=True)
class SplitPart:
    """One part of a split, and what it has in common with earlier parts and with the other pools.

    num_shared_models: number of its models that occur there
    num_other_disclosures: number of items whose model occurs there under another disclosure
    num_graphs: number of items whose model has the graph of a model there
    """

    file: str
    num_units: int
    num_items: int
    num_shared_models: int
    num_other_disclosures: int
    num_graphs: int


@dataclass(frozen=True)
class SplitPool:
    """A split pool; a unit is a set of items that must be in one part, since they share latent models.

    num_joint: number of items in units of several items; left_out: other pool -> number of items omitted for it
    """

    folder: Path
    units: str
    num_units: int
    num_joint: int
    parts: tuple[SplitPart, ...]
    left_out: Mapping[str, int]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the terminal."""
        total = sum(part.num_items for part in self.parts)
        units = plural(self.num_units, f"different {self.units}")
        yield f"{plural(total, 'items')} of {units} (up to renaming) written to {self.folder}"
        yield f"{plural(self.num_joint, 'items')} with one of the {self.units} of others, which are in the same part"
        for name, number in self.left_out.items():
            yield f"{plural(number, 'items')} left out that share one of the {self.units} with {name}"
        before = "earlier parts and these pools" if self.left_out else "earlier parts"
        for part in self.parts:
            yield f"  {part.file}: {plural(part.num_items, 'items')} of {plural(part.num_units, self.units)}"
            models = f"{part.num_shared_models} of the {self.units}"
            disclosures = f"{plural(part.num_other_disclosures, 'items')} of the same model under another disclosure"
            yield f"    of {before}: {models}; {disclosures}; {plural(part.num_graphs, 'items')} of the same structure"

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        parts = [
            {
                "file": part.file,
                "units": part.num_units,
                "items": part.num_items,
                "units_of_earlier_parts": part.num_shared_models,
                "items_of_same_model_under_another_disclosure": part.num_other_disclosures,
                "items_of_same_structure": part.num_graphs,
            }
            for part in self.parts
        ]
        sizes = {"units": self.num_units, "items_in_joint_units": self.num_joint}
        return {"unit": self.units, **sizes, "left_out": dict(self.left_out), "parts": parts}


def parse_shares(text: str) -> tuple[Fraction, ...]:
    """Parse shares such as `.8,.1,.1`; `CalibrantError` unless they are positive and add up to 1."""
    number = r"[0-9]{0,9}\.?[0-9]{1,9}"
    is_list = re.fullmatch(f"{number}(,{number})*", text, re.ASCII) is not None
    shares = tuple(Fraction(share) for share in text.split(",")) if is_list else ()
    if not 2 <= len(shares) <= MAX_PARTS or min(shares) <= 0 or sum(shares) != 1:
        allowed = f"2 to {MAX_PARTS} positive numbers that add up to 1, as .8,.1,.1"
        raise CalibrantError(f"--shares: {short_repr(text)}; expected {allowed}")
    return shares


class KeyedItem(NamedTuple):
    """Keys of an item's latent models and of their graph, with its setting."""

    models: tuple[bytes, ...]
    graph: bytes
    setting: str


class ModelIndex:
    """Index of latent models: the settings in which each occurs, and their graphs."""

    def __init__(self) -> None:
        self.settings: defaultdict[bytes, set[str]] = defaultdict(set)
        self.graphs: set[bytes] = set()

    def add(self, item: KeyedItem) -> None:
        for key in item.models:
            self.settings[key].add(item.setting)
        self.graphs.add(item.graph)

    def shares_model(self, item: KeyedItem) -> bool:
        return any(key in self.settings for key in item.models)

    def has_graph(self, item: KeyedItem) -> bool:
        return item.graph in self.graphs

    def has_other_disclosure(self, item: KeyedItem) -> bool:
        """Return whether a model of the item occurs under a disclosure that is not the item's."""
        return any(self.settings[key] - {item.setting} for key in item.models if key in self.settings)


def _keyed_items(identity: ItemIdentity[Any], pool: Any, path: Path, progress: Progress) -> list[KeyedItem]:
    return [
        KeyedItem(_model_keys(identity, item, path), identity.structure_key(item), item.setting)
        for item in _report_progress(pool.items, path.name, progress)
    ]


def write_split(
    source: Path,
    shares: Sequence[Fraction],
    folder: Path,
    seed: int = 0,
    others: Sequence[Path] = (),
    progress: Progress = ignore_progress,
) -> SplitPool:
    """Write the parts of a pool and a report into a new folder; no two parts have items about one latent model.

    seed: with the models, decides the part of each model; ids and names have no influence
    others: pools whose models no part may have; units with an item about such a model are omitted
    """
    benchmark = one_benchmark([*others, source])
    require_free(folder, "a split")
    identity = benchmark.require(CHECK).identity
    index, left_out = ModelIndex(), dict[str, int]()
    pool: Any = benchmark.items.read_pool(source)
    items = _keyed_items(identity, pool, source, progress)
    models = [item.models for item in items]
    units = join_units(models)
    for path in others:
        for keyed_item in _keyed_items(identity, benchmark.items.read_pool(path), path, progress):
            index.add(keyed_item)
        num_before = sum(map(len, units))
        units = [unit for unit in units if not any(index.shares_model(items[i]) for i in unit)]
        left_out[str(path)] = num_before - sum(map(len, units))
    if others and not units:
        raise CalibrantError(f"{source}: each of its {plural(len(items), 'items')} is about a model of the other pools")
    if len(units) < len(shares):
        units_text = plural(len(units), f"different {identity.units}")
        raise CalibrantError(f"{source.name}: {units_text} for {len(shares)} parts; give fewer --shares")
    assigned = assign_units([(len(unit), min(k for i in unit for k in models[i])) for unit in units], shares, seed)
    names = PART_NAMES.get(len(shares), tuple(f"part-{number}" for number in range(1, len(shares) + 1)))
    members: list[list[int]] = [[] for _ in names]
    for unit, part in zip(units, assigned, strict=True):
        members[part] += unit
    for indices in members:
        indices.sort()
    files = [f"{name}.jsonl" for name in names]
    parts = tuple(measure_parts(files, [[items[i] for i in part] for part in members], index, Counter(assigned)))
    num_joint = sum(len(unit) for unit in units if len(unit) > 1)
    split = SplitPool(folder, identity.units, len(units), num_joint, parts, left_out)
    with making_folder(folder) as (new_folder, _):
        new_folder.mkdir()
        for written, indices in zip(parts, members, strict=True):
            write_indices(benchmark, pool, source, indices, new_folder / written.file)
        (new_folder / REPORT).write_text(
            typed_json(split.to_dict() | {"seed": seed}, indent=1) + "\n", encoding="utf-8"
        )
    return split


def measure_parts(
    files: Sequence[str],
    members: Sequence[Sequence[KeyedItem]],
    index: ModelIndex,
    num_units: Mapping[int, int],
) -> Iterator[SplitPart]:
    """Yield the facts about each part; they are counted from the items, so that they check the assignment of units.

    members: items of each part; num_units: index of a part -> number of its units
    index: models of the other pools; the parts' models are added to it
    """
    for part, (file, items) in enumerate(zip(files, members, strict=True)):
        num_shared = len({key for item in items for key in item.models if key in index.settings})
        num_other, num_graphs = (sum(map(test, items)) for test in (index.has_other_disclosure, index.has_graph))
        yield SplitPart(file, num_units[part], len(items), num_shared, num_other, num_graphs)
        for item in items:
            index.add(item)


def join_units(keys: Sequence[Sequence[Hashable]]) -> list[list[int]]:
    """Return the connected components of items, as lists of indices; items that share a key are connected.

    keys: keys of each item's latent models
    """
    parent = list(range(len(keys)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    first: dict[Hashable, int] = {}
    for index, item_keys in enumerate(keys):
        for key in item_keys:
            parent[root(index)] = root(first.setdefault(key, index))
    units: defaultdict[int, list[int]] = defaultdict(list)
    for index in range(len(keys)):
        units[root(index)].append(index)
    return list(units.values())


def assign_units(units: Sequence[tuple[int, bytes]], shares: Sequence[Fraction], seed: int) -> list[int]:
    """Return the index of the part of each unit; every part gets at least one unit.

    The largest unit is assigned first, each to the part that lacks most items of its share. Units of equal size are
    ordered by a digest of seed and key.

    units: (number of items, key) of each unit
    """
    total = sum(size for size, _ in units)

    def sort_key(index: int) -> tuple[int, bytes]:
        size, key = units[index]
        return -size, hashlib.sha256(f"{seed}|".encode() + key).digest()

    num_missing = [share * total for share in shares]
    assigned, empty = [0] * len(units), set(range(len(shares)))
    for num_assigned, index in enumerate(sorted(range(len(units)), key=sort_key)):
        open_parts = empty if len(units) - num_assigned == len(empty) else range(len(shares))
        part = max(open_parts, key=lambda k: (num_missing[k], -k))
        assigned[index] = part
        num_missing[part] -= units[index][0]
        empty.discard(part)
    return assigned
