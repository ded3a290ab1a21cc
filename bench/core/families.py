"""Capability: families of models that fit a prior network and data of one's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from calibrant.bench.core.capabilities import Capability
from calibrant.bench.core.options import GivenOptions

FAILURES = ("overclaimed", "missing", "outside")
"""What of a list of another tool can fail the command."""


class CountedFamily(Protocol):
    """The models that fit, counted; or what ran out first.

    is_counted: whether they were counted
    """

    @property
    def is_counted(self) -> bool: ...

    def lines(self, *, ranks_candidates: bool) -> Iterator[str]:
        """Yield the lines of the terminal.

        ranks_candidates: with a table of the best next experiments
        """
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON; numbers of members are texts, they exceed 64 bits."""
        ...

    def failures(self, kinds: Sequence[str]) -> Sequence[str]:
        """Return why another tool's list fails, a line each.

        kinds: some of FAILURES
        """
        ...

    def write(self, *, out: Path | None, html: Path | None, certificates: Path | None) -> Iterator[str]:
        """Write a folder of tables and models, a page, and certificates, as far as asked for; yields notes.

        `CalibrantError` for what this family has not
        """
        ...


class Families(Protocol):
    """Counts families."""

    def count(self, prior: Path, data: Path, options: GivenOptions) -> CountedFamily:
        """Return the family of a prior network and data; `CalibrantError` names file, line and column of a fault."""
        ...

    def recognizes(self, path: Path) -> bool:
        """Return whether a path looks like a prior network."""
        ...

    def convert(self, prior: Path, data: Path, out: Path, options: GivenOptions) -> Sequence[str]:
        """Write the data as a pool of one item without a sealed part; return lines that say what was written."""
        ...


FAMILIES: Capability[Families] = Capability("`family`")
