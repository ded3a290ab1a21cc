"""Hardening a whole pool, and what it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

from audits.hardening import Hardening, cex
from dsl.problem import Pool, Problem
from solvers.outcome import Found, Impossible

PUBLISHED_CEX_WORLDS = 14.27  # mean training worlds of the published CEx pools, range 11 to 23 (paper, Table F.2)


def hardenings(
    pool: Pool, seed: int, harden: Callable[[Problem, int], Hardening] = cex
) -> Iterator[tuple[Problem, Hardening]]:
    """Every instance with its hardening, in order, as soon as it is done."""
    for problem in pool.problems:
        yield problem, harden(problem, seed)


def hardened_pool(pool: Pool, done: Sequence[Hardening], seed: int) -> Pool:
    """The pool with the hardened instances in place of the others; ids and held-out worlds are the same."""
    metadata = {**pool.metadata, "hardening": {"selector": "cex", "seed": seed}}
    return replace(pool, problems=tuple(hardening.problem for hardening in done), metadata=metadata)


@dataclass(frozen=True, slots=True)
class HardeningSummary:
    """Figures of a pool.

    outcomes: how many instances ended as Found, Impossible, OutOfBudget
    classes: how many instances were hardened in the class of k functional parents
    median_added, max_added: worlds added; mean_training, max_training: training worlds afterwards
    mean_coverage: local pattern coverage before and after
    """

    number: int
    outcomes: dict[str, int]
    classes: dict[int, int]
    median_added: float
    max_added: int
    mean_training: float
    max_training: int
    mean_coverage: tuple[float, float]


def summarise(done: Sequence[Hardening]) -> HardeningSummary:
    """Figures over at least one instance."""
    added = [len(hardening.added) for hardening in done]
    training = [hardening.after.num_worlds for hardening in done]
    return HardeningSummary(
        len(done),
        dict(Counter(type(hardening.outcome).__name__ for hardening in done)),
        dict(sorted(Counter(hardening.model_class.max_parents for hardening in done).items())),
        median(added),
        max(added),
        fmean(training),
        max(training),
        (
            fmean(float(hardening.before.coverage) for hardening in done),
            fmean(float(hardening.after.coverage) for hardening in done),
        ),
    )


def hardening_record(hardening: Hardening) -> dict[str, Any]:
    """One instance as JSON; counts as texts, because they are larger than the integers of many readers."""
    outcome = hardening.outcome
    reason = (
        "" if isinstance(outcome, Found) else outcome.exhausted if isinstance(outcome, Impossible) else outcome.reached
    )
    return {
        "problem": hardening.problem.id,
        "class": hardening.model_class.describe(hardening.problem.task),
        "outcome": type(outcome).__name__,
        "reason": reason,
        "members": [str(hardening.before.members), str(hardening.after.members)],
        "least_members": str(hardening.least_members),
        "coverage": [float(hardening.before.coverage), float(hardening.after.coverage)],
        "heldout_agreement": [float(hardening.before.agreement), float(hardening.after.agreement)],
        "training_worlds": [hardening.before.num_worlds, hardening.after.num_worlds],
        "added": [
            {
                "world": step.drawn.world.id,
                "intervention": str(step.drawn.world.intervention),
                "for": step.objective,
                "left": [str(step.before), str(step.after)],
                "members": str(step.members),
            }
            for step in hardening.added
        ],
        "unseparated": list(hardening.unseparated),
    }
