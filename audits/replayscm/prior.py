"""Predictions about a truth drawn from a version space: draws, ceilings, and the world that splits it best.

The class is the smallest one of at least the headline's parents that has gold as a member; without gold, the smallest
counted one that has any. Uniform weights are over the class without a size cap, weights by size over the one with:
these are 2**(-total formula size), and their probabilities come from weighted totals, not from draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from calibrant.audits.replayscm.ambiguity import SIZE_PENALTY, add_size_cap, gold_parents
from calibrant.audits.replayscm.behaviour import simulate
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
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.formulas.catalogue import synthesis_operators
from calibrant.solvers.formulas.lookup import formula_for
from calibrant.solvers.replayscm.space import VersionSpace

CEILING_COUNTS = 32  # exact counts for one ceiling; an interval where they do not suffice
SPLIT_CANDIDATES = 36  # random worlds of one to three targets that are compared, beside every single intervention
SPLIT_DRAWS = 6  # truths that they are compared on
SPLIT_COUNTS = 16  # exact counts for the best of them
CEILING_SETS = 4_000_000  # parent sets weighed for one ceiling; many variables leave fewer counts than CEILING_COUNTS
SIZED_SETS = 4  # a weight by size takes as long as so many without
SPLIT_WORK = 400_000_000  # variables times parent sets times truths times worlds; many variables leave fewer worlds
MAX_CONTEXTS = 16  # root assignments that a world shows; more roots than that are drawn


def prior_parents(problem: Problem, headline: int, counts: Sequence[ClassCount]) -> int:
    """Return the bound of parents of the class that truths are drawn from; `ValueError` if no class is eligible."""
    if problem.sealed.gold is None:
        able = [c.max_parents for c in counts if c.max_parents >= headline and c.members != "0"]
        if not able:
            raise ValueError("no counted class has a member")
        return able[0]
    return max(headline, gold_parents(problem))


def draws(spaces: Spaces, max_parents: int) -> list[Draw]:
    """Return the probabilities uniform without a cap, uniform with one, and by size with one."""
    uncapped, sized = spaces.space(max_parents), _sized_space(spaces, max_parents)
    return [_draw(spaces, *arguments) for arguments in ((uncapped, None), (sized, None), (sized, SIZE_PENALTY))]


def _sized_space(spaces: Spaces, max_parents: int) -> VersionSpace:
    return spaces.space(max_parents, add_size_cap(spaces.space(max_parents).model_class).max_size)


def _draw(spaces: Spaces, space: VersionSpace, penalty: int | None) -> Draw:
    exact = spaces.heldout_exact(space, size_penalty=penalty)
    return Draw(space.model_class.describe(space.task), penalty, None if exact is None else float(exact))


class BoundedCeiling(NamedTuple):
    """A ceiling, and which limits kept its interval from being narrower; empty if none did."""

    ceiling: Ceiling
    cut: str


def uniform_ceiling(spaces: Spaces, max_parents: int) -> BoundedCeiling:
    """Return the ceiling over all members of the class; `ValueError` without held-out worlds."""
    return _ceiling(spaces, spaces.space(max_parents), None)


def ceiling_by_size(spaces: Spaces, max_parents: int) -> BoundedCeiling:
    """Return the ceiling over members within the cap; `ValueError` without held-out worlds or if gold is outside."""
    space, problem = _sized_space(spaces, max_parents), spaces.problem
    cap, gold = space.model_class.max_size, problem.sealed.gold
    assert cap is not None
    for variable, function in gold.local_functions.items() if gold else ():
        if (
            formula_for(function.table, function.parents or (variable,), synthesis_operators(problem.task.grammar)).size
            > cap
        ):
            raise ValueError(f"the truth at {variable} has no formula of {cap} nodes, the largest that are listed")
    if not space.count:
        raise ValueError(f"no member has formulas of at most {cap} nodes, the largest that are listed")
    return _ceiling(spaces, space, SIZE_PENALTY)


def _ceiling(spaces: Spaces, space: VersionSpace, penalty: int | None) -> BoundedCeiling:
    problem = spaces.problem
    if not spaces.heldout:
        raise ValueError("there are no held-out worlds")
    rng = Random(f"ceiling:{problem.id}")
    work = _num_sets(space) * (1 if penalty is None else SIZED_SETS)
    counts = max(1, min(CEILING_COUNTS, CEILING_SETS // max(1, work)))
    best = ceiling(space, spaces.heldout, rng, size_penalty=penalty, max_counts=counts)
    record = Ceiling(
        in_words=space.model_class.describe(problem.task),
        size_penalty=penalty,
        lower=float(best.lower),
        upper=float(best.upper),
        exact=best.is_exact,
        counts=best.counts,
        realised=is_realised(problem, best) if problem.sealed.gold else None,
    )
    return BoundedCeiling(record, "" if best.is_exact else _ceiling_cut(best, counts))


def _ceiling_cut(best: BestAnswer, counts: int) -> str:
    """Describe the limits that were hit.

    counts: how many exact counts were allowed
    """
    cut = []
    if counts < CEILING_COUNTS:
        cut.append(f"{counts} of {CEILING_COUNTS} exact counts made: at most {CEILING_SETS:,} parent sets are weighed")
    else:
        cut.append(f"at most {CEILING_COUNTS} exact counts are made")
    if best.descent_cost:
        cost = f"{best.descent_cost:,} parent sets times held-out rows"
        cut.append(f"no heavier class looked for by descent: {cost}, at most {MAX_DESCENT:,}")
    return "; ".join(cut)


def split(spaces: Spaces, max_parents: int) -> Split | None:
    """Return the best candidate for an unknown truth, or for gold where roots are hidden; None for one member."""
    problem, space = spaces.problem, spaces.space(max_parents)
    task, gold, rng = problem.task, problem.sealed.gold, Random(f"split:{problem.id}")
    if space.count < 2:
        return None
    if task.disclosure.roots is not None:
        return _expected_split(problem, space, rng, task.disclosure.roots)
    if gold is None:
        raise ValueError("the roots are hidden, and there is no gold to show what a world would")
    candidates = _affordable(space, _candidates(task, gold.roots, rng), 1)
    world, removed = best_split_for(space, gold, candidates)
    return _describe_split(space, candidates, world, gold.roots, removed_from_gold=float(removed))


def _expected_split(problem: Problem, space: VersionSpace, rng: Random, roots: tuple[str, ...]) -> Split:
    gold = problem.sealed.gold
    candidates = _affordable(space, _candidates(problem.task, roots, rng), SPLIT_DRAWS)
    best = best_split(space, candidates, rng, num_draws=SPLIT_DRAWS, max_counts=SPLIT_COUNTS)
    remaining = best.remaining
    return _describe_split(
        space,
        candidates,
        best.world,
        roots,
        removed=[1 - float(remaining.upper), 1 - float(remaining.lower)],
        estimate=1 - remaining.estimate,
        standard_error=remaining.standard_error,
        removed_from_gold=float(removed_share(space, simulate(gold, best.world))) if gold else None,
    )


def _candidates(task: Task, roots: Sequence[str], rng: Random) -> list[World]:
    contexts = None if 1 << len(roots) <= MAX_CONTEXTS else MAX_CONTEXTS
    single = single_worlds(task, rng, roots=roots, contexts_per_world=contexts)
    more = candidate_worlds(task, rng, SPLIT_CANDIDATES, roots=roots, contexts_per_world=contexts)
    return [*single, *more]


def _affordable(space: VersionSpace, worlds: list[World], num_draws: int) -> list[World]:
    """Return all of the worlds, or as many as SPLIT_WORK allows, evenly chosen."""
    number = min(len(worlds), max(2, SPLIT_WORK // max(1, num_draws * _num_sets(space) * len(space.index))))
    return [worlds[i * len(worlds) // number] for i in range(number)]


def _num_sets(space: VersionSpace) -> int:
    """Return parent sets of all variables, each with a weight of its own in every count."""
    return sum(len(space.local(variable).masks) for variable in space.index.values())


def split_cuts(problem: Problem, result: Split) -> dict[str, str]:
    """Return the limits that a split hit, by part."""
    cut = {}
    num_candidates = 3 * len(problem.task.variables) + SPLIT_CANDIDATES
    if result.candidates < num_candidates:
        work = "variables times parent sets times truths times worlds"
        cut["split by other worlds"] = (
            f"{result.candidates} of {num_candidates} worlds compared: {work} is at most {SPLIT_WORK:,}"
        )
    contexts = 1 << problem.task.disclosure.num_roots
    if contexts > MAX_CONTEXTS:
        sample_note = f"{MAX_CONTEXTS} of {contexts:,} root assignments drawn for each world"
        cut["split by worlds of more rows"] = f"{sample_note}: none shows more"
    if result.removed is not None and result.removed[0] < result.removed[1]:
        cut["split, narrower"] = f"at most {SPLIT_COUNTS} exact counts are made"
    return cut


def _describe_split(
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
        rows=_distinct_rows(world, columns),
        removed=removed,
        estimate=estimate,
        standard_error=standard_error,
        removed_from_gold=removed_from_gold,
    )


def _distinct_rows(world: World, columns: list[str]) -> list[str]:
    """Return the different rows of these columns, in their order."""
    rows = ("".join(str(row[name]) for name in columns) for row in world.rows())
    return list(dict.fromkeys(rows))
