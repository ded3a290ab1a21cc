"""Whole problems by the complete solver, per setting and stratum: milliseconds a problem, kernels warm.

The first solve of every problem is not timed; its time is the median over rounds. The rival is the same solver with
one parent less per mechanism, which is a smaller claim. Targets, the project's own: no problem over 2 seconds, and a
median of at most 30 milliseconds per setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median

from msgspec.structs import replace

from calibrant.bench.lab.speed.comparison import Options, Row, by_setting, by_stratum, seconds
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.exact import solve

TOPIC = "solve"
MAX_PARENTS, FEWER_PARENTS = 5, 4
MAX_MEDIAN_MS = 30.0
MAX_MS = 2_000.0


def rows(options: Options) -> Iterator[Row]:
    rounds = options.discipline.rounds
    for setting, problems in by_setting(options.problems).items():
        times: list[float] = []
        for stratum, members in by_stratum(problems).items():
            case = f"{setting}, {stratum}"
            full, fewer = milliseconds(members, rounds)
            times += full
            yield _row(case, MAX_PARENTS, full, most_states=most_states(members))
            ratios = [b / a for a, b in zip(full, fewer, strict=True)]
            row = _row(case, FEWER_PARENTS, fewer)
            yield replace(row, ratio=median(ratios), low=min(ratios), high=max(ratios))
        is_met = median(times) <= MAX_MEDIAN_MS and max(times) <= MAX_MS
        yield replace(_row(f"{setting}, all strata", MAX_PARENTS, times), met=is_met)


def _row(case: str, max_parents: int, times: Sequence[float], **counts: float) -> Row:
    spread = {"median ms": median(times), "max ms": max(times), "problems": len(times)}
    labelled_counts = {key.replace("_", " "): value for key, value in counts.items()}
    return Row(
        TOPIC,
        case,
        f"up to {max_parents} parents",
        "problem",
        1000 * len(times) / sum(times),
        counts=spread | labelled_counts,
    )


def milliseconds(problems: Sequence[Problem], rounds: int) -> tuple[list[float], list[float]]:
    """Per problem, with all and with fewer parents; the two are timed in turns."""
    full, fewer = [], []
    for problem in problems:
        calls = [partial(solve, problem.task, max_parents=k) for k in (MAX_PARENTS, FEWER_PARENTS)]
        times = [[1000 * seconds(call, 1) for call in calls] for _ in range(rounds + 1)][1:]
        full.append(median(time for time, _ in times))
        fewer.append(median(time for _, time in times))
    return full, fewer


def most_states(problems: Sequence[Problem]) -> int:
    """Return the most states that formula search looked at for one of these problems."""
    outcomes = [solve(problem.task, max_parents=MAX_PARENTS) for problem in problems]
    return max(int(outcome.value.provenance["states"]) for outcome in outcomes if isinstance(outcome, Found))
