"""Generation of pools of CausaLab, suite by suite."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.bench.core.suites import Drawable
from calibrant.bench.pools.generated import SuiteGenerator
from calibrant.dsl.causalab.generation import PLANS
from calibrant.dsl.causalab.item import LabItem

LEAST_PART, MOST_PARTS = 8, 8  # items that are labelled together; parts of a suite, each of which draws all topologies


class LabSuites(Drawable[LabItem]):
    """Implements Drawable (bench.core.suites)."""

    @property
    def names(self) -> Sequence[str]:
        return tuple(PLANS)

    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[LabItem]:
        """With their difficulty labels, which are sealed."""
        return tuple(item for suite in suites for item in self.draw_part(suite, seed, range(count)))

    def draw_part(self, suite: str, seed: int, places: range) -> Sequence[LabItem]:
        """Topologies depend on the earlier ones, but it is labels that take the time."""
        from calibrant.audits.causalab.labels import generate_labelled

        return tuple(generate_labelled(PLANS[suite], seed, places.stop, places.start))

    def parts(self, count: int) -> Sequence[range]:
        size = max(LEAST_PART, -(-count // MOST_PARTS))
        return [range(first, min(first + size, count)) for first in range(0, count, size)]


SUITES = LabSuites()
GENERATE = SuiteGenerator("causalab")
