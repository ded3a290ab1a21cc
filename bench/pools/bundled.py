"""The pools that come with the package: three sampled problems of each named stratum, in all four settings."""

from __future__ import annotations

from pathlib import Path

from dsl.replayscm.pools.files import write_pool
from dsl.replayscm.sampling.problems import SETTINGS, sample_pool
from dsl.replayscm.sampling.strata import NAMED_STRATA

BUNDLED_SEED = 20
BUNDLED_PER_STRATUM = 3

_FOLDER = Path(__file__).resolve().parent.parent / "data"


def bundled_pool(setting: str) -> Path:
    """The bundled pool file of one of SETTINGS."""
    if setting not in SETTINGS:
        raise ValueError(f"unknown setting '{setting}'; known: {', '.join(SETTINGS)}")
    return _FOLDER / _file_name(setting)


def bundled_pools() -> tuple[Path, ...]:
    """All bundled pool files, in the order of SETTINGS."""
    return tuple(bundled_pool(setting) for setting in SETTINGS)


def write_bundled_pools(folder: Path) -> None:
    """Sample the bundled pools again into a folder; the same bytes unless the sampler has changed."""
    for setting in SETTINGS:
        write_pool(sample_pool(NAMED_STRATA, BUNDLED_PER_STRATUM, BUNDLED_SEED, setting), folder / _file_name(setting))


def _file_name(setting: str) -> str:
    return f"sample_{setting.replace('-', '_')}.jsonl"
