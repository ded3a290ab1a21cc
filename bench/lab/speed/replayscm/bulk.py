"""A million responses to a pool of 320 instances through `calibrant score`, as a process of its own.

One file repeats itself as samples of models do, the other has no mechanism of an instance twice, so that nothing that
was kept helps. Targets are those of a machine with two cores, and of the file that repeats itself. The other file, and
both with verdicts written, are a tenth as long; a rival scores a twentieth of the million.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from calibrant.bench.commands.options import usable_cores
from calibrant.bench.lab.speed.comparison import Options, Row
from calibrant.bench.lab.speed.memory import OURS, Cost, command_cost
from calibrant.bench.lab.speed.replayscm import candidates
from calibrant.bench.lab.speed.replayscm.scoring import write_large_pool, write_responses

TOPIC = "bulk"
INSTANCES = 320
RESPONSES = 1_000_000
SHARE, RIVAL_SHARE = 10, 20
MAX_SECONDS, MAX_BYTES = 90, 500_000_000
MEGABYTE = 1_000_000


def rows(options: Options) -> Iterator[Row]:
    count = RESPONSES if options.scale == 1 else INSTANCES  # a glance shows that it works
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        pool = folder / "pool.jsonl"
        problems = write_large_pool(options.problems, pool, INSTANCES)
        responses, fewer, verdicts = (folder / f"{name}.jsonl" for name in ("responses", "fewer", "verdicts"))
        for mixed, case in ((True, "as models repeat themselves"), (False, "all mechanisms new")):
            number = count if mixed else max(INSTANCES, count // SHARE)
            different = write_responses(problems, responses, number, mixed=mixed)
            cost = command_cost(OURS, "score", str(pool), str(responses), folder=folder)
            counts: dict[str, float] = {"different responses": different}
            yield _row(case, "calibrant score", number, cost, counts, goal=number >= RESPONSES)
            if options.scale == 1:  # a glance needs no second process
                number = _beginning(responses, fewer, max(INSTANCES, count // SHARE))
                cost = command_cost(OURS, "score", str(pool), str(fewer), "--out", str(verdicts), folder=folder)
                yield _row(case, "calibrant score --out", number, cost, {})
                verdicts.unlink()
            if options.rival is not None:
                number = _beginning(responses, fewer, max(INSTANCES, count // RIVAL_SHARE))
                cost = command_cost(options.rival, "score", str(pool), str(fewer), folder=folder)
                yield _row(case, "the rival, a part", number, cost, {})


def _beginning(source: Path, part: Path, max_bytes: int) -> int:
    """Copy the first lines of a file; return how many."""
    with source.open("rb") as lines, part.open("wb") as beginning:
        number = 0
        for line in islice(lines, max_bytes):
            beginning.write(line)
            number += 1
    return number


def _peak(cost: Cost) -> int:
    """Return the peak memory of all processes; where unknown, an upper bound from the largest one."""
    return cost.peaks or cost.peak * (1 + usable_cores())


def _row(case: str, name: str, count: int, cost: Cost, counts: dict[str, float], *, goal: bool = False) -> Row:
    rate = count / cost.processor
    figures = f"{cost.wall:.1f} s, processor {cost.processor:.1f} s, "
    figures += f"peaks of its processes together {_peak(cost) / MEGABYTE:.0f} MB"
    goal_text = f"; at most {MAX_SECONDS} s and {MAX_BYTES // MEGABYTE} MB" if goal else ""
    counts_text = "".join(f"; {value:,} {name}" for name, value in counts.items())
    usual = candidates.submissions("Ordered")
    return Row(
        TOPIC,
        f"{count:,} responses, {case}",
        name,
        "response",
        rate,
        times_published=rate / usual if usual else None,
        met=(cost.wall <= MAX_SECONDS and _peak(cost) <= MAX_BYTES) if goal else None,
        note=figures + goal_text + counts_text,
    )
