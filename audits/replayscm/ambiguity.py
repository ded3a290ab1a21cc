"""The classes in which an audit counts what the evidence leaves open, and their version spaces.

Classes without a size cap admit every function of at most k parents. Capped classes bound the formula size of each
mechanism; they are complete enumerations, so a cap is only used up to the number of parents for which every function of
at most that size is listed: `CAPS`. A count of 0 means that the class has no train-exact SCM at all, for instance
because a gold mechanism is too wide for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import comb

from calibrant.audits.replayscm.coverage import latent_scm
from calibrant.dsl.formulas.text import Grammar
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.formulas.catalogue import (
    COMPLETE,
    MAX_SIZES,
    essential_functions,
    expresses_everything,
    synthesis_operators,
)
from calibrant.solvers.formulas.lookup import MAX_SIZE_OF_FOUR
from calibrant.solvers.replayscm.space import MAX_PARENTS, ModelClass, VersionSpace

# --- The classes in which an audit counts what the evidence leaves open -----------------------------------------------
PARENTS = (2, 3, 4, 5)  # bounds of functional parents that every audit counts
MIN_PARENTS = 4  # most published records draw at most four parents; smaller classes would say little
CAPS = {
    MAX_SIZE_OF_FOUR: 4,
    **{size: parents for parents, size in MAX_SIZES.items()},
}  # cap -> most parents it is complete for
SIZE_PENALTY = 1  # a weight by size is 2**-(total formula size)


def gold_parents(problem: Problem) -> int:
    """Return the most functional parents of a mechanism of gold; `ValueError` if that is more than are counted."""
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
    if model_class.max_size is not None or "if" in grammar.operators or expresses_everything(grammar):
        return model_class
    if grammar.allow_constants:  # a literal inside a formula could express more than is listed
        return model_class
    functions = essential_functions(model_class.max_parents, synthesis_operators(grammar))
    if set(functions.complete_to[1:].tolist()) != {COMPLETE}:
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
    complete = essential_functions(parents, synthesis_operators(task.grammar)).complete_to[1:].tolist()
    cap = min((size for size in complete if size != COMPLETE), default=MAX_SIZE_OF_FOUR)
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
        """The bound of parents of the widest class that is counted unasked."""
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
