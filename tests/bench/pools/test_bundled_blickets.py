"""The bundled pool of blickets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bench.benchmarks.registry import benchmark, benchmark_of
from bench.pools.bundled import BLICKET_SUITES, bundled_blickets, write_bundled_blickets


def test_the_bundled_blickets_are_what_their_seed_gives(tmp_path: Path) -> None:
    write_bundled_blickets(tmp_path)
    assert (tmp_path / bundled_blickets().name).read_bytes() == bundled_blickets().read_bytes()


def test_the_bundled_blickets_are_small_and_of_six_suites() -> None:
    path = bundled_blickets()
    assert benchmark_of(path) is benchmark("blickets")
    pool = benchmark("blickets").read_pool(path)
    assert pool.name == "sample_blickets"
    assert Counter(item.stratum for item in pool.items) == dict.fromkeys(BLICKET_SUITES, 4)
    assert path.stat().st_size < 20_000
