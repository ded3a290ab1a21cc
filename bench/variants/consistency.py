"""Consistency of answers over copies of items: rates clustered by original, and which changes flip answers.

The mean over copies has the interval of all rates, with originals as units (bench.answers.intervals).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.bench.answers.frame import Estimate, estimate
from calibrant.bench.answers.intervals import Interval
from calibrant.bench.answers.names import SystemKey, system_names
from calibrant.bench.answers.rates import exact_mean, mean_if_known
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.statistics import wilson
from calibrant.bench.variants.contract import CopyMap
from calibrant.bench.variants.pool import VariantMaps
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.records import pool_digest

UNDEFINED = "\N{EN DASH}"
HEADINGS = ("System", "Originals", "Copies", "Mean", "Interval", "All equal", "Worst copy", "Flips by kind")


class Flips(NamedTuple):
    """Answers to copies beside those to their originals: counts of McNemar's test."""

    lost: int
    gained: int
    number: int

    @property
    def p_value(self) -> float:
        """Return that of the exact test that copies lose and gain alike; 1 where none flips."""
        flips = self.lost + self.gained
        tail = sum(comb(flips, k) for k in range(min(self.lost, self.gained) + 1))
        return min(1.0, 2 * tail / (1 << flips))


@dataclass(frozen=True)
class Consistency:
    """Answers of a system to the copies of a pool.

    rights: of each original, whether each copy was answered right, several answers by their mean
    flips: by kind of change, where the system answered originals too
    by_kind: the same as rights for each kind of change
    originals: mean of the answers to the originals of copies; None without any
    """

    system: str
    rights: Mapping[str, Sequence[float]]
    flips: Mapping[str, Flips]
    by_kind: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    originals: float | None = None

    @property
    def num_copies(self) -> int:
        return sum(map(len, self.rights.values()))

    @property
    def mean(self) -> float:
        return rate_of_copies(self.rights).mean

    @property
    def interval(self) -> Interval | None:
        return rate_of_copies(self.rights).interval

    @property
    def num_equal(self) -> int:
        """Return the number of originals whose copies are all right or all wrong."""
        return sum(len(set(values)) == 1 for values in self.rights.values())

    @property
    def share_equal(self) -> float:
        return self.num_equal / len(self.rights)

    @property
    def worst(self) -> float:
        """Return the mean over originals of the worst copy; it falls with the number of copies."""
        return exact_mean(map(min, self.rights.values()))

    def cells(self) -> list[str]:
        """Return the cells of a table."""
        interval = self.interval
        equal_low, equal_high = wilson(self.num_equal, len(self.rights))
        flips = "; ".join(
            f"{kind} -{flip.lost} +{flip.gained} of {flip.number}" for kind, flip in sorted(self.flips.items())
        )
        return [
            self.system,
            str(len(self.rights)),
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
            "originals": len(self.rights),
            "copies": self.num_copies,
            "mean": self.mean,
            "interval": self.interval and list(self.interval),
            "all_equal": self.share_equal,
            "all_equal_interval": list(wilson(self.num_equal, len(self.rights))),
            "worst_copy": self.worst,
            "originals_mean": self.originals,
            "flips": {kind: flip._asdict() | {"p_value": flip.p_value} for kind, flip in sorted(self.flips.items())},
            "kinds": {
                kind: {"mean": rate.mean, "interval": rate.interval and list(rate.interval)}
                for kind, rate in ((kind, rate_of_copies(rights)) for kind, rights in sorted(self.by_kind.items()))
            },
        }


def rate_of_copies(rights: Mapping[str, Sequence[float]]) -> Estimate:
    """Return the mean over all copies, clustered by original."""
    rate = estimate(((of, place), of, right) for of, listed in rights.items() for place, right in enumerate(listed))
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
    digest, of = pool_digest(variants), benchmark_of(variants)
    copies: dict[SystemKey, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    originals: dict[SystemKey, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    configs: dict[SystemKey, Mapping[str, Any]] = {}
    unjudged: set[str] = set()
    for context, score in answers:
        target = {digest: copies, maps.pool_digest: originals}.get(context.pool_digest)
        right = None if target is None else of.metrics.success.rate(score, context.setting)
        if target is not None and right is not None:
            configs[SystemKey.of(context)] = context.config
            target[SystemKey.of(context)][context.instance].append(right)
        elif target is copies:
            unjudged.add(context.instance)
    if not copies:
        where = f"{variants.name}{' that has a right answer' if unjudged else ''}"
        raise CalibrantError(f"--consistency: no answer is to an item of {where}")
    judged = {name: stated for name, stated in maps.copies.items() if name not in unjudged}
    names = system_names(configs)
    return [_consistency(names[key], copies[key], originals.get(key, {}), judged) for key in sorted(copies)]


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
    mean_before = mean_if_known(before)
    return Consistency(system, rights, {kind: Flips(*counts) for kind, counts in flips.items()}, by_kind, mean_before)


def _mean(values: Sequence[float]) -> float:
    return exact_mean(values) if values else 0.0


def consistency_lines(rows: Sequence[Consistency], width: int | None) -> Iterator[str]:
    """Yield the lines of the table."""
    from calibrant.bench.pages.aligned import wrapped_lines

    return wrapped_lines(list(HEADINGS), [row.cells() for row in rows], width)
