"""The version spaces of one audited instance: each is built once, whoever asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from audits.replayscm.ambiguity import expressed
from dsl.replayscm.problem import Problem
from dsl.replayscm.world import World
from solvers.replayscm.version_space import ModelClass, VersionSpace


class Spaces:
    """Version spaces by class, of the training worlds and of these with the held-out worlds added.

    A class with a size cap shares what was counted of the one without, which is the larger part of the work.
    """

    def __init__(self, problem: Problem, *, nested_roots: bool = False) -> None:
        self.problem = problem
        self.nested_roots = nested_roots
        self._training: dict[ModelClass, VersionSpace] = {}
        self._replaying: dict[ModelClass, VersionSpace] = {}

    @property
    def heldout(self) -> Sequence[World]:
        return self.problem.sealed.heldout.worlds

    def space(self, max_parents: int, max_size: int | None = None) -> VersionSpace:
        """What the training worlds leave open in a class, with the audit's root sets.

        Without a cap: every function that the grammar can express (audits.replayscm.ambiguity.expressed).
        """
        asked = ModelClass(max_parents, max_size, self.nested_roots)
        return self._space(expressed(asked, self.problem.task.grammar))

    def _space(self, model_class: ModelClass) -> VersionSpace:
        if model_class not in self._training:
            self._training[model_class] = (
                VersionSpace(self.problem.task, model_class)
                if model_class.max_size is None
                else self._space(replace(model_class, max_size=None)).within(model_class.max_size)
            )
        return self._training[model_class]

    def heldout_exact(self, space: VersionSpace, *, size_penalty: int | None = None) -> Fraction | None:
        """The share of a space's members, weighted as draws are, that replay the held-out worlds; None without any."""
        if not space.count or not self.heldout:
            return None
        return space.share(self._after(space.model_class), size_penalty=size_penalty)

    def _after(self, model_class: ModelClass) -> VersionSpace:
        if model_class not in self._replaying:
            whole = replace(model_class, max_size=None)
            self._replaying[model_class] = (
                self._space(whole).with_worlds(self.heldout)
                if model_class == whole
                else self._after(whole).within(model_class.max_size)
            )
        return self._replaying[model_class]
