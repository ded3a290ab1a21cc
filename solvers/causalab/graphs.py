"""Certain and possible edges of a laboratory's space."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property

from calibrant.dsl.causalab.mechanism import Edge


class GraphSpace(ABC):
    """Space that counts its members, and for each edge the members that have it."""

    @property
    @abstractmethod
    def count(self) -> int: ...
    @property
    @abstractmethod
    def edge_counts(self) -> Mapping[Edge, int]: ...

    @cached_property
    def certain_edges(self) -> frozenset[Edge]:
        """Edges of every member; none if there is no member."""
        return frozenset(edge for edge, number in self.edge_counts.items() if number == self.count)

    @cached_property
    def possible_edges(self) -> frozenset[Edge]:
        """Edges of some member."""
        return frozenset(self.edge_counts)

    @property
    def graph_decided(self) -> bool:
        """Whether all members have the same edges, and there is a member."""
        return self.count > 0 and self.certain_edges == self.possible_edges
