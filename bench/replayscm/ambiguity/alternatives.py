"""Train-exact SCMs of runs that are not gold, as `calibrant alternatives` collects them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from calibrant.bench.protocols.base import Protocol
from calibrant.bench.replayscm.pools.distinct_models import FoundModels
from calibrant.bench.replayscm.rows.structures import BnlearnThenFit
from calibrant.bench.runs.records import Record, folder_records
from calibrant.dsl.errors import CalibrantError


class ScmAlternatives:
    """Implements AlternativesCollectable (bench.pools.capabilities)."""

    def sweep_protocol(self, seed: int) -> Protocol:
        return BnlearnThenFit(seed=seed)

    def collect(self, folders: Sequence[Path]) -> FoundModels:
        return FoundModels(lambda: map(_require_scm, chain.from_iterable(map(folder_records, folders))))


def _require_scm(record: Record) -> Record:
    if isinstance(record.benchmark, str):
        raise CalibrantError(f"a run on a pool of {record.benchmark}; alternatives are SCMs, answers to ReplaySCM")
    return record


ALTERNATIVES = ScmAlternatives()
