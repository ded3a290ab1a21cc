"""The most probable SCMs: their posterior and number, by maxima over DAGs.

A *key* is a pair of prior weight and mismatches (cells that differ from the function). At every rate below 1/2 an SCM
of larger weight and fewer mismatches is more probable, so only keys count that no other exceeds in both: the *front*.

For a parent set, the best table has the fewest mismatches, whatever the rate below 1/2: the majority of each pattern
or, if that table ignores a parent, its cheapest single flip. (A table that is constant along one argument witnesses
each other argument twice, so after one flip it depends on all; any other table differs somewhere, at no less cost.)

Ties are counted by polynomials in the mismatches, packed into integers, without listing tables.
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

# --- Maxima over DAGs by layers, and how many SCMs of least formula size attain them; each DAG occurs exactly once ----
Key: TypeAlias = tuple[Fraction, int]
"""(weight, mismatches)."""


class Least(NamedTuple):
    """Least total formula size; multiplicity: number of SCMs, or of functions, that have it."""

    size: int
    multiplicity: int


class SetMaximum(NamedTuple):
    """Best functions of one parent set: weight, mismatches, least formula size; multiplicity: how many have it."""

    weight: Fraction
    mismatches: int
    size: int
    multiplicity: int


Front: TypeAlias = dict[Key, Least]
"""Key -> least size, for keys that none exceeds in both parts."""

Assignment: TypeAlias = tuple[tuple[int, Mask], ...]
"""Variables with their parent sets."""


@dataclass(frozen=True)
class _Branch:
    """First layer of DAGs that attain a key.

    count: number of SCMs; layer: its variables; keys: key of each of them
    later_key, later_size: key and size of the variables of later layers together
    """

    count: int
    layer: Mask
    keys: tuple[Key, ...]
    later_key: Key
    later_size: int


class LayeredMaxima:
    """Maxima over DAGs by layers (solvers.acyclic.count.Layers): each DAG occurs exactly once, so counts are right.

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
            total = sum(branch.count for branch in branches)
            branch = draw_weighted(rng, ((branch, branch.count) for branch in branches), total)
            for v, own_key in zip(members_of(branch.layer), branch.keys, strict=True):
                sets = self._sets(v, placed, last, own_key)
                mask = draw_weighted(rng, sets.items(), sum(sets.values()))
                chosen.append((v, mask))
            placed, last = placed | branch.layer, branch.layer
            key, size = branch.later_key, branch.later_size
        return tuple(chosen)

    def _completions(self, placed: Mask, last: Mask) -> Front:
        if placed == self.full:
            return {(Fraction(1), 0): Least(0, 1)}
        key = placed, last
        if key not in self._memo:
            self._memo[key] = prune(merge(self._next_layers(placed, last)))
        return self._memo[key]

    def _next_layers(self, placed: Mask, last: Mask) -> Iterator[Front]:
        fronts = self._layer_fronts(placed, last)
        for layer in _subsets(sum(1 << v for v in fronts)):
            combined = self._completions(placed | layer, layer)
            for v in members_of(layer):
                combined = _product(combined, fronts[v])
            yield combined

    def _layer_fronts(self, placed: Mask, last: Mask) -> dict[int, Front]:
        """Return the front of each variable that the next layer may have."""
        fronts = {v: self._variable_front(v, placed, last) for v in members_of(self.full & ~placed)}
        return {v: front for v, front in fronts.items() if front}

    def _variable_front(self, variable: int, placed: Mask, last: Mask) -> Front:
        """Return the front of the parent sets that `_available` yields."""
        available = self._available(variable, placed, last)
        return prune(merge({(s.weight, s.mismatches): Least(s.size, s.multiplicity)} for _, s in available))

    def _available(self, variable: int, placed: Mask, last: Mask) -> Iterator[tuple[Mask, SetMaximum]]:
        """Yield parent sets of placed variables and roots with a member of the last layer; any for the first layer."""
        allowed = placed | self.roots
        for mask, maximum in self.options[variable].items():
            if not mask & ~allowed and (mask & last or not last):
                yield mask, maximum

    def _sets(self, variable: int, placed: Mask, last: Mask, key: Key) -> dict[Mask, int]:
        """Return the parent sets that attain a key at its least size, with their numbers of functions."""
        size = self._variable_front(variable, placed, last)[key].size
        available = self._available(variable, placed, last)
        return {mask: s.multiplicity for mask, s in available if (s.weight, s.mismatches) == key and s.size == size}

    def _branches(self, placed: Mask, last: Mask, key: Key, size: int) -> tuple[_Branch, ...]:
        state = placed, last, key, size
        if state not in self._branch_memo:
            self._branch_memo[state] = tuple(self._list_branches(*state))
        return self._branch_memo[state]

    def _list_branches(self, placed: Mask, last: Mask, key: Key, size: int) -> Iterator[_Branch]:
        fronts = self._layer_fronts(placed, last)
        for layer in _subsets(sum(1 << v for v in fronts)):
            later = self._completions(placed | layer, layer)
            for entries in product(*(fronts[v].items() for v in members_of(layer))):
                front: Front = {(Fraction(1), 0): Least(0, 1)}
                for entry in entries:
                    front = _product(front, dict([entry]))
                for later_key, least in later.items():
                    ((total_key, total),) = _product(front, {later_key: least}).items()
                    if (total_key, total.size) == (key, size):
                        keys = tuple(own_key for own_key, _ in entries)
                        yield _Branch(total.multiplicity, layer, keys, later_key, least.size)

    def _assignments(self, placed: Mask, last: Mask, key: Key, size: int) -> Iterator[Assignment]:
        if placed == self.full:
            yield ()
            return
        for branch in self._branches(placed, last, key, size):
            variables = members_of(branch.layer)
            sets = [self._sets(v, placed, last, own_key) for v, own_key in zip(variables, branch.keys, strict=True)]
            later = self._assignments(placed | branch.layer, branch.layer, branch.later_key, branch.later_size)
            for assigned_later in later:
                for masks in product(*sets):
                    yield (*zip(variables, masks, strict=True), *assigned_later)


def _subsets(mask: Mask) -> Iterator[Mask]:
    """Yield the non-empty subsets, in ascending order."""
    # 3**m states (placed, last), up to 4**m steps
    subset = -mask & mask
    while subset:
        yield subset
        subset = (subset - mask) & mask


def merge(fronts: Iterable[Front]) -> Front:
    """Merge disjoint alternatives: for each key the least size, and the sum of the counts of this size."""
    union: Front = {}
    for front in fronts:
        for key, least in front.items():
            previous = union.get(key)
            if previous is None or least.size < previous.size:
                union[key] = least
            elif least.size == previous.size:
                union[key] = Least(least.size, least.multiplicity + previous.multiplicity)
    return union


def prune(front: Front) -> Front:
    """Drop every key for which another has at most as many mismatches and at least the weight."""
    remaining: Front = {}
    top = Fraction(0)
    for weight, mismatches in sorted(front, key=lambda key: (key[1], -key[0])):
        if weight > top:
            remaining[weight, mismatches] = front[weight, mismatches]
            top = weight
    return remaining


def _product(first: Front, second: Front) -> Front:
    """Return the keys of independent pairs: weights and counts multiply, mismatches and sizes add up."""
    return merge(
        {
            (weight * other_weight, mismatches + other_mismatches): Least(
                a.size + b.size, a.multiplicity * b.multiplicity
            )
        }
        for (weight, mismatches), a in first.items()
        for (other_weight, other_mismatches), b in second.items()
    )


# --- The most probable SCMs: their posterior, and how many there are --------------------------------------------------


@dataclass(frozen=True)
class MostProbable:
    """Maximum of the posterior.

    share: posterior of each most probable SCM; number: number of these SCMs
    mismatches: fewest mismatches of an SCM of positive posterior
    """

    share: Fraction
    number: int
    mismatches: int


def fewest_mismatches(rows: VariableRows, variable: int, masks: Iterable[Mask]) -> dict[Mask, tuple[int, int]]:
    """Map each parent set to the fewest mismatches of a function that depends on all of it, and the number of these.

    Sets without such a function under the clean rows are left out.

    masks: every subset of a set is among them
    """
    masks = list(masks)
    width = (1 << max(mask.bit_count() for mask in masks)) + 1  # no more functions than 2**(2**k)
    polynomials = invert({mask: _polynomial(rows, variable, mask, width) for mask in masks})
    digit = (1 << width) - 1
    fewest = {}
    for mask, polynomial in polynomials.items():
        if polynomial:
            # after the inversion, digit i is the number of functions with i mismatches, none negative
            mismatches = ((polynomial & -polynomial).bit_length() - 1) // width
            fewest[mask] = mismatches, polynomial >> mismatches * width & digit
    return fewest


def _polynomial(rows: VariableRows, variable: int, parents: Mask, width: int) -> int:
    """Return the sum of z**mismatches over all functions of the parents, for z = 2**width; 0 if clean rows clash."""
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
    front = prune(merge(fronts))
    counts: dict[Fraction, int] = {}  # posterior weight -> number of SCMs: different keys may have the same
    for (weight, mismatches), least in front.items():
        value = weight * rate_factor(posterior, mismatches)
        counts[value] = counts.get(value, 0) + least.multiplicity
    best = max(counts)
    return MostProbable(best / posterior.mass, counts[best], min(mismatches for _, mismatches in front))


def rate_factor(posterior: Posterior, mismatches: int) -> Fraction:
    """Return the probability of cells with these mismatches; 1 if weights have the rates summed out (EACH)."""
    if posterior.scm_class.noise.kind is NoiseKind.EACH:
        return Fraction(1)
    cells = sum(rows.num_cells for rows in posterior.local_rows.values())
    grid = posterior.scm_class.noise.grid
    return sum((p * e**mismatches * (1 - e) ** (cells - mismatches) for e, p in grid), start=Fraction(0))


def _column_front(posterior: Posterior, columns: Sequence[HiddenColumn]) -> Front:
    """Return the front (`LayeredMaxima.front`) of the members whose hidden variables have these columns."""
    scm_class = posterior.scm_class
    options: dict[int, dict[Mask, SetMaximum]] = {}
    for v, local in posterior.local_rows.items():
        rows = extend_rows(local, columns)
        options[v] = {}
        for mask, (mismatches, count) in fewest_mismatches(rows, v, posterior.masks[v]).items():
            weight = scm_class.parent_weights[mask.bit_count()]
            if scm_class.noise.kind is NoiseKind.EACH:
                cells, grid = rows.num_cells, scm_class.noise.grid
                weight *= sum((p * e**mismatches * (1 - e) ** (cells - mismatches) for e, p in grid), start=Fraction(0))
                # rates are summed out: for rates below 1/2 each term falls with mismatches, so the fewest stay best
                mismatches = 0
            if weight and not (scm_class.noise.is_noiseless and mismatches):
                options[v][mask] = SetMaximum(weight, mismatches, 0, count)
    for column in columns:
        weight = scm_class.mechanism_weight(scm_class.variables[column.index], column.num_parents)
        options[column.index] = {column.parents: SetMaximum(weight, 0, 0, column.num_functions)}
    return LayeredMaxima(
        options, posterior.root_mask
    ).front  # sizes are 0: all functions are counted, not those of least formulas
