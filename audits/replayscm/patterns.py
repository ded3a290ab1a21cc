"""Local predecessor-pattern coverage of an instance, as the paper words it (section B.2.3, Table F.2).

For an endogenous variable V the window is its last `max_predecessors` predecessors in the latent order; a local pattern
is an assignment to a subset of the window with three variables (all of it where it has fewer), counted on training
rows in which V is no target. The paper does not say which subsets are probed; all of them are.

The released code probes the first and the last subset only, and masks the record of seen patterns, one bit a pattern,
with the number of variables in the subset instead of the number of patterns. So it counts no pattern but 0 to size - 1:
a probe of three variables never exceeds 3/8. `released_coverage` repeats that, to compare with stored diagnostics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from calibrant.audits.replayscm.local_patterns import PatternSets, Probe, all_probes, outer_probes, patterns, unite
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World


@dataclass(frozen=True, slots=True)
class VariableCoverage:
    """Patterns of one endogenous variable: how many its scored training rows show, and how many there are."""

    variable: str
    num_seen: int
    total: int


@dataclass(frozen=True, slots=True)
class PatternCoverage:
    """Local coverage of an instance; `by_variable` in the latent order."""

    by_variable: tuple[VariableCoverage, ...]

    @property
    def num_seen(self) -> int:
        return sum(part.num_seen for part in self.by_variable)

    @property
    def total(self) -> int:
        return sum(part.total for part in self.by_variable)

    @property
    def share(self) -> Fraction:
        """Seen patterns over all patterns; 1 where there are none."""
        return Fraction(self.num_seen, self.total) if self.total else Fraction(1)


GOLD_EXAMPLE = '"sealed": {"gold": {"X3": "(and X1 X2)"}}'


def latent_scm(problem: Problem) -> Scm:
    """Return the gold SCM, which audits of local evidence and simulated worlds cannot do without."""
    if problem.sealed.gold is None:
        raise ValueError(f"problem '{problem.id}' has no gold SCM; add it to the item: {GOLD_EXAMPLE}")
    return problem.sealed.gold


def windows(problem: Problem) -> dict[str, tuple[str, ...]]:
    """Return each endogenous variable's nearest latent predecessors; all where the file sets no bound."""
    gold, order = latent_scm(problem), problem.sealed.latent_order
    bound = problem.sealed.max_predecessors
    starts = {v: 0 if bound is None else max(0, place - bound) for place, v in enumerate(order)}
    return {v: order[starts[v] : place] for place, v in enumerate(order) if v in gold.mechanisms}


def probes(problem: Problem) -> tuple[Probe, ...]:
    """Return all local predecessor subsets of the instance."""
    return all_probes(windows(problem))


def seen_patterns(worlds: Iterable[World], listed: tuple[Probe, ...]) -> PatternSets:
    """Return, per probe, the patterns that some world shows."""
    return unite((patterns(world, listed) for world in worlds), len(listed))


def pattern_coverage(problem: Problem) -> PatternCoverage:
    """Return the coverage of each endogenous variable by the training worlds."""
    listed = probes(problem)
    united = seen_patterns(problem.task.training.worlds, listed)
    by_variable: dict[str, list[int]] = {variable: [0, 0] for variable in windows(problem)}
    for probe, bits in zip(listed, united, strict=True):
        by_variable[probe.variable][0] += bits.bit_count()
        by_variable[probe.variable][1] += probe.num_patterns
    return PatternCoverage(tuple(VariableCoverage(v, *numbers) for v, numbers in by_variable.items()))


def released_coverage(problem: Problem) -> Mapping[str, Fraction]:
    """Return the coverage that the released code reports per variable, with its two probes and its mask.

    See the head of this module.
    """
    listed = outer_probes(windows(problem))
    united = seen_patterns(problem.task.training.worlds, listed)
    counts: dict[str, list[int]] = {}
    for probe, bits in zip(listed, united, strict=True):
        parts = counts.setdefault(probe.variable, [0, 0])
        parts[0] += (bits & ((1 << len(probe.causes)) - 1)).bit_count()
        parts[1] += probe.num_patterns
    return {variable: Fraction(*parts) for variable, parts in counts.items()}
