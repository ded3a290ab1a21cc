"""Replay of a candidate on the worlds of a split, as counts, shares and cells; and counts for many SCMs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from calibrant.dsl.errors import CalibrantError, CycleError, ParseError, short_repr
from calibrant.dsl.formulas.text import ALL_OPERATORS, parse
from calibrant.dsl.replayscm.evaluator import (
    Candidate,
    Evaluation,
    Programs,
    compile_formulas,
    compile_texts,
    mismatches,
)
from calibrant.dsl.replayscm.reference import Cell
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import MAX_CACHED_ORDERS, Column, Panel, World, pack_panels


class SplitReplay(NamedTuple):
    """The replay of a candidate on the worlds of one split.

    panel: the worlds; wrong: endogenous variable, in evaluation order -> bit column of its wrong rows
    wrong_rows: rows with at least one wrong cell
    num_cells: scored cells, those of endogenous variables that are not set; num_worlds: worlds with a scored cell
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
        """First wrong cell, by world in file order, row, and variable in evaluation order; None if all are right."""
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
        """Endogenous variable -> right cells over scored cells; None if it is never scored."""
        if not self.wrong_rows:
            return self.panel.perfect_accuracies(tuple(self.wrong)).copy()
        scored = self.panel.num_scored
        accuracies: dict[str, float | None] = {}
        for variable, column in self.wrong.items():
            num_scored = scored[variable]
            accuracies[variable] = (num_scored - column.bit_count()) / num_scored if num_scored else None
        return accuracies


def replay(candidate: Candidate, panel: Panel) -> SplitReplay:
    """Replay one candidate on all worlds of a panel."""
    wrong = mismatches(candidate, panel)
    return SplitReplay(panel, wrong, reduce(or_, wrong.values(), 0), *panel.scored_counts(frozenset(wrong)))


def replay_splits(candidate: Candidate, whole: Panel, first: Panel, second: Panel) -> tuple[SplitReplay, SplitReplay]:
    """Replay two panels in one pass; `whole` is the worlds of the first, then those of the second."""
    return Split(first, second).replays(mismatches(candidate, whole))


class Split:
    """Two panels that are replayed in one pass; one instance serves many candidates.

    Replays of candidates without a wrong cell are cached by evaluation order.
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


# --- The public entry -------------------------------------------------------------------------------------------------
def evaluate(scms: Sequence[Scm | Mapping[str, str]], worlds: Panel | Sequence[World]) -> Evaluation:
    """Replay SCMs on worlds and count right cells and worlds; an SCM may be a map variable -> formula text.

    A variable without a mechanism is a root and takes its observed values. `CalibrantError` names a wrong SCM.
    """
    if isinstance(scms, Scm | Mapping | str) or not isinstance(scms, Sequence):
        raise CalibrantError(f"scms is {short_repr(scms)}, not a list of SCMs; of one SCM it is [scm]")
    if not isinstance(worlds, Panel):
        allowed = "worlds are a Panel such as item.task.training, or a sequence of World objects"
        try:
            world_tuple = tuple(worlds)
        except TypeError:
            raise CalibrantError(allowed) from None
        if not all(isinstance(world, World) for world in world_tuple):
            raise CalibrantError(allowed)
        if not world_tuple:
            raise CalibrantError("there is no world to replay the SCMs on")
        worlds = Panel(world_tuple[0].variables, world_tuple)
    if any(set(world.variables) != set(worlds.variables) for world in worlds.worlds):
        raise CalibrantError("all worlds must have the same variables")
    programs = _compile_texts_alike(scms, worlds.variables)
    if programs is None:
        models = [_check_scm(index, model, worlds.variables) for index, model in enumerate(scms)]
        programs = compile_formulas(models, worlds.variables)
    counts = programs.compare(pack_panels([worlds]))
    return Evaluation(*(array[:, 0] for array in counts))


def _compile_texts_alike(scms: Sequence[Scm | Mapping[str, str]], variables: tuple[str, ...]) -> Programs | None:
    """Compile SCMs that are all texts and fit the evaluation order of the first; None if one does not."""
    maps = [model for model in scms if isinstance(model, Mapping)]
    if len(maps) < len(scms) or not maps or any(model.keys() != maps[0].keys() for model in maps):
        return None
    order = _check_scm(0, maps[0], variables).order
    roots = set(variables) - set(order)
    parents = {v: frozenset(roots.union(order[:i])) for i, v in enumerate(order)}
    texts = [model[v] for model in maps for v in order]
    if not all(isinstance(text, str) for text in texts):
        return None
    try:
        return compile_texts(texts, variables, order, ALL_OPERATORS, parents)
    except ParseError:
        return None


def _check_scm(index: int, model: object, variables: Sequence[str]) -> Scm:
    """Return an SCM over these variables; `CalibrantError` for any other."""
    where, allowed = f"scms[{index}]", frozenset(variables)
    if isinstance(model, Scm):
        mechanisms = dict(model.mechanisms)
    elif isinstance(model, Mapping):
        mechanisms = {}
        for variable, text in model.items():
            try:
                mechanisms[variable] = parse(text, ALL_OPERATORS) if isinstance(text, str) else text
            except ParseError as error:
                raise CalibrantError(f"{where}: mechanism of {short_repr(variable)}: {error}") from None
            if not isinstance(text, str):
                raise CalibrantError(f"{where}: mechanism of {short_repr(variable)} is {short_repr(text)}, not a text")
    else:
        raise CalibrantError(f"{where} is {short_repr(model)}; an SCM is a calibrant.Scm or texts by variable")
    strangers = {*mechanisms, *(u for formula in mechanisms.values() for u in formula.mentioned)} - allowed
    if strangers:
        raise CalibrantError(
            f"{where} has {short_repr(min(map(str, strangers)))}; the worlds have {', '.join(variables)}"
        )
    try:
        return Scm(tuple(v for v in variables if v not in mechanisms), mechanisms)
    except CycleError as error:
        raise CalibrantError(f"{where}: {error}") from None
