"""Cost of a first run: commands in separate processes, with an empty cache of kernels and with a full one.

A command alone: from an empty cache of its own. All commands: one after another, from one cache that was empty before
the first, so that every kernel is compiled once; that is what a version of the program costs somebody in all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from unittest.mock import patch

from calibrant.bench.core.registry import bundled_files
from calibrant.bench.lab.speed.memory import OURS, command_cost
from calibrant.bench.lab.speed.replayscm.scoring import write_responses
from calibrant.bench.lab.speed.report import QUICK, Options, Row
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.pools.files import read_pool

MAX_SECONDS = 20.0  # processor seconds: of a command with an empty cache, and of what all commands compile
MAX_WARM_SECONDS = {
    "run exact": 1.0,
    "list --why": 1.0,
    "audit": 3.0,
    "generate": 1.0,
    "fit": 1.0,
    "demo": 10.0,
}  # with a full one
TOPIC = "startup"
INSTANCES = 3  # instances of each pool: what is compiled does not depend on how many there are
RESPONSES = 12
TOGETHER = "all of these, one after another"

Commands = Mapping[str, tuple[str, ...]]


class Measured(NamedTuple):
    """Processor seconds of a command: with an empty cache of its own, in its turn among all, with a full cache."""

    empty: float
    turn: float
    full: float


def rows(options: Options) -> Iterator[Row]:
    """Yield a row a command and state; targets: what a command's first run costs, and what all commands compile."""
    with TemporaryDirectory(prefix="calibrant-startup-") as scratch:
        folder = Path(scratch)
        commands = _commands(folder, quick=options.discipline == QUICK)
        our_costs = _measure(OURS, commands, folder / "ours")
        rival = _measure(options.rival, commands, folder / "rival") if options.rival else {}
    for name, cost in our_costs.items():
        most_warm = MAX_WARM_SECONDS.get(name, MAX_SECONDS)
        yield _row(
            name,
            cost.empty,
            cost.full,
            is_met=cost.empty <= MAX_SECONDS and cost.full <= most_warm,
            most_warm=most_warm,
        )
        if name in rival:
            yield _rival_row(name, rival[name].empty, rival[name].full, cost.empty)
    turns, full = sum(cost.turn for cost in our_costs.values()), sum(cost.full for cost in our_costs.values())
    yield _row(TOGETHER, turns, full, is_met=turns - full <= MAX_SECONDS, most_warm=len(our_costs) * MAX_SECONDS)
    if rival.keys() == our_costs.keys():
        costs = rival.values()
        yield _rival_row(TOGETHER, sum(cost.turn for cost in costs), sum(cost.full for cost in costs), turns)


def _row(case: str, empty: float, full: float, *, is_met: bool, most_warm: float) -> Row:
    counts = {"empty": empty, "at most": MAX_SECONDS, "full": full, "full at most": most_warm, "more": empty - full}
    return Row(TOPIC, case, "this state", met=is_met, counts=counts)


def _rival_row(case: str, empty: float, full: float, our_cost: float) -> Row:
    counts = {"empty": empty, "full": full, "more": empty - full}
    return Row(TOPIC, case, "rival", ratio=empty / our_cost, counts=counts)


def _commands(folder: Path, *, quick: bool) -> Commands:
    """Return the commands of every benchmark, on the first few items of a bundled pool."""
    pools = {name: _few(next(iter(files)), folder / f"{name}.jsonl") for name, files in bundled_files().items()}
    hidden = next(path for path in bundled_files()["replayscm"] if "hidden_order" in path.name)
    pool, responses = _few(hidden, folder / "hidden_order.jsonl"), folder / "responses.jsonl"
    write_responses(read_pool(Path(pool)).problems, responses, RESPONSES, mixed=True)
    sibling_pools = {name: few for name, few in pools.items() if name != "replayscm"}
    one_worker, stratum = ("--workers", "1"), ("--strata", "hs_n6_easy_calibration")
    commands = {
        "run exact": ("run", "exact", pool, "--out", "runs", *one_worker),
        "score": ("score", pool, str(responses), "--out", "scores.jsonl", *one_worker),
        "alternatives": ("alternatives", "runs", "--sweep", pool, "--seeds", "2", "--out", "alternatives.jsonl"),
        "list --why": ("list", pool, "--why", "--limit", "1"),
        "audit": ("audit", pool, "--out", "audits", *one_worker),
        "harden": ("harden", pool, "--out", "hardened.jsonl", *one_worker),
        "generate": (
            *("generate", "--seed", "1", "--per-stratum", "1"),
            *stratum,
            "--out",
            "generated.jsonl",
            *one_worker,
        ),
        "run all": ("run", "all", pool, "--out", "all", *one_worker),
        **{f"{name}: run all": ("run", "all", few, "--out", name, *one_worker) for name, few in sibling_pools.items()},
        "fit": ("fit", _table(folder / "table.csv")),
        "demo": ("demo", "--out", "demo", *one_worker),
    }
    return {"run exact": commands["run exact"]} if quick else commands


def _table(path: Path) -> str:
    """Write a table of four columns, the last a function of the others."""
    rows = [(a, b, c, a & b | c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in [tuple("ABCD"), *rows]), encoding="utf-8")
    return str(path)


def run_commands() -> None:
    """Run these commands here and now: what they call is compiled, which the build of a wheel then writes."""
    from calibrant.bench.cli import main

    with TemporaryDirectory(prefix="calibrant-kernels-") as scratch, chdir(scratch):
        for line in _commands(Path(scratch), quick=False).values():
            with patch.object(sys, "argv", ["calibrant", *line]), suppress(SystemExit):
                main()


def _few(pool: Path, path: Path) -> str:
    lines = pool.read_text(encoding="utf-8").splitlines(keepends=True)[: INSTANCES + 1]
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


def _measure(python: Path, commands: Commands, folder: Path) -> Mapping[str, Measured]:
    """Measure every command that this state of the project has."""
    together = folder / "together"
    together.mkdir(mode=0o700, parents=True)
    turns = {name: _seconds(python, line, folder / "turns", together) for name, line in commands.items()}
    measured = {}
    for index, (name, line) in enumerate(commands.items()):
        with TemporaryDirectory(dir=folder) as scratch:
            empty = _seconds(python, line, folder / str(index), Path(scratch))
        full, turn = _seconds(python, line, folder / "again", together), turns[name]
        if turn is not None and empty is not None and full is not None:
            measured[name] = Measured(empty, turn, full)
    return measured


def _seconds(python: Path, line: tuple[str, ...], folder: Path, cache: Path) -> float | None:
    """Return the processor seconds of a command; None if another state of the project has no such command."""
    folder.mkdir(exist_ok=True)
    try:
        return command_cost(python, *line, folder=folder, environment={"NUMBA_CACHE_DIR": str(cache)}).processor
    except CalibrantError:
        if python == OURS:
            raise
        return None
