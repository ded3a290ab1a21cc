"""Capability of a benchmark to train a model: what it needs beyond the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Trainable(Protocol):
    """A benchmark as trainers see it. Verdicts are those that its functions give (bench.core.solutions)."""

    @property
    def stages(self) -> Sequence[str]:
        """Suites for a curriculum, easy ones first."""
        ...

    def difficulty(self, item: Any) -> Mapping[str, int]:
        """Flat labels that make items comparable. They may tell of what is sealed."""
        ...

    def gold(self, item: Any) -> dict[str, Any] | None:
        """Return an answer that is right when it is handed in at once; None where the item accepts none at once."""
        ...

    def share(self, item: Any, verdict: Any) -> float:
        """Return how much of an answer is right, 0 to 1: 1 if all of it is, 0 for one that is not valid."""
        ...

    def fits(self, verdict: Any) -> bool:
        """Return whether an answer agrees with the evidence that the item shows.

        Asked where all evidence is shown at once.
        """
        ...

    def agrees(self, verdict: Any) -> bool:
        """Return whether it is right in what attributions are about (bench.core.attribution); asked there too."""
        ...
