"""Acyclic choices of parents: how many there are, have an edge, or are a given graph.

Options are by node the number of local hypotheses for each set of parents, as a mask over the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import prod
from typing import TypeAlias

from calibrant.dsl.causalab.mechanism import Edge
from calibrant.solvers.acyclic.count import Weights, total

Options: TypeAlias = Mapping[int, Mapping[int, int]]


def choices(options: Options) -> int:
    """Number of acyclic choices of one local hypothesis for each node."""
    return total(Weights(options, 0)) if all(options.values()) else 0


def edge_numbers(options: Options, nodes: Sequence[str]) -> dict[Edge, int]:
    """Return how many choices have each edge that some choice has."""
    if not all(options.values()):
        return {}
    groups = Weights(options, 0).components()
    numbers = [total(group) for group in groups]
    parent_sets = {}
    for child, (group, beside) in sorted(_beside(groups, numbers).items()):
        options_by_node = dict(zip(group.endogenous, group.options, strict=True))
        roots = group.available & ~sum(1 << node for node in options_by_node)
        for parent in range(len(nodes)):
            having = {mask: number for mask, number in options_by_node[child].items() if mask >> parent & 1}
            if having and beside and (number := total(Weights({**options_by_node, child: having}, roots))):
                parent_sets[nodes[parent], nodes[child]] = number * beside
    return parent_sets


def _beside(groups: Sequence[Weights], numbers: Sequence[int]) -> dict[int, tuple[Weights, int]]:
    """For each node the group of those that it may lie on a cycle with, and the number of choices of all others."""
    return {
        node: (group, prod(number for index, number in enumerate(numbers) if index != group_index))
        for group_index, group in enumerate(groups)
        for node in group.endogenous
    }


def graph_number(options: Options, edges: Set[Edge], nodes: Sequence[str]) -> int:
    """Return how many choices have exactly these edges."""
    masks = masks_of(edges, nodes)
    if masks is None:
        return 0
    number = prod(candidates.get(masks[node], 0) for node, candidates in options.items())
    return number if number and _acyclic(masks) else 0


def _acyclic(parents: Sequence[int]) -> bool:
    placed, waiting = 0, list(enumerate(parents))
    while waiting:
        blocked = [(node, mask) for node, mask in waiting if mask & ~placed]
        if len(blocked) == len(waiting):
            return False
        placed |= sum(1 << node for node, mask in waiting if not mask & ~placed)
        waiting = blocked
    return True


def masks_of(edges: Set[Edge], nodes: Sequence[str]) -> list[int] | None:
    """The parents of each node as masks; None if an edge is not between two of the nodes."""
    number = {node: i for i, node in enumerate(nodes)}
    masks = [0] * len(nodes)
    for parent, child in edges:
        if parent not in number or child not in number:
            return None
        masks[number[child]] |= 1 << number[parent]
    return masks
