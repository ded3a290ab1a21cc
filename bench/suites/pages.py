"""Pages of a board: static files that need neither a server nor a network, under the address of the suite's version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.bench.core.attribution import KIND_MEANINGS
from calibrant.bench.core.registry import benchmark
from calibrant.bench.pages.page import design_page
from calibrant.bench.suites.manifest import Manifest, PoolEntry
from calibrant.bench.suites.rescoring import ItemResult, OpenSuite
from calibrant.bench.suites.submissions import ROW_SUBMITTER, BoardCell, BoardRow, Card, RefusedSubmission, rank_pool

NONE = "\N{EN DASH}"
MAX_SHOWN_CHARS = 600  # characters of an answer in a page; the shard has more of it


@dataclass(frozen=True)
class Board:
    """Everything that a board shows; rows: in their order, calibration rows of the suite among them."""

    suite: OpenSuite
    rows: Sequence[BoardRow]
    refused: Sequence[RefusedSubmission]

    @property
    def manifest(self) -> Manifest:
        return self.suite.manifest


def write_pages(board: Board, site: Path) -> None:
    """Write the first page, a page for each pool, and one for each system and pool."""
    (site / "index.html").write_text(index_page(board), encoding="utf-8")
    for pool in board.manifest.pools:
        (site / f"{pool.name}.html").write_text(pool_page(board, pool), encoding="utf-8")
    for row in board.rows:
        folder = site / row.submission.folder
        folder.mkdir(parents=True, exist_ok=True)
        for cell in row.cells.values():
            (folder / f"{cell.pool}.html").write_text(cell_page(board, row, cell), encoding="utf-8")


def index_page(board: Board) -> str:
    """Return the first page: systems by pools, refused submissions, damaged pools."""
    manifest = board.manifest
    systems = [row for row in board.rows if not row.submission.is_row]
    content = {
        "title": f"Board of {manifest.title} {manifest.release}",
        "crumbs": ("Board", manifest.slug),
        "summary": manifest.summary,
        "chips": [
            (len(systems), f"system{'s' * (len(systems) != 1)} scored again"),
            (len(board.rows) - len(systems), "calibration rows"),
            (len(board.refused), "refused"),
            (f"sha256 {board.suite.digest[:16]}", "of the release"),
        ],
        "pools": manifest.pools,
        "damage": board.suite.damage,
        "unranked": "" if systems else unranked_text(board.refused),
        "rows": [_index_row(row, manifest) for row in board.rows],
        "refused": board.refused,
    }
    return design_page("suites/board.html", content)


def pool_page(board: Board, pool: PoolEntry) -> str:
    """Return the table of a pool."""
    manifest = board.manifest
    rows = [_pool_row(rank, row, row.cells[pool.name]) for rank, row in rank_pool(board.rows, pool.name)]
    content = {
        "title": f"{pool.name}: {benchmark(pool.benchmark).title}",
        "crumbs": ("Board", manifest.slug, pool.name),
        "pool": pool,
        "damage": board.suite.damage.get(pool.name, ""),
        "rows": rows,
        "kinds": KIND_MEANINGS,
        "flagged": [row["system"] for row in rows if row["flag"]],
    }
    return design_page("suites/pool.html", content)


def cell_page(board: Board, row: BoardRow, cell: BoardCell) -> str:
    """Return the answers of a system to a pool, item by item."""
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


def unranked_text(refused: Sequence[RefusedSubmission]) -> str:
    """Return why a board has no systems."""
    number = len(refused)
    if not number:
        return "There is no submission; the rows of the suite stand alone."
    return f"All that was submitted is refused, {number} in number, each with its reason."


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
        "mean": _number(row.mean),
        "cells": [_index_cell(row, pool.name) for pool in manifest.pools],
        "cost": cost_text(card),
        "date": card.date.isoformat(),
        "digest": row.submission.digest[:8],
        "status": "rescored",
    }


def _index_cell(row: BoardRow, pool: str) -> dict[str, str]:
    cell = row.cells.get(pool)
    if cell is None:
        return {"text": NONE, "href": "", "flag": ""}
    flag = "above best" if cell.is_above_best else ""
    return {"text": rate_text(cell), "href": f"{row.submission.folder}/{pool}.html", "flag": flag}


def _pool_row(rank: int | None, row: BoardRow, cell: BoardCell) -> dict[str, Any]:
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
        "kinds": [f"{kinds[kind]:.3f}" for kind in KIND_MEANINGS],
        "consistency": _number(cell.consistency),
        "cost": cost_text(card),
        "date": card.date.isoformat(),
        "digest": row.submission.digest[:8],
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
    kinds = ", ".join(dict.fromkeys(kind or "not attributed" for kind in item.kinds))
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
