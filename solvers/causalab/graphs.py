"""Edges that all members of a laboratory's space have, and edges that some have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property

from calibrant.dsl.causalab.mechanism import Edge


class GraphSpace(ABC):
    """A space that counts its members and, of each edge that some member has, the members that have it."""

    @property
    @abstractmethod
    def count(self) -> int: ...
    @property
    @abstractmethod
    def edge_counts(self) -> Mapping[Edge, int]: ...

    @cached_property
    def certain_edges(self) -> frozenset[Edge]:
        """The edges of every member; none if there is no member."""
        return frozenset(edge for edge, number in self.edge_counts.items() if number == self.count)

    @cached_property
    def possible_edges(self) -> frozenset[Edge]:
        """The edges of some member."""
        return frozenset(self.edge_counts)

    @property
    def graph_decided(self) -> bool:
        """Return whether all members have the same edges, and there is a member."""
        return self.count > 0 and self.certain_edges == self.possible_edges
