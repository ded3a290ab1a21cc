"""Whole problems by the complete solver, and engines for: is there one, is there a second one, how many.

On the pools' problems of 10 variables whose order is hidden: the exact count by dynamic programming, and beside it what
six variants of the CNF take to say whether there is a member and a second one. On a scaling suite, drawn by the
project's sampler with 5 to 30 endogenous variables of up to 3 parents, every engine answers the same questions; one
that took longer than MAX_SECONDS is not asked about larger problems. `solvers.replayscm.engines.registry.Automatic` is
read from that table.

The first solve of every problem is not timed; its time is the median over rounds. The rival is the same solver with
one parent less per mechanism, which is a smaller claim. Targets, the project's own: no problem over 2 seconds, and a
median of at most 30 milliseconds per setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from statistics import median

from msgspec.structs import replace

from calibrant.bench.lab.speed.comparison import Options, Row, by_setting, by_stratum, seconds
from calibrant.dsl.replayscm.generation.problems import problem_of
from calibrant.dsl.replayscm.generation.scms import sample_scm
from calibrant.dsl.replayscm.generation.strata import NUM_ROOTS, Stratum
from calibrant.dsl.replayscm.generation.worlds import sample_evidence
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.solvers.outcome import Found, OutOfBudget
from calibrant.solvers.replayscm.engines.contract import Counted, Engine, Enumeration
from calibrant.solvers.replayscm.engines.registry import ENGINES, create_engine
from calibrant.solvers.replayscm.engines.sat import SYMMETRY_BREAKS, SatMembers, SymmetryBreak
from calibrant.solvers.replayscm.exact import solve
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

# --- The engines for "is there one, is there a second one, how many": on pools, and as the problems grow --------------
TOPIC = "engines"
LARGEST = 10  # variables of the pools' largest problems
MAX_MEDIAN_MS = {4: 20.0, 5: 200.0}  # targets for count and uniqueness, by largest number of parents
MAX_SECONDS = 10.0
SIZES = (5, 7, 9, 11, 13, 14, 15, 16, 17, 18, 20, 25, 30)
SCALING_CLASS = ModelClass(3)
NUM_UNITS = 16
BREAKS: dict[str, Sequence[SymmetryBreak]] = {"with breaks": SYMMETRY_BREAKS, "without": ()}
SEEDS = (1, 2, 3)


def rows(options: Options) -> Iterator[Row]:
    problems = [p for p in options.problems if p.setting == "Hidden-order"]
    largest = [p for p in problems if len(p.task.variables) == LARGEST]
    for max_parents, max_ms in MAX_MEDIAN_MS.items():
        if largest:
            yield from _on_pools(largest, ModelClass(max_parents), max_ms, options.discipline.rounds)
    yield from _scaling(SIZES, SEEDS) if options.scale == 1 else _scaling(SIZES[:1], SEEDS[:1])


def _on_pools(problems: Sequence[Problem], model_class: ModelClass, max_ms: float, rounds: int) -> Iterator[Row]:
    case = f"Hidden-order, {LARGEST} variables, up to {model_class.max_parents} parents"
    ways: dict[str, Callable[[Task], object]] = {
        "subset DP: exact count": lambda task: VersionSpace(task, model_class).count,
    }
    for breaks, chosen in BREAKS.items():
        variant = Enumeration("sat", partial(SatMembers, symmetry_breaks=chosen))
        ways[f"CNF, {breaks}: one and a second"] = partial(_up_to_one, variant, model_class)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for problem in problems:
        for name, way in ways.items():
            call = partial(way, problem.task)
            times[name].append(1000 * median([seconds(call, 1) for _ in range(rounds + 1)][1:] or [seconds(call, 1)]))
    first = next(iter(times.values()))
    for name, engine_times in times.items():
        counts = {"median ms": median(engine_times), "max ms": max(engine_times), "problems": len(engine_times)}
        row = Row(TOPIC, case, name, "problem", 1000 * len(engine_times) / sum(engine_times), counts=counts)
        ratios = [b / a for a, b in zip(first, engine_times, strict=True)]
        if engine_times is first:
            yield replace(row, met=median(engine_times) <= max_ms)
        else:
            yield replace(row, ratio=median(ratios), low=min(ratios), high=max(ratios))


def _up_to_one(variant: Engine, model_class: ModelClass, task: Task) -> object:
    return variant.count_up_to(task, model_class, 1)


# --- scaling --------------------------------------------------------------------------------------------------------


def scaling_problem(num_endogenous: int, seed: int) -> Problem:
    """Return a sampled Hidden-order problem without the checks of pools, which large ones would not pass."""
    name = f"scaling_{num_endogenous}"
    stratum = Stratum(
        name, name, NUM_ROOTS + num_endogenous, NUM_UNITS, 3, (4, 9), (0.6, 0.3, 0.1), 0.5, max_survivors=num_endogenous
    )
    rng = Random(f"{name}:{seed}")
    latent = sample_scm(stratum, rng)
    return problem_of(stratum, name, seed, latent, sample_evidence(stratum, latent, rng))


def _scaling(sizes: Sequence[int], seeds: Sequence[int]) -> Iterator[Row]:
    engines = list(ENGINES)
    for name in engines:  # imports and compiles
        _answers(create_engine(name), scaling_problem(min(sizes), 0).task)
    for num_endogenous in sizes:
        tasks = [scaling_problem(num_endogenous, seed).task for seed in seeds]
        case = f"{num_endogenous} endogenous variables, up to {SCALING_CLASS.max_parents} parents"
        for name in tuple(engines):
            times = []
            for task in tasks:
                took = _answers(create_engine(name), task)
                if took is None:
                    yield Row(TOPIC, case, name, note="more variables than it supports may lie on a cycle together")
                    engines.remove(name)
                    break
                times.append(took)
            else:
                counts = {"median ms": 1000 * median(times), "max ms": 1000 * max(times), "problems": len(times)}
                yield Row(TOPIC, case, name, "problem", len(times) / sum(times), counts=counts)
                if max(times) > MAX_SECONDS:
                    engines.remove(name)


def _answers(chosen: Engine, task: Task) -> float | None:
    """Processor seconds for a member, a second one, and how many up to 2; None if the engine cannot."""
    complete = True

    def ask() -> None:
        nonlocal complete
        first = chosen.first(task, SCALING_CLASS)
        assert isinstance(first, Found | OutOfBudget)  # the latent SCM is a member
        complete = isinstance(first, Found) and isinstance(chosen.count_up_to(task, SCALING_CLASS, 2), Counted)
        if isinstance(first, Found):
            chosen.second(task, SCALING_CLASS, first.value)

    took = seconds(ask, 1)
    return took if complete else None


# --- Whole problems by the complete solver, per setting and stratum: milliseconds a problem, kernels warm -------------
SOLVING_TOPIC = "solve"
MAX_PARENTS, FEWER_PARENTS = 5, 4
MAX_MEDIAN_SOLVING_MS = 30.0
MAX_MS = 2_000.0


def solving_rows(options: Options) -> Iterator[Row]:
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
        is_met = median(times) <= MAX_MEDIAN_SOLVING_MS and max(times) <= MAX_MS
        yield replace(_row(f"{setting}, all strata", MAX_PARENTS, times), met=is_met)


def _row(case: str, max_parents: int, times: Sequence[float], **counts: float) -> Row:
    spread = {"median ms": median(times), "max ms": max(times), "problems": len(times)}
    labelled_counts = {key.replace("_", " "): value for key, value in counts.items()}
    return Row(
        SOLVING_TOPIC,
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
