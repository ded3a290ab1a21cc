"""Laboratories of CausaLab as text: the graph that their records prove, and with gold the true one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from calibrant.bench.causalab.plots.picture import item_picture
from calibrant.bench.pages.graphs import graph_text
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.solvers.budget import BudgetSpent


def drawing(item: LabItem, *, reveal_sealed: bool) -> str:
    """Return the graph in text, empty where the mechanisms that fit are not counted."""
    try:
        return graph_text(item_picture(item, reveal_sealed=reveal_sealed))
    except BudgetSpent:
        return ""


@contextmanager
def refuse_uncounted(item: LabItem) -> Iterator[None]:
    """Turn a spent budget into a line about the item."""
    try:
        yield
    except BudgetSpent as spent:
        raise CalibrantError(f"{in_one_line(item.id)}: no picture: {spent}") from None
