"""How the pools that come with the package were made.

Of ReplaySCM three sampled problems of each named stratum, in all four settings. Of the others what
`calibrant generate --benchmark B --strata SUITE,... --seed 20 --per-stratum N --out sample_B.jsonl` gives;
SAMPLES has the suites and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from calibrant.dsl.replayscm.generation.problems import SETTINGS, sample_pool
from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA
from calibrant.dsl.replayscm.pools.files import write_pool

BUNDLED_SEED = 20
BUNDLED_PER_STRATUM = 3


class Bundled(NamedTuple):
    """Suites, and how many items of each."""

    suites: tuple[str, ...]
    each: int


SAMPLES: Mapping[str, Bundled] = {
    "blickets": Bundled(("conjunctive", "disjunctive", "easy-3", "hard-3", "stochastic", "order-2-of-4"), 4),
    "causalab": Bundled(("3nodes", "4nodes", "5nodes", "4nodes_quad_hard", "4nodes_hidden_n1", "4nodes_freqparent"), 4),
    "causim": Bundled(("chain", "tree", "layered", "inverted_star"), 12),
    "logic": Bundled(("exact", "noisy", "missing", "loops", "large"), 3),
}


def write_bundled_pools(folder: Path) -> None:
    """Write those of ReplaySCM again into a folder; the same bytes unless the sampler has changed."""
    for setting in SETTINGS:
        pool = sample_pool(NAMED_STRATA, BUNDLED_PER_STRATUM, BUNDLED_SEED, setting)
        write_pool(pool, folder / f"sample_{setting.replace('-', '_')}.jsonl")
