"""Variants of pools: how items are renamed, and how consistent answers are over variants.

A right map turns the original's record into the copy's, what its kind of change may change apart. Beside that: as many
hypotheses fit, and mapped answers (the gold, and the one that stands in for none) have the verdicts of the originals.

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
NAMES = "names"  # the kind of change from neutral to published names, whose map is injective
_TOKEN = re.compile(r"\w+")  # a name may begin with a digit, as `1a` of a published program


class CopyMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Origin of a copy.

    of: id of the original; kind: of change
    names: from the original's names to the copy's; values: of names, from texts of values to those of the copy
    """

    of: str
    kind: str
    names: dict[str, str] = {}
    values: dict[str, dict[str, str]] = {}


class Variant(NamedTuple):
    """A copy of a record; names, values: as in its map, without those that stay."""

    record: dict[str, Any]
    names: Mapping[str, str] = {}
    values: Mapping[str, Mapping[str, str]] = {}


class Variable(ABC):
    """Items with variants.

    kinds: of changes, by name
    fixed: keys of records whose values have no names of the item: ids, labels, words of the format
    worded_by: fields that the kind `words` changes
    """

    kinds: ClassVar[Sequence[str]]
    fixed: ClassVar[frozenset[str]]
    worded_by: ClassVar[Sequence[str]] = (WORDING,)

    @abstractmethod
    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        """Return a copy with a change of that kind; None where the item has nothing to change so."""

    @abstractmethod
    def normal_form(self, record: Record, kind: str) -> Any:
        """Return what is equal for two records, ids and labels apart, that a change of that kind makes of each other.

        Names and values apart: these are changed by `map_record`.
        """

    def absence(self, record: Record) -> str:
        """Return why an item has no variants at all; empty if it may have some."""
        return ""

    def other_fields(self, record: Record, kind: str, fields: Collection[str]) -> dict[str, Any]:
        """Return a record without these fields, and without those of its wording if that is what changes."""
        left_out = {*fields, *(self.worded_by if kind == "words" else ())}
        return {key: value for key, value in record.items() if key not in left_out}

    def map_record(self, record: Record, stated: CopyMap) -> dict[str, Any]:
        """Return a record over the names and values of a copy; `CalibrantError` for values that cannot be mapped."""
        if stated.values:
            raise CalibrantError("values have no map here")
        mapped: dict[str, Any] = rename_json(record, stated.names, self.fixed)
        return mapped

    def map_answer(self, answer: Any, stated: CopyMap) -> Any:
        """Return an answer to the original as an answer to the copy."""
        return rename_json(answer, stated.names)


VARIANTS: Capability[Variable] = Capability("`variants`", "generation:VARIANTS")


def rename_json(value: Any, names: Mapping[str, str], fixed: frozenset[str] = frozenset()) -> Any:
    """Return JSON with each name in keys and texts replaced at once; values under fixed keys stay."""
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
    """Return the values in a random order, another than theirs if there is one."""
    order = random.sample(range(len(values)), len(values))
    if len(values) > 1 and order == sorted(order):
        order = [*order[1:], order[0]]
    return [values[k] for k in order]


def permuted(names: Sequence[str], random: Random) -> dict[str, str]:
    """Return old -> new name of a random permutation, without names that stay; empty for fewer than two names."""
    return {name: new for name, new in zip(names, shuffled(names, random), strict=True) if name != new}


# --- Checks of a copy and its map: statements of a file of variants are verified, none is trusted ---------------------


class VariantChecker:
    """Checks copies of the items of one benchmark; results on an original are computed once."""

    def __init__(self, bench: Benchmark[Any]) -> None:
        self._of = bench
        self._variable = bench.require(VARIANTS)
        self._counts: dict[str, tuple[str, str]] = {}

    def problem(self, original: Any, copy: Any, stated: CopyMap) -> str:
        """Return the reason why a copy is not the image of its original under a map; empty if it is."""
        if stated.kind not in self._variable.kinds:
            return "its kind of change is unknown"
        names = () if stated.kind == NAMES and _is_injective(stated.names) else (stated.names,)
        if not all(map(_is_permutation, (*names, *stated.values.values()))):
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
        is_wrong = bool(stated.names) and _is_permutation(
            stated.names
        )  # a permuted gold is no gold; new names are unread
        wrong = rename_json(gold, stated.names) if gold is not None and is_wrong else None
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


def _is_injective(names: Mapping[str, str]) -> bool:
    return len(set(names.values())) == len(names)


def _is_permutation(names: Mapping[str, str]) -> bool:
    return set(names) == set(names.values())


# --- Pools of variants: native pools whose header has the original and the map of each copy ---------------------------
KEY = "variants"  # in the metadata of a pool
MAX_MAP_BYTES = 15 << 20  # of the maps in a header, of which at most 16 MiB are read


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
    bench = benchmark_of(source)
    variable = bench.require(VARIANTS)
    for kind in kinds:
        if kind not in variable.kinds:
            raise CalibrantError(
                f"unknown kind {short_repr(kind)} for {bench.title}; {known_names(kind, variable.kinds)}"
            )
    pool: Any = bench.items.read_pool(source)
    checker = VariantChecker(bench)
    items: list[Any] = []
    maps: dict[str, CopyMap] = {}
    num_without = 0
    for item in pool.items:
        before = len(items)
        for number in range(copies):
            kind = kinds[number % len(kinds)]
            if kind == NAMES and number >= len(kinds):  # a second copy would equal the first
                continue
            random = Random(f"{seed} {item.id} {kind} {number}")
            variant = variable.vary(bench.items.record(item), kind, random)
            if variant is None:
                continue
            name = f"{item.id}~{kind}-{number + 1}"
            try:
                image = bench.items.item_of_record(variant.record | {"id": name})
            except CalibrantError as error:
                raise CalibrantError(f"{name}: {error}; nothing was written") from None
            values = {key: dict(moved) for key, moved in variant.values.items()}
            stated = CopyMap(item.id, kind, dict(variant.names), values)
            problem = checker.problem(item, image, stated)
            if problem:
                raise CalibrantError(f"{name}: {problem}; nothing was written")
            items.append(image)
            maps[name] = stated
        num_without += len(items) == before
    if not items:
        reasons = (variable.absence(bench.items.record(item)) for item in pool.items)
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
    """Yield copies of a file that are not what it states, with the problem; `CalibrantError` for other originals."""
    bench = benchmark_of(source)
    maps = read_maps(path)
    if maps.pool_digest != pool_digest(source):
        raise CalibrantError(f"{path.name}: its originals are of another pool than {source.name}")
    originals = {item.id: item for item in bench.items.read_pool(source).items}
    copies: Mapping[str, Any] = {item.id: item for item in bench.items.read_pool(path).items}
    checker = VariantChecker(bench)
    yield from ((name, "no map") for name in copies.keys() - maps.copies.keys())
    for name, stated in maps.copies.items():
        if name not in copies or stated.of not in originals:
            yield name, "its copy or its original is missing"
        elif problem := checker.problem(originals[stated.of], copies[name], stated):
            yield name, problem


# --- Consistency of answers over copies of items: rates clustered by original, and which changes flip answers ---------
UNDEFINED = "\N{EN DASH}"
HEADINGS = ("System", "Originals", "Copies", "Mean", "Interval", "All equal", "Worst copy", "Flips by kind")


class Flips(NamedTuple):
    """Answers to copies beside those to their originals: counts of McNemar's test."""

    lost: int
    gained: int
    num_copies: int

    @property
    def p_value(self) -> float:
        """Return that of the exact test that copies lose and gain alike; 1 where none flips."""
        flips = self.lost + self.gained
        tail = sum(comb(flips, k) for k in range(min(self.lost, self.gained) + 1))
        return min(1.0, 2 * tail / (1 << flips))


@dataclass(frozen=True)
class NameProbe:
    """Answers under published names beside those under neutral ones, paired by item.

    neutral, real: skill, the rate less chance over best less chance, which an item has alike under both names; `scale`
    is `rate` where records lack chance and best. interval: of the difference, clustered by what items share
    """

    scale: Literal["skill", "rate"]
    num_items: int
    num_units: int
    neutral: float
    real: float
    interval: rates.Interval | None

    @property
    def prior_knowledge(self) -> float:
        """Return what published names add."""
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
    """Right answers to an item under neutral and published names; room: chance and best, None where unknown."""

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

    correct_by_original: of each original, whether each copy was answered right, several answers by their mean
    flips: by kind of change, where the system answered originals too
    by_kind: kind of change -> `correct_by_original` of the copies so changed
    originals_mean: mean of the answers to the originals of copies; None without any
    names: what published names add, where copies have them and originals were answered
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
        """Return the number of originals whose copies are all right or all wrong."""
        return sum(len(set(values)) == 1 for values in self.correct_by_original.values())

    @property
    def share_equal(self) -> float:
        return self.num_equal / len(self.correct_by_original)

    @property
    def worst(self) -> float:
        """Return the mean over originals of the worst copy; it falls with the number of copies."""
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


def rate_of_copies(rights: Mapping[str, Sequence[float]]) -> Estimate:
    """Return the mean over all copies, clustered by original."""
    rate = estimate(((of, index), of, right) for of, listed in rights.items() for index, right in enumerate(listed))
    assert rate is not None
    return rate


def measure_consistency(
    answers: Iterable[tuple[AnswerContext, Mapping[str, Any]]], variants: Path, maps: VariantMaps
) -> list[Consistency]:
    """Return the consistency of each system with answers to a pool of variants; `CalibrantError` if there is none.

    Copies without an answer count as wrong; items without a right answer are left out.
    Answers to the originals' pool among `answers` give the flips.
    maps: of the pool
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
    judged = {name: stated for name, stated in maps.copies.items() if name not in unjudged}
    names = rates.system_names(configs)
    named = {name: stated for name, stated in judged.items() if stated.kind == NAMES}
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
            for name, of_id in ((name, stated.of) for name, stated in named.items())
            if before.get(of_id)
        ]
        rows.append(replace(_consistency(names[key], copies[key], before, judged), names=probe_names(pairs)))
    return rows


def _consistency(
    system: str, copies: Mapping[str, list[float]], originals: Mapping[str, list[float]], maps: Mapping[str, CopyMap]
) -> Consistency:
    rights: dict[str, list[float]] = {}
    by_kind: dict[str, dict[str, list[float]]] = {}
    flips: dict[str, list[int]] = {}
    for name, stated in maps.items():
        right = _mean(copies.get(name, ()))
        rights.setdefault(stated.of, []).append(right)
        by_kind.setdefault(stated.kind, {}).setdefault(stated.of, []).append(right)
        if originals.get(stated.of):
            right_before = _mean(originals[stated.of])
            counts = flips.setdefault(stated.kind, [0, 0, 0])
            counts[0] += right_before > right
            counts[1] += right_before < right
            counts[2] += 1
    before = [_mean(originals[name]) for name in rights if originals.get(name)]
    mean_before = rates.mean_if_known(before)
    return Consistency(system, rights, {kind: Flips(*counts) for kind, counts in flips.items()}, by_kind, mean_before)


def _mean(values: Sequence[float]) -> float:
    return rates.exact_mean(values) if values else 0.0


def consistency_lines(rows: Sequence[Consistency], width: int | None) -> Iterator[str]:
    """Yield the lines of the table of consistency; width: columns, None for no limit."""
    from calibrant.bench.pages.terminal_tables import wrapped_lines

    yield from wrapped_lines(list(HEADINGS), [row.cells() for row in rows], width)
    probes = [row.names.cells(row.system) for row in rows if row.names is not None]
    if probes:
        yield ""
        yield from wrapped_lines(list(PROBE_HEADINGS), probes, width)
