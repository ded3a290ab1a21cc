"""Separation of two SCMs by every hard intervention on up to three targets, over every assignment of the roots.

Single-variable interventions are measured by dsl.replayscm.alternatives.separation, as the Alternative-SCM task does.
For more targets all assignments are simulated at once: with per-row values (hard_assigned) a world can show every one
of them, so a set of targets separates two SCMs under hard_assigned iff it does so under some constants. If no set of
at most n targets separates them, no evidence from such interventions ever will.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Annotated, Any

from msgspec import Meta

from calibrant.dsl.formulas.table import projection
from calibrant.dsl.replayscm.alternatives.alternative import witness_for
from calibrant.dsl.replayscm.alternatives.separation import PairwiseExperiments, Separation
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.evaluator import compute
from calibrant.dsl.replayscm.sampling.strata import MAX_TARGETS
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Column


@dataclass(frozen=True, slots=True)
class TargetSeparation:
    """Separation of two SCMs by hard interventions on one set of targets."""

    targets: Annotated[tuple[str, ...], Meta(description="their names; empty for no intervention")]
    disagreement_rate: Annotated[
        float,
        Meta(
            description="per-row values, every one equally often: share of (root assignment, values) with a difference"
        ),
    ]
    constants: Annotated[Mapping[str, int], Meta(description="the values that separate best when they are constant")]
    constants_rate: Annotated[float, Meta(description="their share of root assignments")]
    witness: Annotated[
        Mapping[str, Any] | None,
        Meta(description="an Alternative-SCM witness with the targets' values beside it; None where nothing differs"),
    ]

    @property
    def separates(self) -> bool:
        return self.disagreement_rate > 0


class PairAudit:
    """Two SCMs over the same roots; `ValueError` from dsl.replayscm.alternatives.separation otherwise."""

    def __init__(self, first: Scm, second: Scm, *, max_targets: int = MAX_TARGETS) -> None:
        self.pair = PairwiseExperiments(first, second)
        self.models = first, second
        self.max_targets = max_targets
        self.roots = first.roots

    @cached_property
    def single(self) -> tuple[Separation, ...]:
        """The single-variable interventions that separate: by falling disagreement, then cell rate, then menu order."""
        measured = [self.pair.separation(experiment) for experiment in self.pair.menu()]
        separating = [separation for separation in measured if separation.separates]
        return tuple(sorted(separating, key=lambda s: (-s.disagreement_rate, -s.cell_rate)))  # sorting is stable

    @property
    def witness(self) -> dict[str, Any] | None:
        """A witness for the best single-variable intervention, as an Alternative-SCM answer needs it."""
        return witness_for(self.pair, self.single[0].experiment) if self.single else None

    @cached_property
    def any_targets(self) -> tuple[TargetSeparation, ...]:
        """The target sets that separate: fewest targets first, then highest disagreement rate, then by name."""
        names = natural(self.models[0].variables)
        measured = (
            self.separation(targets)
            for number in range(self.max_targets + 1)
            for targets in combinations(names, number)
        )
        separating = [separation for separation in measured if separation.separates]
        return tuple(sorted(separating, key=lambda s: (len(s.targets), -s.disagreement_rate)))

    @property
    def best(self) -> TargetSeparation | None:
        """The highest disagreement rate, then fewest targets; None if no set of at most `max_targets` separates."""
        return max(self.any_targets, key=lambda s: s.disagreement_rate, default=None)

    def separation(self, targets: tuple[str, ...]) -> TargetSeparation:
        """Return how far interventions on these targets separate the two SCMs.

        Simulated are all assignments of the other roots with all values of the targets, a row each. Bit i of the row
        number is root i of those that are no targets; the targets have the bits after them.
        """
        free = [root for root in self.roots if root not in targets]
        inputs = [*free, *targets]
        first, second = (self._simulate(model, inputs) for model in self.models)
        differing = {v: first[v] ^ second[v] for v in self.models[0].endogenous if first[v] != second[v]}
        anywhere = 0
        for column in differing.values():
            anywhere |= column
        # rows with the same values of the targets are one block of consecutive bits
        contexts = 1 << len(free)
        block = (1 << contexts) - 1
        shares = [(anywhere >> value * contexts & block).bit_count() for value in range(1 << len(targets))]
        constants = shares.index(max(shares))
        return TargetSeparation(
            targets,
            sum(shares) / (contexts << len(targets)),
            {target: constants >> i & 1 for i, target in enumerate(targets)},
            max(shares) / contexts,
            self._witness(targets, inputs, anywhere, first, second) if anywhere else None,
        )

    def _simulate(self, model: Scm, inputs: list[str]) -> dict[str, Column]:
        rows = (1 << (1 << len(inputs))) - 1
        values = {name: projection(i, len(inputs)).bits for i, name in enumerate(inputs)}
        for variable in model.order:
            if variable not in values:
                values[variable] = compute(model.mechanisms[variable], values, rows)
        return values

    def _witness(
        self,
        targets: tuple[str, ...],
        inputs: list[str],
        anywhere: Column,
        first: Mapping[str, Column],
        second: Mapping[str, Column],
    ) -> dict[str, Any]:
        row = (anywhere & -anywhere).bit_length() - 1
        bits = {name: row >> i & 1 for i, name in enumerate(inputs)}
        return {
            "assignments": {target: bits[target] for target in targets},
            "rootAssignment": {root: bits[root] for root in self.roots},
            "differences": list(_claims(self.models[0].endogenous, row, first, second)),
        }


def _claims(
    endogenous: tuple[str, ...], row: int, first: Mapping[str, Column], second: Mapping[str, Column]
) -> Iterator[dict[str, Any]]:
    for variable in endogenous:
        reference, alternative = first[variable] >> row & 1, second[variable] >> row & 1
        if reference != alternative:
            yield {"variable": variable, "reference": reference, "alternative": alternative}
