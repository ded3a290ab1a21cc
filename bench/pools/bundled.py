"""The pools that come with the package.

Of ReplaySCM three sampled problems of each named stratum, in all four settings; of blickets four items of six suites.
"""

from __future__ import annotations

from pathlib import Path

from bench.benchmarks.registry import benchmark
from dsl.replayscm.pools.files import write_pool
from dsl.replayscm.sampling.problems import SETTINGS, sample_pool
from dsl.replayscm.sampling.strata import NAMED_STRATA

BUNDLED_SEED = 20
BUNDLED_PER_STRATUM = 3
BLICKET_SUITES = ("conjunctive", "disjunctive", "easy-3", "hard-3", "stochastic", "order-2-of-4")
BLICKETS_PER_SUITE = 4

_FOLDER = Path(__file__).resolve().parent.parent / "data"


def bundled_pool(setting: str) -> Path:
    """The bundled pool file of one of SETTINGS."""
    if setting not in SETTINGS:
        raise ValueError(f"unknown setting '{setting}'; known: {', '.join(SETTINGS)}")
    return _FOLDER / _file_name(setting)


def bundled_pools() -> tuple[Path, ...]:
    """All bundled pool files of ReplaySCM, in the order of SETTINGS."""
    return tuple(bundled_pool(setting) for setting in SETTINGS)


def bundled_blickets() -> Path:
    """The bundled pool file of blickets."""
    return _FOLDER / "sample_blickets.jsonl"


def write_bundled_blickets(folder: Path) -> None:
    """Draw the bundled blickets again into a folder; the same bytes unless the generator has changed."""
    path = folder / bundled_blickets().name
    benchmark("blickets").write_drawn(path, BLICKET_SUITES, BUNDLED_SEED, BLICKETS_PER_SUITE)


def write_bundled_pools(folder: Path) -> None:
    """Sample those of ReplaySCM again into a folder; the same bytes unless the sampler has changed."""
    for setting in SETTINGS:
        write_pool(sample_pool(NAMED_STRATA, BUNDLED_PER_STRATUM, BUNDLED_SEED, setting), folder / _file_name(setting))


def _file_name(setting: str) -> str:
    return f"sample_{setting.replace('-', '_')}.jsonl"
