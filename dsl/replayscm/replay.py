"""Replays of one candidate on the worlds of a split: what its wrong rows come to as counts, shares and cells."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import NamedTuple

from calibrant.dsl.replayscm.evaluator import Candidate, mismatches
from calibrant.dsl.replayscm.reference import Cell
from calibrant.dsl.replayscm.world import MAX_CACHED_ORDERS, Column, Panel


class SplitReplay(NamedTuple):
    """The replay of a candidate on the worlds of one split.

    panel: the worlds; wrong: per endogenous variable, in evaluation order, its wrong rows
    wrong_rows: rows with at least one wrong cell
    num_cells: scored cells: non-intervened endogenous ones; num_worlds: worlds with at least one scored cell
    Worlds without a scored cell are left out of every count (as the published scorer does).
    """

    panel: Panel
    wrong: Mapping[str, Column]
    wrong_rows: Column
    num_cells: int
    num_worlds: int

    def __repr__(self) -> str:
        return f"<SplitReplay: {self.num_exact_worlds} of {self.num_worlds} worlds exact>"

    @property
    def num_wrong(self) -> int:
        return sum(column.bit_count() for column in self.wrong.values()) if self.wrong_rows else 0

    @property
    def accuracy(self) -> float | None:
        """Right scored cells over scored cells; None without any."""
        return (self.num_cells - self.num_wrong) / self.num_cells if self.num_cells else None

    @property
    def all_exact(self) -> bool:
        """Every scored cell is right, and at least one exists."""
        return self.num_cells > 0 and not self.wrong_rows

    @property
    def num_exact_worlds(self) -> int:
        if not self.wrong_rows:
            return self.num_worlds
        wrong = self.wrong_rows
        return self.num_worlds - len([rows for rows in self.panel.world_rows if wrong & rows])

    @property
    def world_accuracy(self) -> float | None:
        """Exact worlds over worlds with scored cells; None without any."""
        return self.num_exact_worlds / self.num_worlds if self.num_worlds else None

    @property
    def first_mismatch(self) -> Cell | None:
        """Worlds in file order, rows in order, variables in evaluation order."""
        if not self.wrong_rows:
            return None
        row = (self.wrong_rows & -self.wrong_rows).bit_length() - 1
        for variable, column in self.wrong.items():  # noqa: B007  # the first that is wrong there
            if column >> row & 1:
                break
        world, index = self.panel.locate(row)
        expected = self.panel.columns[variable] >> row & 1
        return Cell(world.id, index, variable, 1 - expected, expected)

    @property
    def variable_accuracy(self) -> dict[str, float | None]:
        """Right over scored cells per endogenous variable; None where a variable is never scored."""
        if not self.wrong_rows:
            return self.panel.all_right(tuple(self.wrong)).copy()
        scored = self.panel.num_scored
        accuracies: dict[str, float | None] = {}
        for variable, column in self.wrong.items():
            number = scored[variable]
            accuracies[variable] = (number - column.bit_count()) / number if number else None
        return accuracies


def replay(candidate: Candidate, panel: Panel) -> SplitReplay:
    """Replay one candidate on all worlds of a panel."""
    wrong = mismatches(candidate, panel)
    return SplitReplay(panel, wrong, reduce(or_, wrong.values(), 0), *panel.scored_counts(frozenset(wrong)))


def replay_splits(candidate: Candidate, whole: Panel, first: Panel, second: Panel) -> tuple[SplitReplay, SplitReplay]:
    """Replay two panels in one pass; `whole` is the worlds of the first, then those of the second."""
    return Split(first, second).replays(mismatches(candidate, whole))


class Split:
    """Two panels that are replayed in one pass. Made once for them.

    It keeps what is the same for all candidates with some endogenous variables, and the replays of those that are right
    everywhere, by evaluation order.
    """

    def __init__(self, first: Panel, second: Panel) -> None:
        self._first, self._second = first, second
        self._rows, self._shift = first.all_rows, first.num_rows
        self._right: dict[tuple[str, ...], tuple[SplitReplay, SplitReplay]] = {}

    def replays(self, wrong: Mapping[str, Column]) -> tuple[SplitReplay, SplitReplay]:
        """Split mismatches on both panels (rows of the first, then of the second) into a replay of each."""
        if any(wrong.values()):
            return self._split_replays(wrong)
        order = tuple(wrong)
        replays = self._right.get(order)
        if replays is None:
            if len(self._right) >= MAX_CACHED_ORDERS:
                self._right.clear()
            replays = self._right[order] = self._split_replays(wrong)
        return replays

    def _split_replays(self, wrong: Mapping[str, Column]) -> tuple[SplitReplay, SplitReplay]:
        wrong_rows = reduce(or_, wrong.values(), 0)
        rows, shift = self._rows, self._shift
        in_first = {variable: column & rows for variable, column in wrong.items()}
        in_second = {variable: column >> shift for variable, column in wrong.items()}
        endogenous = frozenset(wrong)
        return (
            SplitReplay(self._first, in_first, wrong_rows & rows, *self._first.scored_counts(endogenous)),
            SplitReplay(self._second, in_second, wrong_rows >> shift, *self._second.scored_counts(endogenous)),
        )
