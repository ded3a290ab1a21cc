"""Reviews from the records of a folder, which nobody has to play or serve meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrant.bench.play.journal import check_participant
from calibrant.bench.play.pool import PlayPool
from calibrant.bench.play.record import evidence_attribution, protocol_of
from calibrant.bench.play.review.items import ReviewedItem
from calibrant.bench.runs.records import Record, folder_records
from calibrant.bench.runs.workers import exact_episode
from calibrant.dsl.errors import CalibrantError


def stored_reviews(folder: Path, pools: Sequence[PlayPool], participant: str) -> list[ReviewedItem]:
    """Return what a participant ended, under the pools' own ids, in the order in which it was begun.

    `CalibrantError` if that is nothing.
    """
    protocol = protocol_of(check_participant(participant))
    by_digest = {pool.digest: pool for pool in pools}
    records = [record for record in folder_records(folder) if record.pool_digest in by_digest]
    chosen = sorted((r for r in records if r.protocol == protocol), key=lambda record: record.timing.started)
    if not chosen:
        names = sorted({record.protocol for record in records if record.protocol.startswith(protocol_of(""))})
        listed = ", ".join(name.removeprefix(protocol_of("")) for name in names[:20]) or "none"
        raise CalibrantError(f"{folder}: {participant} ended no item of these pools; who did: {listed}")
    return [_review(by_digest[record.pool_digest], record) for record in chosen]


def _review(pool: PlayPool, record: Record) -> ReviewedItem:
    """Return the item of a record; what the evidence of a question decided is counted here."""
    item = pool.item(record.instance)
    attribution = evidence_attribution(pool.benchmark, item, record)
    return ReviewedItem(pool.benchmark, item, record, exact_episode(pool.benchmark, item), attribution)
