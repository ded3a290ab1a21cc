"""Suites of ReplaySCM: a stratum, and what is disclosed."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.bench.core.capabilities import Drawable
from calibrant.dsl.replayscm.item import Problem


class ReplayScmSuites(Drawable[Problem]):
    """Implements Drawable (bench.core.capabilities)."""

    @property
    def names(self) -> Sequence[str]:
        """Return the suites: a stratum and a disclosure each.

        `calibrant generate` names the two apart, and does more than draw.
        """
        from calibrant.dsl.replayscm.generation.problems import SETTINGS
        from calibrant.dsl.replayscm.generation.strata import STRATA

        return tuple(f"{stratum.name}/{setting}" for stratum in STRATA for setting in SETTINGS)

    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[Problem]:
        """Draw items as `calibrant sample` does."""
        from calibrant.dsl.replayscm.generation.problems import sample_pool
        from calibrant.dsl.replayscm.generation.strata import stratum

        parts = [suite.partition("/") for suite in suites]
        pools = [sample_pool([stratum(name)], count, seed, setting) for name, _, setting in parts]
        return tuple(problem for pool in pools for problem in pool.problems)


SUITES = ReplayScmSuites()
