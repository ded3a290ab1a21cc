"""Command lines whose outputs are kept, in sessions that build on each other; outputs captured and compared."""

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
from dataclasses import dataclass
from pathlib import Path

from calibrant.bench.cli import main
from tests.support.commands import PROGRESS
from tests.support.shared import shared_folder

# --- Command lines whose outputs are kept: every command on every benchmark, in sessions that build on each other -----
# A session starts in an empty folder with its pool as `pool.jsonl` (the first items of a bundled pool), and runs its
# lines in order; a line's golden output is its exit code, its streams and every file that it wrote or changed.
CHECKOUT = Path(__file__).resolve().parents[2]
DATA = CHECKOUT / "bench"
SHARED = shared_folder() or CHECKOUT.parent / "shared"


@dataclass(frozen=True)
class Session:
    """A pool, how many of its first items are used (0: all) and lines without `calibrant`; `{id}`: the first item.

    A line may end with `< FILE`: standard input. files: name and text of those that are there from the start
    """

    name: str
    pool: Path | None
    num_items: int
    lines: tuple[str, ...]
    files: tuple[tuple[str, str], ...] = ()


EVERY_BENCHMARK = (
    "pool check pool.jsonl",
    "pool check pool.jsonl --json",
    "pool stats pool.jsonl",
    "pool stats pool.jsonl --json",
    "show pool.jsonl {id}",
    "show pool.jsonl {id} --gold",
    "show pool.jsonl {id} --json",
    "show pool.jsonl no-such-item",
    "prompts pool.jsonl --out prompts.jsonl",
    "prompts pool.jsonl --text --limit 1",
    "run exact pool.jsonl --out runs --workers 1",
    "run exact pool.jsonl --out runs --workers 1 --json",
    "run no-such-protocol pool.jsonl --out runs",
    "table runs",
    "table runs --json",
    "table runs --columns all",
    "table runs --attribution --pool pool.jsonl",
    "table runs --attribution --pool pool.jsonl --json",
    "report runs --no-times",
    "report runs --no-times --out report.html",
    "report runs --no-times --out report.md",
    "report runs --no-times --out report.csv",
    "report runs --no-times --out report.tex",
    "report runs --no-times --no-paper --attribution --pools pool.jsonl",
    "score pool.jsonl predictions.jsonl --out verdicts.jsonl --workers 1",
    "score pool.jsonl predictions.jsonl --json --workers 1",
    "score pool.jsonl predictions.jsonl --skip-unknown --id-field no_such_field",
    "table verdicts.jsonl",
    "report --predictions predictions.jsonl --pools pool.jsonl --no-times",
    "audit pool.jsonl --workers 1",
    "audit pool.jsonl --workers 1 --json --certificates certificates",
    "pool convert pool.jsonl converted.jsonl",
    "pool convert pool.jsonl converted.yaml",
    "verify certificates/* pool.jsonl",
)

REPLAYSCM = (
    *EVERY_BENCHMARK,
    "run posterior,first-found pool.jsonl --out more --workers 1 --limit 2",
    "audit pool.jsonl --workers 1 --out audits --html audit.html --fail-on ambiguous --limit 3",
    "audit pool.jsonl --workers 1 --details --max-parents 3 --limit 2",
    "separate pool.jsonl {id} --members 3",
    "separate pool.jsonl {id} --json",
    "harden pool.jsonl --out hard.jsonl --report hard_report.jsonl --workers 1 --limit 2",
    "harden pool.jsonl --out more_worlds.jsonl --mode extra-worlds --seed 3 --workers 1 --limit 2",
    "alternatives runs --out alternatives.jsonl",
    "pool alternatives pool.jsonl alternative_items.jsonl --seed 2",
    "report runs more --no-times --audits audits --plots plots",
)

AUDIT_WITH_RECORDS = (
    "audit pool.jsonl --workers 1 --out audits --html audit.html --limit 3",
    "audit pool.jsonl --workers 1 --out audits --fail-on ambiguous --limit 4",
)

INTERACTIVE = (
    *EVERY_BENCHMARK,
    "show pool.jsonl {id} --run runs",
    "show pool.jsonl {id} --run runs --html episode.html",
    "audit pool.jsonl --fail-on ambiguous",
    *AUDIT_WITH_RECORDS,
)

CAUSIM = (
    *EVERY_BENCHMARK,
    "harden pool.jsonl --out hard.jsonl --workers 1 --limit 3",
    "training pool.jsonl --out training.jsonl --limit 3",
    "show pool.jsonl {id} --html graph.html",
    *AUDIT_WITH_RECORDS,
)

# its table is narrow enough to show times, which differ; the line with --json masks them
LOGIC = tuple(line for line in EVERY_BENCHMARK if line != "run exact pool.jsonl --out runs --workers 1")

PLAYED = (
    "pool check pool.jsonl",
    "pool stats pool.jsonl",
    "show pool.jsonl {id}",
    "prompts pool.jsonl --text --limit 1",
    "play pool.jsonl --jsonl < actions.jsonl",
    "play pool.jsonl {id} --html played.html < typed.txt",
    "run greedy,random,abstain pool.jsonl --out runs --workers 1",
    "table runs --columns episodes",
    "table runs --attribution --pool pool.jsonl",
    "show pool.jsonl {id} --run runs --html episode.html",
    "report runs --no-times --pools pool.jsonl --out report.html",
    "score pool.jsonl predictions.jsonl --workers 1",
    "audit pool.jsonl --workers 1 --certificates certificates",
    "verify certificates/* pool.jsonl",
)
WORLDS = ({"X1": 0, "X5": 1}, {"X1": 1}, {"X5": 1}, {"X5": 0}, {"X7": 1}, {"X1": 0})  # one is refused: there is no X7
GOLD = {"X1": "(or X5 (not X2))", "X4": "(or X1 (not X5))", "X5": "(iff X2 (not (or X2 X6)))"}
ACTIONS = (*({"do": do} for do in WORLDS), {"submit": {"mechanisms": GOLD}})
PLAYED_FILES = (
    ("actions.jsonl", "".join(f"{json.dumps(action)}\n" for action in ACTIONS)),
    (
        "typed.txt",
        'do X1=1, X5=0\ndo X1=2\n{"do": {}}\nhello\n{"submit": {"mechanisms": {"X1": "X2", "X4": "X2", "X5": "X2"}}}\n',
    ),
)

BENCHMARKS = ("replayscm", "blickets", "causalab", "causim")
COMMANDS = (
    *("run", "protocols", "score", "table", "report", "show", "prompts", "sample", "demo", "audit", "alternatives"),
    *("harden", "separate", "verify", "generate", "export", "play", "schema", "training", "pool"),
    *("pool check", "pool stats", "pool convert", "pool alternatives"),
)

WITHOUT_POOL = (
    "--help",
    *(f"{command} --help" for command in COMMANDS),
    "protocols",
    "protocols --json",
    *(
        f"schema {kind} --benchmark {benchmark}"
        for kind in ("records", "verdicts", "audits", "certificates", "pools")
        for benchmark in BENCHMARKS
    ),
    "sample --seed 1 --out sampled.jsonl --strata hs_n7_anchor_plus --per-stratum 1",
    "generate --seed 2 --out replayscm.jsonl --strata hs_n7_anchor_plus --per-stratum 1 --workers 1",
    *(
        f"generate --benchmark {benchmark} --seed 1 --out {benchmark}.jsonl --per-stratum 1"
        for benchmark in BENCHMARKS[1:]
    ),
)

SESSIONS = (
    Session("replayscm-hidden-order", DATA / "replayscm" / "data" / "sample_hidden_order.jsonl", 4, REPLAYSCM),
    Session("replayscm-hidden-roots", DATA / "replayscm" / "data" / "sample_hidden_roots.jsonl", 3, EVERY_BENCHMARK),
    Session("replayscm-block", DATA / "replayscm" / "data" / "sample_block.jsonl", 3, EVERY_BENCHMARK),
    Session("replayscm-ordered", DATA / "replayscm" / "data" / "sample_ordered.jsonl", 3, EVERY_BENCHMARK),
    Session("blickets", DATA / "blickets" / "data" / "sample_blickets.jsonl", 12, INTERACTIVE),
    Session("causalab", DATA / "causalab" / "data" / "sample_causalab.jsonl", 8, INTERACTIVE),
    Session("causim", DATA / "causim" / "data" / "sample_causim.jsonl", 24, CAUSIM),
    Session("logic", DATA / "logic" / "data" / "sample_logic.jsonl", 4, LOGIC),
    Session(
        "replayscm-episodes",
        DATA / "replayscm" / "data" / "sample_replayscm_episodes.jsonl",
        2,
        PLAYED,
        PLAYED_FILES,
    ),
    Session("without-pool", None, 0, WITHOUT_POOL),
)

ON_DEVELOPMENT_POOLS = (
    # the official file takes a second to read: the other lines read what it becomes
    "pool convert pool.jsonl converted.jsonl",
    "pool check converted.jsonl --json",
    "pool stats converted.jsonl --json",
    "prompts converted.jsonl --out prompts.jsonl",
    "run exact,first-found converted.jsonl --out runs --workers 1",
    "table runs --columns all",
    "table runs --json",
    "report runs --no-times --out report.html",
    "audit converted.jsonl --workers 1 --limit 3 --json --certificates certificates",
)

DEVELOPMENT = tuple(
    Session(
        f"development-{setting}", SHARED / "replayscm" / f"pool_dev_{setting}.runtime.yaml", 0, ON_DEVELOPMENT_POOLS
    )
    for setting in ("ordered", "block", "hidden_order", "hidden_roots")
)


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
