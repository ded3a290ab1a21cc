"""Generation of pools of logic models, suite by suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calibrant.audits.logic.generation import generate_items
from calibrant.audits.logic.suites import SUITES as PLANS
from calibrant.baselines.logic.greedy import greedy_model
from calibrant.bench.core.suites import Drawable
from calibrant.bench.pools.generated import SuiteGenerator
from calibrant.dsl.logic.item import LogicItem


class LogicSuites(Drawable[LogicItem]):
    """Implements Drawable (bench.core.suites)."""

    @property
    def names(self) -> Sequence[str]:
        return tuple(PLANS)

    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[LogicItem]:
        return tuple(item for suite in suites for item in self.draw_part(suite, seed, range(count)))

    def draw_part(self, suite: str, seed: int, places: range) -> Sequence[LogicItem]:
        """Return items with their labels; each depends on suite, seed and position alone."""
        items = generate_items(PLANS[suite], seed, len(places), greedy_model, places.start)
        return tuple(
            replace(item, id=f"{suite}-{seed}-{place}", labels={**item.labels, "stratum": suite})
            for place, item in zip(places, items, strict=True)
        )


SUITES = LogicSuites()
GENERATE = SuiteGenerator("logic")
