"""Least SCMs of 20, 30 and 40 variables whose order is hidden: seconds to the proof, and rivals for the choice.

Targets, the project's own: of 12 generated problems 11 are proved least in at most 10, 30 and 60 seconds. The choice
alone, from parent sets that are listed once: ours, RC2 with the order in clauses instead of cuts, which leaves ties
open, an integer program with the same cuts by HiGHS where highspy is installed, and dynamic programming over subsets as
far as it goes. Our choices, ties included, are compared with its on problems of 12 to 16 variables and on the pools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import TypeVar

from calibrant.audits.replayscm.generation.generate import generate
from calibrant.bench.lab.speed.comparison import Row, seconds
from calibrant.bench.lab.speed.options import Options
from calibrant.bench.lab.speed.replayscm.large import orders_in_clauses
from calibrant.bench.lab.speed.replayscm.large.agreement import MAX_PARENTS, TOPIC, Question, agreement, question_of
from calibrant.dsl.replayscm.problem import Task
from calibrant.dsl.replayscm.sampling.problems import sample_problem
from calibrant.dsl.replayscm.sampling.strata import Stratum, stratum
from calibrant.solvers.acyclic.least import total_size
from calibrant.solvers.acyclic.optimum import optimal_choice
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.exact import solve

MAX_SECONDS = {20: 10.0, 30: 30.0, 40: 60.0}
PROBLEMS, ENOUGH = 12, 11

T = TypeVar("T")


def rows(options: Options) -> Iterator[Row]:
    number = max(1, round(PROBLEMS * options.scale))
    sizes = MAX_SECONDS if options.scale == 1 else {20: MAX_SECONDS[20]}
    solve(sample_problem(stratum("large_n12"), 0).task)  # compiles
    for num_variables, max_seconds in sizes.items():
        chosen = stratum(f"large_n{num_variables}")
        tasks = [_generate(chosen, seed, options.scale) for seed in range(number)]
        yield _proofs(num_variables, max_seconds, tasks)
        yield from _choices(f"{num_variables} variables, choice alone", [question_of(task) for task in tasks])
    yield from agreement(options)


def _generate(chosen: Stratum, seed: int, scale: float) -> Task:
    """By the whole generator; by the sampler, which is quick, where figures mean nothing."""
    return (generate(chosen, seed).problem if scale == 1 else sample_problem(chosen, seed)).task


def _proofs(num_variables: int, max_seconds: float, tasks: Sequence[Task]) -> Row:
    timed = [_time_call(partial(solve, task, max_parents=MAX_PARENTS)) for task in tasks]
    times = [took for took, _ in timed]
    proved = sum(isinstance(outcome, Found) and took <= max_seconds for took, outcome in timed)
    counts = {"median s": median(times), "max s": max(times), "proved in time": proved, "problems": len(tasks)}
    is_met = proved >= ENOUGH if len(tasks) == PROBLEMS else None
    case = f"{num_variables} variables, Hidden-order"
    return Row(
        TOPIC, case, f"up to {MAX_PARENTS} parents", "problem", len(tasks) / sum(times), met=is_met, counts=counts
    )


def _time_call(call: Callable[[], T]) -> tuple[float, T]:
    answers: list[T] = []
    took = seconds(lambda: answers.append(call()), 1)
    return took, answers[0]


# --- the choice alone -----------------------------------------------------------------------------------------------


def _solve_ours(question: Question, engine: str = "auto") -> int | None:
    best = optimal_choice(question.options, question.roots, question.num_vars, engine=engine)
    return None if best is None else total_size(best.cost)


def _choices(case: str, questions: Sequence[Question]) -> Iterator[Row]:
    ways: dict[str, Callable[[Question], int | None]] = {
        "RC2 with cuts": _solve_ours,
        "RC2, order in clauses": lambda question: orders_in_clauses.least_size(question.options, question.roots),
    }
    if find_spec("highspy"):
        ways["HiGHS with cuts"] = partial(_solve_ours, engine="integer_program")
    else:
        yield Row(TOPIC, case, "HiGHS with cuts", note="highspy is not installed")
    yield Row(TOPIC, case, "subset DP", note="more than 16 variables that compete for an order")
    times: dict[str, list[float]] = {name: [] for name in ways}
    for question in questions:
        timed = {name: _time_call(partial(way, question)) for name, way in ways.items()}
        sizes = {size for _, size in timed.values()}
        assert len(sizes) == 1, f"different least sizes: {sizes}"
        for name, (took, _) in timed.items():
            times[name].append(took)
    for name, engine_times in times.items():
        ratios = [engine_time / first for engine_time, first in zip(engine_times, times["RC2 with cuts"], strict=True)]
        counts = {"median s": median(engine_times), "max s": max(engine_times)}
        row = Row(TOPIC, case, name, "problem", len(engine_times) / sum(engine_times), counts=counts)
        yield (
            row
            if name == "RC2 with cuts"
            else Row(
                TOPIC, case, name, "problem", row.per_second, median(ratios), min(ratios), max(ratios), counts=counts
            )
        )
