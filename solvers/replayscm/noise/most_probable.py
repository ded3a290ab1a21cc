"""The most probable SCMs: their posterior and number, by maxima over DAGs.

A candidate is a pair of prior weight and mismatches; of several only those count that no other exceeds in both.

Of a parent set S the best table has the fewest mismatches, whatever the rate below 1/2: the majority of each pattern
or, if that ignores a parent, its cheapest single flip. (A table that is constant along one argument witnesses each
other argument twice, so after one flip it depends on all; any other table differs somewhere, at no less cost.)

Numbers come from polynomials in the mismatches, packed into integers, so that ties are counted without listing
tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from random import Random
from typing import NamedTuple, TypeAlias

from calibrant.dsl.replayscm.extensions.extension import NoiseKind
from calibrant.solvers.acyclic.draws import draw_weighted
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.replayscm.hidden.columns import HiddenColumn, hidden_columns
from calibrant.solvers.replayscm.noise.posterior import Posterior, extend_rows
from calibrant.solvers.replayscm.noise.subset_tables import VariableRows, clean_patterns, invert, pattern_counts

# --- Maxima over DAGs by layers, and how many SCMs of least formula size attain them; each DAG is met exactly once ----
Key: TypeAlias = tuple[Fraction, int]
"""Weight and mismatches."""


class Least(NamedTuple):
    """Least total formula size, and how many have it."""

    size: int
    number: int


class SetMaximum(NamedTuple):
    """The best functions of one parent set: weight, mismatches, their least size, how many have that size."""

    weight: Fraction
    mismatches: int
    size: int
    number: int


Front: TypeAlias = dict[Key, Least]
"""Keys that none exceeds in both parts."""

Assignment: TypeAlias = tuple[tuple[int, Mask], ...]
"""Variables with their parent sets."""


@dataclass(frozen=True)
class _Branch:
    """One layer of DAGs that attain a key: number of SCMs, key of each variable in the layer, and what follows it."""

    number: int
    layer: Mask
    keys: tuple[Key, ...]
    rest: Key
    rest_size: int


class LayeredMaxima:
    """Maxima over DAGs by layers: each DAG is met exactly once, so that numbers are right.

    options: variable -> parent set -> its best functions
    """

    def __init__(self, options: Mapping[int, Mapping[Mask, SetMaximum]], roots: Mask) -> None:
        self.options = options
        self.roots = roots
        self.full = sum(1 << v for v in options)
        self._memo: dict[tuple[Mask, Mask], Front] = {}
        self._branch_memo: dict[tuple[Mask, Mask, Key, int], tuple[_Branch, ...]] = {}

    @property
    def front(self) -> Front:
        """Return the front of all SCMs."""
        return self._completions(0, 0)

    def assignments(self, key: Key, size: int) -> Iterator[Assignment]:
        """Yield every DAG, as parent sets, that attains a key with formulas of a size."""
        yield from self._assignments(0, 0, key, size)

    def draw(self, rng: Random, key: Key, size: int) -> Assignment:
        """Draw a DAG in proportion to the SCMs of a key and a size on it."""
        placed, last, chosen = 0, 0, list[tuple[int, Mask]]()
        while placed != self.full:
            branches = self._branches(placed, last, key, size)
            whole = sum(branch.number for branch in branches)
            branch = draw_weighted(rng, ((branch, branch.number) for branch in branches), whole)
            for v, part in zip(members_of(branch.layer), branch.keys, strict=True):
                sets = self._sets(v, placed, last, part)
                mask = draw_weighted(rng, sets.items(), sum(sets.values()))
                chosen.append((v, mask))
            placed, last, key, size = placed | branch.layer, branch.layer, branch.rest, branch.rest_size
        return tuple(chosen)

    def _completions(self, placed: Mask, last: Mask) -> Front:
        if placed == self.full:
            return {(Fraction(1), 0): Least(0, 1)}
        key = placed, last
        if key not in self._memo:
            self._memo[key] = pruned(merged(self._next_layers(placed, last)))
        return self._memo[key]

    def _next_layers(self, placed: Mask, last: Mask) -> Iterator[Front]:
        fronts = self._layer_fronts(placed, last)
        for layer in _subsets(sum(1 << v for v in fronts)):
            combined = self._completions(placed | layer, layer)
            for v in members_of(layer):
                combined = _product(combined, fronts[v])
            yield combined

    def _layer_fronts(self, placed: Mask, last: Mask) -> dict[int, Front]:
        """Return the fronts of the variables that can follow."""
        fronts = {v: self._fresh(v, placed, last) for v in members_of(self.full & ~placed)}
        return {v: front for v, front in fronts.items() if front}

    def _fresh(self, variable: int, placed: Mask, last: Mask) -> Front:
        """Return the front of parent sets among `placed` that touch the last layer; any set for the first layer."""
        listed = self._available(variable, placed, last)
        return pruned(merged({(s.weight, s.mismatches): Least(s.size, s.number)} for _, s in listed))

    def _available(self, variable: int, placed: Mask, last: Mask) -> Iterator[tuple[Mask, SetMaximum]]:
        available = placed | self.roots
        for mask, maximum in self.options[variable].items():
            if not mask & ~available and (mask & last or not last):
                yield mask, maximum

    def _sets(self, variable: int, placed: Mask, last: Mask, key: Key) -> dict[Mask, int]:
        """Return the parent sets that attain a key at its least size, with their numbers of functions."""
        size = self._fresh(variable, placed, last)[key].size
        listed = self._available(variable, placed, last)
        return {mask: s.number for mask, s in listed if (s.weight, s.mismatches) == key and s.size == size}

    def _branches(self, placed: Mask, last: Mask, key: Key, size: int) -> tuple[_Branch, ...]:
        state = placed, last, key, size
        if state not in self._branch_memo:
            self._branch_memo[state] = tuple(self._list_branches(*state))
        return self._branch_memo[state]

    def _list_branches(self, placed: Mask, last: Mask, key: Key, size: int) -> Iterator[_Branch]:
        fronts = self._layer_fronts(placed, last)
        for layer in _subsets(sum(1 << v for v in fronts)):
            following = self._completions(placed | layer, layer)
            for parts in product(*(fronts[v].items() for v in members_of(layer))):
                front: Front = {(Fraction(1), 0): Least(0, 1)}
                for part in parts:
                    front = _product(front, dict([part]))
                for rest, least in following.items():
                    ((whole, total),) = _product(front, {rest: least}).items()
                    if (whole, total.size) == (key, size):
                        yield _Branch(total.number, layer, tuple(part for part, _ in parts), rest, least.size)

    def _assignments(self, placed: Mask, last: Mask, key: Key, size: int) -> Iterator[Assignment]:
        if placed == self.full:
            yield ()
            return
        for branch in self._branches(placed, last, key, size):
            variables = members_of(branch.layer)
            sets = [self._sets(v, placed, last, part) for v, part in zip(variables, branch.keys, strict=True)]
            for following in self._assignments(placed | branch.layer, branch.layer, branch.rest, branch.rest_size):
                for masks in product(*sets):
                    yield (*zip(variables, masks, strict=True), *following)


def _subsets(mask: Mask) -> Iterator[Mask]:
    """Yield the non-empty subsets, in ascending order."""
    # 3**m states (placed, last), up to 4**m steps
    subset = -mask & mask
    while subset:
        yield subset
        subset = (subset - mask) & mask


def merged(fronts: Iterable[Front]) -> Front:
    """Return the keys of all fronts, each with its least size and the number of those."""
    together: Front = {}
    for front in fronts:
        for key, least in front.items():
            previous = together.get(key)
            if previous is None or least.size < previous.size:
                together[key] = least
            elif least.size == previous.size:
                together[key] = Least(least.size, least.number + previous.number)
    return together


def pruned(front: Front) -> Front:
    """Drop what another exceeds: by mismatches, then by weight, only growing weights stay."""
    remaining: Front = {}
    top = Fraction(0)
    # exceeded in both means less probable at every rate below 1/2
    for weight, mismatches in sorted(front, key=lambda key: (key[1], -key[0])):
        if weight > top:
            remaining[weight, mismatches] = front[weight, mismatches]
            top = weight
    return remaining


def _product(first: Front, second: Front) -> Front:
    return merged(
        {(weight * other_weight, mismatches + other_mismatches): Least(a.size + b.size, a.number * b.number)}
        for (weight, mismatches), a in first.items()
        for (other_weight, other_mismatches), b in second.items()
    )


# --- The most probable SCMs: their posterior, and how many there are --------------------------------------------------


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
            if weight and not (scm_class.noise.is_noiseless and mismatches):
                options[v][mask] = SetMaximum(weight, mismatches, 0, number)
    for column in columns:
        weight = scm_class.mechanism_weight(scm_class.variables[column.index], column.num_parents)
        options[column.index] = {column.parents: SetMaximum(weight, 0, 0, column.num_functions)}
    return LayeredMaxima(options, posterior.root_mask).front  # sizes are 0: functions count, not formulas
