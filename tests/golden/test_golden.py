"""Every command's output is the one that is kept: a change of a byte is seen, and its diff belongs to its commit.

`python -m tests.golden` writes the outputs anew. Outputs on development pools, which are not distributed, are kept as
digests in `development.json`.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.golden.sessions import (
    DEVELOPMENT,
    DIGESTS,
    OUTPUTS,
    SESSIONS,
    Session,
    capture,
    capture_digests,
    read_digests,
)
from tests.support.effort import effort
from tests.support.shared import shared_file

MAX_DIFF_LINES = 40


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.name)
def test_outputs_are_those_that_are_kept(session: Session, tmp_path: Path) -> None:
    expected = {path.stem: path.read_text(encoding="utf-8") for path in (OUTPUTS / session.name).iterdir()}
    actual = dict(capture(session, tmp_path))
    assert list(actual) == sorted(expected), "lines were added or removed: python -m tests.golden"
    diff: list[str] = []
    for name, text in actual.items():
        diff += difflib.unified_diff(
            expected[name].splitlines(), text.splitlines(), f"kept/{name}", f"now/{name}", lineterm="", n=1
        )
    assert not diff, "\n".join(diff[:MAX_DIFF_LINES])


@pytest.mark.soak
@pytest.mark.parametrize("session", effort(DEVELOPMENT[::3], DEVELOPMENT), ids=lambda session: session.name)
def test_digests_on_development_pools_are_those_that_are_kept(session: Session, tmp_path: Path) -> None:
    """Of the settings that reveal most and least, 80 problems each; all four in a soak, and bundled ones above."""
    assert session.pool is not None
    shared_file(session.pool.name, part=session.pool.parent.name)
    assert capture_digests(session, tmp_path) == read_digests()[session.name], f"{DIGESTS.name} has other digests"
