"""What is known of a truth that is drawn from a version space: draws, ceilings, and the world that splits it best.

The class is the smallest one of at least the headline's parents that has gold as a member; without gold, the smallest
counted one that has any. Uniform weights are over the class without a size cap, weights by size over the one with.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from audits.replayscm.ambiguity import SIZE_PENALTY, capped, draw_probabilities
from audits.replayscm.behaviour import simulated
from audits.replayscm.ceiling import ceiling, forecast
from audits.replayscm.splitting import best_split, best_split_for, candidate_worlds, removed_share, single_worlds
from bench.audit.findings import Ceiling, ClassCount, Draw, Split
from dsl.replayscm.disclosure import HiddenRoots, natural
from dsl.replayscm.problem import Problem, Task
from dsl.replayscm.world import World
from solvers.formulas.essential import synthesised
from solvers.formulas.function_formula import formula_for
from solvers.replayscm.version_space import MAX_PARENTS, ModelClass, VersionSpace

CEILING_COUNTS = 32  # exact counts for one ceiling; an interval where they do not suffice
SPLIT_CANDIDATES = 36  # random worlds of one to three targets that are compared, beside every single intervention
SPLIT_DRAWS = 6  # truths that they are compared on
SPLIT_COUNTS = 16  # exact counts for the best of them
MAX_CONTEXTS = 16  # root assignments that a world shows; more roots than that are drawn


def prior_class(problem: Problem, headline: int, counts: list[ClassCount], *, nested_roots: bool) -> ModelClass:
    """The class that truths are drawn from; `ValueError` if none has a member or gold is too wide."""
    gold = problem.sealed.gold
    if gold is None:
        able = [c.max_parents for c in counts if c.max_parents >= headline and c.members != "0"]
        if not able:
            raise ValueError("no counted class has a member")
        return ModelClass(able[0], None, nested_roots)
    widest = max((len(function.parents) for function in gold.local_functions.values()), default=0)
    if widest > MAX_PARENTS:
        raise ValueError(f"gold has {widest} functional parents; at most {MAX_PARENTS} are counted")
    return ModelClass(max(headline, widest), None, nested_roots)


def draws(problem: Problem, model_class: ModelClass) -> list[Draw]:
    """Uniform without a cap, uniform with, by size with (audits.replayscm.ambiguity)."""
    return [
        Draw(one.model_class.describe(problem.task), one.size_penalty, None if one.exact is None else float(one.exact))
        for one in draw_probabilities(problem, model_class)
    ]


def uniform_ceiling(problem: Problem, model_class: ModelClass) -> Ceiling:
    """Over all members of the class; `ValueError` without held-out worlds."""
    return _ceiling(problem, VersionSpace(problem.task, model_class), None)


def ceiling_by_size(problem: Problem, model_class: ModelClass) -> Ceiling:
    """Over the members within the cap; `ValueError` without held-out worlds, or if gold is none of them."""
    space = VersionSpace(problem.task, capped(model_class))
    cap, gold = space.model_class.max_size, problem.sealed.gold
    assert cap is not None
    for variable, function in gold.local_functions.items() if gold else ():
        if formula_for(function.table, function.parents or (variable,), synthesised(problem.task.grammar)).size > cap:
            raise ValueError(f"the truth at {variable} has no formula of {cap} nodes, the largest that are listed")
    if not space.count:
        raise ValueError(f"no member has formulas of at most {cap} nodes, the largest that are listed")
    return _ceiling(problem, space, SIZE_PENALTY)


def _ceiling(problem: Problem, space: VersionSpace, penalty: int | None) -> Ceiling:
    if not problem.sealed.heldout.worlds:
        raise ValueError("there are no held-out worlds")
    rng = Random(f"ceiling:{problem.id}")
    found = ceiling(space, problem.sealed.heldout.worlds, rng, size_penalty=penalty, max_counts=CEILING_COUNTS)
    realised = forecast(problem, found).realised if problem.sealed.gold else None
    lower, upper = float(found.lower), float(found.upper)
    return Ceiling(
        space.model_class.describe(problem.task), penalty, lower, upper, found.is_exact, found.counts, realised
    )


def split(problem: Problem, model_class: ModelClass) -> Split | None:
    """The best of the candidates: for an unknown truth, or for gold where roots are hidden; None for one member."""
    task, gold = problem.task, problem.sealed.gold
    space, rng = VersionSpace(task, model_class), Random(f"split:{problem.id}")
    if space.count < 2:
        return None
    if not isinstance(task.disclosure, HiddenRoots):
        return _expected(problem, space, rng)
    if gold is None:
        raise ValueError("the roots are hidden, and there is no gold to show what a world would")
    candidates = _candidates(task, gold.roots, rng)
    world, removed = best_split_for(space, gold, candidates)
    return Split(*_described(space, candidates, world, gold.roots), None, None, None, float(removed))


def _expected(problem: Problem, space: VersionSpace, rng: Random) -> Split:
    gold, disclosure = problem.sealed.gold, problem.task.disclosure
    assert not isinstance(disclosure, HiddenRoots)
    candidates = _candidates(problem.task, disclosure.roots, rng)
    found = best_split(space, candidates, rng, num_draws=SPLIT_DRAWS, max_counts=SPLIT_COUNTS)
    left = found.remaining
    return Split(
        *_described(space, candidates, found.world, disclosure.roots),
        [1 - float(left.upper), 1 - float(left.lower)],
        1 - left.estimate,
        left.standard_error,
        float(removed_share(space, simulated(gold, found.world))) if gold else None,
    )


def _candidates(task: Task, roots: Sequence[str], rng: Random) -> list[World]:
    contexts = None if 1 << len(roots) <= MAX_CONTEXTS else MAX_CONTEXTS
    single = single_worlds(task, rng, roots=roots, contexts_per_world=contexts)
    more = candidate_worlds(task, rng, SPLIT_CANDIDATES, roots=roots, contexts_per_world=contexts)
    return [*single, *more]


def _described(
    space: VersionSpace, candidates: Sequence[World], world: World, roots: Sequence[str]
) -> tuple[str, int, str, list[str], list[str], list[str]]:
    """The first fields of a split, to `rows`."""
    targets = world.intervention.targets
    columns = list(natural({*roots, *targets}))
    words = space.model_class.describe(space.task)
    return words, len(candidates), world.intervention.mode, list(natural(targets)), columns, _shown(world, columns)


def _shown(world: World, columns: list[str]) -> list[str]:
    """The different rows of these columns, in their order."""
    rows = ("".join(str(row[name]) for name in columns) for row in world.rows())
    return list(dict.fromkeys(rows))
