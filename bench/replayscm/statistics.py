"""Statistics of ReplaySCM problems: sizes, worlds, intervention modes, gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from calibrant.bench.core.statistics import PoolStatistic, PoolStatistics, share, span, spread
from calibrant.dsl.replayscm.item import Problem

MODES = ("none", "hard_constant", "hard_assigned")


def _mode(mode: str) -> PoolStatistic[Problem]:
    return PoolStatistic(
        lambda problem: [world.intervention.mode == mode for world in problem.task.training.worlds], share
    )


def _gold_sizes(problem: Problem) -> Iterable[int]:
    return () if problem.sealed.gold is None else (problem.sealed.gold.size,)


def _mechanism_sizes(problem: Problem) -> Iterable[int]:
    gold = problem.sealed.gold
    return () if gold is None else [mechanism.size for mechanism in gold.mechanisms.values()]


def _parents(problem: Problem) -> Iterable[int]:
    gold = problem.sealed.gold
    return () if gold is None else [len(local.parents) for local in gold.local_functions.values()]


def _parent_counts(parents: Sequence[int]) -> dict[str, float] | None:
    """Return how many gold mechanisms have each number of functional parents."""
    counts = Counter(parents)
    return {str(number): counts[number] for number in sorted(counts)} or None


COLUMNS: Mapping[str, PoolStatistic[Problem]] = {
    "n": PoolStatistic(lambda problem: (True,), len),
    "variables": PoolStatistic(lambda problem: (len(problem.task.variables),), span),
    "training_worlds": PoolStatistic(lambda problem: (len(problem.task.training.worlds),), span),
    "heldout_worlds": PoolStatistic(lambda problem: (problem.task.num_heldout,), span),
    "rows": PoolStatistic(lambda problem: [world.num_rows for world in problem.task.training.worlds], span),
    **{f"mode_{mode}": _mode(mode) for mode in MODES},
    "gold_size": PoolStatistic(_gold_sizes, spread),
    "mechanism_size": PoolStatistic(_mechanism_sizes, spread),
    "gold_parents": PoolStatistic(_parents, _parent_counts),
}
STATISTICS = PoolStatistics(COLUMNS, lambda problem: problem.stratum)
