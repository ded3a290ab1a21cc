"""Lower bounds of covering programs that anyone can add up: rational weights of rows.

min sum of x over worlds, subject to rows with right sides 1 or 0, x and y not negative. If no column's weighted sum
exceeds its cost (1 for a world, 0 for a y), the sum of weights times right sides is a bound, and so is its ceiling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

DENOMINATOR = 10**6  # to which the solver's weights are rounded before they are made feasible


@dataclass(frozen=True)
class CoverRow:
    """One requirement.

    label: what it stands for; alternatives: pairs or single sets of worlds. One set: at least one of its worlds. Pairs:
    for one of them, a world of either set.
    """

    label: str
    alternatives: tuple[tuple[frozenset[int], ...], ...]

    @property
    def is_plain(self) -> bool:
        return len(self.alternatives) == 1 and len(self.alternatives[0]) == 1

    def is_met(self, chosen: frozenset[int]) -> bool:
        """Return whether these worlds meet it."""
        return any(all(part & chosen for part in parts) for parts in self.alternatives)


@dataclass(frozen=True)
class RowWeight:
    """Dual weights of one requirement: of itself, and of each set of each alternative (empty where it is plain)."""

    weight: Fraction
    parts: tuple[tuple[Fraction, ...], ...] = ()


def certified_bound(rows: Sequence[CoverRow], weights: Sequence[RowWeight]) -> int:
    """Return the bound that weights prove; `ValueError` if a weight is negative or a column exceeds its cost."""
    loads: dict[int, Fraction] = {}
    total = Fraction(0)
    for row, weight in zip(rows, weights, strict=True):
        if weight.weight < 0 or any(part < 0 for parts in weight.parts for part in parts):
            raise ValueError(f"a negative weight at {row.label}")
        total += weight.weight
        if row.is_plain:
            sets = [(row.alternatives[0][0], weight.weight)]
        else:
            if [len(parts) for parts in weight.parts] != [len(parts) for parts in row.alternatives]:
                raise ValueError(f"weights of other sets at {row.label}")
            if any(weight.weight > sum(parts) for parts in weight.parts):
                raise ValueError(f"an alternative weighs more than its sets at {row.label}")
            sets = [
                (worlds, part)
                for alternative, parts in zip(row.alternatives, weight.parts, strict=True)
                for worlds, part in zip(alternative, parts, strict=True)
            ]
        for worlds, part in sets:
            if part:
                for world in worlds:
                    loads[world] = loads.get(world, Fraction(0)) + part
    heavy = [world for world, load in loads.items() if load > 1]
    if heavy:
        raise ValueError(f"world {min(heavy)} weighs {loads[min(heavy)]}, more than 1")
    # numbers of worlds are integers, so the bound may be rounded up
    return ceil(total)


def feasible_weights(
    rows: Sequence[CoverRow], single: Sequence[float], parts: Sequence[Sequence[Sequence[float]]]
) -> list[RowWeight]:
    """Return rational weights near those of a solver in doubles, scaled so that no column exceeds its cost."""
    rounded = []
    for row, weight, pieces in zip(rows, single, parts, strict=True):
        exact = tuple(tuple(_rational(piece) for piece in part) for part in pieces)
        bound = _rational(weight)
        if not row.is_plain:
            # a column y costs 0: its row may weigh no more than the sets of each alternative together
            bound = min([bound, *(sum(part, start=Fraction(0)) for part in exact)])
        rounded.append(RowWeight(bound, () if row.is_plain else exact))
    loads: dict[int, Fraction] = {}
    for row, weighed in zip(rows, rounded, strict=True):
        pieces_of = ((weighed.weight,),) if row.is_plain else weighed.parts
        for alternative, part in zip(row.alternatives, pieces_of, strict=True):
            for worlds, piece in zip(alternative, part, strict=True):
                for world in worlds:
                    loads[world] = loads.get(world, Fraction(0)) + piece
    # one factor for all: world columns fall to at most 1, and columns y, of cost 0, stay feasible
    scale = max([Fraction(1), *loads.values()])
    return [
        RowWeight(w.weight / scale, tuple(tuple(piece / scale for piece in part) for part in w.parts)) for w in rounded
    ]


def _rational(weight: float) -> Fraction:
    return max(Fraction(0), Fraction(weight).limit_denominator(DENOMINATOR))
