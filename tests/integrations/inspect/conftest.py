"""Small pools of every benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrant.bench.core.registry import NAMES, benchmark
from calibrant.bench.pools.generated import write_drawn
from calibrant.dsl.replayscm.generation.problems import sample_pool
from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA
from calibrant.dsl.replayscm.pools.files import write_pool

SUITES = {
    "blickets": ("conjunctive", "disjunctive"),
    "causalab": ("3nodes", "4nodes"),
    "causim": ("chain", "star"),
    "logic": ("exact", "missing"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Inspect and what it brings warn of themselves; ours is tested elsewhere with warnings as errors."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session", params=NAMES)
def pool(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a pool of each benchmark, four items; the file's name is the benchmark's."""
    return pool_of(request.param, tmp_path_factory.mktemp("pool"))


def pool_of(name: str, folder: Path) -> Path:
    path = folder / f"{name}.jsonl"
    if name == "replayscm":
        write_pool(sample_pool(NAMED_STRATA[:4], 1, 3, "ordered"), path)
    else:
        write_drawn(benchmark(name), path, SUITES[name], 3, 2)
    return path
