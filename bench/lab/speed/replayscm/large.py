"""Least SCMs of 20, 30 and 40 variables whose order is hidden: seconds to the proof, and rivals for the choice.

Targets, the project's own: of 12 generated problems 11 are proved least in at most 10, 30 and 60 seconds. The choice
alone, from parent sets that are listed once: ours, RC2 with the order in clauses instead of cuts, which leaves ties
open, an integer program with the same cuts by HiGHS where highspy is installed, and dynamic programming over subsets as
far as it goes. Our choices, ties included, are compared with its on problems of 12 to 16 variables and on the pools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from statistics import median
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from calibrant.audits.replayscm.generation.generate import generate
from calibrant.bench.lab.speed.report import Options, Row, by_setting, by_stratum, seconds
from calibrant.dsl.replayscm.generation.problems import sample_problem
from calibrant.dsl.replayscm.generation.strata import Stratum, stratum
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.solvers.acyclic import least
from calibrant.solvers.acyclic.optimum import MAX_SUBSET_DP, Choice, optimal_choice
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.exact import solve
from calibrant.solvers.replayscm.roots_and_parents import ParentSearch, list_root_sets, possible_roots
from calibrant.solvers.sat import Cnf, add_linear_order

# --- Choices of parent sets by MaxSAT and as the solver makes them, against dynamic programming over all subsets ------
TOPIC = "large"
COMPARED = {12: 67, 14: 67, 16: 66}  # variables: how many problems
MAX_VARIABLES = 16  # that dynamic programming is asked about, and so all parent sets are listed
MAX_PARENTS = 5


class Question(NamedTuple):
    """Which parent sets to choose: those that are worth it beside the roots.

    every: without that reduction; empty where it is not asked for
    """

    options: Mapping[int, Mapping[least.Mask, least.Cost]]
    every: Mapping[int, Mapping[least.Mask, least.Cost]]
    roots: least.Mask
    num_vars: int


def agreement(options: Options) -> Iterator[Row]:
    yield _agreement("problems of 12 to 16 variables", _sample(options.scale))
    pooled = [p.task for p in options.problems if p.task.disclosure.order is None]
    yield _agreement("pools, order not told", pooled[: max(1, round(len(pooled) * options.scale))])


def question_of(task: Task, roots: Iterable[str] | None = None) -> Question:
    """Return the question of a problem.

    roots: the root set, where the disclosure does not tell it
    """
    index = {v: i for i, v in enumerate(task.variables)}
    root_names = tuple((task.disclosure.roots or ()) if roots is None else roots)
    mask = sum(1 << index[root] for root in root_names)
    search = ParentSearch(task, MAX_PARENTS)

    def list_options(free: least.Mask) -> dict[int, dict[least.Mask, least.Cost]]:
        options = {}
        for v in (v for v in task.variables if v not in root_names):
            candidates = [index[u] for u in task.disclosure.admissible_parents(v)]
            parent_sets = search.parent_sets(index[v], candidates, free=free)
            options[index[v]] = {
                parent_set.mask: least.cost_by_size(parent_set.at_least, parent_set.mask) for parent_set in parent_sets
            }
        return options

    return Question(list_options(mask), list_options(0) if len(index) <= MAX_VARIABLES else {}, mask, len(index))


def _sample(scale: float) -> Iterator[Task]:
    for num_variables, number in COMPARED.items():
        for seed in range(max(1, round(number * scale))):
            yield sample_problem(stratum(f"large_n{num_variables}"), seed).task


def _agreement(case: str, tasks: Iterable[Task]) -> Row:
    """Return a row on whether optimal choices of parent sets equal those found among all subsets.

    They are compared under every root set that the evidence leaves, found by MaxSAT and as the solver finds them.
    """
    compared = problems = differences = 0
    for task in tasks:
        problems += 1
        for roots in list_root_sets(task, possible_roots(task)):
            question = question_of(task, roots)
            expected = _by_subsets(question)
            for subset_dp in (0, MAX_SUBSET_DP):
                optimum = optimal_choice(question.options, question.roots, question.num_vars, subset_dp=subset_dp)
                compared += 1
                differences += optimum != expected
    counts: dict[str, float] = {"differences": differences, "choices": compared, "problems": problems}
    return Row(TOPIC, f"agreement: {case}", "subset DP on all parent sets", met=differences == 0, counts=counts)


def _by_subsets(question: Question) -> Choice | None:
    num = question.num_vars
    costs = {v: {m: least.break_ties(c, v, m, num) for m, c in sets.items()} for v, sets in question.every.items()}
    best = least.best_structure(costs, question.roots)
    return None if best is None else Choice(least.remove_tie_break(best[0], num), best[1])


# --- The least size of an acyclic choice by python-sat's RC2, with a linear order of the variables in clauses ---------


def least_size(options: Mapping[int, Mapping[least.Mask, least.Cost]], roots: least.Mask) -> int | None:
    """Return the least size; None if every choice has a cycle.

    options: per variable its possible parent sets and what they cost
    """
    components = least.reduce_to_parts(options, roots)
    sizes = None if components is None else [_of_part(part) for part in components]
    return None if sizes is None or None in sizes else sum(size for size in sizes if size is not None)


def _of_part(part: least.Part) -> int | None:
    from pysat.examples.rc2 import RC2
    from pysat.formula import WCNF

    cnf = Cnf()
    arcs = {(u, v): cnf.variable(f"{u} -> {v}") for v in part for u in part if any(mask >> u & 1 for mask in part[v])}
    base, preferred = 0, list[tuple[int, int]]()
    for v, sets in part.items():
        sizes = sorted({least.total_size(option.cost) for option in sets.values()})
        beyond = {high: cnf.variable(f"{v}: at least {high}") for high in sizes[1:]}
        for low, high in pairwise(sizes[1:]):
            cnf.add(-beyond[high], beyond[low])
        preferred += [(-beyond[high], high - low) for low, high in pairwise(sizes)]
        base += sizes[0]
        taken = {mask: cnf.variable(f"{v} from {mask:#x}") for mask in sets}
        cnf.add(*taken.values())
        for mask, literal in taken.items():
            size = least.total_size(sets[mask].cost)
            if size in beyond:
                cnf.add(-literal, beyond[size])
            for u in part:
                if mask >> u & 1:
                    cnf.add(-literal, arcs[u, v])
    add_linear_order(cnf, arcs)
    formula = WCNF()
    formula.extend(cnf.clauses)
    for literal, weight in preferred:
        formula.append([literal], weight=weight)
    with RC2(formula) as search:
        return base + search.cost if search.compute() is not None else None


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
    """Return a task by the whole generator; by the quick sampler at a scale other than 1, where no figure counts."""
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
    return None if best is None else least.total_size(best.cost)


def _choices(case: str, questions: Sequence[Question]) -> Iterator[Row]:
    ways: dict[str, Callable[[Question], int | None]] = {
        "RC2 with cuts": _solve_ours,
        "RC2, order in clauses": lambda question: least_size(question.options, question.roots),
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


# --- Whole problems by the complete solver, per setting and stratum: milliseconds a problem, kernels warm -------------
SOLVING_TOPIC = "solve"
FEWER_PARENTS = 4
MAX_MEDIAN_SOLVING_MS = 30.0
MAX_MS = 2_000.0


def solving_rows(options: Options) -> Iterator[Row]:
    rounds = options.discipline.rounds
    for setting, problems in by_setting(options.problems).items():
        times: list[float] = []
        for name, members in by_stratum(problems).items():
            case = f"{setting}, {name}"
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
    """Return the milliseconds of each problem with MAX_PARENTS and with FEWER_PARENTS, timed in turns."""
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
