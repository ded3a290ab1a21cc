"""What a first run costs: commands in processes of their own, with an empty cache of kernels and with a full one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.pools.bundled import bundled_files
from bench.speed.comparison import QUICK, Row
from bench.speed.options import Options
from bench.speed.processes import OURS, command_cost

MOST = 20.0  # processor seconds that an empty cache may cost
TOPIC = "startup"
INSTANCES = 3  # of the pool that is run and audited: what is compiled does not depend on how many there are
WARM_ROUNDS = 3


def rows(options: Options) -> Iterator[Row]:
    """Two rows a command, and two more where there is a rival; a target is met by what the first run adds."""
    pythons = {"this state": OURS} | ({"rival": options.rival} if options.rival else {})
    with TemporaryDirectory(prefix="calibrant-startup-") as scratch:
        folder = Path(scratch)
        for name, line in _commands(folder, quick=options.discipline == QUICK).items():
            for state, python in pythons.items():
                yield from _measured(name, line, state, python, folder)


def _commands(folder: Path, *, quick: bool) -> Mapping[str, tuple[str, ...]]:
    pool = next(path for path in bundled_files()["replayscm"] if "hidden_order" in path.name)
    lines = pool.read_text(encoding="utf-8").splitlines(keepends=True)[: INSTANCES + 1]
    few = folder / "few.jsonl"
    few.write_text("".join(lines), encoding="utf-8")
    commands = {
        "run exact": ("run", "exact", str(few), "--out"),
        "audit": ("audit", str(few), "--out"),
        "run all": ("run", "all", str(few), "--out"),
        "demo": ("demo", "--out"),
    }
    return {"run exact": commands["run exact"]} if quick else commands


def _measured(name: str, line: tuple[str, ...], state: str, python: Path, folder: Path) -> Iterator[Row]:
    with TemporaryDirectory(dir=folder) as cache:
        seconds = []
        for index in range(1 + WARM_ROUNDS):
            out = folder / f"{state}-{name}-{index}".replace(" ", "-")
            cost = command_cost(python, *line, str(out), folder=folder, environment={"NUMBA_CACHE_DIR": cache})
            seconds.append(cost.processor)
    empty, full = seconds[0], median(seconds[1:])
    more = empty - full
    ours = python == OURS
    counts = {"empty": empty, "full": full, "more": more, "at most": MOST}
    yield Row(TOPIC, name, state, met=more <= MOST if ours else None, counts=counts)
