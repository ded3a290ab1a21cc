"""Output of sessions as files, captured and compared."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from calibrant.bench.cli import main
from tests.golden.sessions import Session
from tests.support.commands import PROGRESS

# --- Run a session and return its outputs as text, with times and dates masked ----------------------------------------
MAX_PART_CHARS = 12_000  # a longer part is kept as a digest: a report's page has 500,000 characters
ENVIRONMENT = {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}

MASKS = (
    (re.compile(r'("(?:\w*[sS]econds\w*|elapsed|created|date\w*)": ?)(?:-?[\d.]+(?:e-?\d+)?|"[^"]*")'), r"\1<time>"),
    (re.compile(r"\b\d+(?:\.\d+)? s\b"), "<time> s"),
    (re.compile(r"\b20\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|\+00:00)?)?"), "<date>"),
)


def capture(session: Session, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the masked output of each line of a session, run in an empty folder."""
    first_id = _write_pool(session, folder) if session.pool else ""
    for name, text in session.files:
        (folder / name).write_text(text, encoding="utf-8")
    before = _contents(folder)
    for number, line in enumerate(session.lines, 1):
        command, _, source = line.partition(" < ")
        arguments = [
            path for argument in shlex.split(command) for path in _expand(argument.format(id=first_id), folder)
        ]
        entered = (folder / source).read_text(encoding="utf-8") if source else ""
        code, printed, errors = _call(arguments, folder, entered)
        if code == 0 and line.startswith("run "):
            _fix_times(folder)
        after = _contents(folder)
        changed = {path: text for path, text in after.items() if before.get(path) != text}
        before = after
        yield f"{number:02d}-{_file_name(line)}", _document(line, code, printed, errors, changed, folder)


def capture_digests(session: Session, folder: Path) -> dict[str, str]:
    """Return the SHA-256 digest of each line's output, shortened to 16 digits."""
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in capture(session, folder)}


def _expand(argument: str, folder: Path) -> list[str]:
    """Return the files that a pattern with `*` names, as a shell would."""
    if "*" not in argument:
        return [argument]
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob(argument))


def _write_pool(session: Session, folder: Path) -> str:
    assert session.pool is not None
    if not session.num_items:
        (folder / "pool.jsonl").symlink_to(session.pool)
        return ""
    lines = session.pool.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "pool.jsonl").write_text("".join(lines[: 1 + session.num_items]), encoding="utf-8")
    item: dict[str, str] = json.loads(lines[1])
    return item.get("id") or item["instanceId"]


def _fix_times(folder: Path) -> None:
    """Give every answer of a run the same time, so that what later lines compute from times can be compared."""
    for path in folder.glob("*/records.jsonl"):
        path.write_text(re.sub(r'("seconds":)[^,}]+', r"\g<1>0.25", path.read_text(encoding="utf-8")), encoding="utf-8")
    if (folder / "runs").exists():
        _write_predictions(folder)


def _write_predictions(folder: Path) -> None:
    """Write the run's answers as a model's predictions, one of them unreadable."""
    stored = (folder / "runs" / "records.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in stored.splitlines()]
    lines = [{"instanceId": record["instance"], "response": json.dumps(record["answer"])} for record in records]
    lines[-1]["response"] = "I cannot help."
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "predictions.jsonl").write_text(text, encoding="utf-8")


def _call(arguments: list[str], folder: Path, entered: str) -> tuple[int, str, str]:
    printed, errors = io.StringIO(), io.StringIO()
    present, start, stream = os.environ.copy(), Path.cwd(), sys.stdin
    sys.stdin = io.StringIO(entered)
    os.environ.update(ENVIRONMENT)
    os.chdir(folder)
    try:
        with redirect_stdout(printed), redirect_stderr(errors):
            code = main(arguments)
    finally:
        sys.stdin = stream
        os.chdir(start)
        os.environ.clear()
        os.environ.update(present)
    return code, printed.getvalue(), PROGRESS.sub("", errors.getvalue())


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def _file_name(line: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", line.lower()).strip("-")[:60].strip("-")


def _document(line: str, code: int, printed: str, errors: str, files: dict[str, bytes], folder: Path) -> str:
    parts = [("standard output", printed), ("standard error", errors)]
    parts += [(name, _text(content)) for name, content in sorted(files.items())]
    shown = "".join(f"--- {name}\n{_kept(_masked(text, folder))}" for name, text in parts if text)
    return f"$ calibrant {line}\nexit code {code}\n{shown}"


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return f"{len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}\n"


def _masked(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "<folder>")
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    return text


def _kept(text: str) -> str:
    if len(text) > MAX_PART_CHARS:
        return f"{text.count(chr(10))} lines, sha256 {hashlib.sha256(text.encode()).hexdigest()}\n"
    return text if text.endswith("\n") else f"{text}\n<no newline at the end>\n"


# --- Where golden outputs are kept ------------------------------------------------------------------------------------
OUTPUTS = Path(__file__).parent / "outputs"
DIGESTS = Path(__file__).parent / "development.json"


def read_digests() -> dict[str, dict[str, str]]:
    """Return the digest of each line's output by session, empty before the first update."""
    digests: dict[str, dict[str, str]] = json.loads(DIGESTS.read_text(encoding="utf-8")) if DIGESTS.exists() else {}
    return digests
