"""Fitting of a CSV file as `calibrant fit` asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrant.bench.core.capabilities import Fittable
from calibrant.bench.replayscm.fitting.fit import Fit, fit


class TableFitting:
    """See bench.core.capabilities.Fittable."""

    def fit(
        self, data: Path, *, target: str | None, do: str | None, roots: Sequence[str] | None, max_parents: int
    ) -> Fit:
        return fit(data, target=target, do=do, roots=roots, max_parents=max_parents)


FITTING: Fittable = TableFitting()
