"""Fitting of a CSV file as `calibrant fit` asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrant.bench.core.capabilities import Fittable
from calibrant.bench.replayscm.fitting.fit import Fit, fit
from calibrant.bench.replayscm.fitting.networks import NetworkFit, learn_networks


class TableFitting:
    """See bench.core.capabilities.Fittable."""

    def fit(
        self, data: Path, *, target: str | None, do: str | None, roots: Sequence[str] | None, max_parents: int
    ) -> Fit:
        return fit(data, target=target, do=do, roots=roots, max_parents=max_parents)

    def networks(self, data: Path, *, do: str | None, score: str, best: int, max_parents: int | None) -> NetworkFit:
        return learn_networks(data, do=do, score=score, k=best, max_parents=max_parents)


FITTING: Fittable = TableFitting()
