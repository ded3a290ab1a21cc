"""What holds for all tests."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, settings

from bench.commands import options, progress
from tests.support.effort import ORDER, UNTIL, examples

NEVER = 1e6  # seconds

# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(100)
)
settings.load_profile("any machine")


def pytest_runtest_setup() -> None:
    if time.time() > UNTIL:
        pytest.skip("the time of this soak is over")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if ORDER:
        items.sort(key=lambda item: sha256(f"{ORDER} {item.path.name}".encode()).digest())


def pytest_sessionstart() -> None:
    """What is imported and collected stays: a third of the time of it would go into looking for garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: the collector need not look at them again and again, nor often."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=True, scope="session")
def one_core() -> Iterator[None]:
    """Commands in this process start no others, each of which would take a second to import everything, unless they
    are told to: `--workers 2`.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in (options, progress):
            patch.setattr(module, "usable_cores", lambda: 1)
        yield


@pytest.fixture(autouse=True)
def no_progress_lines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in this process say nothing of their progress, however slow the machine is and whatever is compiled."""
    if not request.module.__name__.endswith("test_progress"):
        monkeypatch.setattr(progress, "FIRST", NEVER)
