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

# --- The classes in which an audit counts what the evidence leaves open, and their version spaces ---------------------
# Classes without a size cap admit every function of at most k parents. Capped classes bound the formula size of each
# mechanism; they are complete enumerations, so a cap is only used up to the number of parents for which every function
# of at most that size is listed: `CAPS`. A count of 0 means that the class has no train-exact SCM at all, for instance
# because a gold mechanism is too wide for it.
PARENTS = (2, 3, 4, 5)  # bounds of functional parents that every audit counts
MIN_PARENTS = 4  # most published records draw at most four parents; smaller classes would say little
CAPS = {
    MAX_SIZE_OF_FOUR: 4,
    **{size: parents for parents, size in catalogue.MAX_SIZES.items()},
}  # cap -> most parents it is complete for
SIZE_PENALTY = 1  # a weight by size is 2**-(total formula size)


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
    """Return the part of an uncapped class that the grammar can express, as a class whose cap excludes none of it.

    Return the class itself where the grammar expresses every function, and where the expressible functions are not
    listed completely; its description then mentions functions that no formula expresses.
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
    """Return the bound of parents of the headline class: the smallest countable class with gold.

    Without gold MIN_PARENTS: only a class without members would show that it is too narrow.
    """
    gold = problem.sealed.gold
    widest = max((len(f.parents) for f in gold.local_functions.values()), default=0) if gold else 0
    return min(max(MIN_PARENTS, widest), MAX_PARENTS)


def add_size_cap(model_class: ModelClass) -> ModelClass:
    """Return the same class with the largest cap on formula size that is complete for its number of parents."""
    largest = max(cap for cap, parents in CAPS.items() if parents >= model_class.max_parents)
    return replace(model_class, max_size=largest)


def sized_class(task: Task, max_parents: int, *, nested_roots: bool = False) -> ModelClass:
    """Return the class with a size cap that stands for one without: up to four parents the cap excludes no function."""
    parents = min(max_parents, 4)
    complete = (
        catalogue.essential_functions(parents, catalogue.synthesis_operators(task.grammar)).complete_to[1:].tolist()
    )
    cap = min((size for size in complete if size != catalogue.COMPLETE), default=MAX_SIZE_OF_FOUR)
    return ModelClass(parents, min(cap, MAX_SIZE_OF_FOUR), nested_roots)


def profile_classes() -> tuple[ModelClass, ...]:
    """Return the classes of a profile: k = 2 to 5 without a cap, then under each cap as far as it is complete."""
    sized = [ModelClass(k, cap) for cap, max_parents in CAPS.items() for k in range(PARENTS[0], max_parents + 1)]
    return (*(ModelClass(k) for k in PARENTS), *sized)


# --- Version spaces of one audited instance, each built once ----------------------------------------------------------
MAX_SETS = 30_000_000  # parent sets of all variables together that are gone through for classes wider than PARENTS


class Spaces:
    """Version spaces by class, of the training worlds and of these with the held-out worlds added.

    All of them share what was counted of the widest class, which is the larger part of the work.
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
        """The bound of parents of the widest class that is counted by default."""
        return MAX_PARENTS if self.num_sets <= MAX_SETS else PARENTS[-1]

    @cached_property
    def num_sets(self) -> int:
        """Return how many parent sets of at most MAX_PARENTS there are to go through."""
        disclosure = self.problem.task.disclosure
        candidates = [len(disclosure.admissible_parents(variable)) for variable in self.problem.task.variables]
        return sum(comb(number, k) for number in candidates for k in range(MAX_PARENTS + 1))

    def space(self, max_parents: int, max_size: int | None = None) -> VersionSpace:
        """Return what the training worlds leave open in a class, with the audit's root sets.

        Without a cap: every function that the grammar can express (audits.replayscm.ambiguity.restrict_to_grammar).
        """
        requested = ModelClass(max_parents, max_size, self.nested_roots)
        return self._space(restrict_to_grammar(requested, self.problem.task.grammar))

    def _space(self, model_class: ModelClass) -> VersionSpace:
        return self._part(
            self._training, model_class, self.widest, lambda widest: VersionSpace(self.problem.task, widest)
        )

    def _part(
        self,
        built: dict[ModelClass, VersionSpace],
        model_class: ModelClass,
        max_parents: int,
        build: Callable[[ModelClass], VersionSpace],
    ) -> VersionSpace:
        """Return the space of a class; classes of one evidence share the counts of their widest."""
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
        return self._part(
            self._replaying, model_class, PARENTS[-1], lambda widest: self._space(widest).with_worlds(self.heldout)
        )


# --- Splitting a version space: which world removes the largest share of its members ----------------------------------
# For a known truth the share that a world removes is exact: one minus the agreement. Otherwise the truth is one of the
# members, and a world that splits them into outcomes of shares p1, p2, ... leaves sum p ** 2 of them on average. That
# sum is exact where the outcomes can be listed within the budget of counts. Else it is bounded by the outcomes found so
# far, and estimated without bias: the share of a drawn member's own outcome has that sum as its expectation.
#
# Where roots are hidden, a row that no truth has filled in fixes no context: members with other roots would copy other
# values. There a split is measured for a known truth only.
MAX_COUNTS = 200  # exact counts within which the outcomes of one world are listed
NUM_DRAWS = 16  # truths drawn for an estimate
FINALISTS, FINAL_DRAWS = 8, 4  # candidates compared again, on so many times the draws


@dataclass(frozen=True, slots=True)
class Remaining:
    """The expected share of members that a world leaves, over truths drawn from the members.

    lower, upper: certified
    estimate, standard_error: from drawn truths where the bounds differ; no error (None) from a single draw
    outcomes: number of different outcomes that are known
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
    """A world with what it is expected to leave; for a known truth, what it does leave."""

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
    """Return what a world leaves on average. Of its columns only those of targets and roots count.

    Needs known roots: with hidden ones a row does not fix the context.
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
    """Return the candidate that is expected to leave least, the first of equals; `ValueError` without candidates.

    All candidates are compared on the same drawn truths, the FINALISTS best of them on FINAL_DRAWS times as many
    others, since few draws can miss an outcome that many members share. The winner is measured again with fresh ones,
    because the estimate that made it win is too favourable.
    """
    _require_roots(space)
    finalists = list(candidates)
    if not finalists:
        raise ValueError("no candidate worlds to choose from")
    for number, num_kept in ((num_draws, FINALISTS), (FINAL_DRAWS * num_draws, 1)):
        remaining = Truths.sample(space, rng, number).remaining(finalists)
        ranked = sorted(zip(remaining, finalists, strict=True), key=lambda pair: pair[0][0])
        finalists = [world for _, world in ranked[:num_kept]]
    (world,) = finalists
    return SplittingWorld(world, expected_remaining(space, world, rng, max_counts=max_counts, num_draws=num_draws))


def best_split_for(space: VersionSpace, truth: Scm, candidates: Iterable[World]) -> tuple[World, Fraction]:
    """Return the candidate that removes the largest share when this SCM is the truth, and that share; exact.

    The worlds show contexts of the truth's roots, also where the task does not tell them.
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
    number: int,
    *,
    roots: Sequence[str] | None = None,
    max_targets: int = MAX_TARGETS,
    contexts_per_world: int | None = None,
) -> Iterator[World]:
    """Yield random worlds to choose from: one to `max_targets` targets in either mode, a row per root assignment.

    roots: of the truth, for a task that hides them
    contexts_per_world: that many root assignments, drawn without repetition, instead of all
    Columns of variables that are neither targets nor roots are 0 and mean nothing.
    """
    for _ in range(number):
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
    every = range(1 << len(roots))
    contexts = list(every) if contexts_per_world is None else rng.sample(every, min(contexts_per_world, len(every)))
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
    """Drawn members, each in turn taken for the truth."""

    def __init__(self, members: Members) -> None:
        self.space = members.space
        self.members = members

    @classmethod
    def sample(cls, space: VersionSpace, rng: Random, number: int) -> Truths:
        """Sample truths from a space with known roots; `ValueError` if it is empty."""
        (roots,) = space.root_sets
        return cls(draw(ConditionedSpace(ParentSets(space, None), roots), rng, number))

    def remaining(self, worlds: Sequence[World]) -> list[tuple[float, float | None]]:
        """Return, per world, the mean share of members that replay a sampled truth, and its standard error."""
        variables = self.space.sets.space.task.variables
        truths: list[list[int]] = []  # [world][truth] -> index of what the truth shows among `outcomes`
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
