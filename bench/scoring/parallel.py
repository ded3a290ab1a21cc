"""Many predictions scored by several processes: read here, judged there, counted here in the order of the file.

What comes back of a prediction is what a table counts of it and, where lines are wanted, the line. A file has to be
long for that to pay: its first predictions are always scored in this process.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from itertools import chain, islice, starmap
from multiprocessing import get_context
from typing import Any, NamedTuple, TypeAlias

from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.samples import Sample
from calibrant.bench.report.rate_rows import AnswerOrigin, CalibrationTable
from calibrant.bench.report.tally import Values
from calibrant.bench.scoring.cluster import Scorer, judged
from calibrant.bench.scoring.input.unread import unread_reason
from calibrant.bench.scoring.predictions import Prediction
from calibrant.bench.scoring.scorer import json_line
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.gc_control import collect_rarely

LARGE = 10_000  # predictions that one process scores before others are started, which takes as long
GROUP = 500  # predictions of one job, more or less
AHEAD = 5  # jobs of each process that are read before they are needed


class Counted(NamedTuple):
    """A prediction's verdict as a table and a file of lines take it. unread: why there is no answer, if known here"""

    origin: AnswerOrigin
    values: Values
    sample: Sample
    line: str | None
    unread: str = ""


def counted(
    scorer: Scorer, measures: MetricSet, predictions: Iterable[Prediction], *, with_lines: bool, workers: int
) -> Iterator[Counted]:
    """Each prediction's verdict, in order; what is wrong with a prediction is raised behind those before it.

    workers: processes that are started if there are more than LARGE predictions and this is more than 1
    """
    judge = _Judge(scorer, measures.benchmark, with_lines=with_lines)
    left = iter(predictions)
    yield from map(judge.one, islice(left, LARGE) if workers > 1 else left)
    for first in left:
        yield from _apart(judge, chain((first,), left), workers)


_Group: TypeAlias = tuple[list[tuple[Any, ...]], list[int], list[str | None], list[str | None], list[str]]


class _Judge:
    """Scores in the process that it is in."""

    def __init__(self, scorer: Scorer, benchmark_name: str, *, with_lines: bool) -> None:
        self._scorer = scorer
        self._benchmark = benchmark_name
        self._with_lines = with_lines
        self._table = CalibrationTable(benchmark(benchmark_name).measures)
        self._values: dict[Values, Values] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return _judge, (self._scorer, self._benchmark, self._with_lines)

    def forget(self) -> None:
        self._scorer.forget()

    def one(self, prediction: Prediction) -> Counted:
        origin, line = judged(self._scorer, prediction)
        values, sample = self._table.read(origin.setting, line)
        unread = unread_reason(line)
        return Counted(origin, values, sample, json_line(line) if self._with_lines else None, unread)

    def group(self, predictions: Iterable[Prediction]) -> _Group:
        """Return what many come to, in few and plain objects: most count the same as some other, and all are sent."""
        kinds: dict[tuple[Any, ...], int] = {}
        which: list[int] = []
        meanings: list[str | None] = []
        lines: list[str | None] = []
        reasons: list[str] = []
        for _, values, sample, line, unread in map(self.one, predictions):
            *flags, meaning = sample
            which.append(kinds.setdefault((values, *flags), len(kinds)))
            meanings.append(meaning)
            lines.append(line)
            reasons.append(unread)
        return list(kinds), which, meanings, lines, reasons

    def counted(self, predictions: Sequence[Prediction], group: _Group) -> Iterator[Counted]:
        """The same in full, in the process that has read the predictions."""
        kinds, which, meanings, lines, reasons = group
        values = [self._values.setdefault(values, values) for values, *_ in kinds]
        for prediction, kind, meaning, line, unread in zip(predictions, which, meanings, lines, reasons, strict=True):
            sample = Sample._make((*kinds[kind][1:], meaning))
            yield Counted(self._scorer.origin(prediction), values[kind], sample, line, unread)


def _judge(scorer: Scorer, benchmark_name: str, with_lines: bool) -> _Judge:
    return _Judge(scorer, benchmark_name, with_lines=with_lines)


def _apart(judge: _Judge, predictions: Iterator[Prediction], workers: int) -> Iterator[Counted]:
    """By processes that have a share of the items each: what one has read of an item others hardly read again."""
    judge.forget()  # from here on others score
    refused: list[CalibrantError] = []
    blocks = _blocks(predictions, GROUP * workers, refused)
    shares = Shares(workers)
    with ExitStack() as stack:
        crew = [stack.enter_context(_started(judge)) for _ in range(workers)]
        running: deque[_Block] = deque()
        try:
            while True:
                for block in islice(blocks, AHEAD - len(running)):
                    running.append(_handed_out(block, shares, crew))
                if not running:
                    break
                yield from _gathered(judge, running.popleft())
        except BrokenProcessPool:
            raise CalibrantError("a process that scored predictions has been killed; --workers 1 needs none") from None
        finally:
            for one in running:
                for _, judged_there in one.parts:
                    judged_there.cancel()
    if refused:
        raise refused[0]


def _started(judge: _Judge) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"), _take, (judge,))


class _Block(NamedTuple):
    """Predictions that follow each other. shares: whose each is; parts: those of each share, and what they come to"""

    shares: list[int]
    parts: list[tuple[list[Prediction], Future[_Group]]]


class Shares:
    """Whose each prediction is: the same one's as others of its item, as long as all have about as many.

    A file that is sorted by items would leave all but one process idle otherwise.
    lead: how many more predictions than the one with the fewest a process may have had
    """

    def __init__(self, number: int, lead: int = GROUP) -> None:
        self._lead = lead
        self._given = [0] * number
        self._usual: dict[tuple[str, str], int] = {}  # by item

    def place(self, prediction: Prediction) -> int:
        given = self._given
        item = prediction.pool, prediction.instance
        chosen = self._usual.setdefault(item, len(self._usual) % len(given))
        fewest = min(given)
        if given[chosen] - fewest >= self._lead:
            chosen = given.index(fewest)
        given[chosen] += 1
        return chosen


def _handed_out(block: list[Prediction], shares: Shares, crew: Sequence[ProcessPoolExecutor]) -> _Block:
    places = [*map(shares.place, block)]
    parts: list[list[Prediction]] = [[] for _ in crew]
    for one, place in zip(block, places, strict=True):
        parts[place].append(one)
    jobs = [
        member.submit(_counted_there, [tuple(one) for one in part]) for member, part in zip(crew, parts, strict=True)
    ]
    return _Block(places, list(zip(parts, jobs, strict=True)))


def _gathered(judge: _Judge, block: _Block) -> Iterator[Counted]:
    """All of a block, in the order in which it was read."""
    found = [judge.counted(part, judged_there.result()) for part, judged_there in block.parts]
    return (next(found[place]) for place in block.shares)


def _blocks(predictions: Iterator[Prediction], size: int, refused: list[CalibrantError]) -> Iterator[list[Prediction]]:
    """The predictions in blocks; the first one that is refused ends them."""
    while not refused:
        block: list[Prediction] = []
        try:
            block.extend(islice(predictions, size))
        except CalibrantError as error:
            refused.append(error)
        if not block:
            return
        yield block


_here: list[_Judge] = []  # of a process that was started for it


def _take(judge: _Judge) -> None:
    _here[:] = [judge]
    gc.freeze()  # what was imported stays
    collect_rarely()


def _counted_there(group: Sequence[tuple[Any, ...]]) -> _Group:
    return _here[0].group(starmap(Prediction, group))
