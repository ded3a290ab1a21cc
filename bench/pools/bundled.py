"""The pools that come with the package.

Of ReplaySCM three sampled problems of each named stratum, in all four settings. Of the others what
`calibrant generate --benchmark B --strata SUITE,... --seed 20 --per-stratum N --out sample_B.jsonl` gives;
SAMPLES has the suites and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from calibrant.bench.core.registry import DEFAULT
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.dsl.replayscm.sampling.problems import SETTINGS, sample_pool
from calibrant.dsl.replayscm.sampling.strata import NAMED_STRATA

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
}

_FOLDER = Path(__file__).resolve().parent.parent / "data"


def bundled_pool(setting: str) -> Path:
    """The bundled pool file of one of SETTINGS."""
    if setting not in SETTINGS:
        raise ValueError(f"unknown setting '{setting}'; known: {', '.join(SETTINGS)}")
    return _FOLDER / _file_name(setting)


def bundled_pools() -> tuple[Path, ...]:
    """All bundled pool files of ReplaySCM, in the order of SETTINGS."""
    return tuple(bundled_pool(setting) for setting in SETTINGS)


def bundled_sample(of: str) -> Path:
    """The bundled pool file of a benchmark of SAMPLES."""
    return _FOLDER / f"sample_{of}.jsonl"


def bundled_files() -> Mapping[str, tuple[Path, ...]]:
    """All bundled pool files by the name of their benchmark, in the order of benchmarks."""
    return {DEFAULT: bundled_pools(), **{of: (bundled_sample(of),) for of in SAMPLES}}


def write_bundled_pools(folder: Path) -> None:
    """Bundled those of ReplaySCM again into a folder; the same bytes unless the sampler has changed."""
    for setting in SETTINGS:
        write_pool(sample_pool(NAMED_STRATA, BUNDLED_PER_STRATUM, BUNDLED_SEED, setting), folder / _file_name(setting))


def _file_name(setting: str) -> str:
    return f"sample_{setting.replace('-', '_')}.jsonl"
