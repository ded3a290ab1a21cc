"""The figures that the paper prints, as facts with their places in it. Nothing here is computed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from calibrant.audits.blickets.printed import PrintedTest, Sides, TwoByTwo

_FILE = Path(__file__).resolve().parent.parent / "data" / "paper_rows.json"


class PrintedTable(msgspec.Struct, frozen=True):
    """Table of the paper, as printed.

    rows: as many texts as there are labels, then one for each column; `-` is not printed or not run
    """

    title: str
    where: str
    labels: list[str]
    columns: list[str]
    rows: list[list[str]]


class PrintedComparison(msgspec.Struct, frozen=True):
    """Comparison of the paper, as printed.

    counts: successes and failures of the one and of the other; p, h, odds_ratio (with its interval): as printed
    """

    name: str
    counts: tuple[int, int, int, int]
    p: str
    sides: Sides
    h: str | None = None
    odds_ratio: tuple[str, str, str] | None = None

    @property
    def test(self) -> PrintedTest:
        return PrintedTest(self.name, TwoByTwo(*self.counts), self.p, self.sides)


class PrintedStrata(msgspec.Struct, frozen=True):
    """A comparison over several tables of counts."""

    name: str
    strata: list[tuple[int, int, int, int]]
    p: str
    odds_ratio: tuple[str, str, str]


class PrintedOdds(msgspec.Struct, frozen=True):
    """Posterior odds that the first rate is the greater one."""

    name: str
    counts: tuple[int, int, int, int]
    odds: str


class Paper(msgspec.Struct, frozen=True):
    """Printed tables of the paper.

    tables: by their number in the paper
    """

    source: str
    tables: dict[str, PrintedTable]
    tests: list[PrintedComparison]
    stratified: PrintedStrata
    posterior_odds: PrintedOdds


@cache
def paper() -> Paper:
    return msgspec.json.decode(_FILE.read_bytes(), type=Paper)
