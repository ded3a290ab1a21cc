"""The most probable SCMs: their posterior, and how many there are.

Of a parent set S the best table has the fewest mismatches, whatever the rate below 1/2: the majority of each pattern
or, if that ignores a parent, its cheapest single flip. (A table that is constant along one argument witnesses each
other argument twice, so after one flip it depends on all; any other table differs somewhere, at no less cost.)

Numbers come from polynomials in the mismatches, packed into integers, so that ties are counted without listing
tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from calibrant.dsl.replayscm.extensions.extension import NoiseKind
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.replayscm.hidden.columns import HiddenColumn, hidden_columns
from calibrant.solvers.replayscm.noise.layered_maxima import Front, LayeredMaxima, SetMaximum, merged, pruned
from calibrant.solvers.replayscm.noise.local_weights import clean_patterns, invert, pattern_counts
from calibrant.solvers.replayscm.noise.posterior import Posterior, extend_rows
from calibrant.solvers.replayscm.noise.rows import VariableRows


@dataclass(frozen=True)
class MostProbable:
    """The maximum of the posterior.

    share: posterior of each; number: SCMs that have it; mismatches: the fewest among SCMs of positive posterior
    """

    share: Fraction
    number: int
    mismatches: int


def fewest_mismatches(rows: VariableRows, variable: int, masks: Iterable[Mask]) -> dict[Mask, tuple[int, int]]:
    """Return of each parent set the fewest mismatches of a function of exactly these parents, and how many have it.

    Sets without such a function under the clean rows are left out. masks: every subset of a set is listed
    """
    masks = list(masks)
    width = (1 << max(mask.bit_count() for mask in masks)) + 1  # no more functions than 2**(2**k)
    polynomials = invert({mask: _polynomial(rows, variable, mask, width) for mask in masks})
    digit = (1 << width) - 1
    fewest = {}
    for mask, polynomial in polynomials.items():
        if polynomial:
            # after the inversion digits are numbers of functions, none negative: the lowest that is not 0 counts
            place = ((polynomial & -polynomial).bit_length() - 1) // width
            fewest[mask] = place, polynomial >> place * width & digit
    return fewest


def _polynomial(rows: VariableRows, variable: int, parents: Mask, width: int) -> int:
    """Sum of z**mismatches over all functions of the parents, for z = 2**width."""
    clean = clean_patterns(rows, variable, parents)
    if clean is None:
        return 0
    product, counts = 1, pattern_counts(rows, variable, parents)
    for pattern, (zeros, ones) in counts.items():
        value = clean.get(pattern)
        as_zero = 0 if value == 1 else 1 << width * ones
        as_one = 0 if value == 0 else 1 << width * zeros
        product *= as_zero + as_one
    return product << (1 << parents.bit_count()) - len(counts.keys() | clean.keys())


def most_probable(posterior: Posterior) -> MostProbable:
    """Return the maximum of the posterior, over every column of the hidden variables; the mass must be positive.

    Sums over layers of DAGs: up to 3**m states for m endogenous variables.
    """
    fronts = [_column_front(posterior, columns) for columns in hidden_columns(posterior.scm_class, posterior.words)]
    together = pruned(merged(fronts))
    values: dict[Fraction, int] = {}
    for (weight, mismatches), least in together.items():
        value = weight * rate_factor(posterior, mismatches)
        values[value] = values.get(value, 0) + least.number
    # pairs that differ may have equal posterior: their numbers add up
    best = max(values)
    return MostProbable(best / posterior.mass, values[best], min(mismatches for _, mismatches in together))


def rate_factor(posterior: Posterior, mismatches: int) -> Fraction:
    """Return the probability of a number of mismatches; 1 where rates are summed out for each variable already."""
    if posterior.scm_class.noise.kind is NoiseKind.EACH:
        return Fraction(1)
    cells = sum(rows.num_cells for rows in posterior.local_rows.values())
    grid = posterior.scm_class.noise.grid
    return sum((p * e**mismatches * (1 - e) ** (cells - mismatches) for e, p in grid), start=Fraction(0))


def _column_front(posterior: Posterior, columns: Sequence[HiddenColumn]) -> Front:
    scm_class = posterior.scm_class
    options: dict[int, dict[Mask, SetMaximum]] = {}
    for v, local in posterior.local_rows.items():
        rows = extend_rows(local, columns)
        options[v] = {}
        for mask, (mismatches, number) in fewest_mismatches(rows, v, posterior.masks[v]).items():
            weight = scm_class.parent_weights[mask.bit_count()]
            if scm_class.noise.kind is NoiseKind.EACH:
                cells, grid = rows.num_cells, scm_class.noise.grid
                weight *= sum((p * e**mismatches * (1 - e) ** (cells - mismatches) for e, p in grid), start=Fraction(0))
                # rates are summed out here; below 1/2 each term falls with mismatches, so the fewest stay best
                mismatches = 0
            if weight and not (scm_class.noise.is_silent and mismatches):
                options[v][mask] = SetMaximum(weight, mismatches, 0, number)
    for column in columns:
        weight = scm_class.mechanism_weight(scm_class.variables[column.index], column.num_parents)
        options[column.index] = {column.parents: SetMaximum(weight, 0, 0, column.num_functions)}
    return LayeredMaxima(options, posterior.root_mask).front  # sizes are 0: functions count, not formulas
