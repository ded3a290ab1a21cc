"""A program's graph beside a reference graph: equal, or which nodes and edges are missing, extra or reversed.

The structure matches iff canonical names and parent sets are equal (arXiv 2605.09079, section 4.2 and Table 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calibrant.dsl.causim.topology import Parents
from calibrant.dsl.causim.values import ModelError

Edge = tuple[str, str]


@dataclass(frozen=True, slots=True)
class StructureDifference:
    """Nodes and edges (parent, child), sorted, in the names of the reference where it has them.

    reversed_edges: edges of the reference that the program has the other way round; they are in neither other list
    """

    missing_nodes: tuple[str, ...]
    extra_nodes: tuple[str, ...]
    missing_edges: tuple[Edge, ...]
    extra_edges: tuple[Edge, ...]
    reversed_edges: tuple[Edge, ...]

    @property
    def is_match(self) -> bool:
        return not any(
            (self.missing_nodes, self.extra_nodes, self.missing_edges, self.extra_edges, self.reversed_edges)
        )


def canonical_name(name: str) -> str:
    """Return a name without case and punctuation: its letters and digits, casefolded."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def compare_structure(
    graph: Parents, reference: Parents, names: Mapping[str, str] | None = None
) -> StructureDifference:
    """Compare a program's graph with a reference.

    names: the program's name -> the reference's, for nodes whose canonical names differ. `ModelError` where two nodes
    of one graph have the same canonical name, or a name to be mapped is no node.
    """
    renamed = _rename(graph, reference, names or {})
    edges, required = _edges(renamed), _edges(reference)
    turned = {(parent, child) for parent, child in required - edges if (child, parent) in edges - required}
    return StructureDifference(
        tuple(sorted(set(reference) - set(renamed))),
        tuple(sorted(set(renamed) - set(reference))),
        tuple(sorted(required - edges - turned)),
        tuple(sorted(edges - required - {(child, parent) for parent, child in turned})),
        tuple(sorted(turned)),
    )


def _rename(graph: Parents, reference: Parents, names: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the program's graph in the names of the reference; a node that it lacks keeps its own name."""
    for name, target in names.items():
        if name not in graph:
            raise ModelError(f"{name} is to be mapped to {target}, but the program has no such node")
        if target not in reference:
            raise ModelError(f"{name} is to be mapped to {target}, but the reference has no such node")
    by_canonical = _canonical_index(reference)
    program_index = _canonical_index(graph)
    new_names = {node: names.get(node, by_canonical.get(canonical, node)) for canonical, node in program_index.items()}
    if len(set(new_names.values())) < len(new_names):
        raise ModelError("two nodes of the program would have the same name in the reference")
    return {new_names[node]: tuple(new_names[parent] for parent in parents) for node, parents in graph.items()}


def _canonical_index(graph: Parents) -> dict[str, str]:
    index: dict[str, str] = {}
    for node in graph:
        first = index.setdefault(canonical_name(node), node)
        if first != node:
            raise ModelError(f"{first} and {node} are one name without case and punctuation")
    return index


def _edges(graph: Parents) -> set[Edge]:
    return {(parent, node) for node, parents in graph.items() for parent in parents}
