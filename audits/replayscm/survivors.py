"""Two members of a version space that differ most: among the smallest ones and random ones, by single interventions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from random import Random
from typing import Any

from calibrant.audits.replayscm.ambiguity import sized_class
from calibrant.audits.replayscm.findings import Survivors
from calibrant.audits.replayscm.separation import PairAudit
from calibrant.audits.replayscm.spaces import Spaces
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.alternatives import MenuResponses, PairwiseExperiments, Separation, witness_for
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.replayscm.members import sample_members, smallest_members

NUM_SMALLEST = 6
NUM_RANDOM = 6
MAX_ROOTS = 12  # experiments are simulated over every assignment of the roots


def candidates(spaces: Spaces, max_parents: int) -> list[Scm]:
    """Return the smallest members, then random ones, seeded by the instance; `ValueError` without formulas."""
    sized = sized_class(spaces.problem.task, max_parents)
    small = smallest_members(spaces.space(sized.max_parents, sized.max_size), NUM_SMALLEST)
    random_members = sample_members(spaces.space(max_parents), Random(f"survivors:{spaces.problem.id}"), NUM_RANDOM)
    distinct: list[Scm] = []
    for model in (*small.models, *random_members):
        if not any(model.equivalent(earlier) for earlier in distinct):
            distinct.append(model)
    return distinct


def most_different(spaces: Spaces, max_parents: int) -> Survivors | None:
    """Return the pair with the highest disagreement rate, then cell rate; None if no two share their roots."""
    models = candidates(spaces, max_parents)
    if models and len(models[0].roots) > MAX_ROOTS:
        raise ValueError(f"{len(models[0].roots)} roots: experiments are simulated for at most {MAX_ROOTS}")
    pair = _best_pair(models)
    if pair is None:
        return None
    first, second, separation = pair
    gold, space, sets = spaces.problem.sealed.gold, spaces.space(max_parents), PairAudit(first, second)
    gold_names = [
        name for name, model in (("one", first), ("other", second)) if gold is not None and model.equivalent(gold)
    ]
    return Survivors(
        in_words=space.model_class.describe(space.task),
        looked_at=len(models),
        roots=list(first.roots),
        one=mechanism_texts(first),
        other=mechanism_texts(second),
        means_gold=gold_names[0] if gold_names else "",
        disagreement_rate=separation.disagreement_rate,
        cell_rate=separation.cell_rate,
        experiment=separation.experiment.to_dict() if separation.separates else None,
        witness=witness_for(PairwiseExperiments(first, second), separation.experiment),
        targets=sets.best,
        separating_sets=dict(sorted(Counter(len(target_set.targets) for target_set in sets.any_targets).items())),
    )


def _best_pair(models: Sequence[Scm]) -> tuple[Scm, Scm, Separation] | None:
    responses = [(model, MenuResponses(model)) for model in models]
    pairs = [
        (first, second, first_responses.best(second_responses))
        for (first, first_responses), (second, second_responses) in combinations(responses, 2)
        if first.roots == second.roots
    ]
    return max(pairs, key=lambda pair: (pair[2].disagreement_rate, pair[2].cell_rate), default=None)


def mechanism_texts(model: Scm) -> dict[str, Any]:
    """Return the formula of each variable, in evaluation order."""
    return {variable: render(model.mechanisms[variable]) for variable in model.order}
