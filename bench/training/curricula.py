"""Items without end, by seed, with labels of their difficulty, in an order to learn them in.

The same arguments give the same items in the same order, however many are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, cycle, islice
from typing import Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.dsl.errors import CalibrantError

FIRST_DRAWN = 4


@dataclass(frozen=True)
class Drawn:
    """An item of a curriculum.

    stage: number of its suite in the curriculum, from 0; place: of the item in that suite
    """

    item: Any
    suite: str
    stage: int
    place: int


def endless(of: Benchmark[Any], suite: str, seed: int) -> Iterator[Any]:
    """Yield the items of a suite without end; item i does not depend on how many are drawn."""
    num_items = 0
    for doubling in count():
        items = of.suites.draw_part(of.suites.check_name(suite), seed, range(num_items, FIRST_DRAWN << doubling))
        yield from items
        num_items += len(items)


def in_turns(of: Benchmark[Any], suites: Sequence[str], seed: int) -> Iterator[Drawn]:
    """Yield one item of each suite, then the next of each, without end."""
    streams = [_place_items(of, suite, stage, seed) for stage, suite in enumerate(_suites(of, suites))]
    for stream in cycle(streams):
        yield next(stream)


def in_stages(of: Benchmark[Any], suites: Sequence[str], seed: int, per_stage: int) -> Iterator[Drawn]:
    """Yield so many items of the first suite, then as many of the next; the last suite goes on without end."""
    if per_stage < 1:
        raise CalibrantError(f"{per_stage} items a stage; at least 1 is meant")
    *earlier, last = enumerate(_suites(of, suites))
    for stage, suite in earlier:
        yield from islice(_place_items(of, suite, stage, seed), per_stage)
    yield from _place_items(of, last[1], last[0], seed)


def _place_items(of: Benchmark[Any], suite: str, stage: int, seed: int) -> Iterator[Drawn]:
    return (Drawn(item, suite, stage, place) for place, item in enumerate(endless(of, suite, seed)))


def _suites(of: Benchmark[Any], suites: Sequence[str]) -> list[str]:
    """Return the suites of a curriculum, by default those that the benchmark orders by difficulty."""
    return [of.suites.check_name(suite) for suite in suites or of.training.stages]
