"""A sweep: the same question asked of ever larger problems, until it takes too long or is refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple, TypeAlias

import msgspec

from bench.speed.comparison import seconds

MOST_SECONDS = 30.0  # a curve ends where one problem took longer

Ask: TypeAlias = Callable[[], str | None]
"""Asks the question; None if it was answered, else in a few words why not."""


class Curve(NamedTuple):
    """One way to answer.

    xs: sizes, ascending; prepare: makes the question of a size and a seed, which is not timed
    """

    name: str
    xs: Sequence[int]
    prepare: Callable[[int, int], Ask]


class Sweep(NamedTuple):
    """What is asked, against what.

    key: of the file of its plot; title: the question; axis: what the sizes are
    """

    key: str
    title: str
    axis: str
    curves: Sequence[Curve]


class Point(msgspec.Struct, frozen=True, omit_defaults=True):
    """One size on one curve.

    median, most: processor seconds of a problem; answered: of how many of the `problems` asked
    stop: why the curve ends here, empty if it does not or if no larger size was to be asked
    """

    key: str
    curve: str
    x: int
    problems: int
    answered: int
    median: float
    most: float
    stop: str = ""


def points(sweep: Sweep, seeds: Sequence[int], minutes: float) -> Iterator[Point]:
    """Every curve as far as it goes. minutes: after which a curve begins no further size"""
    for curve in sweep.curves:
        until = time.monotonic() + 60 * minutes
        for x in curve.xs:
            if time.monotonic() >= until:
                break
            point = _point(sweep.key, curve, x, seeds)
            yield point
            if point.stop:
                break


def _point(key: str, curve: Curve, x: int, seeds: Sequence[int]) -> Point:
    curve.prepare(x, len(seeds))()  # imports and compiles
    took: list[float] = []
    refused: list[str] = []
    for seed in seeds:
        ask = curve.prepare(x, seed)

        def asked(ask: Ask = ask) -> None:
            if (why := ask()) is not None:
                refused.append(why)

        took.append(seconds(asked, 1))
    stop = ""
    if len(refused) == len(seeds):
        stop = refused[0]
    elif max(took) > MOST_SECONDS:
        stop = f"a problem took over {MOST_SECONDS:.0f} s"
    return Point(key, curve.name, x, len(took), len(took) - len(refused), median(took), max(took), stop)
