"""Write the golden outputs anew: `python -m tests.golden [SESSION...]`; the diff shows what a change did."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

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


def update_outputs(session: Session) -> None:
    """Write the outputs of a session and delete those whose lines are gone."""
    folder = OUTPUTS / session.name
    folder.mkdir(parents=True, exist_ok=True)
    stale = set(folder.iterdir())
    with tempfile.TemporaryDirectory() as scratch:
        for name, text in capture(session, Path(scratch)):
            path = folder / f"{name}.txt"
            path.write_text(text, encoding="utf-8")
            stale.discard(path)
    for path in stale:
        path.unlink()


def update_digests(session: Session) -> None:
    """Write the digests of a session on a development pool, if that is at hand."""
    assert session.pool is not None
    if not session.pool.exists():
        print(f"{session.name}: {session.pool.name} is not at hand, its digests stay")
        return
    with tempfile.TemporaryDirectory() as scratch:
        digests = read_digests() | {session.name: capture_digests(session, Path(scratch))}
    DIGESTS.write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main(names: list[str]) -> None:
    """Update the named sessions, or all."""
    for session in SESSIONS:
        if not names or session.name in names:
            update_outputs(session)
    for session in DEVELOPMENT:
        if not names or session.name in names:
            update_digests(session)


if __name__ == "__main__":
    main(sys.argv[1:])
