"""What holds for all tests."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from calibrant.bench import cli
from calibrant.bench.commands import options
from calibrant.dsl import kernel_cache
from tests.support.commands import FONT_CACHE
from tests.support.effort import UNTIL, examples

NEVER = 1e6  # seconds

# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(100)
)
settings.load_profile("any machine")


def pytest_runtest_setup() -> None:
    if time.time() > UNTIL:
        pytest.skip("the time of this soak is over")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order-seed", default="", metavar="SEED", help="shuffle the files and the tests of each file")
    parser.addoption("--one-in", default=1, type=int, metavar="N", help="collect a fixed N-th of the test files")
    parser.addoption("--passed-to", default="", metavar="FILE", help="write the tests and files that pass, one a line")
    parser.addoption("--but", default="", metavar="FILE", help="leave out what --passed-to wrote there")


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--passed-to")
    if file and not hasattr(config, "workerinput"):  # the controller of xdist hears of every test
        config.pluginmanager.register(PassedTests(Path(file)))


class PassedTests:
    """Writes the ids of the tests that pass, and the files in which all do.

    A test that is skipped, or expected to fail, has not passed.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.ids: list[str] = []
        self.unfinished = set[str]()  # files

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed or hasattr(report, "wasxfail"):
            self.unfinished.add(_file_of(report.nodeid))
        elif report.when == "call":
            self.ids.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        files = {*map(_file_of, self.ids)} - self.unfinished
        self.file.write_text("".join(f"{name}\n" for name in sorted([*self.ids, *files])), encoding="utf-8")


def _file_of(test: str) -> str:
    return test.partition("::")[0]


@cache
def _passed(file: str) -> frozenset[str]:
    return frozenset(Path(file).read_text(encoding="utf-8").split("\n"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files, so that what only they import is not imported either: collecting all takes 17 s."""
    if not collection_path.name.startswith("test_"):
        return None
    name, passed = collection_path.relative_to(config.rootpath).as_posix(), config.getoption("--but")
    if passed and name in _passed(passed):
        return True
    if config.getoption("--one-in") == 1:
        return None
    return bool(int.from_bytes(sha256(name.encode()).digest()) % config.getoption("--one-in")) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has passed elsewhere, and shuffle by digest: every xdist worker arrives at the same order.

    Files stay whole, for fixtures of modules. A test is known by its id with the case in it: where the shared vectors
    give a test its cases, the id that is skipped without them is another than those that it has with them.
    """
    seed, passed = config.getoption("--order-seed"), config.getoption("--but")

    def digest(text: str) -> bytes:
        return sha256(f"{seed} {text}".encode()).digest()

    if passed:
        ids = _passed(passed)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in ids])
        items[:] = [item for item in items if item.nodeid not in ids]
    if seed:
        items.sort(key=lambda item: (digest(_file_of(item.nodeid)), digest(item.nodeid)))


def pytest_sessionstart() -> None:
    """Exclude imported and collected objects from garbage collection, a third of the time of collecting tests."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: the collector need not look at them again and again, nor often."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=True, scope="session")
def one_core() -> Iterator[None]:
    """Start no workers from commands in this process unless `--workers 2` is given.

    Each of them would take a second to import everything.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options, "usable_cores", lambda: 1)
        yield


@pytest.fixture(autouse=True, scope="session")
def nothing_kept() -> Iterator[None]:
    """Keep no attributions from commands in this process: a test may have replaced what makes them."""
    folder = kernel_cache.user_folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_cache, "user_folder", lambda name: None if name == "attributions" else folder(name))
        yield


@pytest.fixture(autouse=True, scope="session")
def no_notices_of_first_use() -> Iterator[None]:
    """Silence what is printed by whichever test is the first to compile a kernel or to look for fonts.

    Commands in this process and its workers; those in processes of their own: `tests.support.commands`. What is
    printed while kernels are compiled has its tests, in such processes, in tests/dsl/test_kernel_cache.py.
    """
    fonts = logging.getLogger("matplotlib.font_manager")

    def is_other(record: logging.LogRecord) -> bool:
        return FONT_CACHE not in record.getMessage()

    fonts.addFilter(is_other)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "tell_compiling", lambda: None)
        yield
    fonts.removeFilter(is_other)


@pytest.fixture(autouse=True, scope="session")
def no_progress_lines() -> Iterator[None]:
    """Silence the lines of commands in this process that depend on how fast the machine is.

    For all tests at once: for each of 14,000 it took three seconds. tests/bench/test_progress.py takes it back.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DEFAULT_PACE", "QUICK_PACE"):
            patch.setattr(options, name, (NEVER, NEVER))
        yield
