"""Local support: which joint values of a variable's possible causes the training rows show (paper, section B.2.3).

A local pattern is an assignment to a bounded subset of the variables before V in the latent order, counted on rows in
which V is no target. The window is the one its parents were drawn from; subsets have three variables, or are the whole
window where it is smaller. The paper does not say which subsets are probed. Worlds are chosen by the two a variable of
the configurations (the first and the last subset), coverage is reported over all.

Departure: the released code counts pattern numbers 0, 1 and 2 only, because it masks the record of seen patterns with
the size of the subset instead of the number of patterns. Here every pattern counts, so chosen worlds show more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

from calibrant.audits.replayscm.generation.plans import PROBE_SIZE
from calibrant.dsl.replayscm.world import Column, World


class Probe(NamedTuple):
    """A variable and some of its possible causes."""

    variable: str
    causes: tuple[str, ...]

    @property
    def num_patterns(self) -> int:
        return 1 << len(self.causes)


PatternSets: TypeAlias = tuple[int, ...]
"""Per probe a bit for each pattern: bit p is set iff pattern p was seen; cause i has the bit (p >> i) & 1 in it."""


def all_probes(windows: Mapping[str, Sequence[str]]) -> tuple[Probe, ...]:
    """Return all subsets of PROBE_SIZE variables of each window; the whole window where it has fewer."""
    return tuple(
        Probe(variable, causes)
        for variable, window in windows.items()
        for causes in combinations(window, min(PROBE_SIZE, len(window)))
    )


def outer_probes(windows: Mapping[str, Sequence[str]]) -> tuple[Probe, ...]:
    """Return the first and the last subset of each window: its farthest and its nearest variables."""
    chosen: dict[Probe, None] = {}
    for variable, window in windows.items():
        size = min(PROBE_SIZE, len(window))
        chosen[Probe(variable, tuple(window[:size]))] = None
        chosen[Probe(variable, tuple(window[-size:]))] = None
    return tuple(chosen)


def rows_by_pattern(columns: Sequence[Column], every_row: Column) -> list[Column]:
    """Return a list with entry p the rows in which the columns show pattern p."""
    groups = [every_row]
    for column in columns:
        groups = [rows & ~column for rows in groups] + [rows & column for rows in groups]
    return groups


def patterns(world: World, probes: Sequence[Probe]) -> PatternSets:
    """Return the patterns that one world shows; none of its targets."""
    columns = world.by_variable
    every_row = (1 << world.num_rows) - 1
    bits_by_probe = []
    for variable, causes in probes:
        scored = 0 if variable in world.intervention.targets else every_row
        groups = rows_by_pattern([columns[u] for u in causes], scored)
        bits_by_probe.append(sum(1 << pattern for pattern, rows in enumerate(groups) if rows))
    return tuple(bits_by_probe)


def unite(pattern_sets: Iterable[PatternSets], num_probes: int) -> PatternSets:
    """Unite the patterns of several worlds."""
    union = [0] * num_probes
    for pattern_set in pattern_sets:
        union = [bits | new_bits for bits, new_bits in zip(union, pattern_set, strict=True)]
    return tuple(union)


def count_new(before: PatternSets, after: PatternSets) -> int:
    """Count the patterns of `after` that `before` lacks."""
    return sum((new_bits & ~bits).bit_count() for bits, new_bits in zip(before, after, strict=True))


def coverage(worlds: Iterable[World], probes: Sequence[Probe]) -> float:
    """Return the share of patterns that are shown; 1 without probes."""
    united = unite((patterns(world, probes) for world in worlds), len(probes))
    total = sum(probe.num_patterns for probe in probes)
    return sum(bits.bit_count() for bits in united) / total if total else 1.0
