"""Rows of reports: every scored answer, grouped by pool (or setting) and system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from calibrant.bench.core.answer_context import AnswerContext
from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.replayscm.verdict import MetricReader
from calibrant.bench.report.intervals import Interval
from calibrant.bench.report.rate_rows import (
    Grouping,
    differing_names,
    ladder_place,
    natural,
    option_suffix,
    pool_labels,
)
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.replayscm.pools.published_files import latent_of

SEARCHES_IN_FILES = ("bnlearn", "symbolic")  # results in official files that are not of language models


class ScoredAnswer(NamedTuple):
    """One scored answer.

    latent: the id that instances with the same latent SCM share
    gold_size: nodes of its formulas, as some valid answer's score states it
    num_samples: how many answers the row has to the instance; each weighs one of so many
    """

    pool_digest: str
    instance: str
    latent: str
    verdict: MetricReader
    seconds: float | None
    gold_size: int | None = None
    num_samples: int = 1


@dataclass(frozen=True)
class SystemRow:
    """One system's answers to one pool, or to every pool of one setting.

    pools: digest -> name; num_expected: how many instances these have
    is_model: the answers are a model's, not those of a search
    observations: by pool and instance; num_crashed: of these
    intervals: by column, those that were asked for so far
    """

    setting: str
    system: str
    pools: Mapping[str, str]
    num_expected: int
    is_model: bool
    observations: tuple[ScoredAnswer, ...]
    num_crashed: int = 0
    intervals: dict[str, Interval | None] = field(init=False, default_factory=dict, compare=False, repr=False)

    @cached_property
    def num_items(self) -> int:
        return len({(o.pool_digest, o.instance) for o in self.observations})

    @property
    def pool(self) -> str:
        names = sorted(set(self.pools.values()))
        return names[0].removesuffix(".runtime.yaml") if len(names) == 1 else f"{len(names)} pools"

    @property
    def latents(self) -> frozenset[str]:
        return frozenset(o.latent for o in self.observations)

    @property
    def seconds(self) -> list[float]:
        return [o.seconds for o in self.observations if o.seconds is not None]


_Group = tuple[str, str, str, str]  # setting, pool digest, system, options


class RowCollector:
    """Collects scored answers and gives the rows; the order in which they are added does not matter.

    latents: (pool digest, instance) -> latent id, where the pool files are at hand; else the naming decides
    """

    def __init__(
        self,
        *,
        by: Grouping = Grouping.POOL,
        means: InvalidHandling = InvalidHandling.PUBLISHED,
        latents: Mapping[tuple[str, str], str] | None = None,
    ) -> None:
        self._by = by
        self._means = means
        self._latents = latents or {}
        self._answers: dict[_Group, list[ScoredAnswer]] = {}
        self._origins: dict[_Group, dict[str, AnswerContext]] = {}
        self._sizes: dict[str, int] = {}  # by latent
        self._crashes: Counter[_Group] = Counter()

    def add(self, origin: AnswerContext, score: Mapping[str, Any]) -> None:
        digest = "" if self._by is Grouping.SETTING else origin.pool_digest
        group = origin.setting, digest, origin.system, repr(sorted(origin.config.items()))
        self._origins.setdefault(group, {})[origin.pool_digest] = origin
        self._crashes[group] += origin.outcome == "crashed"
        latent = self._latents.get((origin.pool_digest, origin.instance)) or latent_of(origin.instance)
        verdict = MetricReader(score, origin.setting, self._means)
        size = score.get("goldAstSize")
        if isinstance(size, int):  # scores of invalid answers do not say
            self._sizes[latent] = size
        observation = ScoredAnswer(origin.pool_digest, origin.instance, latent, verdict, origin.seconds)
        self._answers.setdefault(group, []).append(observation)

    def rows(self) -> list[SystemRow]:
        """By the disclosure ladder, then pool, then system."""
        configs: dict[str, list[Mapping[str, Any]]] = {}
        for (_, _, system, _), origins in self._origins.items():
            configs.setdefault(system, []).append(next(iter(origins.values())).config)
        differing = {system: differing_names(listed) for system, listed in configs.items()}
        labels = pool_labels(
            {digest: one.pool for origins in self._origins.values() for digest, one in origins.items()}
        )
        made = [self._row(group, differing[group[2]], labels) for group in self._answers]
        return sorted(made, key=lambda row: (*ladder_place(row.setting), natural(row.pool), *_system_place(row)))

    def _row(self, group: _Group, differing: Sequence[str], labels: Mapping[str, str]) -> SystemRow:
        setting, _, system, _ = group
        origins = self._origins[group]
        answers = Counter((o.pool_digest, o.instance) for o in self._answers[group])
        one = next(iter(origins.values()))
        is_model = one.outcome is None and not any(name in system.casefold() for name in SEARCHES_IN_FILES)
        return SystemRow(
            in_one_line(setting),
            in_one_line(system + option_suffix(one.config, differing)),
            {digest: in_one_line(labels[digest]) for digest in sorted(origins)},
            sum(origin.pool_size for origin in origins.values()),
            is_model,
            tuple(
                o._replace(gold_size=self._sizes.get(o.latent), num_samples=answers[o.pool_digest, o.instance])
                for o in sorted(self._answers[group], key=lambda o: (o.pool_digest, o.instance))
            ),
            self._crashes[group],
        )


def _system_place(row: SystemRow) -> tuple[Any, ...]:
    return not row.is_model, natural(row.system), sorted(row.pools)


def by_pools(rows: Sequence[SystemRow]) -> Iterator[list[SystemRow]]:
    """Yield the rows of the same pools under the same setting, together."""
    groups: dict[tuple[str, frozenset[str]], list[SystemRow]] = {}
    for row in rows:
        groups.setdefault((row.setting, frozenset(row.pools)), []).append(row)
    yield from groups.values()


def per_unit(
    observations: Iterable[ScoredAnswer],
    unit: Callable[[ScoredAnswer], Any],
    value: Callable[[MetricReader], float | None],
) -> dict[Any, float]:
    """Return the mean of a quantity on each unit where it is defined."""
    found: dict[Any, list[float]] = {}
    for one in observations:
        number = value(one.verdict)
        if number is not None:
            found.setdefault(unit(one), []).append(float(number))
    return {key: sum(numbers) / len(numbers) for key, numbers in found.items()}
