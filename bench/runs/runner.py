"""Runs of a protocol over pools: parallel over instances, scored as answers arrive, resumable.

Answers and scores depend only on the protocol, its options and the pool, not on the number of workers, the order in
which they finish, or interruptions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from calibrant.bench.core.items import ItemPool, refuse_empty
from calibrant.bench.core.registry import benchmark_of, is_stated
from calibrant.bench.protocols import Protocol, Ties, read_pool_once
from calibrant.bench.runs.executors import HERE, Execution, Jobs, Progress, error_line
from calibrant.bench.runs.records import Key, Record, RunFile, TiedScore, TiedScores, config_digest, step_records
from calibrant.bench.runs.workers import Answer, Workers, open_workers
from calibrant.bench.version import program_version
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, UnknownItemError, short_repr
from calibrant.dsl.item import Item
from calibrant.dsl.records import item_ids

I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item
MAX_CACHED_ITEMS = 256  # items kept in memory from the start of their job until their answer is scored


class Selection(NamedTuple):
    """Selection of instances of each pool.

    only: ids of instances, empty for all; limit: largest number of instances, the first of each pool; None for all
    """

    only: Collection[str] = ()
    limit: int | None = None

    def has(self, instance: str) -> bool:
        """Return whether an id is selected, disregarding the limit."""
        return not self.only or instance in self.only

    def ids_by_index(self, pool: ItemPool[Item[Any, Any]]) -> dict[int, str]:
        """Return index in the pool -> id of the selected instances."""
        chosen = ((i, name) for i, name in enumerate(item_ids(pool.items)) if self.has(name))
        return dict(islice(chosen, self.limit))

    def of(self, pool: ItemPool[I]) -> Iterator[tuple[int, I]]:
        """Yield (index, instance) of the selected instances, read one at a time."""
        return ((i, pool.items[i]) for i in self.ids_by_index(pool))


EVERYTHING = Selection()


class RunSummary(NamedTuple):
    """Numbers of selected records: that existed before, that the run wrote, and that are crashes."""

    skipped: int
    written: int
    crashed: int


def run(
    protocol: Protocol,
    pools: Sequence[Path],
    folder: Path,
    *,
    selection: Selection = EVERYTHING,
    execution: Execution = HERE,
    retry_crashed: bool = False,
    progress: Progress = lambda name, done, total: None,
) -> RunSummary:
    """Answer every selected instance that has no record in the folder yet, and append its record.

    execution: executor and time limit; an instance that exceeds the limit is out of budget
    retry_crashed: whether selected instances whose record is a crash run again; a new record replaces the old one
    """
    require_startable(protocol)
    config = config_of(protocol, execution.wall_budget)
    skipped = num_written = crashed = 0
    ids: set[str] = set()
    with RunFile(folder) as records, open_workers(protocol, execution) as executor:
        crashes = {record.key for record in records if record.outcome == "crashed"}
        for path in pools:
            batch = _Batch(path, protocol.name, config, selection)
            ids.update(batch.selected_ids)
            pool_crashes = crashes.intersection(batch.keys.values())
            crashes -= pool_crashes
            retried = pool_crashes if retry_crashed else frozenset[Key]()
            pending = [index for index, key in batch.keys.items() if key in retried or key not in records.keys]
            done = len(batch.keys) - len(pending)
            skipped += done
            crashed += len(pool_crashes) - len(retried)
            progress(batch.pool.name, done, len(batch.keys))
            for record in batch.records(executor, pending):
                write = records.replace if record.key in retried else records.append
                write(record)
                num_written, done, crashed = num_written + 1, done + 1, crashed + (record.outcome == "crashed")
                progress(batch.pool.name, done, len(batch.keys))
        unknown = sorted(set(selection.only) - ids)
        if unknown:
            message = f"no instance {short_repr(unknown[0])} in {', '.join(path.name for path in pools)}"
            raise UnknownItemError(message, unknown[0])
        records.sort()
    return RunSummary(skipped, num_written, crashed)


def config_of(protocol: Protocol, wall_budget: float | None = None) -> dict[str, Any]:
    """Return the options that are part of a record's key."""
    return {**protocol.config, "wall_budget": wall_budget}


def require_startable(protocol: Protocol) -> None:
    """Raise `CalibrantError` if a protocol cannot start because a library is missing or `require` fails."""
    try:
        protocol.require()
    except CalibrantError:
        raise
    except Exception as error:
        raise CalibrantError(f"protocol '{protocol.name}' cannot start: {error_line(error)}") from None


def selected_keys(
    protocols: Sequence[Protocol], pools: Sequence[Path], selection: Selection, wall_budget: float | None
) -> Iterator[Key]:
    """Yield the keys of the records that a run of these protocols writes."""
    for protocol, path in product(protocols, pools):
        yield from _Batch(path, protocol.name, config_of(protocol, wall_budget), selection).keys.values()


class _Batch:
    """The selected instances of one pool under one protocol."""

    def __init__(self, path: Path, protocol: str, config: dict[str, Any], selection: Selection) -> None:
        self.benchmark = benchmark_of(path)
        self.digest, self.pool = read_pool_once(self.benchmark, path)
        refuse_empty(len(self.pool), path)
        self.protocol = protocol
        self.config = config
        digest = config_digest(config)
        self.keys = {
            i: Key(self.digest, name, protocol, digest) for i, name in selection.ids_by_index(self.pool).items()
        }
        self._item = lru_cache(MAX_CACHED_ITEMS)(self.pool.items.__getitem__)

    @property
    def selected_ids(self) -> Iterator[str]:
        return (key.instance for key in self.keys.values())

    def records(self, executor: Workers, pending: Sequence[int]) -> Iterator[Record]:
        for index, answer in executor.answers(Jobs(pending, lambda i: self.benchmark.handout(self._item(i)))):
            yield self._record(index, answer)

    def _record(self, index: int, answer: Answer) -> Record:
        item, result, steps = self._item(index), answer.result, answer.steps
        scored_answer = self.benchmark.scoring.no_answer(item) if result.answer is None else result.answer
        score = self.benchmark.scoring.score(item, scored_answer, steps or ())
        is_episode = (
            steps is not None
        )  # other items: attributions are expensive, so `table --attribution` computes them
        attribution = self.benchmark.attribution(item, scored_answer, steps or (), score) if is_episode else None
        return Record(
            pool=self.pool.name,
            pool_digest=self.digest,
            pool_size=len(self.pool),
            index=index,
            instance=item.id,
            setting=item.setting,
            stratum=item.stratum,
            protocol=self.protocol,
            config=self.config,
            outcome=result.outcome,
            answer=scored_answer,
            size=result.size,
            score=score,
            provenance=result.provenance,
            program=program_version(),
            benchmark=item.benchmark if is_stated(item.benchmark) else msgspec.UNSET,
            steps=msgspec.UNSET if steps is None else step_records(steps),
            attribution=msgspec.UNSET if attribution is None else attribution,
            ties=msgspec.UNSET if result.ties is None else self._tied_scores(item, result.ties, steps or ()),
            timing=answer.timing,
        )

    def _tied_scores(self, item: Item[Any, Any], ties: Ties, steps: Sequence[Step[Any]]) -> TiedScores:
        """Score the equally good answers; return their distinct scores with multiplicities."""
        counts: dict[bytes, int] = {}
        for record in self.benchmark.scoring.score_ties(item, ties.answers, steps):
            score = msgspec.json.encode(record, order="sorted")
            counts[score] = counts.get(score, 0) + 1
        scores = [TiedScore(times, msgspec.json.decode(score)) for score, times in sorted(counts.items())]
        num_tied = None if ties.count is None else str(ties.count)
        return TiedScores(num_tied, len(ties.answers), scores, ties.note)
