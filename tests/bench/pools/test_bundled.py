"""The bundled pools of the benchmarks that generate theirs: made by one command, small, of several suites."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.registry import NAMES, benchmark_of, bundled_files, bundled_sample
from tests.bench.pools.sample_suites import BUNDLED_SEED, SAMPLES


@pytest.mark.parametrize("of", SAMPLES)
def test_a_bundled_pool_is_what_the_command_gives(of: str, tmp_path: Path) -> None:
    made, (suites, each) = tmp_path / bundled_sample(of).name, SAMPLES[of]
    line = ["generate", "--benchmark", of, "--strata", ",".join(suites), "--per-stratum", str(each)]
    assert main([*line, "--seed", str(BUNDLED_SEED), "--out", str(made)]) == 0
    assert made.read_bytes() == bundled_sample(of).read_bytes()


@pytest.mark.parametrize(("of", "strata"), [("blickets", 6), ("causalab", 3), ("causim", 12), ("logic", 5)])
def test_a_bundled_pool_is_small_and_of_several_suites(of: str, strata: int) -> None:
    path = bundled_sample(of)
    assert path.stat().st_size < 200_000
    pool = benchmark_of(path).items.read_pool(path)
    assert pool.name == f"sample_{of}"
    assert len(pool) == len(SAMPLES[of].suites) * SAMPLES[of].each
    assert len({item.stratum for item in pool.items}) == strata


def test_every_benchmark_has_a_bundled_pool() -> None:
    assert tuple(bundled_files()) == NAMES
    assert all(path.is_file() for paths in bundled_files().values() for path in paths)
