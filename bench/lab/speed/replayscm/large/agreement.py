"""Choices of parent sets by MaxSAT and as the solver makes them, against dynamic programming over all subsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from calibrant.bench.lab.speed.comparison import Row
from calibrant.bench.lab.speed.options import Options
from calibrant.dsl.replayscm.problem import Task
from calibrant.dsl.replayscm.sampling.problems import sample_problem
from calibrant.dsl.replayscm.sampling.strata import stratum
from calibrant.solvers.acyclic.least import Cost, Mask, best_structure, break_ties, cost_by_size, remove_tie_break
from calibrant.solvers.acyclic.optimum import MAX_SUBSET_DP, Choice, optimal_choice
from calibrant.solvers.replayscm.parents import ParentSearch
from calibrant.solvers.replayscm.roots import list_root_sets, possible_roots

TOPIC = "large"
COMPARED = {12: 67, 14: 67, 16: 66}  # variables: how many problems
MAX_VARIABLES = 16  # that dynamic programming is asked about, and so all parent sets are listed
MAX_PARENTS = 5


class Question(NamedTuple):
    """Which parent sets to choose: those that are worth it beside the roots.

    every: without that reduction; empty where it is not asked for
    """

    options: Mapping[int, Mapping[Mask, Cost]]
    every: Mapping[int, Mapping[Mask, Cost]]
    roots: Mask
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

    def list_options(free: Mask) -> dict[int, dict[Mask, Cost]]:
        options = {}
        for v in (v for v in task.variables if v not in root_names):
            candidates = [index[u] for u in task.disclosure.admissible_parents(v)]
            parent_sets = search.parent_sets(index[v], candidates, free=free)
            options[index[v]] = {
                parent_set.mask: cost_by_size(parent_set.at_least, parent_set.mask) for parent_set in parent_sets
            }
        return options

    return Question(list_options(mask), list_options(0) if len(index) <= MAX_VARIABLES else {}, mask, len(index))


def _sample(scale: float) -> Iterator[Task]:
    for num_variables, number in COMPARED.items():
        for seed in range(max(1, round(number * scale))):
            yield sample_problem(stratum(f"large_n{num_variables}"), seed).task


def _agreement(case: str, tasks: Iterable[Task]) -> Row:
    """Whole choices, under every root set that the evidence leaves, by MaxSAT, as solved, and by all subsets."""
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
    costs = {v: {m: break_ties(c, v, m, num) for m, c in sets.items()} for v, sets in question.every.items()}
    best = best_structure(costs, question.roots)
    return None if best is None else Choice(remove_tie_break(best[0], num), best[1])
