"""Fewest worlds that meet all requirements: an integer program by HiGHS, its relaxation for dual weights.

Without HiGHS (extra `large`), MaxSAT by RC2 proves the same minimum, more slowly where many worlds are candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from calibrant.solvers.budget import Budget
from calibrant.solvers.highs import empty_program, has_highs, require_highs, run
from calibrant.solvers.replayscm.experiments.duals import CoverRow, RowWeight, feasible_weights
from calibrant.solvers.sat import Cnf, CoreGuided

if TYPE_CHECKING:
    from highspy import Highs

# HiGHS returns integers as doubles, off by up to its tolerance of 1e-6
CHOSEN = 0.5


def fewest_worlds(rows: Sequence[CoverRow], num_worlds: int) -> list[int]:
    """Return a smallest set of worlds that meets all rows; which of several depends on the engine."""
    return _fewest_by_program(rows, num_worlds) if has_highs() else _fewest_by_maxsat(rows)


def _fewest_by_program(rows: Sequence[CoverRow], num_worlds: int) -> list[int]:
    program, _ = _program(rows, num_worlds, is_integer=True)
    if not run(program):
        raise AssertionError("a covering program without limits was not solved")
    values = program.getSolution().col_value[:num_worlds]
    return [world for world, value in enumerate(values) if value > CHOSEN]


def _fewest_by_maxsat(rows: Sequence[CoverRow]) -> list[int]:
    usable = sorted({world for row in rows for parts in row.alternatives for part in parts for world in part})
    cnf = Cnf()
    literals = {world: cnf.variable(f"x{world}") for world in usable}
    picked = [[cnf.variable(f"y{number}.{i}") for i in range(len(row.alternatives))] for number, row in enumerate(rows)]
    solver = CoreGuided(cnf, Budget())
    try:
        for literal in literals.values():
            solver.prefer(-literal, 1)
        for row, pieces in zip(rows, picked, strict=True):
            solver.add(pieces)
            for piece, parts in zip(pieces, row.alternatives, strict=True):
                for part in parts:
                    solver.add([-piece, *(literals[world] for world in sorted(part))])
        model = solver.cheapest_model()
    finally:
        solver.close()
    if model is None:
        raise AssertionError("a covering problem without a solution")
    chosen = [world for world, literal in literals.items() if literal in model]
    assert all(row.is_met(frozenset(chosen)) for row in rows)
    return chosen


def dual_weights(rows: Sequence[CoverRow], num_worlds: int) -> list[RowWeight]:
    """Return rational weights of the rows, feasible, from the relaxation's duals; `MissingExtraError` without HiGHS."""
    program, places = _program(rows, num_worlds, is_integer=False)
    run(program)
    duals = program.getSolution().row_dual
    single = [duals[first] for first, _ in places]
    parts = [[[duals[place] for place in piece] for piece in pieces] for _, pieces in places]
    return feasible_weights(rows, single, parts)


def _program(
    rows: Sequence[CoverRow], num_worlds: int, *, is_integer: bool
) -> tuple[Highs, list[tuple[int, list[list[int]]]]]:
    """Return the program, and of each requirement its row and those of its alternatives' sets."""
    require_highs()
    import highspy

    program = empty_program(random_seed=0)
    num_extra = sum(len(row.alternatives) for row in rows if not row.is_plain)
    for column in range(num_worlds + num_extra):
        # the relaxation has no upper bounds: their duals would be missing from the rows' certificate
        program.addVar(0.0, 1.0 if is_integer else highspy.kHighsInf)
        if column < num_worlds:
            program.changeColCost(column, 1.0)
        if is_integer:
            program.changeColIntegrality(column, highspy.HighsVarType.kInteger)
    places: list[tuple[int, list[list[int]]]] = []
    extra, number = num_worlds, 0
    for row in rows:
        if row.is_plain:
            _add(program, 1.0, sorted(row.alternatives[0][0]))
            places.append((number, []))
            number += 1
            continue
        columns = list(range(extra, extra + len(row.alternatives)))
        extra += len(columns)
        # some y is at least 1, and a y needs a world of each of its sets: y <= sum of x
        _add(program, 1.0, columns)
        first, number = number, number + 1
        pieces = []
        for column, alternative in zip(columns, row.alternatives, strict=True):
            pieces.append(list(range(number, number + len(alternative))))
            for worlds in alternative:
                _add(program, 0.0, sorted(worlds), column)
                number += 1
        places.append((first, pieces))
    return program, places


def _add(program: Highs, at_least: float, columns: Sequence[int], less: int | None = None) -> None:
    import highspy

    indices = np.array([*columns, *_optional(less)], np.int32)
    values = np.array([1.0] * len(columns) + [-1.0] * (less is not None))
    program.addRow(at_least, highspy.kHighsInf, len(indices), indices, values)


def _optional(column: int | None) -> Iterator[int]:
    if column is not None:
        yield column
