"""A board: a suite checked, submissions scored again, and a folder of static files about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from calibrant.bench.runs.jobs import HERE, Execution, Progress
from calibrant.bench.suites.board.copies import original_by_id, share_consistent
from calibrant.bench.suites.board.eee import write_results
from calibrant.bench.suites.board.pages import Board, write_pages
from calibrant.bench.suites.board.ranking import BoardCell, BoardRow, sort_rows
from calibrant.bench.suites.board.scoring import score_submissions
from calibrant.bench.suites.board.submissions import RefusedSubmission, Submission, read_submissions
from calibrant.bench.suites.digests import write_sums
from calibrant.bench.suites.manifest import GOLD, ROWS
from calibrant.bench.suites.opened import OpenSuite, open_suite
from calibrant.bench.suites.rescoring import CellResult, judge_of
from calibrant.bench.terminal import making_folder, require_free, write_json
from calibrant.dsl.errors import CalibrantError

BOARD_FILE = "board.json"


class BoardSummary(NamedTuple):
    """Result of a board.

    page: the first one; num_ranked: systems on it, calibration rows apart; damage: of the suite, by pool
    """

    page: Path
    num_ranked: int
    refused: Sequence[RefusedSubmission]
    damage: Mapping[str, str]


def build_board(
    suite_folder: Path,
    submissions: Path,
    out: Path,
    *,
    expected: str = "",
    execution: Execution = HERE,
    progress: Progress = lambda name, done, total: None,
) -> BoardSummary:
    """Build the board of submissions to a suite into `out`, which must not be there, or empty; all of it or nothing.

    expected: digest of the release; empty for any
    """
    require_free(out, "a board")
    if not submissions.is_dir():
        raise CalibrantError(f"{submissions}: not a folder of submissions; `calibrant submission` writes one into it")
    suite = open_suite(suite_folder, progress, expected=expected)
    try:
        with making_folder(out) as (site, scratch):
            (site / suite.manifest.slug).mkdir(parents=True)
            scratch.mkdir()
            board = _score(suite, submissions, scratch, execution, progress)
            _write(board, site)
    finally:
        judge_of.cache_clear()  # the next board may have other pools under the same paths
        original_by_id.cache_clear()
    num_ranked = sum(not row.submission.is_row for row in board.rows)
    return BoardSummary(out / suite.manifest.slug / "index.html", num_ranked, board.refused, suite.damage)


def _score(suite: OpenSuite, folder: Path, scratch: Path, execution: Execution, progress: Progress) -> Board:
    given_rows = [*read_submissions(suite.folder / GOLD / ROWS, suite.manifest, scratch, are_rows=True)]
    rows = [entry for entry in given_rows if isinstance(entry, Submission)]
    entries = [*given_rows, *read_submissions(folder, suite.manifest, scratch, rows=rows)]
    read = [entry for entry in entries if isinstance(entry, Submission)]
    refused = [entry for entry in entries if isinstance(entry, RefusedSubmission)]
    damaged = [entry for entry in read if entry.is_row and entry.name in suite.row_damage]
    refused += [RefusedSubmission(entry.name, entry.card.system, suite.row_damage[entry.name]) for entry in damaged]
    results, unscored = score_submissions(suite, [entry for entry in read if entry not in damaged], execution, progress)
    refused += unscored
    by_folder = {entry.folder: entry for entry in read}
    ranked = [_row(by_folder[name], cells, suite) for name, cells in results.items()]
    return Board(suite, sort_rows(ranked), sorted(refused, key=lambda entry: entry.name))


def _row(submission: Submission, cells: Mapping[str, CellResult], suite: OpenSuite) -> BoardRow:
    ordered = {
        pool.name: BoardCell.of_result(
            pool.name, cells[pool.name], share_consistent(suite.pool_file(pool.name), cells[pool.name])
        )
        for pool in suite.manifest.pools
        if pool.name in cells
    }
    return BoardRow(submission, ordered, len(suite.manifest.pools))


def _write(board: Board, out: Path) -> None:
    """Write pages, a shard of each system and pool, the summary, and results in the common schema."""
    site = out / board.manifest.slug
    write_pages(board, site)
    for row in board.rows:
        for cell in row.cells.values():
            write_json(site / row.submission.folder / f"{cell.pool}.json", msgspec.to_builtins(cell.result))
        if not row.submission.is_row and row.cells:
            write_results(row, board.manifest, site)
    write_json(site / BOARD_FILE, _summary(board))
    write_sums(site)


def _summary(board: Board) -> dict[str, Any]:
    return {
        "suite": board.manifest.name,
        "version": board.manifest.release,
        "release_sha256": board.suite.digest,
        "damage": dict(board.suite.damage),
        "rows": [_summary_row(row) for row in board.rows],
        "refused": [
            {"name": entry.name, "system": entry.system, "status": "red", "reason": entry.reason}
            for entry in board.refused
        ],
    }


def _summary_row(row: BoardRow) -> dict[str, Any]:
    card = msgspec.to_builtins(row.submission.card)
    return {
        "name": row.submission.name,
        "is_row": row.submission.is_row,
        "status": "rescored",
        "sha256": row.submission.digest,
        "card": card,
        "mean": row.mean,
        "pools": {name: _summary_cell(cell, row) for name, cell in row.cells.items()},
    }


def _summary_cell(cell: BoardCell, row: BoardRow) -> dict[str, Any]:
    result = cell.result
    return {
        "rate": cell.rate,
        "interval": [cell.low, cell.high],
        "num_items": len(result.items),
        "num_answered": result.num_answered,
        "chance": cell.chance,
        "best": cell.best,
        "skill": cell.skill,
        "consistency": cell.consistency,
        "above_best": cell.is_above_best,
        "kinds": cell.kinds,
        "shard": f"{row.submission.folder}/{cell.pool}.json",
    }
