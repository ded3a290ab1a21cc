"""Version spaces of one audited instance, each built once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import comb

from calibrant.audits.replayscm.ambiguity import PARENTS, restrict_to_grammar
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.replayscm.space import MAX_PARENTS, ModelClass, VersionSpace

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
