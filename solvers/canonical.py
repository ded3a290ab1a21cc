"""Canonical order of a coloured structure: equal for all renamings and reorderings of the same structure.

Colour refinement over labelled edges (Weisfeiler and Leman) separates vertices by their surroundings. If a class of
several base vertices remains, the search individualises each of them in turn, that is, gives it a colour of its own,
and refines again. At a leaf no such class remains. The leaf with the least edge list is canonical; leaves with equal
edge lists give automorphisms, which prune the search (B. D. McKay, Practical graph isomorphism, 1981). Colours are sums
of mixed words modulo 2**64, so they do not depend on an order of the edges. If two different surroundings had the same
word, refinement would separate less.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Words: TypeAlias = npt.NDArray[np.uint64]
Indices: TypeAlias = npt.NDArray[np.int64]
Permutation: TypeAlias = tuple[int, ...]
"""Image of each vertex."""

MAX_LEAVES = 500  # leaves of one search; only structures with hard automorphism problems, which tasks lack, need more
_INDIVIDUAL = np.uint64(0x9E3779B97F4A7C15)  # changes the colour of an individualised vertex
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
_MULTIPLIERS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def word(*content: object) -> int:
    """Return a hash of the repr of the content, from 0 to 2**63 - 1."""
    return int.from_bytes(hashlib.blake2b(repr(content).encode(), digest_size=8).digest(), "big") >> 1


@dataclass(frozen=True)
class Structure:
    """Vertices with colours, and labelled directed edges.

    colours: one word for each vertex
    base: only vertices 0 to base - 1 are individualised; once they are separate, refinement separates the others up to
        twins, whose exchange changes nothing
    sources, targets, labels: one entry for each edge
    """

    colours: Words
    base: int
    sources: Indices
    targets: Indices
    labels: Words

    def extended(self, colours: Words, edges: Sequence[tuple[int, int, int]]) -> Structure:
        """Return the structure with other colours and further edges, each (source, target, label)."""
        sources, targets, labels = zip(*edges, strict=True) if edges else ((), (), ())
        return Structure(
            colours,
            self.base,
            np.concatenate([self.sources, np.array(sources, np.int64)]),
            np.concatenate([self.targets, np.array(targets, np.int64)]),
            np.concatenate([self.labels, np.array(labels, np.uint64)]),
        )

    def edge_list(self, order: Sequence[int]) -> bytes:
        """Return colours and sorted edges under an order of the vertices; equal iff the structure is the same."""
        position = np.empty(len(order), np.int64)
        position[np.asarray(order, np.int64)] = np.arange(len(order))
        codes = np.sort(self._edge_codes(position))
        targets, sources = np.divmod(codes, len(order))
        rows = np.stack([sources, targets % len(order), self._sorted_labels[0].astype(np.int64)])
        return self.colours[np.asarray(order, np.int64)].tobytes() + rows.tobytes()

    def is_same(self, first: Indices, second: Indices) -> bool:
        """Return whether the structure is the same under two orders of the vertices."""
        if not np.array_equal(self.colours[first], self.colours[second]):
            return False
        position = np.empty((2, len(first)), np.int64)
        position[0, first] = position[1, second] = np.arange(len(first))
        return np.array_equal(np.sort(self._edge_codes(position[0])), np.sort(self._edge_codes(position[1])))

    @cached_property
    def _sorted_labels(self) -> tuple[Words, Indices]:
        """The labels of all edges, ascending, and for each edge the rank of its label."""
        return np.sort(self.labels), np.searchsorted(np.unique(self.labels), self.labels)

    def _edge_codes(self, position: Indices) -> Indices:
        """Return a number for each edge that sorts by label, then by position of its target, then of its source."""
        size = len(position)
        return (self._sorted_labels[1] * size + position[self.targets]) * size + position[self.sources]


@dataclass
class StructureBuilder:
    """Collects the vertices, base vertices first, and the edges of a structure."""

    colours: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)

    def vertex(self, *colour: object) -> int:
        """Add a vertex with the colour that stands for this content, and return its number."""
        return self.vertex_of(word(*colour))

    def vertex_of(self, colour: int) -> int:
        """Add a vertex whose colour is this word, and return its number."""
        self.colours.append(colour)
        return len(self.colours) - 1

    def edge(self, source: int, target: int, label: int = 0) -> None:
        """Add an edge."""
        self.sources.append(source)
        self.targets.append(target)
        self.labels.append(label)

    def edges(self, sources: Sequence[int] | Indices, target: int, label: int = 0) -> None:
        """Add an edge from each of the sources to one target."""
        self.sources.extend(sources)
        self.targets.extend([target] * len(sources))
        self.labels.extend([label] * len(sources))

    def vertices_of(self, colour: int, number: int) -> Indices:
        """Add `number` vertices whose colour is this word, and return their numbers."""
        first = len(self.colours)
        self.colours.extend([colour] * number)
        return np.arange(first, first + number)

    def edge_pairs(self, sources: Indices, targets: Indices, label: int) -> None:
        """Add an edge from each of the sources to the target at the same index."""
        self.sources.extend(sources.tolist())
        self.targets.extend(targets.tolist())
        self.labels.extend([label] * len(sources))

    def build(self, base: int) -> Structure:
        """Return the structure; for `base` see `Structure`."""
        return Structure(
            np.array(self.colours, np.uint64),
            base,
            np.array(self.sources, np.int64),
            np.array(self.targets, np.int64),
            np.array(self.labels, np.uint64),
        )


@dataclass(frozen=True)
class CanonicalOrder:
    """The result of a search.

    order: vertices from the canonically first to the last; twins that are not base vertices are ordered by number
    automorphisms: generators of the automorphisms that were found; if there are none, no two base vertices are alike
    is_complete: whether the search ended before MAX_LEAVES; if not, the order may depend on the numbers of vertices
    """

    order: tuple[int, ...]
    automorphisms: tuple[Permutation, ...] = ()
    is_complete: bool = True

    @cached_property
    def rank(self) -> dict[int, int]:
        """Vertex -> its index in the order."""
        return {vertex: index for index, vertex in enumerate(self.order)}


def canonical_order(structure: Structure, *, max_leaves: int = MAX_LEAVES) -> CanonicalOrder:
    """Return the canonical order of a structure, with generators of its automorphisms."""
    search = _Search(structure, max_leaves)
    search.descend(search.refine(structure.colours), ())
    assert search.best is not None
    return CanonicalOrder(search.best, tuple(search.automorphisms), search.is_complete)


def canonical_key(structure: Structure) -> bytes:
    """Return a digest that is equal for structures that are renamings of each other.

    Other structures have other digests if the search ends; if not, the digest is that of the refined colours only.
    """
    result = canonical_order(structure)
    content = structure.edge_list(result.order) if result.is_complete else np.sort(refined_colours(structure)).tobytes()
    return hashlib.blake2b(content, digest_size=16, key=b"complete" if result.is_complete else b"refined").digest()


def refined_colours(structure: Structure) -> Words:
    """Return the colours after refinement; they are equal for vertices that it does not separate."""
    return _Search(structure, 0).refine(structure.colours)


class _Messages(NamedTuple):
    """Operands of refinement: each end of each edge reads the colour of the other end; grouped by reading vertex.

    senders: the vertex at the other end
    added, crossed: words that are added to its colour, and then combined with it by exclusive or
    vertices: the reading vertices, ascending; starts: index of the first message of each
    """

    senders: Indices
    added: Words
    crossed: Words
    vertices: Indices
    starts: Indices


class _Search:
    """Depth-first search over paths of individualised vertices."""

    def __init__(self, structure: Structure, max_leaves: int) -> None:
        self.structure = structure
        self.max_leaves = max_leaves
        self.num_leaves = 0
        self.is_complete = True
        self.best: tuple[int, ...] | None = None
        self.best_path: tuple[int, ...] = ()
        self.best_edges = b""
        self.automorphisms: list[Permutation] = []
        self.return_depth: int | None = None  # depth to go back to after an automorphism

    @cached_property
    def _messages(self) -> _Messages:
        structure, zeros = self.structure, np.zeros_like(self.structure.labels)
        readers = np.concatenate([structure.sources, structure.targets])
        by_reader = np.argsort(readers, kind="stable")
        senders = np.concatenate([structure.targets, structure.sources])[by_reader]
        added = np.concatenate([_mix(structure.labels + np.uint64(1)), zeros])[by_reader]
        crossed = np.concatenate([zeros, _mix(structure.labels ^ np.uint64(0x5851F42D4C957F2D))])[by_reader]
        vertices, starts = np.unique(readers[by_reader], return_index=True)
        return _Messages(senders, added, crossed, vertices, starts)

    def refine(self, colours: Words) -> Words:
        """Return the colours once a further round of refinement separates no more classes."""
        messages, num_classes = self._messages, _num_different(colours)
        while True:
            sums = np.zeros_like(colours)
            if len(messages.senders):
                content = _mix(colours[messages.senders] + messages.added ^ messages.crossed)
                sums[messages.vertices] = np.add.reduceat(content, messages.starts)
            colours = _mix(colours * np.uint64(3) + _mix(sums))
            refined = _num_different(colours)
            if refined == num_classes:
                return colours
            num_classes = refined

    def descend(self, colours: Words, path: tuple[int, ...]) -> None:
        """Search all leaves below a path of vertices that are individualised in these colours."""
        cell = self._cell(colours)
        if cell is None:
            self._leaf(tuple(np.argsort(colours, kind="stable").tolist()), path)
            return
        visited: list[int] = []
        for vertex in cell:
            if any(vertex in self._orbit(sibling, path) for sibling in visited):
                continue
            if visited and (swap := self._swap(visited[-1], vertex)):
                self.automorphisms.append(swap)
                continue
            visited.append(vertex)
            changed = colours.copy()
            changed[vertex] = _mix(changed[vertex : vertex + 1] ^ _INDIVIDUAL)[0]
            self.descend(self.refine(changed), (*path, vertex))
            if self.num_leaves >= self.max_leaves:
                self.is_complete &= vertex == cell[-1]
                return
            if self.return_depth is not None:
                if self.return_depth < len(path):
                    return
                self.return_depth = None

    @cached_property
    def _base_words(self) -> tuple[Words, Indices]:
        """Different words for the base vertices, and the order of all vertices that follows from them."""
        words = _mix(np.arange(1, self.structure.base + 1, dtype=np.uint64))
        return words, self._decided_order(words)

    def _decided_order(self, words: Words) -> Indices:
        """Return the order of all vertices by refined colours if the base vertices have these words as colours."""
        colours = self.structure.colours.copy()
        colours[: len(words)] = words
        return np.argsort(self.refine(colours), kind="stable")

    def _swap(self, first: int, second: int) -> Permutation | None:
        """Return the automorphism that swaps two base vertices and keeps the other base vertices; None without one.

        Values that are alike in a structure have such swaps; without this check a search below each would find them.
        """
        words, order = self._base_words
        swapped = words.copy()
        swapped[[first, second]] = words[[second, first]]
        swapped_order = self._decided_order(swapped)
        if not self.structure.is_same(order, swapped_order):
            return None
        image = np.empty(len(order), np.int64)
        image[order] = swapped_order
        return tuple(image.tolist())

    def _cell(self, colours: Words) -> list[int] | None:
        """Return the smallest class of several base vertices, of equal ones that of least colour; None without one."""
        classes: dict[int, list[int]] = {}
        for vertex, colour in enumerate(colours[: self.structure.base].tolist()):
            classes.setdefault(colour, []).append(vertex)
        several = [(len(vertices), colour) for colour, vertices in classes.items() if len(vertices) > 1]
        return classes[min(several)[1]] if several else None

    def _leaf(self, order: tuple[int, ...], path: tuple[int, ...]) -> None:
        """Compare a leaf with the best so far, and record the automorphism if both describe the same structure."""
        self.num_leaves += 1
        if not path:  # without a choice this is the only leaf
            self.best = order
            return
        edges = self.structure.edge_list(order)
        if self.best is None or edges < self.best_edges:
            self.best, self.best_edges, self.best_path = order, edges, path
        elif edges == self.best_edges:
            image = [0] * len(order)
            for vertex, target in zip(self.best, order, strict=True):
                image[vertex] = target
            self.automorphisms.append(tuple(image))
            differing = (i for i, (a, b) in enumerate(zip(path, self.best_path, strict=False)) if a != b)
            self.return_depth = next(differing, 0)

    def _orbit(self, vertex: int, path: tuple[int, ...]) -> set[int]:
        """Return the images of a vertex under the automorphisms that fix every vertex of the path."""
        return set(orbit(vertex, [image for image in self.automorphisms if all(image[v] == v for v in path)]))


def orbit(vertex: int, automorphisms: Sequence[Permutation]) -> Iterator[int]:
    """Yield a vertex and its images under all products of the automorphisms."""
    reached, waiting = {vertex}, [vertex]
    while waiting:
        current = waiting.pop()
        yield current
        for image in automorphisms:
            if image[current] not in reached:
                reached.add(image[current])
                waiting.append(image[current])


def _num_different(words: Words) -> int:
    """Return the number of different words."""
    ordered = np.sort(words)
    return min(len(words), 1) + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


def _mix(words: Words) -> Words:
    """Return mixed words, whose sums separate multisets of words (the finaliser of SplitMix64, Steele et al. 2014)."""
    mixed = words >> _SHIFTS[0]
    mixed ^= words
    mixed *= _MULTIPLIERS[0]
    mixed ^= mixed >> _SHIFTS[1]
    mixed *= _MULTIPLIERS[1]
    mixed ^= mixed >> _SHIFTS[2]
    return mixed
