"""Laboratories of CausaLab as text: the graph that their records prove, and with gold the true one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from calibrant.bench.causalab.plots.picture import graphs_page, item_picture, run_picture
from calibrant.bench.pages.graph import graph_text
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.solvers.budget import BudgetSpent


def drawing(item: LabItem, *, reveal_sealed: bool) -> str:
    """Return the graph in text, empty where the mechanisms that fit are not counted."""
    try:
        return graph_text(item_picture(item, reveal_sealed=reveal_sealed))
    except BudgetSpent:
        return ""


class LabEpisodes:
    """Implements EpisodeViews (bench.pages.capabilities)."""

    def text(self, item: LabItem, steps: Sequence[Step[Any]], system: str) -> str:
        with refuse_uncounted(item):
            return graph_text(run_picture(f"{system}, {item.id}", item, steps))

    def page(self, item: LabItem, episodes: Sequence[tuple[str, Sequence[Step[Any]]]]) -> str:
        with refuse_uncounted(item):
            return graphs_page(item, [run_picture(f"{name}, {item.id}", item, steps) for name, steps in episodes])


@contextmanager
def refuse_uncounted(item: LabItem) -> Iterator[None]:
    """Turn a spent budget into a line about the item."""
    try:
        yield
    except BudgetSpent as spent:
        raise CalibrantError(f"{in_one_line(item.id)}: no picture: {spent}") from None


EPISODE_VIEWS = LabEpisodes()
