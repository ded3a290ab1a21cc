"""Base of protocols for plain items: episodes and hidden variables are refused with a reason."""

from __future__ import annotations

from calibrant.bench.protocols.base import Protocol
from calibrant.dsl.replayscm.item import Task


class PlainRow(Protocol, frozen=True):
    """Base of the rows for plain items; of noisy ones they read the rows as if these were exact."""

    reads_canonical = True

    def refusal(self, handout: object) -> str:
        if not isinstance(handout, Task):
            return f"{self.name} answers no episodes"
        if handout.extension is not None and handout.extension.hidden:
            return f"{self.name} answers no items with hidden variables"
        return ""
