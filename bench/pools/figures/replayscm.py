"""What ReplaySCM problems are made of: sizes, worlds, intervention modes, gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bench.pools.figures.numbers import Figure, span, spread
from dsl.replayscm.problem import Problem
from dsl.replayscm.scm import Scm

MODES = ("none", "hard_constant", "hard_assigned")


def figures(problems: Sequence[Problem]) -> dict[str, Figure]:
    training = [world for problem in problems for world in problem.task.training.worlds]
    modes = Counter(world.intervention.mode for world in training)
    golds = [problem.sealed.gold for problem in problems if problem.sealed.gold is not None]
    return {
        "n": len(problems),
        "variables": span(len(problem.task.variables) for problem in problems),
        "training_worlds": span(len(problem.task.training.worlds) for problem in problems),
        "heldout_worlds": span(problem.task.num_heldout for problem in problems),
        "rows": span(world.num_rows for world in training),
        **{f"mode_{mode}": modes[mode] / len(training) for mode in MODES},
        "gold_size": spread([gold.size for gold in golds]),
        "mechanism_size": spread([mechanism.size for gold in golds for mechanism in gold.mechanisms.values()]),
        "gold_parents": _parent_counts(golds),
    }


def _parent_counts(golds: Sequence[Scm]) -> dict[str, float] | None:
    """How many gold mechanisms have each number of functional parents."""
    counts = Counter(len(local.parents) for gold in golds for local in gold.local_functions.values())
    return {str(parents): counts[parents] for parents in sorted(counts)} or None
