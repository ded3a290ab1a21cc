"""ReplaySCM: whole commands on a pool of one problem, against variables.

Problems are those of `calibrant generate`, their order hidden; a command has MAX_SECONDS. What comes before a command,
such as the run whose records it reads, is not timed.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from calibrant.bench.cli import BAD_INPUT, main
from calibrant.bench.lab.limits.sweep import Ask, Curve, Sweep

VARIABLES = (12, 20, 30, 40)
MAX_SECONDS = 120.0
PROBLEMS = 3


def sweeps() -> tuple[Sweep, ...]:
    curves = [Curve(name, VARIABLES, partial(_ask_on_pool, make)) for name, make in COMMANDS.items()]
    title = "commands on one problem, order hidden"
    return (Sweep("commands", title, "variables", curves, PROBLEMS, MAX_SECONDS, apart=True),)


def _show(pool: Path, out: Path) -> list[str]:
    name = json.loads(pool.read_text(encoding="utf-8").splitlines()[1])["id"]
    return ["show", str(pool), name, "--gold"]


def _run(pool: Path, out: Path) -> list[str]:
    return ["run", "exact", str(pool), "--out", str(out / "run"), "--workers", "1"]


def _score(pool: Path, out: Path) -> list[str]:
    records, predictions = _write_answers(pool).read_text(encoding="utf-8").splitlines(), out / "predictions.jsonl"
    records_read = [json.loads(line) for line in records]
    lines = [
        {"instanceId": entry["instance"], "model": "exact", "response": json.dumps(entry["answer"])}
        for entry in records_read
    ]
    predictions.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return ["score", str(pool), str(predictions), "--workers", "1"]


def _alternatives(pool: Path, out: Path) -> list[str]:
    return ["alternatives", str(_write_answers(pool).parent), "--out", str(out / "alternatives.jsonl")]


def _pairs(pool: Path, out: Path) -> list[str]:
    return ["pool", "alternatives", str(pool), str(out / "items.jsonl")]


def _audit(pool: Path, out: Path) -> list[str]:
    return ["audit", str(pool), "--workers", "1"]


def _harden(pool: Path, out: Path, *more: str) -> list[str]:
    return ["harden", str(pool), "--out", str(out / "hardened.jsonl"), "--workers", "1", *more]


COMMANDS: dict[str, Callable[[Path, Path], list[str]]] = {
    "show": _show,
    "run exact": _run,
    "score": _score,
    "alternatives": _alternatives,
    "pool alternatives": _pairs,
    "audit": _audit,
    "harden --mode extra-worlds": lambda pool, out: _harden(pool, out, "--mode", "extra-worlds"),
    "harden --mode cex": _harden,
    "harden --goal heldout-agreement": lambda pool, out: _harden(pool, out, "--goal", "heldout-agreement"),
}


def _ask_on_pool(make: Callable[[Path, Path], list[str]], num_variables: int, seed: int) -> Ask:
    line = make(_pool(num_variables, seed), Path(mkdtemp(dir=_folder().name)))
    return lambda: _done(line)


@cache
def _folder() -> TemporaryDirectory[str]:
    """Return a folder that is removed when this process ends."""
    return TemporaryDirectory(prefix="limits-")


@cache
def _pool(num_variables: int, seed: int) -> Path:
    pool = Path(mkdtemp(dir=_folder().name)) / "pool.jsonl"
    arguments = ["--strata", f"large_n{num_variables}", "--per-stratum", "1", "--seed", str(seed)]
    if why := _done(["generate", *arguments, "--out", str(pool), "--workers", "1"]):
        raise ValueError(why)
    return pool


@cache
def _write_answers(pool: Path) -> Path:
    """Return the records of a run on the pool."""
    if why := _done(_run(pool, pool.parent)):
        raise ValueError(why)
    return pool.parent / "run" / "records.jsonl"


def _done(line: list[str]) -> str | None:
    """Why a command refused; None if it ended with an answer, also one that a check fails."""
    output = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(output):
        code = main(line)
    return output.getvalue().strip().splitlines()[-1] if code >= BAD_INPUT else None
