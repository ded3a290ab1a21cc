from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.suites import build_apart, write_specification


@pytest.fixture(scope="session")
def specification(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_specification(tmp_path_factory.mktemp("specification"))


@pytest.fixture(scope="session")
def suite(specification: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a release of the small suite, built in a process with hash seed 1; tests change copies of it."""
    out = tmp_path_factory.mktemp("release") / "two-pools-1.0"
    build_apart(specification, out, 1)
    return out
