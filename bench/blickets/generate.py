"""Generation of pools of extended blickets, suite by suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from calibrant.bench.core.suites import Drawable
from calibrant.bench.pools.generated import SuiteGenerator
from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.blickets.sampling import SUITES as FACTORIES
from calibrant.dsl.blickets.sampling import sample_items


class BlicketSuites(Drawable[BlicketItem]):
    """Implements Drawable (bench.core.suites)."""

    @property
    def names(self) -> Sequence[str]:
        return tuple(FACTORIES)

    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[BlicketItem]:
        return tuple(
            replace(item, id=f"{name}-{seed}-{place}", labels={**item.labels, "stratum": name})
            for name in suites
            for place, item in enumerate(islice(sample_items(FACTORIES[name], seed), count))
        )


SUITES = BlicketSuites()
GENERATE = SuiteGenerator("blickets")
