"""Members of a size-capped version space by total formula size: their number, and the members, smallest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice, product

from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.table import TruthTable
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.acyclic.count import Layers, Weights, total
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.replayscm.member_sampling import agreeing_functions, write_mechanism
from calibrant.solvers.replayscm.version_space import VersionSpace

MAX_CACHED = 1 << 14  # mechanisms, and lists of functions, of a walk


class _Packing:
    """Kronecker substitution: a polynomial with non-negative coefficients as one integer, fields of `width` bits."""

    def __init__(self, width: int) -> None:
        self.width = width

    def pack(self, coefficients: Mapping[int, int]) -> int:
        # a product of polynomials is one product of integers, which Python multiplies in n**1.58 (Karatsuba)
        return sum(number << self.width * size for size, number in coefficients.items())

    def coefficient(self, packed: int, size: int) -> int:
        return packed >> self.width * size & (1 << self.width) - 1

    def unpack(self, packed: int) -> dict[int, int]:
        coefficients, size, mask = {}, 0, (1 << self.width) - 1
        while packed:
            if packed & mask:
                coefficients[size] = packed & mask
            packed >>= self.width
            size += 1
        return coefficients


def count_by_size(space: VersionSpace) -> dict[int, int]:
    """Count the members by total formula size (sum over mechanisms of the sizes of least formulas).

    The same sum over DAGs as the count, over polynomials. `ValueError` without a size cap in the class.
    """
    sizes: dict[int, int] = {}
    for roots in space.counts_by_roots:
        packing, weights = _pack_weights(space, roots)
        for size, number in packing.unpack(total(weights)).items():
            sizes[size] = sizes.get(size, 0) + number
    return dict(sorted(sizes.items()))


def _pack_weights(space: VersionSpace, roots: tuple[str, ...]) -> tuple[_Packing, Weights]:
    if space.model_class.max_size is None:
        raise ValueError("total sizes need a class with a size cap")
    # fields wider than the whole count: no coefficient can carry into the next one
    packing = _Packing(space.counts_by_roots[roots].bit_length() + 1)
    local = {
        v: {mask: packing.pack(sizes) for mask, sizes in space.local(v).by_size.items()} for v in space.index.values()
    }
    return packing, space.weights(roots, local)


@dataclass(frozen=True, slots=True)
class SmallestMembers:
    """The first members in the order of total size; `more` if there are others."""

    models: tuple[Scm, ...]
    more: bool


def smallest_members(space: VersionSpace, limit: int) -> SmallestMembers:
    """Return at most `limit` members, smallest total size first; ties in a fixed order."""
    members = tuple(islice(members_by_size(space), limit + 1))
    return SmallestMembers(members[:limit], len(members) > limit)


def members_by_size(space: VersionSpace, sizes: Sequence[int] | None = None) -> Iterator[Scm]:
    """Yield all members in the order of total size; within a size by root set, layers, parent sets and tables.

    sizes: restricts members to these total sizes
    """
    # one walk a root set, for all sizes: the completions that guide it are summed once
    walks = {roots: _Walk(space, roots) for roots in space.counts_by_roots}
    for size in count_by_size(space) if sizes is None else sizes:
        for walk in walks.values():
            yield from walk.models(size)


class _Walk:
    """Depth-first search through layers and parent sets; enters no branch without a member of the requested size."""

    def __init__(self, space: VersionSpace, roots: tuple[str, ...]) -> None:
        self.space = space
        self.roots = roots
        self.packing, weights = _pack_weights(space, roots)
        self.layers = Layers(weights)
        # members of one size share nearly all mechanisms
        self._formula = lru_cache(MAX_CACHED)(partial(write_mechanism, space, roots))
        self._agreeing = lru_cache(MAX_CACHED)(self._agreeing_functions)

    def models(self, size: int) -> Iterator[Scm]:
        for choice in self._choices(0, 0, size):
            yield from self._functions(choice)

    def _choices(self, placed: Mask, last: Mask, size: int) -> Iterator[dict[int, tuple[Mask, int]]]:
        """Yield parent sets and formula sizes of the unplaced variables that add up to a total size."""
        weights = self.layers.weights
        if placed == weights.full:
            if size == 0:
                yield {}
            return
        for layer, packed in self.layers.steps(placed, last):
            # the polynomial of a layer lists the sizes of its completions: no dead end is entered
            if not self.packing.coefficient(packed, size):
                continue
            later_sizes = self.packing.unpack(self.layers.completions(placed | layer, layer))
            for choices in self._layer_choices(layer, placed, last, size, later_sizes.keys()):
                remaining_size = size - sum(s for _, s in choices.values())
                for later_choices in self._choices(placed | layer, layer, remaining_size):
                    yield choices | later_choices

    def _layer_choices(
        self, layer: Mask, placed: Mask, last: Mask, size: int, later_sizes: Set[int]
    ) -> Iterator[dict[int, tuple[Mask, int]]]:
        """Yield parent sets for one layer that leave one of the later sizes to the layers after it."""
        variables = [self.layers.weights.endogenous[i] for i in members_of(layer)]
        options = [
            [
                (mask, sizes)
                for mask, packed in self.layers.parent_sets(i, placed, last)
                for sizes in self.packing.unpack(packed)
            ]
            for i in members_of(layer)
        ]
        # reachable[k]: sizes that the last k variables of the layer and all later layers can have together
        reachable = [later_sizes]
        for listed in reversed(options):
            sizes = {size for _, size in listed}
            reachable.append({own_size + remaining for own_size in sizes for remaining in reachable[-1]})

        def extend(decided: int, remaining: int) -> Iterator[dict[int, tuple[Mask, int]]]:
            if decided == len(variables):
                yield {}
                return
            for mask, sizes in options[decided]:
                if remaining - sizes in reachable[len(variables) - decided - 1]:
                    for later_choices in extend(decided + 1, remaining - sizes):
                        yield {variables[decided]: (mask, sizes)} | later_choices

        return extend(0, size)

    def _functions(self, choice: Mapping[int, tuple[Mask, int]]) -> Iterator[Scm]:
        variables = sorted(choice)
        names = [self.space.task.variables[v] for v in variables]
        tables = [self._agreeing(v, *choice[v]) for v in variables]
        model: Scm | None = None
        # by bits: hashing a table takes longer than the look-up
        written: list[dict[int, Formula]] = [{} for _ in variables]
        for selection in product(*tables):
            mechanisms = {}
            for v, name, table, formulas in zip(variables, names, selection, written, strict=True):
                formula = formulas.get(table.bits)
                if formula is None:
                    formula = formulas[table.bits] = self._formula(v, choice[v][0], table)
                mechanisms[name] = formula
            model = Scm(self.roots, mechanisms) if model is None else model.with_mechanisms(mechanisms)
            yield model

    def _agreeing_functions(self, variable: int, mask: Mask, size: int) -> list[TruthTable]:
        return agreeing_functions(self.space, self.space.local(variable).table(mask), size)
