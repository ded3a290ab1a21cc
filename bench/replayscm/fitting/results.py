"""Results of a fit whose table is no item: a page and certificates, but no pool and no picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from calibrant.bench.core.capabilities import Suggestion
from calibrant.bench.core.frames import Framed
from calibrant.bench.pages.page import design_page
from calibrant.bench.replayscm.fitting.certificates import Claim, Unclaimed, write_claims
from calibrant.bench.replayscm.fitting.table import Table
from calibrant.bench.terminal import NextCommand, command_without_option, invocation
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError

MAX_LINES = 200  # of a table of a page
WRITTEN = ("--html", "--svg", "--out", "--certificates", "--export")  # options that name files: not for a second time


class Section(NamedTuple):
    """A section of a page: notes and a table, or markup in place of both. numeric, code: columns of these."""

    title: str
    notes: Sequence[str] = ()
    headings: Sequence[str] = ()
    lines: Sequence[Sequence[str]] = ()
    numeric: Sequence[int] = ()
    code: Sequence[int] = ()
    num_more: int = 0
    markup: Markup = Markup()


class FitWithoutItem(Framed):
    """Result of a fit whose table is no item: it has lines, a page, and claims where there are any."""

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

    @property
    def reasons(self) -> Sequence[tuple[str, str]]:
        """The result in a few sentences, each with the formula that it begins with, if it does with one."""
        raise NotImplementedError

    @property
    def suggestions(self) -> Sequence[Suggestion]:
        """Options that go on."""
        raise NotImplementedError

    def sections(self) -> Iterator[Section]:
        """Yield the sections of the page."""
        raise NotImplementedError

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
        steps: Path | None = None,
        svg: Path | None = None,
        out: Path | None = None,
        certificates: Path | None = None,
    ) -> Iterator[str]:
        """Write a page and certificates, as far as asked for; refuse pools, pictures and steps, which are of items."""
        claims = list(self.claims)
        paths = {"--steps": steps, "--svg": svg, "--out": out, "--certificates": None if claims else certificates}
        options = [option for option, path in paths.items() if path is not None]
        if options:
            raise CalibrantError(f"{name}, {', '.join(options)}: {self.why_no_item}")
        if html is not None:
            write_atomically(html, self._page(name))
            yield f"page written to {html}"
        if certificates is not None:
            yield from write_claims(self.table, claims, certificates)

    def _page(self, name: str) -> str:
        again = command_without_option(*WRITTEN) if invocation.get() else ()
        content = {
            "title": name,
            "crumbs": ["fit", name],
            "reasons": self.reasons,
            "reading": [] if self.table.outputs else list(self.table.reading_lines(every=True)),
            "sections": list(self.sections()),
            "following": [
                (NextCommand((*again, *added), purpose).line, purpose) for added, purpose in self.suggestions if again
            ],
        }
        return design_page("why/fit.html", content)
