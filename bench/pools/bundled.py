"""The pools that come with the package, each in its benchmark's folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from calibrant.bench.core.names import FIRST
from calibrant.bench.core.registry import benchmarks

_BENCH = Path(__file__).resolve().parent.parent


def bundled_files() -> Mapping[str, tuple[Path, ...]]:
    """Return the bundled pool files, without extras, by the name of their benchmark, in the order of benchmarks."""
    return {of.name: tuple(_file(of.name, pool) for pool in of.bundled) for of in benchmarks()}


def bundled_sample(name: str) -> Path:
    """Return the bundled pool file of that name: a benchmark's, a setting of the first one, or an extra."""
    benchmark_by_pool = {pool: of.name for of in benchmarks() for pool in (*of.bundled, *of.bundled_extras)}
    name = name.removeprefix("sample_") if name not in benchmark_by_pool else name
    if name not in benchmark_by_pool:
        raise ValueError(f"unknown pool '{name}'; known: {', '.join(benchmark_by_pool)}")
    return _file(benchmark_by_pool[name], name)


def bundled_pool(setting: str) -> Path:
    """Return the bundled pool file of one of the first benchmark's settings, as `generate --setting` names them."""
    settings = [path.stem.removeprefix("sample_").replace("_", "-") for path in bundled_pools()]
    if setting not in settings:
        raise ValueError(f"unknown setting '{setting}'; known: {', '.join(settings)}")
    return bundled_pools()[settings.index(setting)]


def bundled_pools() -> tuple[Path, ...]:
    """Return the bundled pool files of the first benchmark, in the order of its settings."""
    return bundled_files()[FIRST]


def _file(benchmark: str, pool: str) -> Path:
    return _BENCH / benchmark / "data" / f"sample_{pool}.jsonl"
