"""Consistency of answers over copies of items: rates clustered by original, and which changes flip answers.

The mean over copies has a sandwich interval, clustered by original: variance G/(G-1) sum_c (sum_i (s_ci - s))^2 / n^2
for G originals and n copies, t with G-1 degrees (Miller, arXiv:2411.00640, with the factor for few clusters). Near 0 or
1, and at zero width, its coverage falls below 95 %; there Wilson's interval at G originals stands in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import atan, comb, cos, fsum, pi, sin, sqrt
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.bench.core.answer_context import AnswerContext
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.statistics import wilson
from calibrant.bench.variants.contract import CopyMap
from calibrant.bench.variants.pool import VariantMaps
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.records import pool_digest

NEAR = 0.1  # from 0 or 1; measured coverage of the sandwich at a mean of .9: .90
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
        return mean_right(self.rights)

    @property
    def interval(self) -> tuple[float, float]:
        return clustered_interval(list(self.rights.values()))

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
        return fsum(map(min, self.rights.values())) / len(self.rights)

    def cells(self) -> list[str]:
        """Return the cells of a table."""
        low, high = self.interval
        equal_low, equal_high = wilson(self.num_equal, len(self.rights))
        flips = "; ".join(
            f"{kind} -{flip.lost} +{flip.gained} of {flip.number}" for kind, flip in sorted(self.flips.items())
        )
        return [
            self.system,
            str(len(self.rights)),
            str(self.num_copies),
            f"{self.mean:.3f}",
            f"{low:.3f}-{high:.3f}",
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
            "interval": list(self.interval),
            "all_equal": self.share_equal,
            "all_equal_interval": list(wilson(self.num_equal, len(self.rights))),
            "worst_copy": self.worst,
            "originals_mean": self.originals,
            "flips": {kind: flip._asdict() | {"p_value": flip.p_value} for kind, flip in sorted(self.flips.items())},
            "kinds": {
                kind: {"mean": mean_right(rights), "interval": list(clustered_interval(list(rights.values())))}
                for kind, rights in sorted(self.by_kind.items())
            },
        }


def mean_right(rights: Mapping[str, Sequence[float]]) -> float:
    """Return the mean over all copies."""
    return fsum(map(fsum, rights.values())) / sum(map(len, rights.values()))


def clustered_interval(clusters: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of all values, those of a cluster depending on each other."""
    num_clusters, number = len(clusters), sum(map(len, clusters))
    mean = fsum(map(fsum, clusters)) / number
    residuals = [fsum(values) - len(values) * mean for values in clusters]
    spread = fsum(residual * residual for residual in residuals)
    if num_clusters < 2 or spread == 0 or min(mean, 1 - mean) <= NEAR:
        return wilson(mean * num_clusters, num_clusters)
    half = t_quantile(num_clusters - 1) * sqrt(num_clusters / (num_clusters - 1) * spread) / number
    return max(0.0, mean - half), min(1.0, mean + half)


def t_quantile(degrees: int, tail: float = 0.025) -> float:
    """Return the upper quantile of Student's t with integer degrees of freedom, by bisection."""
    low, high = 0.0, 1.0
    while t_tail(high, degrees) > tail:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, degrees) > tail else (low, middle)
    return (low + high) / 2


def t_tail(value: float, degrees: int) -> float:
    """Return P(T > value) of Student's t for value >= 0: the finite sums of Abramowitz and Stegun 26.7.3 and 26.7.4."""
    angle = atan(value / sqrt(degrees))
    cosine, sine = cos(angle), sin(angle)
    if degrees % 2:
        term = total = cosine if degrees > 1 else 0.0
        for k in range(3, degrees, 2):
            term *= cosine * cosine * (k - 1) / k
            total += term
        inside = 2 / pi * (angle + sine * total)
    else:
        term = total = 1.0
        for k in range(2, degrees, 2):
            term *= cosine * cosine * (k - 1) / k
            total += term
        inside = sine * total
    return (1 - inside) / 2


def measure_consistency(
    answers: Iterable[tuple[AnswerContext, Mapping[str, Any]]], variants: Path, maps: VariantMaps
) -> list[Consistency]:
    """Return the consistency of each system with answers to a pool of variants; `CalibrantError` if there is none.

    Copies without an answer count as wrong; items without a right answer are left out.
    Answers to the originals' pool among `answers` give the flips.
    maps: of the pool
    """
    digest, of = pool_digest(variants), benchmark_of(variants)
    copies: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    originals: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    unjudged: set[str] = set()
    for context, score in answers:
        target = {digest: copies, maps.pool_digest: originals}.get(context.pool_digest)
        right = None if target is None else of.metrics.success.judge(score, context.setting)
        if target is not None and right is not None:
            target[context.system][context.instance].append(right)
        elif target is copies:
            unjudged.add(context.instance)
    if not copies:
        where = f"{variants.name}{' that has a right answer' if unjudged else ''}"
        raise CalibrantError(f"--consistency: no answer is to an item of {where}")
    judged = {name: stated for name, stated in maps.copies.items() if name not in unjudged}
    return [_consistency(name, copies[name], originals.get(name, {}), judged) for name in sorted(copies)]


def _consistency(
    system: str, copies: Mapping[str, list[bool]], originals: Mapping[str, list[bool]], maps: Mapping[str, CopyMap]
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
    mean_before = fsum(before) / len(before) if before else None
    return Consistency(system, rights, {kind: Flips(*counts) for kind, counts in flips.items()}, by_kind, mean_before)


def _mean(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else 0.0


def consistency_lines(rows: Sequence[Consistency], width: int | None) -> Iterator[str]:
    """Yield the lines of the table."""
    from calibrant.bench.pages.aligned import wrapped_lines

    return wrapped_lines(list(HEADINGS), [row.cells() for row in rows], width)
