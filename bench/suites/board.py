"""Boards (ranked tables of submissions to a suite) and their pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from calibrant.bench.core.attribution import ATTRIBUTION_METRICS, SHARES, share_words, shown_shares
from calibrant.bench.core.benchmark import PublicIds
from calibrant.bench.core.metrics import Metric
from calibrant.bench.core.registry import benchmark, benchmark_of
from calibrant.bench.pages.page import design_page
from calibrant.bench.runs.executors import HERE, Execution, Failure, Jobs, Progress
from calibrant.bench.runs.workers import as_completed
from calibrant.bench.suites.eee import write_results
from calibrant.bench.suites.manifest import GOLD, ROWS, Manifest, PoolEntry, write_sums
from calibrant.bench.suites.rescoring import CellResult, ItemResult, OpenSuite, judge_of, open_suite, pool_path
from calibrant.bench.suites.submissions import (
    ROW_SUBMITTER,
    BoardCell,
    BoardRow,
    Card,
    RefusedSubmission,
    Submission,
    find_repeated_submissions,
    rank_pool,
    read_submissions,
    refusal_text,
    sort_rows,
)
from calibrant.bench.terminal import making_folder, require_free, write_json
from calibrant.bench.variants import KEY, read_maps
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.text import plural

# --- Pages of a board: static, self-contained files in a folder named after the suite's version -----------------------
NONE = "\N{EN DASH}"
MAX_SHOWN_CHARS = 600  # length of an answer on a page; the JSON file of the same results (shard) has more


@dataclass(frozen=True)
class Board:
    """A suite with its scored and refused submissions. rows: sorted by rate, with the suite's own methods."""

    suite: OpenSuite
    rows: Sequence[BoardRow]
    refused: Sequence[RefusedSubmission]

    @property
    def manifest(self) -> Manifest:
        return self.suite.manifest

    @property
    def num_ranked(self) -> int:
        return sum(row.is_ranked for row in self.rows)

    @property
    def unscored(self) -> list[str]:
        """The names of submissions that answer only damaged pools."""
        return [row.submission.name for row in self.rows if not (row.cells or row.submission.is_row)]


def write_pages(board: Board, site: Path) -> None:
    """Write the index page, a page for each pool, and one for each system and pool."""
    (site / "index.html").write_text(index_page(board), encoding="utf-8")
    for pool in board.manifest.pools:
        (site / f"{pool.name}.html").write_text(pool_page(board, pool), encoding="utf-8")
    for row in board.rows:
        folder = site / row.submission.folder
        folder.mkdir(parents=True, exist_ok=True)
        for cell in row.cells.values():
            (folder / f"{cell.pool}.html").write_text(cell_page(board, row, cell), encoding="utf-8")


def index_page(board: Board) -> str:
    """Return the index page: systems by pools, refused submissions, damaged pools."""
    manifest = board.manifest
    num_rows = sum(row.submission.is_row for row in board.rows)
    content = {
        "title": f"Board of {manifest.title} {manifest.release}",
        "crumbs": ("Board", manifest.slug),
        "summary": manifest.summary,
        "chips": [
            (plural(board.num_ranked, "submitted systems"), "whose answers were scored again here"),
            (plural(num_rows, "methods"), "of the suite, for comparison"),
            (len(board.refused), "refused"),
            (f"sha256 {board.suite.digest[:16]}", "of the release"),
        ],
        "pools": manifest.pools,
        "damage": board.suite.damage,
        "unranked": "" if board.num_ranked else unranked_text(board.refused, board.unscored),
        "rows": [_index_row(row, manifest) for row in board.rows],
        "has_costs": any(row.submission.card.cost is not None for row in board.rows),
        "intervals": interval_text([cell for row in board.rows for cell in row.cells.values()]),
        "refused": board.refused,
    }
    return design_page("suites/board.html", content)


def pool_page(board: Board, pool: PoolEntry) -> str:
    """Return the page of a pool: its ranked systems."""
    manifest = board.manifest
    ranked = rank_pool(board.rows, pool.name)
    cells = [row.cells[pool.name] for _, row in ranked]
    present = shown_shares({key for cell in cells for key in SHARES if cell.kinds[key]})
    shares = [metric for metric in ATTRIBUTION_METRICS if metric.key in present]
    rows = [_pool_row(rank, row, row.cells[pool.name], shares) for rank, row in ranked]
    content = {
        "title": f"{pool.name}: {benchmark(pool.benchmark).title}",
        "crumbs": ("Board", manifest.slug, pool.name),
        "pool": pool,
        "items": plural(pool.num_items, "items"),
        "damage": board.suite.damage.get(pool.name, ""),
        "rows": rows,
        "kinds": {metric.heading: metric.meaning for metric in shares},
        "known": {
            heading: key
            for heading, key in (("Consistency", "consistency"), ("Cost", "cost"))
            if any(row[key] != NONE for row in rows)
        },
        "intervals": interval_text(cells),
        "flagged": [row["system"] for row in rows if row["flag"]],
    }
    return design_page("suites/pool.html", content)


def cell_page(board: Board, row: BoardRow, cell: BoardCell) -> str:
    """Return the page of a system's answers to a pool, item by item."""
    card = row.submission.card
    result = cell.result
    content = {
        "title": f"{card.system} on {cell.pool}",
        "crumbs": ("Board", board.manifest.slug, cell.pool, card.system),
        "pool": cell.pool,
        "chips": [
            (rate_text(cell), "right"),
            (f"{result.num_answered} of {len(result.items)}", "answered"),
            (_number(cell.chance), "chance"),
            (_number(cell.best), "best"),
        ],
        "facts": _facts(row),
        "items": [_item_cells(item) for item in result.items],
        "shard": f"{cell.pool}.json",
    }
    return design_page("suites/cell.html", content)


def unranked_text(refused: Sequence[RefusedSubmission], unscored: Sequence[str]) -> str:
    """Return the sentence on why a board has no ranked systems."""
    if unscored:
        return f"Answers to damaged pools are not scored: {', '.join(unscored)}."
    if not refused:
        return "There is no submission; the rows of the suite stand alone."
    return f"All that was submitted is refused, {len(refused)} in number, each with its reason."


def rate_text(cell: BoardCell) -> str:
    """Return a rate with its interval."""
    return f"{cell.rate:.3f} [{cell.low:.3f}, {cell.high:.3f}]"


def cost_text(card: Card) -> str:
    """Return the cost that a card states."""
    return NONE if card.cost is None else f"{card.cost:g} {card.currency}"


def _index_row(row: BoardRow, manifest: Manifest) -> dict[str, Any]:
    card = row.submission.card
    return {
        "system": card.system,
        "version": card.version,
        "submitter": ROW_SUBMITTER if row.submission.is_row else card.submitter,
        "mean": _number(row.partial_mean),
        "part": "" if row.mean is not None else f"{len(row.cells)} of {plural(row.num_pools, 'pools')}",
        "cells": [_index_cell(row, pool.name) for pool in manifest.pools],
        "cost": cost_text(card),
        "date": card.date.isoformat(),
        "digest": row.submission.digest[:8],
        "status": "row" if row.submission.is_row and row.cells else row.status,
    }


def _index_cell(row: BoardRow, pool: str) -> dict[str, str]:
    cell = row.cells.get(pool)
    if cell is None:
        return {"text": NONE, "href": "", "flag": ""}
    flag = "above best" if cell.is_above_best else ""
    return {"text": rate_text(cell), "href": f"{row.submission.folder}/{pool}.html", "flag": flag}


def interval_text(cells: Sequence[BoardCell]) -> str:
    """Return the note on the intervals of these rates (bench.answers.rates)."""
    shared = any(len({item.unit or item.id for item in c.result.items}) < len(c.result.items) for c in cells)
    clustered = ", where items share a latent model clustered by it (Student's t; Wilson's near 0 and 1)"
    return f"In brackets: 95 % intervals over items, Wilson's{clustered if shared else ''}."


def _pool_row(rank: int | None, row: BoardRow, cell: BoardCell, shares: Sequence[Metric]) -> dict[str, Any]:
    card, result = row.submission.card, cell.result
    skill, kinds = cell.skill, cell.kinds
    return {
        "rank": NONE if rank is None else str(rank),
        "system": card.system,
        "version": card.version,
        "href": f"{row.submission.folder}/{cell.pool}.html",
        "rate": rate_text(cell),
        "answered": f"{result.num_answered} of {len(result.items)}",
        "chance": _number(cell.chance),
        "best": _number(cell.best),
        "skill": NONE if skill is None else f"{skill[0]:.3f} [{skill[1]:.3f}, {skill[2]:.3f}]",
        "kinds": {metric.heading: f"{kinds[metric.key]:.3f}" for metric in shares},
        "consistency": _number(cell.consistency),
        "cost": cost_text(card),
        "flag": cell.is_above_best,
    }


def _facts(row: BoardRow) -> list[tuple[str, str]]:
    card = row.submission.card
    tokens = NONE if card.tokens is None else f"{card.tokens.input} read, {card.tokens.output} written"
    facts = [
        ("version", card.version),
        ("submitter", f"{card.submitter} ({card.relationship.replace('_', ' ')})"),
        ("date", card.date.isoformat()),
        ("tokens, self-stated", tokens),
        ("cost, self-stated", cost_text(card)),
        ("sha256 of the submission", row.submission.digest),
    ]
    return facts + sorted(card.settings.items())


def _item_cells(item: ItemResult) -> dict[str, Any]:
    kinds = ", ".join(dict.fromkeys(map(share_words, item.kinds)))
    answer = item.answer
    return {
        "id": item.id,
        "setting": item.setting,
        "tone": "good" if item.right == 1 else "bad",
        "right": f"{item.right:.3f}" if item.num_samples > 1 else ("right" if item.right else "wrong"),
        "kinds": kinds,
        "chance": _number(item.chance),
        "steps": item.num_steps or NONE,
        "reason": item.reason,
        "answer": answer if len(answer) <= MAX_SHOWN_CHARS else answer[:MAX_SHOWN_CHARS] + "\N{HORIZONTAL ELLIPSIS}",
    }


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.3f}"


# --- Consistency of a system on a pool of variants: share of originals whose copies are all right or all wrong --------


def share_consistent(pool: Path, result: CellResult) -> float | None:
    """Return the share of originals whose copies in a pool have equal scores; None for a pool without variants."""
    originals = original_by_id(pool)
    if originals is None:
        return None
    right_by_original: dict[str, set[float]] = {}
    for item in result.items:
        right_by_original.setdefault(originals[item.id], set()).add(item.right)
    return sum(len(values) == 1 for values in right_by_original.values()) / len(right_by_original)


@lru_cache(maxsize=16)
def original_by_id(pool: Path) -> Mapping[str, str] | None:
    """Return public id of a copy -> id of its original; None if the pool has no variants. Cached."""
    content: Any = benchmark_of(pool).items.read_pool(pool)
    if KEY not in content.metadata:
        return None
    public = PublicIds.of_pool(pool, content.items)
    return {public.public(name): copy_map.of for name, copy_map in read_maps(pool).copies.items()}


# --- Scoring of submissions: a job with a time limit for each file ----------------------------------------------------


class ScoredFile(NamedTuple):
    """Result of scoring a file, or the reason why there is none."""

    result: CellResult | None
    reason: str = ""


class _Job(NamedTuple):
    """A file of answers to a pool."""

    pool: str
    file: Path


def score_submissions(
    suite: OpenSuite, submissions: Sequence[Submission], execution: Execution, progress: Progress
) -> tuple[dict[str, dict[str, CellResult]], list[RefusedSubmission]]:
    """Score all files; return (folder -> pool -> result, refused submissions).

    A submission is refused if one of its files cannot be scored. Files for damaged pools are skipped.
    """
    by_folder = {submission.folder: submission for submission in submissions}
    sound = {pool.name for pool in suite.sound_pools}
    jobs = {
        (folder, pool): _Job(pool, file)
        for folder, submission in by_folder.items()
        for pool, file in submission.files.items()
        if pool in sound
    }
    results: dict[str, dict[str, CellResult]] = {folder: {} for folder in by_folder}
    reasons: dict[str, dict[str, str]] = {}
    score = partial(_score_submission, suite.folder)
    for done, ((folder, pool), scored) in enumerate(as_completed(score, Jobs(jobs, jobs.__getitem__), execution), 1):
        progress("submissions", done, len(jobs))
        if isinstance(scored, Failure):
            scored = ScoredFile(None, _failure_text(pool, scored, execution))
        if scored.result is None:
            reasons.setdefault(folder, {})[pool] = scored.reason
        else:
            results[folder][pool] = scored.result
    refused = [by_folder[folder].refuse(texts[min(texts)]) for folder, texts in reasons.items()]
    return {folder: cells for folder, cells in results.items() if folder not in reasons}, refused


def _score_submission(suite: Path, job: _Job) -> ScoredFile:
    """Score a file in a worker."""
    try:
        return ScoredFile(judge_of(pool_path(suite, job.pool)).score_file(job.file))
    except (CalibrantError, OSError) as error:
        return ScoredFile(None, refusal_text(error, job.file.parent))


def _failure_text(pool: str, failure: Failure, execution: Execution) -> str:
    if failure.outcome == "out_of_budget":
        return f"{pool}.jsonl: not scored within {execution.wall_budget:g} s"
    return f"{pool}.jsonl: cannot be scored: {failure.error}"


BOARD_FILE = "board.json"


class BoardSummary(NamedTuple):
    """Result of building a board.

    page: index page; num_ranked: number of ranked systems, without the suite's methods
    unscored: names of submissions that answer only damaged pools; damage: pool -> why it is excluded from rankings
    """

    page: Path
    num_ranked: int
    unscored: Sequence[str]
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
    """Build the board of submissions to a suite in the new or empty folder `out`, atomically.

    expected: required digest of the release; empty for any
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
        judge_of.cache_clear()  # the caches are keyed by paths, which may hold other pools at the next board
        original_by_id.cache_clear()
    page = out / suite.manifest.slug / "index.html"
    return BoardSummary(page, board.num_ranked, board.unscored, board.refused, suite.damage)


def _score(suite: OpenSuite, folder: Path, scratch: Path, execution: Execution, progress: Progress) -> Board:
    given_rows = [*read_submissions(suite.folder / GOLD / ROWS, suite.manifest, scratch, are_rows=True)]
    rows = [entry for entry in given_rows if isinstance(entry, Submission)]
    entries = [*given_rows, *read_submissions(folder, suite.manifest, scratch)]
    read = [entry for entry in entries if isinstance(entry, Submission)]
    refused = [entry for entry in entries if isinstance(entry, RefusedSubmission)]
    damaged = [entry for entry in read if entry.is_row and entry.name in suite.row_damage]
    refused += [RefusedSubmission(entry.name, entry.card.system, suite.row_damage[entry.name]) for entry in damaged]
    results, unscored = score_submissions(suite, [entry for entry in read if entry not in damaged], execution, progress)
    refused += unscored
    by_folder = {entry.folder: entry for entry in read}
    scored = [entry for entry in read if not entry.is_row and entry.folder in results]
    repeated = dict(find_repeated_submissions(scored, rows))
    refused += [by_folder[name].refuse(reason) for name, reason in repeated.items()]
    ranked = [_row(by_folder[name], cells, suite) for name, cells in results.items() if name not in repeated]
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
    """Write pages, results by system and pool (shards), the summary, and results in Every Eval Ever's schema."""
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
        "status": row.status,
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
