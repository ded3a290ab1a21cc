"""A million responses to a pool of 320 instances through `calibrant score`, as a process of its own.

One file repeats itself as samples of models do, the other has no mechanism of an instance twice, so that nothing that
was kept helps. Targets are those of a machine with two cores; a rival scores a twentieth of the same file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.commands.progress import usable_cores
from bench.speed.comparison import Row
from bench.speed.options import Options
from bench.speed.processes import OURS, Cost, command_cost
from bench.speed.replayscm import published
from bench.speed.replayscm.responses import write_large_pool, write_responses

TOPIC = "bulk"
INSTANCES = 320
RESPONSES = 1_000_000
RIVAL_SHARE = 20
MOST_SECONDS, MOST_BYTES = 90, 500_000_000
MEGABYTE = 1_000_000


def rows(options: Options) -> Iterator[Row]:
    count = RESPONSES if options.scale == 1 else INSTANCES  # a glance shows that it works
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        pool = folder / "pool.jsonl"
        problems = write_large_pool(options.problems, pool, INSTANCES)
        for mixed, case in ((True, "as models repeat themselves"), (False, "all mechanisms new")):
            said = folder / "responses.jsonl"
            different = write_responses(problems, said, count, mixed=mixed)
            case = f"{count:,} responses, {case}"
            cost = command_cost(OURS, "score", str(pool), str(said), folder=folder)
            yield _row(
                case, "calibrant score", count, cost, {"different responses": different}, goal=count >= RESPONSES
            )
            if options.scale == 1:  # a glance needs no second process
                written = folder / "verdicts.jsonl"
                cost = command_cost(OURS, "score", str(pool), str(said), "--out", str(written), folder=folder)
                yield _row(case, "calibrant score --out", count, cost, {})
                written.unlink()
            if options.rival is not None:
                fewer = max(INSTANCES, count // RIVAL_SHARE)
                with said.open("rb") as lines, (folder / "fewer.jsonl").open("wb") as some:
                    some.writelines(line for _, line in zip(range(fewer), lines, strict=False))
                cost = command_cost(options.rival, "score", str(pool), str(folder / "fewer.jsonl"), folder=folder)
                yield _row(case, "the rival, a part", fewer, cost, {})


def _peak(cost: Cost) -> int:
    """No more than this, if the processes that score are no larger than the largest one."""
    return cost.peak * (1 + usable_cores())


def _row(case: str, name: str, count: int, cost: Cost, counts: dict[str, float], *, goal: bool = False) -> Row:
    rate = count / cost.processor
    figures = f"{cost.wall:.1f} s, processor {cost.processor:.1f} s, "
    figures += f"peak of the largest process {cost.peak / MEGABYTE:.0f} MB, of all at most {_peak(cost) / MEGABYTE:.0f}"
    wanted = f"; at most {MOST_SECONDS} s and {MOST_BYTES // MEGABYTE} MB" if goal else ""
    said = "".join(f"; {value:,} {name}" for name, value in counts.items())
    usual = published.submissions("Ordered")
    return Row(
        TOPIC,
        case,
        name,
        "response",
        rate,
        times_published=rate / usual if usual else None,
        met=(cost.wall <= MOST_SECONDS and _peak(cost) <= MOST_BYTES) if goal else None,
        note=figures + wanted + said,
    )
