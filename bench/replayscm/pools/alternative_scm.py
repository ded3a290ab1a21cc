"""Alternative-SCM pools, made of pools that ask for an SCM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrant.audits.replayscm.alternative_items import alternative_item
from calibrant.bench.replayscm.extended.plain import require_plain
from calibrant.bench.runs.jobs import Progress
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.problem import Pool


def alternative_pool(
    pool: Pool, seed: int, *, progress: Progress = lambda name, done, total: None
) -> tuple[Pool, list[str]]:
    """Return the items, in the order of the pool, and the ids of the instances of which none can be made.

    `CalibrantError` for an instance without gold, with hidden roots or with a reference of its own.
    """
    require_plain(pool.problems, "`pool alternatives`")
    items, without = [], []
    for index, problem in enumerate(pool.problems):
        try:
            item = alternative_item(problem, seed)
        except ValueError as error:
            raise CalibrantError(f"{pool.name}: {error}") from None
        items += [item] if item else []
        without += [] if item else [problem.id]
        progress(pool.name, index + 1, len(pool))
    metadata = {"alternatives_of": pool.name, "seed": seed}
    return Pool(f"{pool.name}_alternatives", tuple(items), metadata), without


class AlternativeItems:
    """Implements AlternativesMakeable (bench.pools.capabilities)."""

    def write_alternatives(self, source: Path, target: Path, seed: int, progress: Progress) -> Sequence[str]:
        pool, without = alternative_pool(read_pool(source, keep_results=False), seed, progress=progress)
        write_pool(pool, target)
        lines = [in_one_line(f"{name}: no other SCM that a single intervention tells apart") for name in without]
        return [*lines, f"{len(pool)} instances written to {target}"]


ALTERNATIVE_ITEMS = AlternativeItems()
