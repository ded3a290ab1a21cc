"""Rows of a report on ReplaySCM: models before searches, in the order of the disclosure ladder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any

from calibrant.bench.answers.names import natural
from calibrant.bench.core.metrics import InvalidHandling, Item
from calibrant.bench.replayscm.verdict import METRICS
from calibrant.bench.report.rows import Answer, Grouping, Observation, Row, group
from calibrant.dsl.replayscm.pools.published_files import latent_of

SEARCHES_IN_FILES = ("bnlearn", "symbolic")  # results in official files that are not of language models


def report_rows(
    answers: Iterable[Answer],
    by: Grouping = Grouping.POOL,
    handling: InvalidHandling = InvalidHandling.PUBLISHED,
    latents: Mapping[Item, str] | None = None,
) -> list[Row]:
    """Return the rows by the disclosure ladder, then pool, then system.

    latents: from an item to its latent SCM, where the pool files are at hand; else the naming decides
    """
    latent_by_item = latents or {}
    rows = group(
        answers, METRICS, by, handling=handling, unit=lambda item: latent_by_item.get(item) or latent_of(item[1])
    )
    return sorted(rows, key=_place)


def _place(row: Row) -> tuple[Any, ...]:
    ladder = METRICS.place(row.setting)
    return *ladder, natural(pool_name(row)), not is_model(row), natural(row.system), sorted(row.pools)


def is_model(row: Row) -> bool:
    """Return whether the answers are a model's, not those of a search."""
    return not row.outcomes and not any(name in row.system.casefold() for name in SEARCHES_IN_FILES)


def pool_name(row: Row) -> str:
    """Return the name of a row's pool without the suffix of published files, or how many there are."""
    return row.pool.removesuffix(".runtime.yaml")


def by_pools(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield the rows of the same pools under the same setting, together."""
    groups: dict[tuple[str, frozenset[str]], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.setting, frozenset(row.pools)), []).append(row)
    yield from groups.values()


def mean_by_unit(
    observations: Iterable[Observation], unit: Callable[[Observation], Any], place: int
) -> dict[Any, float]:
    """Return the mean of a metric on each unit where it is defined.

    place: of the metric among the values
    """
    values_by_unit: dict[Any, list[float]] = {}
    for observation in observations:
        value = observation.values[place]
        if value is not None:
            values_by_unit.setdefault(unit(observation), []).append(value)
    return {key: fsum(values) / len(values) for key, values in values_by_unit.items()}


def gold_sizes(rows: Iterable[Row]) -> dict[str, int]:
    """Return the formula size of each latent SCM that the score of some valid answer states."""
    sizes: dict[str, int] = {}
    for row in rows:
        place = row.places["gold_size"]
        for observation in row.observations:
            size = observation.values[place]
            if size is not None:
                sizes[observation.unit] = int(size)
    return sizes
