"""Fitting of a CSV file as `calibrant fit` asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrant.bench.core.capabilities import Fittable
from calibrant.bench.replayscm.fitting.fit import Fit, Steps, fit_in_steps
from calibrant.bench.replayscm.fitting.networks import NetworkFit, learn_in_steps


class TableFitting:
    """See bench.core.capabilities.Fittable."""

    def fit(
        self,
        data: Path,
        *,
        target: str | None,
        do: str | None,
        roots: Sequence[str] | None,
        max_parents: int,
        progress: Steps,
    ) -> Fit:
        return fit_in_steps(data, target, do, roots, max_parents, None, progress)

    def networks(
        self, data: Path, *, do: str | None, score: str, best: int, max_parents: int | None, progress: Steps
    ) -> NetworkFit:
        return learn_in_steps(data, do, score, 1.0, best, max_parents, None, progress)


FITTING: Fittable = TableFitting()
