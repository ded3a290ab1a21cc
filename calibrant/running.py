"""Methods that there are, runs of them over pools, and tables of their rates."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from calibrant.bench.protocols import Protocol, protocols_of
from calibrant.bench.report.tidy import RateTable, Records
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.item import Pool
from calibrant.verbs import check_execution, path_argument

LOGGER = logging.getLogger("calibrant.run")
"""Progress of runs, at the level INFO."""

if TYPE_CHECKING:
    from calibrant.bench.runs.runner import Selection
    from calibrant.item_types import Item


def protocols(of: str = "replayscm") -> Mapping[str, type[Protocol]]:
    """Return the methods that `run` lists: ours, then those of installed packages. Fields of a class are its options.

    of: name of the benchmark
    """
    from calibrant.bench.core.registry import benchmark
    from calibrant.bench.protocols import with_installed

    return with_installed(protocols_of(benchmark(of)), of)


def run(
    protocol: str | Protocol,
    pool: str | PathLike[str] | Pool[Item],
    out: str | PathLike[str],
    *,
    workers: int = 1,
    budget: float | None = None,
    cluster: str | None = None,
    retry_crashed: bool = False,
) -> Records:
    """Answer and score every item of a pool, and append the records to a folder; what is there is not done again.

    With more than one worker, or with a budget, processes are started: call it below `if __name__ == "__main__":`.

    protocol: a name of `protocols()`, `FILE.py:CLASS`, or a protocol with its options
    pool: a file, or (a slice of) what `load_pool` read from one
    budget: wall seconds per item, after which its process is killed
    cluster: address of a dask.distributed scheduler, `tcp://HOST:PORT`, whose workers answer instead of `workers` here
    """
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.protocols import make_protocol, require_usable, with_code
    from calibrant.bench.runs.executors import Execution
    from calibrant.bench.runs.records import config_digest, folder_records
    from calibrant.bench.runs.runner import config_of
    from calibrant.bench.runs.runner import run as run_over
    from calibrant.dsl.records import file_digest

    check_execution(workers, budget, cluster, retry_crashed)
    folder = path_argument(out, "out")
    selection, path = _select_items(pool)
    methods = protocols(benchmark_of(path).name)
    chosen = make_protocol(methods, protocol, {}) if isinstance(protocol, str) else protocol
    if not isinstance(chosen, Protocol):
        raise CalibrantError(f"a protocol or its name is expected, not {type(chosen).__name__}")
    if methods.get(chosen.name) is not type(chosen):
        require_usable(type(chosen), type(chosen).__name__, methods)
        with_code(type(chosen))
    run_over(
        chosen,
        [path],
        folder,
        selection=selection,
        execution=Execution(workers, budget, cluster),
        retry_crashed=retry_crashed,
        progress=lambda name, done, total: LOGGER.info("%s on %s: %d of %d done", chosen.name, name, done, total),
    )
    key = file_digest(path), chosen.name, config_digest(config_of(chosen, budget))
    records = (record for record in folder_records(folder) if (record.key[0], *record.key[2:]) == key)
    return Records(record for record in records if not isinstance(pool, Pool) or record.instance in selection.only)


def table(
    *sources: str | PathLike[str],
    by: Literal["pool", "setting", "stratum"] = "pool",
    pools: Sequence[str | PathLike[str]] = (),
) -> RateTable:
    """Return the rates of systems with their intervals, those that `calibrant table` prints; `to_frame` has all.

    sources: folders of `run`, and files that `calibrant score` wrote
    by: what gets rows of its own for each system
    pools: files of the pools, for the four classes of answers that the evidence had decided or not
    """
    from calibrant.bench.report.rows import Grouping
    from calibrant.bench.report.tidy import collect_tables

    if not sources:
        raise CalibrantError("table: give folders of runs, or files that `calibrant score` wrote")
    groupings = [grouping.value for grouping in Grouping]
    if by not in groupings:
        raise CalibrantError(f"table: by is {short_repr(by)}; allowed: {', '.join(groupings)}")
    if isinstance(pools, str | PathLike) or not isinstance(pools, Sequence):
        raise CalibrantError(f"table: pools must be a list of paths, got {type(pools).__name__}")
    paths = [path_argument(source, "a source of table") for source in sources]
    pool_paths = [path_argument(pool, "a pool of table") for pool in pools]
    collected = collect_tables(paths, by=Grouping(by), pools=pool_paths, needs_attribution=bool(pools))
    if pools:
        collected.coverage.refuse_bare_pools(pool_paths)
    return RateTable(collected.tables, (*collected.notes, *collected.omissions(with_coverage=bool(pools))))


def _select_items(pool: str | PathLike[str] | Pool[Item]) -> tuple[Selection, Path]:
    """Return which items of which file are to be run."""
    from calibrant.bench.runs.runner import EVERYTHING, Selection
    from calibrant.dsl.records import item_ids

    if not isinstance(pool, Pool):
        return EVERYTHING, path_argument(pool, "pool")
    if pool.file is None:
        raise CalibrantError("this pool was not read from a file; records name a pool by its file")
    return Selection(frozenset(item_ids(pool.items)), len(pool)), pool.file
