"""Alternative-SCM pools, made of pools that ask for an SCM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrant.audits.replayscm.alternative_items import alternative_item, open_ended_item
from calibrant.bench.replayscm.extended.plain import require_plain
from calibrant.bench.runs.jobs import Progress
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.text import plural


def alternative_pool(
    pool: Pool, seed: int, *, open_ended: bool = False, progress: Progress = lambda name, done, total: None
) -> tuple[Pool, list[str]]:
    """Return the items, in the order of the pool, and the ids of the instances of which none can be made.

    open_ended: instances without a known pair become items too, with gold as the reference

    `CalibrantError` for an instance without gold, with hidden roots or with a reference of its own.
    """
    require_plain(pool.problems, "`pool alternatives`")
    items, without = [], []
    for index, problem in enumerate(pool.problems):
        try:
            item = alternative_item(problem, seed)
        except ValueError as error:
            raise CalibrantError(f"{pool.name}: {error}") from None
        if item is None and open_ended:
            item = open_ended_item(problem)
        items += [item] if item else []
        without += [] if item else [problem.id]
        progress(pool.name, index + 1, len(pool))
    metadata = {"alternatives_of": pool.name, "seed": seed} | ({"open_ended": True} if open_ended else {})
    return Pool(f"{pool.name}_alternatives", tuple(items), metadata), without


class AlternativeItems:
    """Implements AlternativesMakeable (bench.pools.capabilities)."""

    def write_alternatives(
        self, source: Path, target: Path, seed: int, progress: Progress, *, open_ended: bool
    ) -> Sequence[str]:
        source_pool = read_pool(source, keep_results=False)
        pool, without = alternative_pool(source_pool, seed, open_ended=open_ended, progress=progress)
        write_pool(pool, target)
        lines = [in_one_line(f"{name}: no other SCM that a single intervention tells apart") for name in without]
        return [*lines, f"{plural(len(pool), 'instances')} written to {target}"]


ALTERNATIVE_ITEMS = AlternativeItems()
