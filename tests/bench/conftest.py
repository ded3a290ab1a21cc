from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tests.bench.commands.lines import Files


@pytest.fixture(scope="session")
def files_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Files]:
    """Return what commands read of a benchmark, made once: no test changes it."""
    return cache(lambda name: Files.made(name, tmp_path_factory.mktemp(name)))
