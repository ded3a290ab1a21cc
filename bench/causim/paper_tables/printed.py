"""The figures that the paper prints, as facts with their places in it. Nothing here is computed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

_FILE = Path(__file__).resolve().parents[1] / "data" / "paper_rows.json"


class PrintedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Table of the paper, as printed.

    rows: as many texts as there are labels, then one for each column, as printed
    questions: which are behind a table of pass@1 by number of nodes; empty for other tables
    """

    title: str
    where: str
    questions: Literal["counterfactual", "intervention", "all", ""]
    labels: list[str]
    columns: list[str]
    rows: list[list[str]]


class Paper(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Printed tables of the paper.

    tables: by their number in the paper; those that repeat others with rounded figures are left out
    """

    source: str
    tables: dict[str, PrintedTable]


@cache
def paper() -> Paper:
    return msgspec.json.decode(_FILE.read_bytes(), type=Paper)
