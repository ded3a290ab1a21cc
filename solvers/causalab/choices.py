"""Counts of acyclic assignments of local hypotheses: all, by edge, or with a given graph.

Options: for each node the number of local hypotheses by parent set, a mask over the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import prod
from typing import TypeAlias

from calibrant.dsl.causalab.mechanism import Edge
from calibrant.solvers.acyclic.count import Weights, total

Options: TypeAlias = Mapping[int, Mapping[int, int]]


def count_choices(options: Options) -> int:
    """Count the acyclic assignments of one local hypothesis to each node."""
    return total(Weights(options, 0)) if all(options.values()) else 0


def count_by_edge(options: Options, nodes: Sequence[str]) -> dict[Edge, int]:
    """Count the assignments with each edge that some assignment has."""
    if not all(options.values()):
        return {}
    # components multiply, so an edge needs a sum over its child's component alone
    groups = Weights(options, 0).components()
    numbers = [total(group) for group in groups]
    parent_sets = {}
    for child, (group, other_choices) in sorted(_other_choices(groups, numbers).items()):
        options_by_node = dict(zip(group.endogenous, group.options, strict=True))
        roots = group.available & ~sum(1 << node for node in options_by_node)
        for parent in range(len(nodes)):
            with_parent = {mask: number for mask, number in options_by_node[child].items() if mask >> parent & 1}
            if (
                with_parent
                and other_choices
                and (number := total(Weights({**options_by_node, child: with_parent}, roots)))
            ):
                parent_sets[nodes[parent], nodes[child]] = number * other_choices
    return parent_sets


def _other_choices(groups: Sequence[Weights], numbers: Sequence[int]) -> dict[int, tuple[Weights, int]]:
    """Return, for each node, its component, and the number of assignments of all other components."""
    return {
        node: (group, prod(number for index, number in enumerate(numbers) if index != group_index))
        for group_index, group in enumerate(groups)
        for node in group.endogenous
    }


def count_graph(options: Options, edges: Set[Edge], nodes: Sequence[str]) -> int:
    """Count the assignments with exactly these edges."""
    masks = masks_of(edges, nodes)
    if masks is None:
        return 0
    number = prod(candidates.get(masks[node], 0) for node, candidates in options.items())
    return number if number and _is_acyclic(masks) else 0


def _is_acyclic(parents: Sequence[int]) -> bool:
    placed, remaining = 0, list(enumerate(parents))
    while remaining:
        blocked = [(node, mask) for node, mask in remaining if mask & ~placed]
        if len(blocked) == len(remaining):
            return False
        placed |= sum(1 << node for node, mask in remaining if not mask & ~placed)
        remaining = blocked
    return True


def masks_of(edges: Set[Edge], nodes: Sequence[str]) -> list[int] | None:
    """Return the parents of each node as masks; None if an edge is not between two of the nodes."""
    number = {node: i for i, node in enumerate(nodes)}
    masks = [0] * len(nodes)
    for parent, child in edges:
        if parent not in number or child not in number:
            return None
        masks[number[child]] |= 1 << number[parent]
    return masks
