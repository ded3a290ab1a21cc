"""The suite of all four bundled pools, as the demo releases it, and a board of systems that mix its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrant.bench.commands.demo import SUITE_FILE
from calibrant.bench.lab.boards import write_systems
from calibrant.bench.suites.board import build_board
from calibrant.bench.suites.release import build_release
from tests.support.effort import SOAKING


@pytest.mark.skipif(not SOAKING, reason="it takes 20 s: a soak has it, and the demo's test has one of its pools")
def test_the_bundled_suite_is_released_and_has_a_board(tmp_path: Path) -> None:
    manifest = build_release(SUITE_FILE, tmp_path / "suite")
    assert [pool.num_items for pool in manifest.pools] == [24, 24, 24, 48]
    write_systems(tmp_path / "suite", manifest, tmp_path / "submissions", 3)
    summary = build_board(tmp_path / "suite", tmp_path / "submissions", tmp_path / "site")
    assert (summary.num_ranked, list(summary.refused), summary.damage) == (3, [], {})
