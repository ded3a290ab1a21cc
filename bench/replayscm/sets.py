"""Sets of SCMs that fit the training worlds."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from calibrant.baselines.replayscm.posterior.local import Local
from calibrant.baselines.replayscm.posterior.posterior import Member, Posterior
from calibrant.bench.replayscm.solve import FUNCTIONS
from calibrant.bench.replayscm.verdict import MEANING
from calibrant.bench.sets.capabilities import Hypotheses, Prior
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.formulas.text import STANDARD, parse
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.problem import Problem, Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.canonical import canonical_task
from calibrant.solvers.replayscm.renaming import rename_scm

NUM_DRAWS = 100  # of the posterior, for what k draws are expected to cover
MAX_PARENTS = 5  # of a mechanism: every SCM that an answer may state


def hypotheses(item: Problem) -> Hypotheses:
    """Return the SCMs of the task's language that replay every training world; they weigh the same."""
    if item.task.extension is not None:
        raise CalibrantError(
            f"{in_one_line(item.id)} has noise, hidden variables or worlds to ask for; sets are of plain items"
        )
    space = FUNCTIONS.version_space(item, max_parents=MAX_PARENTS)
    counted = space.counted()
    if not isinstance(counted, Found):
        raise CalibrantError(f"the SCMs that fit {in_one_line(item.id)} are not counted: {counted.reached}")
    words = f"SCMs with at most {MAX_PARENTS} functional parents that replay the training worlds"
    return Hypotheses(
        "SCMs", words, counted.value, _key, lambda score, key: score.get("trainExact") is True, prior=_prior(item.task)
    )


def _prior(task: Task) -> Prior | None:
    """Return posterior probabilities under the published generator's prior; None where it does not explain the item."""
    if task.grammar != STANDARD or task.kind is TaskKind.ALTERNATIVE:
        return None
    canonical = canonical_task(task)  # so that draws do not depend on names
    names = canonical.canonical_names
    try:
        posterior = Posterior(canonical.task)
    except BudgetSpent:
        return None
    if not posterior.components:
        return None
    rng = Random(0)
    draws = [posterior.probability(posterior.sample(rng)) for _ in range(NUM_DRAWS)]
    return Prior(
        "the published generator",
        lambda answer: posterior.probability(member_of(rename_scm(_scm(task, answer), names), canonical.task)),
        [(1 / NUM_DRAWS, probability) for probability in draws],
    )


def _scm(task: Task, answer: Mapping[str, Any]) -> Scm:
    """Return the SCM of a valid answer."""
    mechanisms = {
        variable: parse(text, task.grammar, frozenset(task.variables) - {variable})
        for variable, text in answer["mechanisms"].items()
    }
    return Scm(tuple(variable for variable in task.variables if variable not in mechanisms), mechanisms)


def member_of(model: Scm, task: Task) -> Member:
    """Return an SCM as a member of a posterior."""
    index = {variable: place for place, variable in enumerate(task.variables)}
    return Member(
        natural(model.roots),
        {
            index[variable]: Local(sum(1 << index[parent] for parent in parents), table.bits)
            for variable, (parents, table) in model.local_functions.items()
        },
    )


def _key(score: Mapping[str, Any]) -> str | None:
    meaning = score.get(MEANING)
    return meaning if score.get("valid") is True and isinstance(meaning, str) else None
