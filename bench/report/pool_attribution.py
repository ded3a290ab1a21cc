"""Attributions of answers whose records have none: made from the pools, when a table asks for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

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
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.records import file_digest, items_by_id
from calibrant.dsl.text import plural

NO_POSTERIOR = (
    "--decided-at: no answer has a posterior: no item is noisy, or the attributions are of a version that stored none"
)


class AttributionCoverage:
    """Counts answers without an attribution, of pools that have some and of pools that have none."""

    def __init__(self) -> None:
        self.num_missing = 0
        self._first_missing = ""
        self._pools: dict[str, tuple[str, str]] = {}
        self._ids: dict[str, set[str]] = {}
        self._attributed: set[str] = set()

    def count(self, context: AnswerContext, score: Mapping[str, Any]) -> None:
        """Count an answer; a record that has the key without a value was attributed, and what is left not counted."""
        if score.get(KEY) is None:
            self._first_missing = self._first_missing or context.instance
            self.num_missing += 1
        if context.pool_digest not in self._attributed:
            self._pools.setdefault(context.pool_digest, (context.pool, context.benchmark))
            self._ids.setdefault(context.pool_digest, set()).add(context.instance)
            if KEY in score:
                self._attributed.add(context.pool_digest)

    def refuse_bare_pools(self, pools: Sequence[Path] = ()) -> None:
        """Raise `HintedError` for a pool of which no answer has one: its file is needed to make them.

        pools: the files that were given; none of them is that file
        """
        for digest, (name, of) in self._pools.items():
            if digest not in self._attributed:
                which = in_one_line(f"{name} (sha256 {digest[:SHORT_DIGEST]})")
                bundled = {path.parent for paths in bundled_files().values() for path in paths}
                file = pool_beside(name, digest, [Path(), *sorted(bundled)])
                if pools:
                    raise _wrong_pool_error(which, self._ids[digest], pools, file)
                message = (
                    f"--attribution: the answers to {which}, a pool of {benchmark(of).title}, have none;"
                    " add --pool POOL with that file"
                )
                raise HintedError(message, option=() if file is None else ("--pool", file))

    def lines(self) -> Iterator[str]:
        """Yield a line if an answer has none: what its evidence left is not counted, or nothing was submitted."""
        if self.num_missing:
            subject = "1 answer has" if self.num_missing == 1 else f"{self.num_missing} answers have"
            first = short_repr(self._first_missing)[1:-1]
            yield f"{subject} no attribution: what their evidence leaves is not counted (first: {first})"


def _wrong_pool_error(which: str, ids: Collection[str], pools: Sequence[Path], file: Path | None) -> HintedError:
    """Return the refusal of pools that are not the one that was answered.

    which: that pool; ids: items of it that were answered; file: that pool's file, if it is known
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
    return HintedError(f"{message}; the answers are to {which}", command=words if has_command else ())


Scores = Iterable[tuple[AnswerContext, Mapping[str, Any]]]


def add_attributions(
    scores: Scores, pools: Sequence[Path], *, with_chance: bool = True
) -> Iterator[tuple[AnswerContext, Mapping[str, Any]]]:
    """Yield the answers, each with its attribution where its pool is among these and its record has none.

    with_chance: also with what guessers expect on these items
    """
    items = {file_digest(path): items_by_id(benchmark_of(path).items.read_pool(path).items) for path in pools}
    expectations: dict[tuple[str, str, bytes], Mapping[str, float | None]] = {}  # equal steps are traced once
    for context, score in scores:
        item = items.get(context.pool_digest, {}).get(context.instance)
        of = benchmark(context.benchmark)
        if item is not None and KEY not in score:
            score = change_score(score, partial(_attributed, of, item))
        if item is not None and with_chance:
            key = context.pool_digest, context.instance, steps_digest(score.get(STEPS, ()))
            if key not in expectations:
                levels = partial(answer_levels, key=key[:2], item=item, steps=score.get(STEPS, ()), score=score)
                expectations[key] = _expected_rates(of, item, score, levels)
            score = change_score(score, partial(_with_chance, expectations[key]))
        yield context, score


def expected_rates(of: Benchmark[Any], item: Any, score: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the exact expectations of a guesser that draws what fits, and of the best one; None where not known."""
    return _expected_rates(of, item, score, lambda guide: guide.levels(item, score.get(STEPS, ()), score))


def _expected_rates(
    of: Benchmark[Any], item: Any, score: Mapping[str, Any], levels_of: Callable[[AnswerGuide], Levels]
) -> dict[str, float | None]:
    expect = of.capability(EXPECTATIONS)
    if expect is not None:
        return expect(item, score.get(STEPS, ()), score)
    guide = of.capability(GUIDE)
    levels = levels_of(guide) if guide is not None else Levels()
    return {"uniform": levels.draw, "draw": levels.draw, "best": levels.ceiling}


def _with_chance(expected: Mapping[str, float | None], score: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**{key: value for key, value in score.items() if key != STEPS}, CHANCE: expected}


def _attributed(of: Benchmark[Any], item: Any, score: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**score, KEY: of.attribution(item, {}, (), score)}


def decided_at(scores: Scores, level: float | None) -> Iterator[tuple[AnswerContext, Mapping[str, Any]]]:
    """Yield the answers, with noisy readings taken to decide from this posterior on; None for the default.

    `CalibrantError` at their end if the level was of no use: no answer has a posterior.
    """
    is_used = False
    for context, score in scores:
        if level is None or not has_posterior(score):
            yield context, score
            continue
        is_used = True
        yield context, change_score(score, lambda part: {**part, KEY: decided_from(part[KEY], level)})
    if level is not None and not is_used:
        raise CalibrantError(NO_POSTERIOR)
