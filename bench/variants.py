"""Variants of pools: how items are renamed, and how consistent answers are over variants.

A copy is checked in three ways. Its map turns the original's record into the copy's, but for what its kind of change
may change. As many hypotheses fit the copy. Mapped answers (gold, and an empty answer) have the verdicts of the
originals.

The mean over copies has the interval of all rates, with originals as units (bench.answers.rates).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import comb, fsum
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np

from calibrant.audits.why import Why
from calibrant.bench.answers import rates
from calibrant.bench.answers.frame import Estimate, estimate
from calibrant.bench.core.attribution import MIN_ROOM, expectations
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import Capability
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.runs.audits import explain_item
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.item import Pool
from calibrant.dsl.records import pool_digest, pool_head
from calibrant.dsl.text import known_names

# --- Contract of a benchmark whose items have variants, on native records; and renaming of JSON by a map of names -----
Record: TypeAlias = Mapping[str, Any]
T = TypeVar("T")
WORDING = "wording"  # field of records with the name of the wording
NAMES = "names"  # kind of change from neutral to published names; its map is injective, not a permutation
_TOKEN = re.compile(r"\w+")  # names may begin with a digit, such as `1a` of a published program


class CopyMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Origin of a copy.

    of: id of the original; kind: kind of change; names: name in the original -> name in the copy
    values: name in the original -> (text of a value -> text of the value in the copy)
    """

    of: str
    kind: str
    names: dict[str, str] = {}
    values: dict[str, dict[str, str]] = {}


class Variant(NamedTuple):
    """A copy of a record. names, values: as in CopyMap, without those that stay."""

    record: dict[str, Any]
    names: Mapping[str, str] = {}
    values: Mapping[str, Mapping[str, str]] = {}


class Variable(ABC):
    """Items with variants.

    kinds: names of the kinds of changes
    fixed: keys of records whose values hold no names of the item, such as ids, labels and words of the format
    worded_by: fields that the kind `words` changes
    """

    kinds: ClassVar[Sequence[str]]
    fixed: ClassVar[frozenset[str]]
    worded_by: ClassVar[Sequence[str]] = (WORDING,)

    @abstractmethod
    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        """Return a copy with a change of that kind; None if nothing in the item can be changed so."""

    @abstractmethod
    def normal_form(self, record: Record, kind: str) -> Any:
        """Return a value that is equal for two records iff a change of that kind makes one of the other.

        Ids and labels are ignored. Names and values are compared as they are: `map_record` changes them before.
        """

    def absence(self, record: Record) -> str:
        """Return why an item has no variants at all; empty if it may have some."""
        return ""

    def other_fields(self, record: Record, kind: str, fields: Collection[str]) -> dict[str, Any]:
        """Return a record without these fields; for the kind `words`, without the fields of its wording too."""
        left_out = {*fields, *(self.worded_by if kind == "words" else ())}
        return {key: value for key, value in record.items() if key not in left_out}

    def map_record(self, record: Record, copy_map: CopyMap) -> dict[str, Any]:
        """Return a record with the names and values of a copy; `CalibrantError` for values that cannot be mapped."""
        if copy_map.values:
            raise CalibrantError("values have no map here")
        mapped: dict[str, Any] = rename_json(record, copy_map.names, self.fixed)
        return mapped

    def map_answer(self, answer: Any, copy_map: CopyMap) -> Any:
        """Return an answer to the original as an answer to the copy."""
        return rename_json(answer, copy_map.names)


VARIANTS: Capability[Variable] = Capability("`variants`", "generation:VARIANTS")


def rename_json(value: Any, names: Mapping[str, str], fixed: frozenset[str] = frozenset()) -> Any:
    """Return JSON in which all names in keys and texts are replaced simultaneously; values under `fixed` keys stay."""
    if isinstance(value, str):
        return _TOKEN.sub(lambda match: names.get(match[0], match[0]), value)
    if isinstance(value, Mapping):
        return {
            rename_json(key, names): part if key in fixed else rename_json(part, names, fixed)
            for key, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [rename_json(part, names, fixed) for part in value]
    return value


def rephrase(record: Record) -> Variant:
    """Return a record with the other of two wordings."""
    wording = "standard" if record.get(WORDING) == "rephrased" else "rephrased"
    return Variant({**record, WORDING: wording})


def shuffled(values: Sequence[T], random: Random) -> list[T]:
    """Return the values in a random order that differs from theirs if there are two or more."""
    order = random.sample(range(len(values)), len(values))
    if len(values) > 1 and order == sorted(order):
        order = [*order[1:], order[0]]
    return [values[k] for k in order]


def permuted(names: Sequence[str], random: Random) -> dict[str, str]:
    """Return old -> new name of a random permutation, without names that stay; empty for fewer than two names."""
    return {name: new for name, new in zip(names, shuffled(names, random), strict=True) if name != new}


# --- Checks of a copy and its map: no statement of a file of variants is trusted --------------------------------------


class VariantChecker:
    """Checks copies of the items of one benchmark; results on an original are computed once."""

    def __init__(self, bench: Benchmark[Any]) -> None:
        self._bench = bench
        self._variants = bench.require(VARIANTS)
        self._counts: dict[str, tuple[str, str]] = {}

    def problem(self, original: Any, copy: Any, copy_map: CopyMap) -> str:
        """Return the reason why a copy is not the image of its original under a map; empty if it is."""
        if copy_map.kind not in self._variants.kinds:
            return "its kind of change is unknown"
        names = () if copy_map.kind == NAMES and _is_injective(copy_map.names) else (copy_map.names,)
        if not all(map(_is_permutation, (*names, *copy_map.values.values()))):
            return "the map is not a permutation of names"
        try:
            mapped = self._variants.map_record(self._bench.items.record(original), copy_map)
            form = self._variants.normal_form(mapped, copy_map.kind)
        except CalibrantError as error:
            return f"the map cannot be applied: {error}"
        if form != self._variants.normal_form(self._bench.items.record(copy), copy_map.kind):
            return "the map does not turn the original into the copy"
        if original.id not in self._counts:
            self._counts[original.id] = self._count(original)
        if self._count(copy) != self._counts[original.id]:
            return "another number of hypotheses fits the copy"
        return self._verdict_problem(original, copy, copy_map)

    def _verdict_problem(self, original: Any, copy: Any, copy_map: CopyMap) -> str:
        gold = self._bench.training.gold(original)
        # gold under permuted names is wrong for the original; under new names it could not be read
        is_permuted = bool(copy_map.names) and _is_permutation(copy_map.names)
        wrong = rename_json(gold, copy_map.names) if gold is not None and is_permuted else None
        for answer in (gold, wrong, self._bench.scoring.no_answer(original)):
            if answer is None:
                continue
            if self._is_right(original, answer) != self._is_right(copy, self._variants.map_answer(answer, copy_map)):
                return "a mapped answer has another verdict"
        return ""

    def _count(self, item: Any) -> tuple[str, str]:
        """Return bounds of the number of hypotheses that fit, equal where the count is exact."""
        why = explain_item(self._bench, item)
        return (why.count.lower, why.count.upper or "") if isinstance(why, Why) else ("", "")

    def _is_right(self, item: Any, answer: Mapping[str, Any]) -> bool:
        return self._bench.metrics.success.is_right(self._bench.scoring.score(item, answer, ()), item.setting)


def _is_injective(names: Mapping[str, str]) -> bool:
    return len(set(names.values())) == len(names)


def _is_permutation(names: Mapping[str, str]) -> bool:
    return set(names) == set(names.values())


# --- Pools of variants: native pools whose header has the original and the map of each copy ---------------------------
KEY = "variants"  # key in the metadata of a pool
MAX_MAP_BYTES = 15 << 20  # size of the maps in a header, of which at most 16 MiB are read


class VariantMaps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Maps of a pool of variants. pool, pool_digest: pool of the originals; copies: id of a copy -> its map."""

    pool: str
    pool_digest: str
    seed: int
    copies: dict[str, CopyMap]


def write_variants(source: Path, target: Path, kinds: Sequence[str], copies: int, seed: int) -> tuple[int, int]:
    """Write `copies` copies of each item, by the kinds in turn; return (number of copies, number of items without one).

    Every copy is checked before the file appears; `CalibrantError` names one that is not the image of its original.
    """
    bench = benchmark_of(source)
    variants = bench.require(VARIANTS)
    for kind in kinds:
        if kind not in variants.kinds:
            raise CalibrantError(
                f"unknown kind {short_repr(kind)} for {bench.title}; {known_names(kind, variants.kinds)}"
            )
    pool: Any = bench.items.read_pool(source)
    checker = VariantChecker(bench)
    items: list[Any] = []
    maps: dict[str, CopyMap] = {}
    num_without = 0
    for item in pool.items:
        num_before = len(items)
        for copy_index in range(copies):
            kind = kinds[copy_index % len(kinds)]
            if kind == NAMES and copy_index >= len(kinds):  # a second copy would equal the first
                continue
            random = Random(f"{seed} {item.id} {kind} {copy_index}")
            variant = variants.vary(bench.items.record(item), kind, random)
            if variant is None:
                continue
            name = f"{item.id}~{kind}-{copy_index + 1}"
            try:
                image = bench.items.item_of_record(variant.record | {"id": name})
            except CalibrantError as error:
                raise CalibrantError(f"{name}: {error}; nothing was written") from None
            values = {key: dict(moved) for key, moved in variant.values.items()}
            copy_map = CopyMap(item.id, kind, dict(variant.names), values)
            problem = checker.problem(item, image, copy_map)
            if problem:
                raise CalibrantError(f"{name}: {problem}; nothing was written")
            items.append(image)
            maps[name] = copy_map
        num_without += len(items) == num_before
    if not items:
        reasons = (variants.absence(bench.items.record(item)) for item in pool.items)
        reason = next(filter(None, reasons), "no item has a variant of these kinds")
        raise CalibrantError(f"{source.name}: {reason}")
    stated_maps = VariantMaps(pool.name, pool_digest(source), seed, maps)
    if len(msgspec.json.encode(stated_maps)) > MAX_MAP_BYTES:
        raise CalibrantError(f"{len(items)} copies have too many maps for one file; write fewer of --copies or --kinds")
    metadata = {KEY: msgspec.to_builtins(stated_maps)}
    bench.items.write_pool(Pool(f"{pool.name}_variants", bench.name, tuple(items), metadata), target)
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
    """Yield (copy, problem) for copies that differ from their stated map; `CalibrantError` for another source pool."""
    bench = benchmark_of(source)
    maps = read_maps(path)
    if maps.pool_digest != pool_digest(source):
        raise CalibrantError(f"{path.name}: its originals are of another pool than {source.name}")
    originals = {item.id: item for item in bench.items.read_pool(source).items}
    copies: Mapping[str, Any] = {item.id: item for item in bench.items.read_pool(path).items}
    checker = VariantChecker(bench)
    yield from ((name, "no map") for name in copies.keys() - maps.copies.keys())
    for name, copy_map in maps.copies.items():
        if name not in copies or copy_map.of not in originals:
            yield name, "its copy or its original is missing"
        elif problem := checker.problem(originals[copy_map.of], copies[name], copy_map):
            yield name, problem


# --- Consistency of answers over copies of items: rates clustered by original, and which changes flip answers ---------
UNDEFINED = "\N{EN DASH}"
HEADINGS = ("System", "Originals", "Copies", "Mean", "Interval", "All equal", "Worst copy", "Flips by kind")


class Flips(NamedTuple):
    """Counts of McNemar's test: copies answered worse (lost) or better (gained) than their originals, of num_copies."""

    lost: int
    gained: int
    num_copies: int

    @property
    def p_value(self) -> float:
        """P-value of the exact test of the hypothesis that copies lose as often as they gain; 1 if none does."""
        flips = self.lost + self.gained
        tail = sum(comb(flips, k) for k in range(min(self.lost, self.gained) + 1))
        return min(1.0, 2 * tail / (1 << flips))


@dataclass(frozen=True)
class NameProbe:
    """Answers under published names beside those under neutral ones, paired by item.

    scale: "skill", which is (rate - chance) / (best - chance), or "rate" where records lack chance and best
    neutral, real: mean on this scale under neutral and under published names
    num_units: number of units, groups of items about one model; interval: interval of the difference, by units
    """

    scale: Literal["skill", "rate"]
    num_items: int
    num_units: int
    neutral: float
    real: float
    interval: rates.Interval | None

    @property
    def prior_knowledge(self) -> float:
        """Difference that published names make, real minus neutral."""
        return self.real - self.neutral

    def cells(self, system: str) -> list[str]:
        """Return the cells of a table."""
        interval = UNDEFINED if self.interval is None else f"{self.interval.low:.3f} to {self.interval.high:.3f}"
        counts = [system, str(self.num_items), str(self.num_units), self.scale]
        return [*counts, f"{self.neutral:.3f}", f"{self.real:.3f}", f"{self.prior_knowledge:+.3f}", interval]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as numbers."""
        return {
            "scale": self.scale,
            "items": self.num_items,
            "units": self.num_units,
            "neutral": self.neutral,
            "real": self.real,
            "prior_knowledge": self.prior_knowledge,
            "interval": self.interval and list(self.interval),
        }


class NamedPair(NamedTuple):
    """Shares of right answers to an item under neutral and published names. room: (chance, best), None if unknown."""

    unit: str
    neutral: float
    real: float
    room: tuple[float, float] | None


def probe_names(pairs: Sequence[NamedPair]) -> NameProbe | None:
    """Return the probe of a system; None without pairs."""
    if not pairs:
        return None
    rooms = [pair.room for pair in pairs if pair.room is not None]
    is_skill = len(rooms) == len(pairs) and fsum(best - chance for chance, best in rooms) > MIN_ROOM
    chances, bests = zip(*rooms, strict=True) if is_skill else ([0.0] * len(pairs), [1.0] * len(pairs))
    units = {unit: index for index, unit in enumerate(sorted({pair.unit for pair in pairs}))}
    sums = np.zeros((len(units), 3))  # neutral less chance, real less chance, best less chance
    for pair, chance, best in zip(pairs, chances, bests, strict=True):
        sums[units[pair.unit]] += (pair.neutral - chance, pair.real - chance, best - chance)
    neutral, real, room = (fsum(column) for column in sums.T)
    (interval,) = rates.bootstrap_intervals(sums[:, 1:2] - sums[:, :1], sums[:, 2:])
    return NameProbe("skill" if is_skill else "rate", len(pairs), len(units), neutral / room, real / room, interval)


PROBE_HEADINGS = ("System", "Items", "Networks", "Scale", "Neutral", "Real", "Prior knowledge", "95 % interval")


@dataclass(frozen=True)
class Consistency:
    """Answers of a system to the copies of a pool.

    correct_by_original: original -> for each copy, the share of its answers that are right
    flips: kind of change -> flips, where the system answered originals too
    by_kind: kind of change -> `correct_by_original` of the copies so changed
    originals_mean: mean of the answers to the originals of copies; None without such answers
    names: effect of published names; None unless copies have them and originals were answered
    """

    system: str
    correct_by_original: Mapping[str, Sequence[float]]
    flips: Mapping[str, Flips]
    by_kind: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    originals_mean: float | None = None
    names: NameProbe | None = None

    @property
    def num_copies(self) -> int:
        return sum(map(len, self.correct_by_original.values()))

    @property
    def mean(self) -> float:
        return rate_of_copies(self.correct_by_original).mean

    @property
    def interval(self) -> rates.Interval | None:
        return rate_of_copies(self.correct_by_original).interval

    @property
    def num_equal(self) -> int:
        """Number of originals whose copies all have the same share of right answers."""
        return sum(len(set(values)) == 1 for values in self.correct_by_original.values())

    @property
    def share_equal(self) -> float:
        return self.num_equal / len(self.correct_by_original)

    @property
    def worst(self) -> float:
        """Mean over originals of the worst copy; it falls with the number of copies."""
        return rates.exact_mean(map(min, self.correct_by_original.values()))

    def cells(self) -> list[str]:
        """Return the cells of a table."""
        interval = self.interval
        equal_low, equal_high = rates.wilson(self.num_equal, len(self.correct_by_original))
        flips = "; ".join(
            f"{kind} -{flip.lost} +{flip.gained} of {flip.num_copies}" for kind, flip in sorted(self.flips.items())
        )
        return [
            self.system,
            str(len(self.correct_by_original)),
            str(self.num_copies),
            f"{self.mean:.3f}",
            UNDEFINED if interval is None else f"{interval.low:.3f}-{interval.high:.3f}",
            f"{self.share_equal:.3f} ({equal_low:.3f}-{equal_high:.3f})",
            f"{self.worst:.3f}",
            flips or UNDEFINED,
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as numbers."""
        return {
            "system": self.system,
            "originals": len(self.correct_by_original),
            "copies": self.num_copies,
            "mean": self.mean,
            "interval": self.interval and list(self.interval),
            "all_equal": self.share_equal,
            "all_equal_interval": list(rates.wilson(self.num_equal, len(self.correct_by_original))),
            "worst_copy": self.worst,
            "originals_mean": self.originals_mean,
            "names": self.names and self.names.to_dict(),
            "flips": {kind: flip._asdict() | {"p_value": flip.p_value} for kind, flip in sorted(self.flips.items())},
            "kinds": {
                kind: {"mean": rate.mean, "interval": rate.interval and list(rate.interval)}
                for kind, rate in ((kind, rate_of_copies(right)) for kind, right in sorted(self.by_kind.items()))
            },
        }


def rate_of_copies(correct_by_original: Mapping[str, Sequence[float]]) -> Estimate:
    """Return the mean over all copies, clustered by original."""
    rate = estimate(
        ((original, index), original, share)
        for original, shares in correct_by_original.items()
        for index, share in enumerate(shares)
    )
    assert rate is not None
    return rate


def measure_consistency(
    answers: Iterable[tuple[AnswerContext, Mapping[str, Any]]], variants: Path, maps: VariantMaps
) -> list[Consistency]:
    """Return the consistency of each system with answers to a pool of variants; `CalibrantError` if there is none.

    Copies without an answer count as wrong; items to which no answer is right or wrong are left out. Answers to the
    originals among `answers` give the flips. maps: maps of the pool
    """
    digest, bench = pool_digest(variants), benchmark_of(variants)
    copies: dict[rates.SystemKey, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    originals: dict[rates.SystemKey, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    configs: dict[rates.SystemKey, Mapping[str, Any]] = {}
    unjudged: set[str] = set()
    rooms: dict[str, tuple[float, float]] = {}
    for context, score in answers:
        target = {digest: copies, maps.pool_digest: originals}.get(context.pool_digest)
        right = None if target is None else bench.metrics.success.rate(score, context.setting)
        if target is not None and right is not None:
            configs[rates.SystemKey.of(context)] = context.config
            target[rates.SystemKey.of(context)][context.instance].append(right)
            expected = expectations(score)
            chance, best = expected.get("draw"), expected.get("best")
            if target is originals and chance is not None and best is not None:
                rooms[context.instance] = chance, best
        elif target is copies:
            unjudged.add(context.instance)
    if not copies:
        where = f"{variants.name}{' that has a right answer' if unjudged else ''}"
        raise CalibrantError(f"--consistency: no answer is to an item of {where}")
    judged = {name: copy_map for name, copy_map in maps.copies.items() if name not in unjudged}
    names = rates.system_names(configs)
    named = {name: copy_map for name, copy_map in judged.items() if copy_map.kind == NAMES}
    units: dict[str, str] = {}
    if named:
        units = {
            item.id: bench.metrics.unit_of(item) for item in bench.items.read_pool(variants).items if item.id in named
        }
    rows = []
    for key in sorted(copies):
        before = originals.get(key, {})
        pairs = [
            NamedPair(units[name], _mean(before[of_id]), _mean(copies[key].get(name, ())), rooms.get(of_id))
            for name, of_id in ((name, copy_map.of) for name, copy_map in named.items())
            if before.get(of_id)
        ]
        rows.append(replace(_consistency(names[key], copies[key], before, judged), names=probe_names(pairs)))
    return rows


def _consistency(
    system: str, copies: Mapping[str, list[float]], originals: Mapping[str, list[float]], maps: Mapping[str, CopyMap]
) -> Consistency:
    correct_by_original: dict[str, list[float]] = {}
    by_kind: dict[str, dict[str, list[float]]] = {}
    flips: dict[str, list[int]] = {}
    for name, copy_map in maps.items():
        right = _mean(copies.get(name, ()))
        correct_by_original.setdefault(copy_map.of, []).append(right)
        by_kind.setdefault(copy_map.kind, {}).setdefault(copy_map.of, []).append(right)
        if originals.get(copy_map.of):
            right_before = _mean(originals[copy_map.of])
            counts = flips.setdefault(copy_map.kind, [0, 0, 0])
            counts[0] += right_before > right
            counts[1] += right_before < right
            counts[2] += 1
    originals_mean = rates.mean_if_known([_mean(originals[id_]) for id_ in correct_by_original if originals.get(id_)])
    flips_by_kind = {kind: Flips(*counts) for kind, counts in flips.items()}
    return Consistency(system, correct_by_original, flips_by_kind, by_kind, originals_mean)


def _mean(values: Sequence[float]) -> float:
    return rates.exact_mean(values) if values else 0.0


def consistency_lines(rows: Sequence[Consistency], width: int | None) -> Iterator[str]:
    """Yield the lines of the table of consistency; width: columns, None for no limit."""
    from calibrant.bench.pages.terminal_tables import wrapped_lines

    yield from wrapped_lines(list(HEADINGS), lambda: [row.cells() for row in rows], width)
    probes = [row.names.cells(row.system) for row in rows if row.names is not None]
    if probes:
        yield ""
        yield from wrapped_lines(list(PROBE_HEADINGS), lambda: probes, width)
