"""Separation of two SCMs by every hard intervention on up to three targets, over every assignment of the roots.

Single-variable interventions are measured by dsl.replayscm.alternatives, as the Alternative-SCM task does.
For more targets all assignments are simulated at once: with per-row values (hard_assigned) a world can show every one
of them, so a set of targets separates two SCMs under hard_assigned iff it does so under some constants. If no set of
at most n targets separates them, no evidence from such interventions ever will.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations, product
from operator import or_
from typing import Annotated, Any

from msgspec import Meta

from calibrant.dsl.replayscm.alternatives import PairwiseExperiments, Separation, witness_for
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.evaluator import MAX_LAID_ROWS, Layout, lay_out
from calibrant.dsl.replayscm.generation.strata import MAX_TARGETS
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
    """Two SCMs over the same roots; `ValueError` from dsl.replayscm.alternatives otherwise."""

    def __init__(self, first: Scm, second: Scm, *, max_targets: int = MAX_TARGETS) -> None:
        self.pair = PairwiseExperiments(first, second)
        self.models = first, second
        self.max_targets = max_targets
        self.roots = first.roots

    @cached_property
    def single(self) -> tuple[Separation, ...]:
        """The single-variable interventions that separate: by falling disagreement, then cell rate, then menu order."""
        separating = [separation for separation in self.pair.separations() if separation.separates]
        return tuple(sorted(separating, key=lambda s: (-s.disagreement_rate, -s.cell_rate)))  # sorting is stable

    @property
    def witness(self) -> dict[str, Any] | None:
        """A witness for the best single-variable intervention, as an Alternative-SCM answer needs it."""
        return witness_for(self.pair, self.single[0].experiment) if self.single else None

    @cached_property
    def any_targets(self) -> tuple[TargetSeparation, ...]:
        """The target sets that separate: fewest targets first, then highest disagreement rate, then by name."""
        names = natural(self.models[0].variables)
        menu = [targets for number in range(self.max_targets + 1) for targets in combinations(names, number)]
        measured = self.separations(menu)
        separating = [separation for separation in measured if separation.separates]
        return tuple(sorted(separating, key=lambda s: (len(s.targets), -s.disagreement_rate)))

    @property
    def best(self) -> TargetSeparation | None:
        """The highest disagreement rate, then fewest targets; None if no set of at most `max_targets` separates."""
        return max(self.any_targets, key=lambda s: s.disagreement_rate, default=None)

    def separations(self, menu: Sequence[tuple[str, ...]]) -> Iterator[TargetSeparation]:
        """Yield how far interventions on each set of targets separate the two SCMs.

        All assignments of the roots are simulated under each value of the targets, many at once. A target that is a
        root keeps its value in all of them, which leaves the shares as they are.
        """
        num_sets = max(1, MAX_LAID_ROWS >> len(self.roots) + self.max_targets)
        for start in range(0, len(menu), num_sets):
            yield from self._simulated(menu[start : start + num_sets])

    def _simulated(self, menu: Sequence[tuple[str, ...]]) -> Iterator[TargetSeparation]:
        constants = [
            [dict(zip(targets, reversed(bits), strict=True)) for bits in product((0, 1), repeat=len(targets))]
            for targets in menu
        ]
        layout = lay_out(self.models[0].variables, self.roots, [values for options in constants for values in options])
        first, second = map(layout.simulate, self.models)
        anywhere = reduce(or_, (first[v] ^ second[v] for v in self.models[0].endogenous), 0)
        counts, begin = layout.counts(anywhere), 0
        for targets, options in zip(menu, constants, strict=True):
            shares = counts[begin : begin + len(options)]
            best = shares.index(max(shares))
            place = next((number for number, share in enumerate(shares) if share), None)
            witness = None
            if place is not None:
                witness = self._witness(options[place], layout, begin + place, anywhere, (first, second))
            yield TargetSeparation(
                targets,
                sum(shares) / (layout.block_rows * len(options)),
                options[best],
                max(shares) / layout.block_rows,
                witness,
            )
            begin += len(options)

    def _witness(
        self,
        targets: Mapping[str, int],
        layout: Layout,
        number: int,
        anywhere: Column,
        columns: tuple[Mapping[str, Column], Mapping[str, Column]],
    ) -> dict[str, Any]:
        """Return the first differing row of a block as a witness."""
        rows = layout.block(anywhere, number)
        row = (rows & -rows).bit_length() - 1
        assignment = {root: row >> i & 1 for i, root in enumerate(self.roots)}
        first, second = columns
        return {
            "assignments": dict(targets),
            "rootAssignment": assignment | {root: targets[root] for root in self.roots if root in targets},
            "differences": list(_claims(self.models[0].endogenous, number * layout.block_rows + row, first, second)),
        }


def _claims(
    endogenous: tuple[str, ...], row: int, first: Mapping[str, Column], second: Mapping[str, Column]
) -> Iterator[dict[str, Any]]:
    for variable in endogenous:
        reference, alternative = first[variable] >> row & 1, second[variable] >> row & 1
        if reference != alternative:
            yield {"variable": variable, "reference": reference, "alternative": alternative}
