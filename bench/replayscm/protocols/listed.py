"""Protocols of ReplaySCM in the order in which `all` runs them."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.bench.protocols.base import Protocol
from calibrant.bench.replayscm.extended.protocols import EXTENDED
from calibrant.bench.replayscm.protocols.discovery import DISCOVERY
from calibrant.bench.replayscm.protocols.exact import Exact, ExactIntegerProgram
from calibrant.bench.replayscm.protocols.posterior import MostPosterior
from calibrant.bench.replayscm.protocols.score_portfolios import SCORE_PROTOCOLS
from calibrant.bench.replayscm.protocols.simple import SIMPLE
from calibrant.bench.replayscm.protocols.staged import StagedExactSearch
from calibrant.dsl.replayscm.item import Pool

PLAIN = (Exact, ExactIntegerProgram, MostPosterior, StagedExactSearch, *SCORE_PROTOCOLS, *DISCOVERY, *SIMPLE)
ROWS = (*PLAIN, *EXTENDED)


def applicable_rows(pools: Sequence[Pool]) -> Sequence[type[Protocol]]:
    """Return all rows where a pool has episodes, noise or hidden variables, else those of plain items."""
    return ROWS if any(pool.has_extensions for pool in pools) else PLAIN
