"""Attributions of answers whose records have none, computed from the pools for `--attribution`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from calibrant.bench.answers.rates import SHORT_DIGEST
from calibrant.bench.core.attribution import CHANCE, KEY, decided_from, has_posterior
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import benchmark, benchmark_of, bundled_files
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.core.verdict import change_score
from calibrant.bench.report.capabilities import EXPECTATIONS
from calibrant.bench.report.overview.contract import GUIDE, AnswerGuide, Levels, answer_levels, steps_digest
from calibrant.bench.report.sources import STEPS
from calibrant.bench.terminal import HintedError, invocation, pool_beside
from calibrant.dsl import kernel_cache
from calibrant.dsl.atomic_write import PRIVATE, open_atomically
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.records import file_digest, items_by_id
from calibrant.dsl.text import plural

NO_POSTERIOR = (
    "--decided-at: no answer has a posterior: no item is noisy, or the attributions are of a version that stored none"
)


class AttributionCoverage:
    """Counter of answers without an attribution, and of pools without any attributed answer."""

    def __init__(self) -> None:
        self.num_missing = 0
        self._first_missing = ""
        self._pools: dict[str, tuple[str, str]] = {}
        self._ids: dict[str, set[str]] = {}
        self._attributed: set[str] = set()

    def count(self, context: AnswerContext, score: Mapping[str, Any]) -> None:
        """Count an answer. A null attribution counts as missing: the hypotheses of the item could not be counted."""
        if score.get(KEY) is None:
            self._first_missing = self._first_missing or context.instance
            self.num_missing += 1
        if context.pool_digest not in self._attributed:
            self._pools.setdefault(context.pool_digest, (context.pool, context.benchmark))
            self._ids.setdefault(context.pool_digest, set()).add(context.instance)
            if KEY in score:
                self._attributed.add(context.pool_digest)

    def refuse_bare_pools(self, pools: Sequence[Path] = ()) -> None:
        """Raise `HintedError` for a pool without any attributed answer; it names the pool file to add if that is known.

        pools: pool files that were given
        """
        bare = {digest: pool for digest, pool in self._pools.items() if digest not in self._attributed}
        if not bare:
            return
        bundled = {path.parent for paths in bundled_files().values() for path in paths}
        folders = [Path(), *sorted(bundled)]
        files = [pool_beside(name, digest, folders) for digest, (name, _) in bare.items()]
        digest, (name, bench_name) = next(iter(bare.items()))
        description = in_one_line(f"{name} (sha256 {digest[:SHORT_DIGEST]})")
        if pools and self._pools.keys().isdisjoint(map(file_digest, pools)):
            raise _wrong_pool_error(description, self._ids[digest], pools, files[0])
        others = f" and {plural(len(bare) - 1, 'more pools')}" if len(bare) > 1 else ""
        message = (
            f"--attribution: the answers to {description}, a pool of {benchmark(bench_name).title},{others} have none;"
            f" add --pool POOL with {'each file' if others else 'that file'}"
        )
        options = [word for file in files for word in ("--pool", file)]
        raise HintedError(message, option=() if None in options else options)

    def lines(self) -> Iterator[str]:
        """Yield a line on the answers without an attribution, with the possible reasons; none if all have one."""
        if self.num_missing:
            subject = "1 answer has" if self.num_missing == 1 else f"{self.num_missing} answers have"
            first = short_repr(self._first_missing)[1:-1]
            guides = (benchmark(bench_name).capability(GUIDE) for _, bench_name in self._pools.values())
            reasons = {guide.words.uncounted: None for guide in guides if guide is not None and guide.words.uncounted}
            reason = "; ".join(("what their evidence leaves is not counted", *reasons))
            yield f"{subject} no attribution: {reason} (first: {first})"


def _wrong_pool_error(description: str, ids: Collection[str], pools: Sequence[Path], file: Path | None) -> HintedError:
    """Return the error for given pools of which none is the answered one.

    description: text on the answered pool; ids: ids of its answered items; file: its file, None if it is unknown
    """
    pool_ids = {item.id for path in pools for item in benchmark_of(path).items.read_pool(path).items}
    num_missing = sum(name not in pool_ids for name in ids)
    names = in_one_line(", ".join(path.name for path in pools))
    if num_missing:
        message = f"--pool: {names} lacks {num_missing} of {plural(len(ids), 'answered ids')}"
    else:
        message = f"--pool: {names} has the answered ids, but is another file"
    words = [str(file) if file is not None and word == str(pools[0]) else word for word in invocation.get()]
    has_command = file is not None and len(pools) == 1 and str(file) in words
    return HintedError(f"{message}; the answers are to {description}", command=words if has_command else ())


# --- The user's cache of computed values: a file for each pool, named by the digests of program and pool --------------
FOLDER = "attributions"
MAX_POOLS = 32  # number of files; the least recently used are deleted
MAX_VALUES = 20_000  # cached values of a pool, some 5 MB; further ones are computed at each use
_LIBRARIES = ("numpy", "numba", "python-sat")  # libraries that the values may depend on
V = TypeVar("V")


@cache
def program_digest() -> str:
    """Return a digest of all sources and of the versions of Python and libraries: a changed program computes anew."""
    root = Path(__file__).resolve().parents[2]
    digest = blake2b(repr([sys.version, *map(version, _LIBRARIES)]).encode(), digest_size=8)
    for package in ("dsl", "solvers", "audits", "baselines", "bench"):
        for path in sorted((root / package).rglob("*.py")):  # 20 ms
            digest.update(path.read_bytes())
    return digest.hexdigest()


class CachedValues:
    """Cache file of JSON values about the items of one pool, by their inputs; an unreadable file counts as empty.

    New values are decoded from JSON too, so that cached and new values are equal.
    """

    def __init__(self, pool_digest: str) -> None:
        folder = kernel_cache.user_folder(FOLDER)
        self._path = folder and folder / f"{program_digest()}-{pool_digest}.json"
        self._values: dict[str, msgspec.Raw] = {}
        self._is_changed = False
        with suppress(OSError, msgspec.DecodeError):
            if self._path is not None:
                self._values = msgspec.json.decode(self._path.read_bytes(), type=dict[str, msgspec.Raw])
                os.utime(self._path)

    def get(self, *inputs: object, make: Callable[[], V]) -> V:
        """Return a value, computed if it is not cached. inputs: all that it depends on besides the pool, as JSON."""
        key = blake2b(msgspec.json.encode(inputs), digest_size=16).hexdigest()
        encoded = self._values.get(key)
        if encoded is None:
            encoded = msgspec.Raw(msgspec.json.encode(make()))
            if len(self._values) < MAX_VALUES:
                self._values[key], self._is_changed = encoded, True
        value: V = msgspec.json.decode(encoded)
        return value

    def write(self) -> None:
        """Write new values, if the folder permits; delete the files of all but the MAX_POOLS last used pools."""
        if self._path is None or not self._is_changed:
            return
        with suppress(OSError):
            with open_atomically(self._path, PRIVATE) as file:
                file.write(msgspec.json.encode(self._values))
            by_use = sorted(self._path.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
            for path in by_use[MAX_POOLS:]:
                path.unlink()


Scores = Iterable[tuple[AnswerContext, Mapping[str, Any]]]


def add_attributions(
    scores: Scores, pools: Sequence[Path], *, with_chance: bool = True
) -> Iterator[tuple[AnswerContext, Mapping[str, Any]]]:
    """Yield the answers, with an attribution added if its pool is among `pools` and its record has none.

    with_chance: whether the expected rates of guessers on these items are added too
    """
    items = {file_digest(path): items_by_id(benchmark_of(path).items.read_pool(path).items) for path in pools}
    stores = {digest: CachedValues(digest) for digest in items}
    # (pool, item, digest of steps) -> expected rates, computed once for equal steps
    expectations: dict[tuple[str, str, bytes], Mapping[str, float | None]] = {}
    for context, score in scores:
        item = items.get(context.pool_digest, {}).get(context.instance)
        bench = benchmark(context.benchmark)
        if item is not None and KEY not in score:
            score = change_score(score, partial(_attributed, bench, item, stores[context.pool_digest]))
        if item is not None and with_chance:
            key = context.pool_digest, context.instance, steps_digest(score.get(STEPS, ()))
            if key not in expectations:
                levels = partial(answer_levels, key=key[:2], item=item, steps=score.get(STEPS, ()), score=score)
                make = partial(_expected_rates, bench, item, score, levels)
                expectations[key] = stores[context.pool_digest].get("expected", item.id, key[2].hex(), make=make)
            score = change_score(score, partial(_with_chance, expectations[key]))
        yield context, score
    for store in stores.values():
        store.write()


def expected_rates(bench: Benchmark[Any], item: Any, score: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the exact expected rates of guessers (bench.core.attribution.expectations); None where not known."""
    return _expected_rates(bench, item, score, lambda guide: guide.levels(item, score.get(STEPS, ()), score))


def _expected_rates(
    bench: Benchmark[Any], item: Any, score: Mapping[str, Any], levels_of: Callable[[AnswerGuide], Levels]
) -> dict[str, float | None]:
    expect = bench.capability(EXPECTATIONS)
    if expect is not None:
        return expect(item, score.get(STEPS, ()), score)
    guide = bench.capability(GUIDE)
    levels = levels_of(guide) if guide is not None else Levels()
    return {"uniform": levels.draw, "draw": levels.draw, "best": levels.ceiling}


def _with_chance(expected: Mapping[str, float | None], score: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**{key: value for key, value in score.items() if key != STEPS}, CHANCE: expected}


def _attributed(bench: Benchmark[Any], item: Any, store: CachedValues, score: Mapping[str, Any]) -> Mapping[str, Any]:
    attribution = store.get("attribution", item.id, score, make=lambda: bench.attribution(item, {}, (), score))
    return {**score, KEY: attribution}


def apply_decision_level(scores: Scores, level: float | None) -> Iterator[tuple[AnswerContext, Mapping[str, Any]]]:
    """Yield the answers, with attributions by which noisy readings decide at a posterior of at least `level`.

    level: None to leave attributions as they are. `CalibrantError` after the last answer if none has a posterior.
    """
    has_any_posterior = False
    for context, score in scores:
        if level is None or not has_posterior(score):
            yield context, score
            continue
        has_any_posterior = True
        yield context, change_score(score, lambda part: {**part, KEY: decided_from(part[KEY], level)})
    if level is not None and not has_any_posterior:
        raise CalibrantError(NO_POSTERIOR)
