"""Results of a fit whose table is no item: no pool and no picture, but certificates where it claims anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from calibrant.bench.replayscm.fitting.certificates import Claim, Unclaimed, write_claims
from calibrant.bench.replayscm.fitting.table import Table
from calibrant.dsl.errors import CalibrantError


class FitWithoutItem:
    """Result of a fit whose table is no item: it has lines, and neither pool nor picture."""

    table: Table

    @property
    def why_no_item(self) -> str:
        """Why the table is no item, for who asks for what is of items."""
        raise NotImplementedError

    @property
    def claims(self) -> Iterable[Claim | Unclaimed]:
        """Claims that a third party can check against the table."""
        return ()

    @property
    def needed_parents(self) -> int | None:
        """None: there is no larger number of parents to advise."""
        return None

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield the lines of the terminal; verbose: everything."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Return the text of the terminal."""
        return "\n".join(self.lines())

    def write(
        self,
        name: str,
        *,
        html: Path | None = None,
        svg: Path | None = None,
        out: Path | None = None,
        certificates: Path | None = None,
    ) -> Iterator[str]:
        """Write certificates; refuse pages, pools and pictures, which are of items."""
        claims = list(self.claims)
        paths = {"--html": html, "--svg": svg, "--out": out, "--certificates": None if claims else certificates}
        options = [option for option, path in paths.items() if path is not None]
        if options:
            raise CalibrantError(f"{name}, {', '.join(options)}: {self.why_no_item}")
        if certificates is not None:
            yield from write_claims(self.table, claims, certificates)
