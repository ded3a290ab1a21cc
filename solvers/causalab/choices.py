"""Acyclic choices of parents: how many there are, have an edge, or are a given graph.

Options are by node the number of local hypotheses for each set of parents, as a mask over the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TypeAlias

from dsl.causalab.mechanism import Edge
from solvers.acyclic.count import Weights, total

Options: TypeAlias = Mapping[int, Mapping[int, int]]


def choices(options: Options) -> int:
    """Number of acyclic choices of one local hypothesis for each node."""
    return total(Weights(options, 0)) if all(options.values()) else 0


def edge_numbers(options: Options, nodes: Sequence[str]) -> dict[Edge, int]:
    """How many choices have each edge that some choice has."""
    found = {}
    for child, own in options.items():
        for parent in range(len(nodes)):
            having = {mask: number for mask, number in own.items() if mask >> parent & 1}
            if having and (number := choices({**options, child: having})):
                found[nodes[parent], nodes[child]] = number
    return found


def graph_number(options: Options, edges: Set[Edge], nodes: Sequence[str]) -> int:
    """How many choices have exactly these edges."""
    masks = masks_of(edges, nodes)
    if masks is None:
        return 0
    return choices(
        {node: {masks[node]: own[masks[node]]} if masks[node] in own else {} for node, own in options.items()}
    )


def masks_of(edges: Set[Edge], nodes: Sequence[str]) -> list[int] | None:
    """The parents of each node as masks; None if an edge is not between two of the nodes."""
    number = {node: i for i, node in enumerate(nodes)}
    masks = [0] * len(nodes)
    for parent, child in edges:
        if parent not in number or child not in number:
            return None
        masks[number[child]] |= 1 << number[parent]
    return masks
