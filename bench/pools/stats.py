"""What a pool is made of, per stratum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeAlias

from bench.answers.columns import UNDEFINED
from dsl.replayscm.problem import Pool, Problem
from dsl.replayscm.scm import Scm

MODES = ("none", "hard_constant", "hard_assigned")

Figure: TypeAlias = int | float | list[int] | dict[str, float] | None


@dataclass(frozen=True)
class PoolStats:
    """One setting and stratum of a pool. figures: by column; ranges, spreads and counts as JSON has them"""

    pool: str
    setting: str
    stratum: str
    figures: Mapping[str, Figure]

    def to_dict(self) -> dict[str, Any]:
        """Numbers as numbers, null for what is undefined."""
        return {"pool": self.pool, "setting": self.setting, "stratum": self.stratum or None, **self.figures}

    def cells(self) -> dict[str, str]:
        """Every value as it is printed."""
        labels = {"pool": self.pool, "setting": self.setting, "stratum": self.stratum or UNDEFINED}
        return labels | {key: _text(figure) for key, figure in self.figures.items()}


def pool_stats(pool: Pool) -> list[PoolStats]:
    """One for each setting and stratum, in order of appearance."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in pool.problems:
        groups.setdefault((problem.setting, problem.stratum), []).append(problem)
    return [PoolStats(pool.name, setting, stratum, _stats(problems)) for (setting, stratum), problems in groups.items()]


def _stats(problems: Sequence[Problem]) -> dict[str, Figure]:
    training = [world for problem in problems for world in problem.task.training.worlds]
    modes = Counter(world.intervention.mode for world in training)
    golds = [problem.sealed.gold for problem in problems if problem.sealed.gold is not None]
    return {
        "n": len(problems),
        "variables": _range(len(problem.task.variables) for problem in problems),
        "training_worlds": _range(len(problem.task.training.worlds) for problem in problems),
        "heldout_worlds": _range(problem.task.num_heldout for problem in problems),
        "rows": _range(world.num_rows for world in training),
        **{f"mode_{mode}": modes[mode] / len(training) for mode in MODES},
        "gold_size": _spread([gold.size for gold in golds]),
        "mechanism_size": _spread([mechanism.size for gold in golds for mechanism in gold.mechanisms.values()]),
        "gold_parents": _parent_counts(golds),
    }


def _range(numbers: Iterable[int]) -> list[int]:
    listed = list(numbers)
    return [min(listed), max(listed)]


def _spread(numbers: Sequence[int]) -> dict[str, float] | None:
    return {"least": min(numbers), "median": median(numbers), "greatest": max(numbers)} if numbers else None


def _parent_counts(golds: Sequence[Scm]) -> dict[str, float] | None:
    """How many gold mechanisms have each number of functional parents."""
    counts = Counter(len(local.parents) for gold in golds for local in gold.local_functions.values())
    return {str(parents): counts[parents] for parents in sorted(counts)} or None


def _text(figure: Figure) -> str:
    """A range as 8-11, a spread as 3/7/12, counts as `parents:mechanisms`."""
    match figure:
        case None:
            return UNDEFINED
        case [low, high]:
            return str(low) if low == high else f"{low}-{high}"
        case {"least": least, "median": middle, "greatest": greatest}:
            return f"{least}/{middle:g}/{greatest}"
        case dict():
            return " ".join(f"{name}:{number}" for name, number in figure.items())
        case float():
            return f"{figure:.3f}"
        case _:
            return str(figure)
