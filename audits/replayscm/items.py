"""The audit of one instance: exact counts of consistent SCMs, predictions for a random truth, members that differ most.

A member is a consistent SCM. The truth is drawn from the smallest class of at least the headline's parents that has
gold as a member; without gold, from the smallest counted class with members. The prior is uniform over the class
without a size cap, or 2**(-total formula size) over the class with one. Probabilities are exact weighted totals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from random import Random
from typing import Any, NamedTuple, TypeVar

from calibrant.audits.replayscm import bounded, findings
from calibrant.audits.replayscm.ambiguity import (
    MAX_SETS,
    PARENTS,
    SIZE_PENALTY,
    Spaces,
    add_size_cap,
    best_split,
    best_split_for,
    candidate_worlds,
    gold_parents,
    headline_parents,
    profile_classes,
    removed_share,
    single_worlds,
    sized_class,
)
from calibrant.audits.replayscm.ceiling import MAX_DESCENT, BestAnswer, ceiling, is_realised, simulate
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.alternatives import MenuResponses, PairwiseExperiments, Separation, witness_for
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.generation.strata import shortcut_floor
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.formulas.catalogue import synthesis_operators
from calibrant.solvers.formulas.synthesis import formula_for
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.members import count_by_size, sample_members, smallest_members
from calibrant.solvers.replayscm.space import VersionSpace

# --- Predictions about a truth drawn from a version space: draws, ceilings, and the world that splits it best ---------
CEILING_COUNTS = 32  # exact counts for one ceiling; if they do not suffice, it is an interval
SPLIT_CANDIDATES = 36  # random worlds of one to three targets that are compared, beside every single intervention
SPLIT_DRAWS = 6  # sampled truths on which they are compared
SPLIT_COUNTS = 16  # exact counts for the best of them
CEILING_SETS = (
    4_000_000  # parent sets times exact counts of one ceiling: with many variables, fewer than CEILING_COUNTS
)
SIZED_SETS = 4  # time of a weight by size, relative to a uniform one
SPLIT_WORK = 400_000_000  # variables x parent sets x truths x worlds: with many variables, fewer worlds are compared
MAX_CONTEXTS = 16  # root assignments that a world shows; of more, a sample


def prior_parents(problem: Problem, headline: int, counts: Sequence[findings.ClassCount]) -> int:
    """Return the parent limit of the class that truths are drawn from; `ValueError` if no class is eligible."""
    if problem.sealed.gold is None:
        eligible = [c.max_parents for c in counts if c.max_parents >= headline and c.members != "0"]
        if not eligible:
            raise ValueError("no counted class has a member")
        return eligible[0]
    return max(headline, gold_parents(problem))


def draws(spaces: Spaces, max_parents: int) -> list[findings.Draw]:
    """Return probabilities that a random member is held-out exact: uniform without and with a cap, by size with one."""
    uncapped, sized = spaces.space(max_parents), _sized_space(spaces, max_parents)
    return [_draw(spaces, *arguments) for arguments in ((uncapped, None), (sized, None), (sized, SIZE_PENALTY))]


def _sized_space(spaces: Spaces, max_parents: int) -> VersionSpace:
    return spaces.space(max_parents, add_size_cap(spaces.space(max_parents).model_class).max_size)


def _draw(spaces: Spaces, space: VersionSpace, penalty: int | None) -> findings.Draw:
    exact = spaces.heldout_exact(space, size_penalty=penalty)
    return findings.Draw(space.model_class.describe(space.task), penalty, None if exact is None else float(exact))


class BoundedCeiling(NamedTuple):
    """A ceiling, and the limits that kept its interval from being narrower, as text; "" if it is exact."""

    ceiling: findings.Ceiling
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
    max_counts = max(1, min(CEILING_COUNTS, CEILING_SETS // max(1, work)))
    best = ceiling(space, spaces.heldout, rng, size_penalty=penalty, max_counts=max_counts)
    record = findings.Ceiling(
        in_words=space.model_class.describe(problem.task),
        size_penalty=penalty,
        lower=float(best.lower),
        upper=float(best.upper),
        exact=best.is_exact,
        counts=best.counts,
        realised=is_realised(problem, best) if problem.sealed.gold else None,
    )
    return BoundedCeiling(record, "" if best.is_exact else _ceiling_cut(best, max_counts))


def _ceiling_cut(best: BestAnswer, max_counts: int) -> str:
    """Describe the limits that were hit; `max_counts`: number of exact counts allowed."""
    cut = []
    if max_counts < CEILING_COUNTS:
        cut.append(
            f"{max_counts} of {CEILING_COUNTS} exact counts made: at most {CEILING_SETS:,} parent sets are weighed"
        )
    else:
        cut.append(f"at most {CEILING_COUNTS} exact counts are made")
    if best.descent_cost:
        cost = f"{best.descent_cost:,} parent sets times held-out rows"
        cut.append(f"no heavier class looked for by descent: {cost}, at most {MAX_DESCENT:,}")
    return "; ".join(cut)


def split(spaces: Spaces, max_parents: int) -> findings.Split | None:
    """Return the candidate world that splits the members best, or for hidden roots the best one if gold is the truth.

    None for fewer than two members.
    """
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


def _expected_split(problem: Problem, space: VersionSpace, rng: Random, roots: tuple[str, ...]) -> findings.Split:
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
    count = min(len(worlds), max(2, SPLIT_WORK // max(1, num_draws * _num_sets(space) * len(space.index))))
    return [worlds[i * len(worlds) // count] for i in range(count)]


def _num_sets(space: VersionSpace) -> int:
    """Count the parent sets of all variables, to which the cost of one count is proportional."""
    return sum(len(space.local(variable).masks) for variable in space.index.values())


def split_cuts(problem: Problem, result: findings.Split) -> dict[str, str]:
    """Return the limits that a split hit: part -> reason."""
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
) -> findings.Split:
    targets = world.intervention.targets
    columns = list(natural({*roots, *targets}))
    return findings.Split(
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
    """Return the distinct rows of these columns, in their order."""
    rows = ("".join(str(row[name]) for name in columns) for row in world.rows())
    return list(dict.fromkeys(rows))


# --- Two members of a version space that differ most: among the smallest ones and random ones, by single interventions
NUM_SMALLEST = 6  # members of least size that are compared
NUM_RANDOM = 6  # random members that are compared
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


def most_different(spaces: Spaces, max_parents: int) -> findings.Survivors | None:
    """Return the pair with the highest disagreement rate, then cell rate; None if no two have the same roots."""
    models = candidates(spaces, max_parents)
    if models and len(models[0].roots) > MAX_ROOTS:
        raise ValueError(f"{len(models[0].roots)} roots: experiments are simulated for at most {MAX_ROOTS}")
    pair = _best_pair(models)
    if pair is None:
        return None
    first, second, separation = pair
    gold, space, sets = spaces.problem.sealed.gold, spaces.space(max_parents), findings.PairAudit(first, second)
    gold_names = [
        name for name, model in (("one", first), ("other", second)) if gold is not None and model.equivalent(gold)
    ]
    return findings.Survivors(
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


# --- The audit of one instance: exact counts of what its evidence leaves open, and the bounded searches beside them
T = TypeVar("T")

CEILINGS = {"ceiling": uniform_ceiling, "ceiling by size": ceiling_by_size}  # as findings name them


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Options of an audit.

    max_parents: parent limit of the headline class, which verdicts are about; None: `headline_parents`
    classes: parent limits of further classes to count
    nested_roots: whether, if roots are hidden, only root sets whose columns are nested over shared units count
    """

    max_parents: int | None = None
    classes: tuple[int, ...] = PARENTS
    nested_roots: bool = False

    def headline(self, problem: Problem) -> int:
        """Return the parent limit of the headline class of an instance."""
        return headline_parents(problem) if self.max_parents is None else self.max_parents

    def to_dict(self) -> dict[str, Any]:
        return {"max_parents": self.max_parents, "classes": list(self.classes), "nested_roots": self.nested_roots}


def audit_instance(problem: Problem, options: AuditOptions) -> findings.Findings:
    """Audit one instance; reads the sealed part, so the result is for benchmark authors."""
    left_out: dict[str, str] = {}
    spaces = Spaces(problem, nested_roots=options.nested_roots)
    headline = options.headline(problem)

    def attempt(part: str, make: Callable[[], T]) -> T | None:
        try:
            return make()
        except (
            ValueError,
            BudgetSpent,
        ) as error:  # the part does not apply to this instance; the message is the reason
            left_out[part] = str(error)
            return None

    classes = [_count_class(spaces, k) for k in sorted({*options.classes, headline})]
    capped = _count_all_capped(spaces, max(headline, spaces.widest), left_out)
    task = problem.task
    exposed = attempt("exposure", lambda: bounded.exposure(problem))
    prior = attempt("draws", lambda: prior_parents(problem, headline, classes))
    ceilings: list[findings.Ceiling] = []
    if prior is not None:
        for part, make in CEILINGS.items():
            if (ceiling := attempt(part, partial(make, spaces, prior))) is not None:
                ceilings.append(ceiling.ceiling)
                left_out |= {f"{part}, narrower": ceiling.cut} if ceiling.cut else {}
    divided = attempt("split", lambda: split(spaces, prior)) if prior else None
    left_out |= split_cuts(problem, divided) if divided is not None else {}
    return findings.Findings(
        num_variables=len(task.variables),
        num_roots=task.disclosure.num_roots,
        num_worlds=len(task.training.worlds),
        num_rows=task.training.num_rows,
        num_heldout=len(problem.sealed.heldout.worlds),
        headline=headline,
        classes=classes,
        capped=capped,
        spectrum=attempt("spectrum", lambda: _spectrum(spaces, headline)),
        draws=draws(spaces, prior) if prior else [],
        ceilings=ceilings,
        bounded=attempt(
            "bounded", lambda: bounded.BoundedAudit(problem).everything(shortcut_floor=shortcut_floor(problem.stratum))
        ),
        exposure=exposed,
        coverage=attempt("coverage", lambda: _coverage(problem)),
        mix=bounded.intervention_mix(problem),
        balance=bounded.heldout_balance(problem),
        survivors=attempt("survivors", lambda: _survivors(spaces, headline, classes)),
        split=divided,
        left_out=left_out,
    )


def _count_class(spaces: Spaces, max_parents: int) -> findings.ClassCount:
    space = spaces.space(max_parents)
    members, agreeing = space.count, None
    if spaces.heldout:
        share = spaces.heldout_exact(space)
        agreeing = "0" if share is None else str(int(share * members))
    return findings.ClassCount(max_parents, space.model_class.describe(space.task), str(members), agreeing)


def _count_capped(spaces: Spaces, max_parents: int, max_size: int) -> findings.CappedCount:
    return findings.CappedCount(max_parents, max_size, str(spaces.space(max_parents, max_size).count))


def _count_all_capped(spaces: Spaces, widest: int, left_out: dict[str, str]) -> list[findings.CappedCount]:
    """Count the capped classes of `profile_classes` up to `widest` parents; state the others in `left_out`."""
    counts = []
    for model_class in profile_classes():
        if model_class.max_size is None:
            continue
        if model_class.max_parents <= widest:
            counts.append(_count_capped(spaces, model_class.max_parents, model_class.max_size))
        else:
            reason = f"{spaces.num_sets:,} parent sets; at most {MAX_SETS:,} are gone through"
            left_out[f"k <= {model_class.max_parents}, size <= {model_class.max_size}"] = reason
    return counts


def _coverage(problem: Problem) -> findings.Coverage:
    measured = bounded.pattern_coverage(problem)
    return findings.Coverage(
        measured.num_seen, measured.total, {part.variable: [part.num_seen, part.total] for part in measured.by_variable}
    )


def _spectrum(spaces: Spaces, max_parents: int) -> findings.Spectrum:
    sized = sized_class(spaces.problem.task, max_parents)
    space = spaces.space(sized.max_parents, sized.max_size)
    sizes = count_by_size(space)
    words = space.model_class.describe(space.task)
    return findings.Spectrum(words, {size: str(count) for size, count in sizes.items()})


def _survivors(spaces: Spaces, headline: int, classes: Sequence[findings.ClassCount]) -> findings.Survivors | None:
    """Choose two members of the headline class, or of the next wider one with members; None if one is unique."""
    with_members = [c for c in classes if c.max_parents >= headline and c.members != "0"]
    if not with_members or with_members[0].members == "1":
        return None
    return most_different(spaces, with_members[0].max_parents)
