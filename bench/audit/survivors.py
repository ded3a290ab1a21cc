"""Two members of a version space that differ most: among the smallest ones and random ones, by single interventions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from random import Random
from typing import Any

from audits.replayscm.separation import PairAudit
from bench.audit.findings import Survivors
from dsl.formulas.text import render
from dsl.replayscm.alternative import witness_for
from dsl.replayscm.problem import Problem
from dsl.replayscm.scm import Scm
from dsl.replayscm.separation import PairwiseExperiments, Separation
from solvers.formulas.essential import COMPLETE, essential_functions, synthesised
from solvers.replayscm.members_by_size import smallest_members
from solvers.replayscm.version_space import ModelClass, VersionSpace

LARGEST_SIZE = 15  # every function of four variables has a formula of at most this size
NUM_SMALLEST = 6
NUM_RANDOM = 6
MAX_ROOTS = 12  # experiments are simulated over every assignment of the roots


def sized_class(problem: Problem, max_parents: int) -> ModelClass:
    """The class with a size cap that stands for one without: up to four parents the cap excludes no function."""
    parents = min(max_parents, 4)
    complete = essential_functions(parents, synthesised(problem.task.grammar)).complete_to[1:].tolist()
    cap = min((size for size in complete if size != COMPLETE), default=LARGEST_SIZE)
    return ModelClass(parents, min(cap, LARGEST_SIZE))


def candidates(problem: Problem, model_class: ModelClass) -> list[Scm]:
    """The smallest members, then random ones; the same for the same instance. `ValueError` if none can be written."""
    space = VersionSpace(problem.task, model_class)
    small = smallest_members(VersionSpace(problem.task, sized_class(problem, model_class.max_parents)), NUM_SMALLEST)
    drawn = space.sample(Random(f"survivors:{problem.id}"), NUM_RANDOM)
    found: list[Scm] = []
    for model in (*small.models, *drawn):
        if not any(model.equivalent(other) for other in found):
            found.append(model)
    return found


def most_different(problem: Problem, model_class: ModelClass) -> Survivors | None:
    """The pair with the highest disagreement rate, then cell rate, then first; None if no two share their roots."""
    models = candidates(problem, model_class)
    if models and len(models[0].roots) > MAX_ROOTS:
        raise ValueError(f"{len(models[0].roots)} roots: experiments are simulated for at most {MAX_ROOTS}")
    pair = _best_pair(models)
    if pair is None:
        return None
    one, other, separation = pair
    gold = problem.sealed.gold
    same = [name for name, model in (("one", one), ("other", other)) if gold is not None and model.equivalent(gold)]
    return Survivors(
        model_class.describe(problem.task),
        len(models),
        list(one.roots),
        mechanism_texts(one),
        mechanism_texts(other),
        same[0] if same else "",
        separation.disagreement_rate,
        separation.cell_rate,
        separation.experiment.to_dict() if separation.separates else None,
        witness_for(PairwiseExperiments(one, other), separation.experiment),
        *_any_targets(one, other),
    )


def _any_targets(one: Scm, other: Scm) -> tuple[dict[str, Any] | None, dict[int, int]]:
    """The best hard intervention on up to three targets, and how many sets of each size separate the two."""
    audit = PairAudit(one, other)
    numbers = Counter(len(found.targets) for found in audit.any_targets)
    return (asdict(audit.best) if audit.best else None), dict(sorted(numbers.items()))


def _best_pair(models: Sequence[Scm]) -> tuple[Scm, Scm, Separation] | None:
    pairs = [
        (one, other, PairwiseExperiments(one, other).best())
        for one, other in combinations(models, 2)
        if one.roots == other.roots
    ]
    return max(pairs, key=lambda pair: (pair[2].disagreement_rate, pair[2].cell_rate), default=None)


def mechanism_texts(model: Scm) -> dict[str, Any]:
    """Variable -> formula, in evaluation order."""
    return {variable: render(model.mechanisms[variable]) for variable in model.order}
