"""Members of a size-capped version space by total formula size: how many of each size, and which, smallest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice, product

from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.acyclic.count import Layers, Weights, total
from calibrant.solvers.acyclic.least_cost import Mask, members_of
from calibrant.solvers.replayscm.member_sampling import agreeing, mechanism
from calibrant.solvers.replayscm.version_space import VersionSpace


class _Packing:
    """Polynomials with non-negative coefficients as one integer each: coefficient of size s in bits s * width."""

    def __init__(self, width: int) -> None:
        self.width = width

    def pack(self, coefficients: Mapping[int, int]) -> int:
        return sum(number << self.width * size for size, number in coefficients.items())

    def unpack(self, packed: int) -> dict[int, int]:
        coefficients, size, mask = {}, 0, (1 << self.width) - 1
        while packed:
            if packed & mask:
                coefficients[size] = packed & mask
            packed >>= self.width
            size += 1
        return coefficients


def spectrum(space: VersionSpace) -> dict[int, int]:
    """Return how many members have each total formula size (sum over mechanisms of their least formulas' sizes).

    The same sum over DAGs as the count, over polynomials: packed with fields wider than the count has bits, no
    coefficient can reach the next one. `ValueError` without a size cap in the class.
    """
    sizes: dict[int, int] = {}
    for roots in space.counts_by_roots:
        packing, weights = _packed(space, roots)
        for size, number in packing.unpack(total(weights)).items():
            sizes[size] = sizes.get(size, 0) + number
    return dict(sorted(sizes.items()))


def _packed(space: VersionSpace, roots: tuple[str, ...]) -> tuple[_Packing, Weights]:
    if space.model_class.max_size is None:
        raise ValueError("total sizes need a class with a size cap")
    packing = _Packing(space.counts_by_roots[roots].bit_length() + 1)
    local = {
        v: {mask: packing.pack(sizes) for mask, sizes in space.local(v).by_size.items()} for v in space.index.values()
    }
    return packing, space.weights(roots, local)


@dataclass(frozen=True, slots=True)
class SmallestMembers:
    """The first members in the order of total size; `more` tells whether there are others."""

    models: tuple[Scm, ...]
    more: bool


def smallest_members(space: VersionSpace, limit: int) -> SmallestMembers:
    """At most `limit` members, smallest total size first; ties in a fixed order."""
    found = tuple(islice(members_by_size(space), limit + 1))
    return SmallestMembers(found[:limit], len(found) > limit)


def members_by_size(space: VersionSpace) -> Iterator[Scm]:
    """All members, lazily, in the order of total size; within a size by root set, layers, parent sets and tables."""
    walks = {roots: _Walk(space, roots) for roots in space.counts_by_roots}
    for size in spectrum(space):
        for walk in walks.values():
            yield from walk.models(size)


class _Walk:
    """Depth-first through layers and parent sets, never into a branch without a member of the wanted size."""

    def __init__(self, space: VersionSpace, roots: tuple[str, ...]) -> None:
        self.space = space
        self.roots = roots
        self.packing, weights = _packed(space, roots)
        self.layers = Layers(weights)

    def models(self, size: int) -> Iterator[Scm]:
        for choice in self._choices(0, 0, size):
            yield from self._functions(choice)

    def _choices(self, placed: Mask, last: Mask, size: int) -> Iterator[dict[int, tuple[Mask, int]]]:
        """Variable -> (parent set, size of its formula), for the variables not yet placed, of that total size."""
        weights = self.layers.weights
        if placed == weights.full:
            if size == 0:
                yield {}
            return
        for layer, packed in self.layers.steps(placed, last):
            if size not in self.packing.unpack(packed):
                continue
            rest = self.packing.unpack(self.layers.completions(placed | layer, layer))
            for choices in self._layer_choices(layer, placed, last, size, rest.keys()):
                left = size - sum(s for _, s in choices.values())
                for other in self._choices(placed | layer, layer, left):
                    yield choices | other

    def _layer_choices(
        self, layer: Mask, placed: Mask, last: Mask, size: int, rest: Set[int]
    ) -> Iterator[dict[int, tuple[Mask, int]]]:
        """Choices for one layer that leave one of the sizes in `rest` to what comes after it."""
        variables = [self.layers.weights.endogenous[i] for i in members_of(layer)]
        options = [
            [
                (mask, sizes)
                for mask, packed in self.layers.parent_sets(i, placed, last)
                for sizes in self.packing.unpack(packed)
            ]
            for i in members_of(layer)
        ]
        reachable = [rest]  # by how many of the variables are decided: what they may leave; the last one first
        for listed in reversed(options):
            sizes = {size for _, size in listed}
            reachable.append({own + left for own in sizes for left in reachable[-1]})

        def extend(decided: int, left: int) -> Iterator[dict[int, tuple[Mask, int]]]:
            if decided == len(variables):
                yield {}
                return
            for mask, sizes in options[decided]:
                if left - sizes in reachable[len(variables) - decided - 1]:
                    for others in extend(decided + 1, left - sizes):
                        yield {variables[decided]: (mask, sizes)} | others

        return extend(0, size)

    def _functions(self, choice: Mapping[int, tuple[Mask, int]]) -> Iterator[Scm]:
        variables = sorted(choice)
        names = [self.space.task.variables[v] for v in variables]
        formula = cache(partial(mechanism, self.space, self.roots))
        local = [self.space.local(v) for v in variables]
        chosen = [choice[v] for v in variables]
        tables = [
            agreeing(self.space, counts.tables[mask], size) for counts, (mask, size) in zip(local, chosen, strict=True)
        ]
        for drawn in product(*tables):
            formulas = [formula(v, choice[v][0], table) for v, table in zip(variables, drawn, strict=True)]
            yield Scm(self.roots, dict(zip(names, formulas, strict=True)))
