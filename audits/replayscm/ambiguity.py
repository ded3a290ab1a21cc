"""Ambiguity of an item: counts of consistent SCMs, and splits of version spaces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import comb, sqrt
from random import Random
from statistics import fmean, stdev

import numpy as np

from calibrant.dsl.formulas.text import Grammar
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.generation.strata import MAX_TARGETS
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, Rows, World, pack_rows
from calibrant.solvers.formulas import catalogue
from calibrant.solvers.formulas.synthesis import MAX_SIZE_OF_FOUR
from calibrant.solvers.outcome import Budget
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, Members, ParentSets, draw
from calibrant.solvers.replayscm.space import MAX_PARENTS, ModelClass, VersionSpace

# --- The classes in which an audit counts the consistent SCMs, and their version spaces -------------------------------
# Classes without a size cap admit every function of at most k parents. Capped classes bound the formula size of each
# mechanism. A capped class has to be enumerated completely, so a cap is used only up to the number of parents for which
# every function of at most that size is listed: `CAPS`. A count of 0 means that the class has no train-exact SCM, for
# instance because a gold mechanism has more parents.
PARENTS = (2, 3, 4, 5)  # most functional parents of the classes that every audit counts
MIN_PARENTS = 4  # most published records draw at most four parents; smaller classes would tell little
CAPS = {  # size cap -> most parents for which it is complete
    MAX_SIZE_OF_FOUR: 4,
    **{size: parents for parents, size in catalogue.MAX_SIZES.items()},
}
SIZE_PENALTY = 1  # an SCM of total formula size s has the weight 2**-s


def gold_parents(problem: Problem) -> int:
    """Return the most functional parents of a mechanism of gold; `ValueError` if that is more than are counted."""
    from calibrant.audits.replayscm.bounded import latent_scm  # `fit` and `list --why` do without it

    widest = max((len(f.parents) for f in latent_scm(problem).local_functions.values()), default=0)
    if widest > MAX_PARENTS:
        raise ValueError(f"gold has {widest} functional parents; at most {MAX_PARENTS} are counted")
    return widest


def gold_class(problem: Problem) -> ModelClass:
    """Return the smallest class of at least MIN_PARENTS parents that has gold as a member, of any formula size."""
    return restrict_to_grammar(ModelClass(max(MIN_PARENTS, gold_parents(problem))), problem.task.grammar)


def restrict_to_grammar(model_class: ModelClass, grammar: Grammar) -> ModelClass:
    """Return the part of an uncapped class that the grammar can express, as a class with a cap that excludes none.

    Return the class itself if the grammar expresses every function, or if the expressible functions are not listed
    completely; its description then mentions functions that no formula expresses.
    """
    if model_class.max_size is not None or "if" in grammar.operators or catalogue.expresses_everything(grammar):
        return model_class
    if grammar.allow_constants:  # a literal inside a formula could express more than is listed
        return model_class
    functions = catalogue.essential_functions(model_class.max_parents, catalogue.synthesis_operators(grammar))
    if set(functions.complete_to[1:].tolist()) != {catalogue.COMPLETE}:
        return model_class
    return replace(model_class, max_size=int(functions.sizes.max()))


def headline_parents(problem: Problem) -> int:
    """Return the parent limit of the headline class, which reports use: the smallest countable class with gold.

    Without gold it is MIN_PARENTS, as the evidence shows that a class is too narrow only if it has no members.
    """
    gold = problem.sealed.gold
    widest = max((len(f.parents) for f in gold.local_functions.values()), default=0) if gold else 0
    return min(max(MIN_PARENTS, widest), MAX_PARENTS)


def add_size_cap(model_class: ModelClass) -> ModelClass:
    """Return the same class with the largest cap on formula size that is complete for its number of parents."""
    largest = max(cap for cap, parents in CAPS.items() if parents >= model_class.max_parents)
    return replace(model_class, max_size=largest)


def sized_class(task: Task, max_parents: int, *, nested_roots: bool = False) -> ModelClass:
    """Return a class with a size cap that excludes no function of up to four parents, so that members list by size."""
    parents = min(max_parents, 4)
    complete = (
        catalogue.essential_functions(parents, catalogue.synthesis_operators(task.grammar)).complete_to[1:].tolist()
    )
    cap = min((size for size in complete if size != catalogue.COMPLETE), default=MAX_SIZE_OF_FOUR)
    return ModelClass(parents, min(cap, MAX_SIZE_OF_FOUR), nested_roots)


def profile_classes() -> tuple[ModelClass, ...]:
    """Return the classes that an audit counts: k = 2 to 5 parents without a cap, then with each cap of CAPS."""
    sized = [ModelClass(k, cap) for cap, max_parents in CAPS.items() for k in range(PARENTS[0], max_parents + 1)]
    return (*(ModelClass(k) for k in PARENTS), *sized)


# --- Version spaces of one audited instance, each built once ----------------------------------------------------------
MAX_SETS = 30_000_000  # parent sets of all variables, up to which classes wider than PARENTS are counted


class Spaces:
    """Version spaces by class, given the training worlds, and given the held-out worlds too.

    All of them share the counts of the widest class, which are most of the work.
    """

    def __init__(self, problem: Problem, *, nested_roots: bool = False) -> None:
        self.problem = problem
        self.nested_roots = nested_roots
        self._training: dict[ModelClass, VersionSpace] = {}
        self._replaying: dict[ModelClass, VersionSpace] = {}

    @property
    def heldout(self) -> Sequence[World]:
        return self.problem.sealed.heldout.worlds

    @cached_property
    def widest(self) -> int:
        """Most parents of the widest class that is counted by default."""
        return MAX_PARENTS if self.num_sets <= MAX_SETS else PARENTS[-1]

    @cached_property
    def num_sets(self) -> int:
        """Number of parent sets of at most MAX_PARENTS, over all variables."""
        disclosure = self.problem.task.disclosure
        candidates = [len(disclosure.admissible_parents(variable)) for variable in self.problem.task.variables]
        return sum(comb(num_candidates, k) for num_candidates in candidates for k in range(MAX_PARENTS + 1))

    def space(self, max_parents: int, max_size: int | None = None) -> VersionSpace:
        """Return the version space of the training worlds in a class, with the audit's root sets.

        max_size: None for every function that the grammar can express (`restrict_to_grammar`)
        """
        requested = ModelClass(max_parents, max_size, self.nested_roots)
        return self._space(restrict_to_grammar(requested, self.problem.task.grammar))

    def _space(self, model_class: ModelClass) -> VersionSpace:
        return self._subspace(
            self._training, model_class, self.widest, lambda widest: VersionSpace(self.problem.task, widest)
        )

    def _subspace(
        self,
        built: dict[ModelClass, VersionSpace],
        model_class: ModelClass,
        max_parents: int,
        build: Callable[[ModelClass], VersionSpace],
    ) -> VersionSpace:
        """Return the space of a class, built within the space of the widest class of the same evidence."""
        widest = replace(model_class, max_parents=max(max_parents, model_class.max_parents), max_size=None)
        if widest not in built:
            built[widest] = build(widest)
        if model_class not in built:
            built[model_class] = built[widest].within(model_class.max_parents, model_class.max_size)
        return built[model_class]

    def heldout_exact(self, space: VersionSpace, *, size_penalty: int | None = None) -> Fraction | None:
        """Return the weighted share of a space's members that replay the held-out worlds; None without members."""
        if not space.count or not self.heldout:
            return None
        return space.share(self._after(space.model_class), size_penalty=size_penalty)

    def _after(self, model_class: ModelClass) -> VersionSpace:
        return self._subspace(
            self._replaying, model_class, PARENTS[-1], lambda widest: self._space(widest).with_worlds(self.heldout)
        )


# --- Splitting a version space: which world removes the largest share of its members ----------------------------------
# For a known truth the share that a world removes is exact: one minus the agreement. Otherwise the truth is one of the
# members, and a world that splits them into outcomes of shares p1, p2, ... leaves sum p ** 2 of them on average. That
# sum is exact if the outcomes can be listed within the budget of counts. If not, it is bounded by the outcomes found so
# far, and estimated without bias: the share of a sampled member's own outcome has that sum as its expectation.
#
# With hidden roots, a row fixes no context unless a truth fills it in: members with other roots would copy other
# values. Then a split is measured for a known truth only.
MAX_COUNTS = 200  # exact counts within which the outcomes of one world are listed
NUM_DRAWS = 16  # truths sampled for an estimate
NUM_FINALISTS = 8  # candidates that are compared a second time,
FINAL_FACTOR = 4  # on so many times the sampled truths


@dataclass(frozen=True, slots=True)
class Remaining:
    """The expected share of members that a world leaves, over truths sampled from the members.

    lower, upper: certified bounds
    estimate, standard_error: from sampled truths if the bounds differ; the error is None for a single sample
    outcomes: number of different outcomes that were found
    """

    lower: Fraction
    upper: Fraction
    estimate: float
    standard_error: float | None
    outcomes: int

    @property
    def is_exact(self) -> bool:
        return self.lower == self.upper


@dataclass(frozen=True, slots=True)
class SplittingWorld:
    """A world, and the expected share of members that it leaves."""

    world: World
    remaining: Remaining


def removed_share(space: VersionSpace, world: World) -> Fraction:
    """Return the share of members that do not replay a world simulated from the truth; exact."""
    return 1 - _remaining_shares(space, [world])[0]


def _remaining_shares(space: VersionSpace, worlds: Sequence[World]) -> list[Fraction]:
    """Return the share of members that replay each of the worlds; exact. `ZeroDivisionError` for an empty space."""
    sets = ParentSets(space, None)
    spans = np.cumsum([0, *(world.num_rows for world in worlds)])
    weights = sets.weights(sets.cares, sets.values, pack_rows(worlds, space.task.variables), spans)
    counts = [0] * len(worlds)
    for roots in space.counts_by_roots:
        counts = [sum(pair) for pair in zip(counts, ConditionedSpace(sets, roots).totals(weights), strict=True)]
    return [Fraction(count, space.count) for count in counts]


def expected_remaining(
    space: VersionSpace, world: World, rng: Random, *, max_counts: int = MAX_COUNTS, num_draws: int = NUM_DRAWS
) -> Remaining:
    """Return the expected share of members that a world leaves; ValueError with hidden roots.

    world: only its columns of targets and roots are read
    """
    from calibrant.audits.replayscm.ceiling import ClassSearch, list_classes

    _require_roots(space)
    search = ClassSearch(space, [world], rng, budget=Budget(max_counts))
    behaviour_classes, complete = list_classes(search)
    squares = sum((behaviour.share**2 for behaviour in behaviour_classes), start=Fraction(0))
    if complete:
        return Remaining(squares, squares, float(squares), 0.0, len(behaviour_classes))
    unlisted = 1 - sum((behaviour.share for behaviour in behaviour_classes), start=Fraction(0))
    upper = squares + unlisted * Fraction(search.bound, search.mass)
    (estimate,) = Truths.sample(space, rng, num_draws).remaining([world])
    return Remaining(squares, upper, *estimate, len(behaviour_classes))


def best_split(
    space: VersionSpace,
    candidates: Iterable[World],
    rng: Random,
    *,
    num_draws: int = NUM_DRAWS,
    max_counts: int = MAX_COUNTS,
) -> SplittingWorld:
    """Return the candidate with the smallest expected share left, the first of equals; `ValueError` without candidates.

    All candidates are compared on the same sampled truths, the NUM_FINALISTS best of them on FINAL_FACTOR times as many
    others, since few samples can miss an outcome that many members share. The winner is measured again with new ones,
    because the estimate that made it win is too favourable.
    """
    _require_roots(space)
    finalists = list(candidates)
    if not finalists:
        raise ValueError("no candidate worlds to choose from")
    for num_truths, num_kept in ((num_draws, NUM_FINALISTS), (FINAL_FACTOR * num_draws, 1)):
        remaining = Truths.sample(space, rng, num_truths).remaining(finalists)
        ranked = sorted(zip(remaining, finalists, strict=True), key=lambda pair: pair[0][0])
        finalists = [world for _, world in ranked[:num_kept]]
    (world,) = finalists
    return SplittingWorld(world, expected_remaining(space, world, rng, max_counts=max_counts, num_draws=num_draws))


def best_split_for(space: VersionSpace, truth: Scm, candidates: Iterable[World]) -> tuple[World, Fraction]:
    """Return the candidate that removes the largest share if this SCM is the truth, and that share; exact.

    The worlds fix the truth's roots, even if the task hides them.
    """
    from calibrant.audits.replayscm.ceiling import simulate

    simulations = [simulate(truth, world) for world in candidates]
    if not simulations:
        raise ValueError("no candidate worlds to choose from")
    removed = [1 - share for share in _remaining_shares(space, simulations)]
    best = removed.index(max(removed))
    return simulations[best], removed[best]


def single_worlds(
    task: Task, rng: Random, *, roots: Sequence[str] | None = None, contexts_per_world: int | None = None
) -> Iterator[World]:
    """Yield the hard interventions on one variable: 0, 1 and values by row; contexts as in `candidate_worlds`."""
    for target in task.variables:
        for intervention in (Intervention({target: 0}), Intervention({target: 1}), Intervention(assigned=(target,))):
            yield _world(task, rng, intervention, roots, contexts_per_world)


def candidate_worlds(
    task: Task,
    rng: Random,
    count: int,
    *,
    roots: Sequence[str] | None = None,
    max_targets: int = MAX_TARGETS,
    contexts_per_world: int | None = None,
) -> Iterator[World]:
    """Yield random worlds to choose from: one to `max_targets` targets in either mode, a row per root assignment.

    Columns of variables that are neither targets nor roots are 0 and not to be read.

    roots: of the truth, for a task that hides them
    contexts_per_world: number of root assignments, sampled without repetition; None for all
    """
    for _ in range(count):
        targets = natural(rng.sample(task.variables, rng.randint(1, min(max_targets, len(task.variables)))))
        assigned = rng.random() < 0.5
        intervention = (
            Intervention(assigned=targets)
            if assigned
            else Intervention({target: rng.getrandbits(1) for target in targets})
        )
        yield _world(task, rng, intervention, roots, contexts_per_world)


def _world(
    task: Task, rng: Random, intervention: Intervention, roots: Sequence[str] | None, contexts_per_world: int | None
) -> World:
    if roots is None:
        roots = task.disclosure.roots
        if roots is None:
            raise ValueError("worlds are chosen by their root contexts; the roots are hidden")
    assignments = range(1 << len(roots))
    if contexts_per_world is None:
        contexts = list(assignments)
    else:
        contexts = rng.sample(assignments, min(contexts_per_world, len(assignments)))
    columns = dict.fromkeys(task.variables, 0)
    for i, root in enumerate(roots):
        columns[root] = sum((context >> i & 1) << row for row, context in enumerate(contexts))
    for target in natural(intervention.targets):  # a fixed order: bits are drawn
        constant = -intervention.constants.get(target, 0) & ((1 << len(contexts)) - 1)
        columns[target] = rng.getrandbits(len(contexts)) if target in intervention.assigned else constant
    units = tuple(f"r{row}" for row in range(len(contexts)))
    return World(f"candidate_{intervention}", intervention, task.variables, units, tuple(columns.values()))


def _require_roots(space: VersionSpace) -> None:
    if space.task.disclosure.roots is None:
        raise ValueError("the expected split of a world needs known roots")


class Truths:
    """Sampled members, each in turn assumed to be the truth."""

    def __init__(self, members: Members) -> None:
        self.space = members.space
        self.members = members

    @classmethod
    def sample(cls, space: VersionSpace, rng: Random, count: int) -> Truths:
        """Sample truths from a space with known roots; `ValueError` if it is empty."""
        (roots,) = space.root_sets
        return cls(draw(ConditionedSpace(ParentSets(space, None), roots), rng, count))

    def remaining(self, worlds: Sequence[World]) -> list[tuple[float, float | None]]:
        """Return, for each world, the mean share of members with a truth's outcome, and its standard error."""
        variables = self.space.sets.space.task.variables
        truths: list[list[int]] = []  # [world][truth] -> index of the truth's outcome in `outcomes`
        outcomes: list[Rows] = []
        for world in worlds:
            rows = pack_rows([world], variables)
            index_by_rows: dict[bytes, int] = {}
            truths.append([])
            for words in self.members.outcomes(rows):
                index = index_by_rows.setdefault(words.tobytes(), len(outcomes))
                if index == len(outcomes):
                    outcomes.append(Rows(words, rows.targets))
                truths[-1].append(index)
        together = Rows(*(np.concatenate(parts) for parts in zip(*outcomes, strict=True)))
        masses = self.space.masses(together, np.cumsum([0, *(len(rows.words) for rows in outcomes)]))
        shares = [mass / self.space.mass for mass in masses]
        return [_mean([shares[index] for index in indices]) for indices in truths]


def _mean(shares: Sequence[float]) -> tuple[float, float | None]:
    """Return mean and standard error; no error for a single share."""
    return fmean(shares), stdev(shares) / sqrt(len(shares)) if len(shares) > 1 else None
