"""Generation of pools of logic models, suite by suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec.structs import asdict

from calibrant.audits.logic.generation import SUITES as PLANS
from calibrant.audits.logic.generation import LogicPlan, generate_items
from calibrant.baselines.logic.rows import greedy_model
from calibrant.bench.core.capabilities import Drawable
from calibrant.bench.core.options import OptionError
from calibrant.bench.logic.options import GeneratedItems
from calibrant.bench.pools.generated import SuiteGenerator
from calibrant.dsl.logic.item import LogicError, LogicItem


class LogicSuites(Drawable[LogicItem]):
    """Implements Drawable (bench.core.capabilities)."""

    @property
    def names(self) -> Sequence[str]:
        return tuple(PLANS)

    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[LogicItem]:
        return tuple(item for suite in suites for item in self.draw_part(suite, seed, range(count)))

    def parts(self, count: int) -> Sequence[range]:
        return [range(place, place + 1) for place in range(count)]

    def draw_part(self, suite: str, seed: int, places: range) -> Sequence[LogicItem]:
        """Return items with their labels; each depends on suite, seed and position alone."""
        return _draw(PLANS[suite], suite, seed, places)


def draw_with_options(suite: str, seed: int, places: range, options: GeneratedItems) -> Sequence[LogicItem]:
    """Return items of a suite whose plan has some other values."""
    values = {name: value for name, value in asdict(options).items() if value is not None}
    try:
        plan = replace(PLANS[suite], **values)
    except LogicError as error:
        raise OptionError(str(error), "--option") from None
    return _draw(plan, suite, seed, places)


def _draw(plan: LogicPlan, suite: str, seed: int, places: range) -> Sequence[LogicItem]:
    items = generate_items(plan, seed, len(places), greedy_model, places.start)
    return tuple(
        replace(item, id=f"{suite}-{seed}-{place}", labels={**item.labels, "stratum": suite})
        for place, item in zip(places, items, strict=True)
    )


SUITES = LogicSuites()
GENERATE = SuiteGenerator("logic", draw_with_options)
