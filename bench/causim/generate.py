"""Generation of pools of CauSim, suite by suite."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from calibrant.bench.core.suites import Drawable
from calibrant.bench.pools.generated import SuiteGenerator
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.solvers.causim.items import BUILT_IN, built_in_items, sampled_items


class CausimSuites(Drawable[CausimItem]):
    """Implements Drawable (bench.core.suites)."""

    @property
    def names(self) -> Sequence[str]:
        return (*TOPOLOGIES, *BUILT_IN)

    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[CausimItem]:
        """Return items of suites.

        A suite is a topology: programs of 2, 4, 6, 8 and 10 nodes in turns, with a question of each type about each; or
        a built-in model, of which there may be fewer items.
        """
        sequences = [(built_in_items if name in BUILT_IN else sampled_items)(seed, name) for name in suites]
        return tuple(item for sequence in sequences for item in islice(sequence, count))


SUITES = CausimSuites()
GENERATE = SuiteGenerator("causim")
