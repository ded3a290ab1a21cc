"""What a pool is made of, per stratum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from bench.answers.columns import UNDEFINED
from dsl.replayscm.problem import Pool, Problem
from dsl.replayscm.scm import Scm

MODES = ("none", "hard_constant", "hard_assigned")


def pool_stats(pool: Pool) -> list[dict[str, str]]:
    """One mapping per setting and stratum, in order of appearance, every value as it is printed."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in pool.problems:
        groups.setdefault((problem.setting, problem.stratum), []).append(problem)
    return [
        {"pool": pool.name, "setting": setting, "stratum": stratum or UNDEFINED, **_stats(problems)}
        for (setting, stratum), problems in groups.items()
    ]


def _stats(problems: Sequence[Problem]) -> dict[str, str]:
    training = [world for problem in problems for world in problem.task.training.worlds]
    modes = Counter(world.intervention.mode for world in training)
    golds = [problem.sealed.gold for problem in problems if problem.sealed.gold is not None]
    return {
        "n": str(len(problems)),
        "variables": _range(len(problem.task.variables) for problem in problems),
        "training_worlds": _range(len(problem.task.training.worlds) for problem in problems),
        "heldout_worlds": _range(problem.task.num_heldout for problem in problems),
        "rows": _range(world.num_rows for world in training),
        **{f"mode_{mode}": f"{modes[mode] / len(training):.3f}" for mode in MODES},
        "gold_size": _spread([gold.size for gold in golds]),
        "mechanism_size": _spread([mechanism.size for gold in golds for mechanism in gold.mechanisms.values()]),
        "gold_parents": _parent_counts(golds),
    }


def _range(numbers: Iterable[int]) -> str:
    listed = sorted(numbers)
    return str(listed[0]) if listed[0] == listed[-1] else f"{listed[0]}-{listed[-1]}"


def _spread(numbers: Sequence[int]) -> str:
    """Least, median and greatest."""
    return f"{min(numbers)}/{median(numbers):g}/{max(numbers)}" if numbers else UNDEFINED


def _parent_counts(golds: Sequence[Scm]) -> str:
    """How many gold mechanisms have each number of functional parents, as `parents:mechanisms`."""
    counts = Counter(len(local.parents) for gold in golds for local in gold.local_functions.values())
    return " ".join(f"{parents}:{counts[parents]}" for parents in sorted(counts)) or UNDEFINED
