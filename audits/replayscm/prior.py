"""What is known of a truth that is drawn from a version space: draws, ceilings, and the world that splits it best.

The class is the smallest one of at least the headline's parents that has gold as a member; without gold, the smallest
counted one that has any. Uniform weights are over the class without a size cap, weights by size over the one with:
these are 2**(-total formula size), and their probabilities come from weighted totals, not from draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from calibrant.audits.replayscm.ambiguity import SIZE_PENALTY, capped, gold_parents
from calibrant.audits.replayscm.behaviour import simulated
from calibrant.audits.replayscm.ceiling import MAX_DESCENT, BestAnswer, ceiling, is_realised
from calibrant.audits.replayscm.findings import Ceiling, ClassCount, Draw, Split
from calibrant.audits.replayscm.spaces import Spaces
from calibrant.audits.replayscm.splitting import (
    best_split,
    best_split_for,
    candidate_worlds,
    removed_share,
    single_worlds,
)
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.problem import Problem, Task
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.formulas.essential import synthesised
from calibrant.solvers.formulas.lookup import formula_for
from calibrant.solvers.replayscm.version_space import VersionSpace

CEILING_COUNTS = 32  # exact counts for one ceiling; an interval where they do not suffice
SPLIT_CANDIDATES = 36  # random worlds of one to three targets that are compared, beside every single intervention
SPLIT_DRAWS = 6  # truths that they are compared on
SPLIT_COUNTS = 16  # exact counts for the best of them
CEILING_SETS = 4_000_000  # parent sets weighed for one ceiling; many variables leave fewer counts than CEILING_COUNTS
SIZED_SETS = 4  # a weight by size takes as long as so many without
SPLIT_WORK = 400_000_000  # variables times parent sets times truths times worlds; many variables leave fewer worlds
MAX_CONTEXTS = 16  # root assignments that a world shows; more roots than that are drawn


def prior_parents(problem: Problem, headline: int, counts: Sequence[ClassCount]) -> int:
    """The bound of parents of the class that truths are drawn from; `ValueError` if none has a member or gold."""
    if problem.sealed.gold is None:
        able = [c.max_parents for c in counts if c.max_parents >= headline and c.members != "0"]
        if not able:
            raise ValueError("no counted class has a member")
        return able[0]
    return max(headline, gold_parents(problem))


def draws(spaces: Spaces, max_parents: int) -> list[Draw]:
    """Uniform without a cap, uniform with, by size with."""
    whole, sized = spaces.space(max_parents), _sized(spaces, max_parents)
    return [_draw(spaces, *one) for one in ((whole, None), (sized, None), (sized, SIZE_PENALTY))]


def _sized(spaces: Spaces, max_parents: int) -> VersionSpace:
    return spaces.space(max_parents, capped(spaces.space(max_parents).model_class).max_size)


def _draw(spaces: Spaces, space: VersionSpace, penalty: int | None) -> Draw:
    exact = spaces.heldout_exact(space, size_penalty=penalty)
    return Draw(space.model_class.describe(space.task), penalty, None if exact is None else float(exact))


class BoundedCeiling(NamedTuple):
    """A ceiling, and which limits kept its interval from being narrower; empty if none did."""

    found: Ceiling
    cut: str


def uniform_ceiling(spaces: Spaces, max_parents: int) -> BoundedCeiling:
    """Over all members of the class; `ValueError` without held-out worlds."""
    return _ceiling(spaces, spaces.space(max_parents), None)


def ceiling_by_size(spaces: Spaces, max_parents: int) -> BoundedCeiling:
    """Over the members within the cap; `ValueError` without held-out worlds, or if gold is none of them."""
    space, problem = _sized(spaces, max_parents), spaces.problem
    cap, gold = space.model_class.max_size, problem.sealed.gold
    assert cap is not None
    for variable, function in gold.local_functions.items() if gold else ():
        if formula_for(function.table, function.parents or (variable,), synthesised(problem.task.grammar)).size > cap:
            raise ValueError(f"the truth at {variable} has no formula of {cap} nodes, the largest that are listed")
    if not space.count:
        raise ValueError(f"no member has formulas of at most {cap} nodes, the largest that are listed")
    return _ceiling(spaces, space, SIZE_PENALTY)


def _ceiling(spaces: Spaces, space: VersionSpace, penalty: int | None) -> BoundedCeiling:
    problem = spaces.problem
    if not spaces.heldout:
        raise ValueError("there are no held-out worlds")
    rng = Random(f"ceiling:{problem.id}")
    each = _num_sets(space) * (1 if penalty is None else SIZED_SETS)
    counts = max(1, min(CEILING_COUNTS, CEILING_SETS // max(1, each)))
    found = ceiling(space, spaces.heldout, rng, size_penalty=penalty, max_counts=counts)
    shown = Ceiling(
        in_words=space.model_class.describe(problem.task),
        size_penalty=penalty,
        lower=float(found.lower),
        upper=float(found.upper),
        exact=found.is_exact,
        counts=found.counts,
        realised=is_realised(problem, found) if problem.sealed.gold else None,
    )
    return BoundedCeiling(shown, "" if found.is_exact else _ceiling_cut(found, counts))


def _ceiling_cut(found: BestAnswer, counts: int) -> str:
    """Return what could not be afforded. counts: how many exact counts were allowed"""
    cut = []
    if counts < CEILING_COUNTS:
        cut.append(f"{counts} of {CEILING_COUNTS} exact counts made: at most {CEILING_SETS:,} parent sets are weighed")
    else:
        cut.append(f"at most {CEILING_COUNTS} exact counts are made")
    if found.descent_cost:
        cost = f"{found.descent_cost:,} parent sets times held-out rows"
        cut.append(f"no heavier class looked for by descent: {cost}, at most {MAX_DESCENT:,}")
    return "; ".join(cut)


def split(spaces: Spaces, max_parents: int) -> Split | None:
    """The best of the candidates: for an unknown truth, or for gold where roots are hidden; None for one member."""
    problem, space = spaces.problem, spaces.space(max_parents)
    task, gold, rng = problem.task, problem.sealed.gold, Random(f"split:{problem.id}")
    if space.count < 2:
        return None
    if task.disclosure.roots is not None:
        return _expected(problem, space, rng, task.disclosure.roots)
    if gold is None:
        raise ValueError("the roots are hidden, and there is no gold to show what a world would")
    candidates = _affordable(space, _candidates(task, gold.roots, rng), 1)
    world, removed = best_split_for(space, gold, candidates)
    return _described(space, candidates, world, gold.roots, removed_from_gold=float(removed))


def _expected(problem: Problem, space: VersionSpace, rng: Random, roots: tuple[str, ...]) -> Split:
    gold = problem.sealed.gold
    candidates = _affordable(space, _candidates(problem.task, roots, rng), SPLIT_DRAWS)
    found = best_split(space, candidates, rng, num_draws=SPLIT_DRAWS, max_counts=SPLIT_COUNTS)
    left = found.remaining
    return _described(
        space,
        candidates,
        found.world,
        roots,
        removed=[1 - float(left.upper), 1 - float(left.lower)],
        estimate=1 - left.estimate,
        standard_error=left.standard_error,
        removed_from_gold=float(removed_share(space, simulated(gold, found.world))) if gold else None,
    )


def _candidates(task: Task, roots: Sequence[str], rng: Random) -> list[World]:
    contexts = None if 1 << len(roots) <= MAX_CONTEXTS else MAX_CONTEXTS
    single = single_worlds(task, rng, roots=roots, contexts_per_world=contexts)
    more = candidate_worlds(task, rng, SPLIT_CANDIDATES, roots=roots, contexts_per_world=contexts)
    return [*single, *more]


def _affordable(space: VersionSpace, worlds: list[World], num_draws: int) -> list[World]:
    """All of the worlds, or as many as SPLIT_WORK allows, evenly chosen."""
    number = min(len(worlds), max(2, SPLIT_WORK // max(1, num_draws * _num_sets(space) * len(space.index))))
    return [worlds[i * len(worlds) // number] for i in range(number)]


def _num_sets(space: VersionSpace) -> int:
    """Parent sets of all variables, each with a weight of its own in every count."""
    return sum(len(space.local(variable).masks) for variable in space.index.values())


def split_cuts(problem: Problem, found: Split) -> dict[str, str]:
    """Return what of a split could not be afforded: part -> which limit that was."""
    cut = {}
    whole = 3 * len(problem.task.variables) + SPLIT_CANDIDATES
    if found.candidates < whole:
        work = "variables times parent sets times truths times worlds"
        cut["split by other worlds"] = (
            f"{found.candidates} of {whole} worlds compared: {work} is at most {SPLIT_WORK:,}"
        )
    contexts = 1 << problem.task.disclosure.num_roots
    if contexts > MAX_CONTEXTS:
        drawn = f"{MAX_CONTEXTS} of {contexts:,} root assignments drawn for each world"
        cut["split by worlds of more rows"] = f"{drawn}: none shows more"
    if found.removed is not None and found.removed[0] < found.removed[1]:
        cut["split, narrower"] = f"at most {SPLIT_COUNTS} exact counts are made"
    return cut


def _described(
    space: VersionSpace,
    candidates: Sequence[World],
    world: World,
    roots: Sequence[str],
    *,
    removed: list[float] | None = None,
    estimate: float | None = None,
    standard_error: float | None = None,
    removed_from_gold: float | None = None,
) -> Split:
    targets = world.intervention.targets
    columns = list(natural({*roots, *targets}))
    return Split(
        in_words=space.model_class.describe(space.task),
        candidates=len(candidates),
        mode=world.intervention.mode,
        targets=list(natural(targets)),
        columns=columns,
        rows=_shown(world, columns),
        removed=removed,
        estimate=estimate,
        standard_error=standard_error,
        removed_from_gold=removed_from_gold,
    )


def _shown(world: World, columns: list[str]) -> list[str]:
    """The different rows of these columns, in their order."""
    rows = ("".join(str(row[name]) for name in columns) for row in world.rows())
    return list(dict.fromkeys(rows))
