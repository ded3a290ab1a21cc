"""Lines of verdicts: scored by one or more processes or a cluster, in the order of the predictions; and read back."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice, starmap
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from calibrant.bench.core.metrics import MetricSet, ObservationReader, Sample, Values
from calibrant.bench.core.registry import benchmark, stated_name
from calibrant.bench.core.responses import EXCLUDED, SAME, Reading
from calibrant.bench.core.scoring import NO_MODEL, AnswerContext, Prediction, template_option
from calibrant.bench.core.verdict import LazyVerdict, ReadVerdict, encode_json
from calibrant.bench.runs.executors import Execution, Executor, Failure, error_line, prepare_nothing
from calibrant.bench.runs.workers import open_executor
from calibrant.bench.scoring.files import json_object, numbered_lines
from calibrant.bench.scoring.formats import is_eval_log
from calibrant.bench.scoring.scorer import PoolScorer, ScoredPrediction
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.memory import collect_rarely


# --- Lines of verdicts: written by `calibrant score`, read by tables --------------------------------------------------
def json_line(line: Mapping[str, Any]) -> str:
    """Return one line of strict JSON in ASCII; NaN and infinities of a submitted experiment become null."""
    try:
        return line.encode() if isinstance(line, LazyVerdict) else encode_json(line)
    except ValueError:
        return encode_json(_finite(dict(line)))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and (value != value or abs(value) == float("inf")) else value


class _ContextFields(msgspec.Struct):
    """The fields of a line that tables read besides the verdict."""

    instanceId: str  # noqa: N815  # as in the file
    valid: bool
    pool: str
    poolDigest: str  # noqa: N815
    poolSize: int  # noqa: N815
    setting: str
    stratum: str
    model: str | None = None
    sample: int = 0
    seconds: float | None = None
    template: str = ""


class _ExcludedFields(msgspec.Struct, rename="camel"):
    """Fields of a line of an excluded response."""

    instance_id: str
    pool: str
    pool_digest: str
    pool_size: int
    setting: str
    stratum: str
    reason: Literal["not_run", "infrastructure_error"]
    model: str | None = None


def context_of_excluded(line: Mapping[str, Any]) -> AnswerContext | None:
    """Return the context of an excluded response; None for any other line."""
    if not isinstance(line.get("reason"), str) or line["reason"] not in EXCLUDED:
        return None
    bench = benchmark(stated_name(line.get("benchmark")))
    fields = msgspec.convert(line, _ExcludedFields)
    return AnswerContext(
        system=fields.model or NO_MODEL,
        pool=fields.pool,
        pool_digest=fields.pool_digest,
        pool_size=fields.pool_size,
        instance=fields.instance_id,
        setting=fields.setting,
        stratum=fields.stratum,
        benchmark=bench.name,
    )


def context_of_line(line: Mapping[str, Any]) -> AnswerContext:
    """Return the context of a scored prediction; `msgspec.ValidationError` for any other line.

    A line that names its benchmark must have all fields of its verdicts; ReplaySCM's lines, which name none,
    need only those of `_ContextFields`.
    """
    bench = benchmark(stated_name(line.get("benchmark")))
    if "benchmark" in line:
        msgspec.convert(line, bench.scoring.verdict_record, strict=True)
        line = {**line, "valid": True}  # a field that `_ContextFields` requires of ReplaySCM's lines
    context = msgspec.convert(line, _ContextFields)
    return AnswerContext(
        system=context.model or NO_MODEL,
        pool=context.pool,
        pool_digest=context.poolDigest,
        pool_size=context.poolSize,
        instance=context.instanceId,
        setting=context.setting,
        stratum=context.stratum,
        config=template_option(context.template),
        seconds=context.seconds,
        sample=context.sample,
        benchmark=bench.name,
    )


def refuse_verdicts(paths: Iterable[Path]) -> None:
    """Raise `CalibrantError` for files of verdicts given as predictions: their lines hold no answers."""
    for path in paths:
        if not path.is_file() or is_eval_log(path):
            continue
        _, raw = next(numbered_lines(path), (0, b""))
        try:
            context_of_line(json_object(raw) or {})
        except (msgspec.ValidationError, CalibrantError):
            continue
        raise CalibrantError(f"{path}: verdicts of `calibrant score`, without answers; give the predictions it scored")


_RECORDS = " but a record of `calibrant run`; give the folder of that run, with its file records.jsonl"
_REMEDY = "; predictions are scored first: calibrant score POOL PREDICTIONS --out VERDICTS"


class ScoredLine(NamedTuple):
    """A line of `calibrant score` with its context; text: the line as it was written."""

    context: AnswerContext
    line: Mapping[str, Any]
    text: bytes


_INTERNED = ("instanceId", "model", "pool", "poolDigest", "setting", "stratum")  # fields whose few texts are shared


def scored_lines(path: Path, *, with_excluded: bool = False) -> Iterator[ScoredLine]:
    """Yield the lines of `calibrant score` with their contexts; `CalibrantError` names file and number of a bad line.

    with_excluded: also yield responses that are excluded from every rate
    """
    number = 0
    texts: dict[str, str] = {}
    for number, raw in numbered_lines(path):
        try:
            line = json_object(raw) or {}
        except CalibrantError as error:
            raise CalibrantError(f"{path}: line {number}: {error}") from None
        if line.keys() == {"summary"}:  # the last line of `score --json`
            continue
        for name in _INTERNED:
            if isinstance(value := line.get(name), str):
                line[name] = texts.setdefault(value, value)
        try:
            excluded = context_of_excluded(line)
            if excluded is None or with_excluded:
                yield ScoredLine(context_of_line(line) if excluded is None else excluded, line, raw)
        except (msgspec.ValidationError, CalibrantError):
            remedy = _RECORDS if "protocol" in line and "config" in line else _REMEDY
            raise CalibrantError(f"{path}: line {number}: not a line that `calibrant score` wrote{remedy}") from None
    if not number:
        raise CalibrantError(f"{path}: no verdicts in it; `calibrant score --out` writes them")


# --- Predictions scored on a cluster, in groups; verdicts are yielded in the order of the predictions -----------------
# A process sends back the values of a prediction's metrics and, if lines are requested, the line.
CLUSTER_GROUP_SIZE = 50  # predictions of one job: a verdict takes 1 ms, and sending a single one takes longer
CLUSTER_GROUPS_AHEAD = 100  # groups that are read before they are scored together


def score_on_cluster(
    scorer: PoolScorer, metrics: MetricSet, predictions: Iterable[Prediction], execution: Execution
) -> Iterator[TableVerdict]:
    """Yield the verdict on each prediction, scored on the cluster of `execution`."""
    judge = _Judge(scorer, metrics.benchmark, with_lines=True)
    remaining = iter(predictions)
    with open_executor(prepare_nothing, execution) as executor:
        while groups := _groups(islice(remaining, CLUSTER_GROUP_SIZE * CLUSTER_GROUPS_AHEAD)):
            yield from _score_in_order(executor, judge, groups)


def _groups(predictions: Iterable[Prediction]) -> list[list[Prediction]]:
    whole = list(predictions)
    return [whole[start : start + CLUSTER_GROUP_SIZE] for start in range(0, len(whole), CLUSTER_GROUP_SIZE)]


def _score_in_order(executor: Executor, judge: _Judge, groups: list[list[Prediction]]) -> Iterator[TableVerdict]:
    verdicts_by_group: dict[int, _Group] = {}
    for group_index, verdicts in executor.as_completed(partial(_judge_with, judge), dict(enumerate(groups))):
        if isinstance(verdicts, Failure):
            first, last = groups[group_index][0].instance, groups[group_index][-1].instance
            raise CalibrantError(f"predictions from {short_repr(first)} to {short_repr(last)}: {verdicts.error}")
        verdicts_by_group[group_index] = verdicts
    for group_index, group in enumerate(groups):
        yield from judge.unpack(group, verdicts_by_group[group_index])


def _judge_with(judge: _Judge, group: list[Prediction]) -> _Group:
    return judge.judge_group(group)


def score_prediction(scorer: PoolScorer, prediction: Prediction) -> ScoredPrediction:
    """Return the verdict on a prediction; `CalibrantError` with the instance for any exception."""
    try:
        return scorer.score(prediction)
    except Exception as error:
        raise CalibrantError(f"{short_repr(prediction.instance)}: {error_line(error)}") from error


# --- Predictions scored by several processes: read and tabulated in this one, in the order of the file ----------------
# Only long files gain: the first predictions are scored in this process.
PARALLEL_THRESHOLD = 10_000  # predictions scored in this process first: starting others takes about as long
GROUP_SIZE = 500  # predictions of one job, on average
GROUPS_AHEAD = 5  # groups of each process that are submitted ahead


ByRule: TypeAlias = tuple[bool | None, bool | None, bool | None]
_NO_SAMPLE = Sample(valid=False, correct=False, train_exact=False, heldout_exact=False, meaning=None)


class TableVerdict(NamedTuple):
    """A prediction's verdict for a table and a file of lines.

    values: values of all metrics, None for an excluded response; line: JSON text, None unless lines are requested
    reading: how the response was read
    by_rule: `correct` by the chosen, the published and the lenient rule for reading responses; three None if they agree
    place: line and item of the prediction, for messages
    """

    context: AnswerContext
    values: Values | None
    sample: Sample
    line: str | None
    reading: Reading
    by_rule: ByRule = (None, None, None)
    place: str = ""


def score_in_parallel(
    scorer: PoolScorer, metrics: MetricSet, predictions: Iterable[Prediction], *, with_lines: bool, workers: int
) -> Iterator[TableVerdict]:
    """Yield the verdict on each prediction, in order; an error in a prediction is raised after the verdicts before it.

    workers: number of processes; if it is above 1, they are started after PARALLEL_THRESHOLD predictions
    """
    judge = _Judge(scorer, metrics.benchmark, with_lines=with_lines)
    remaining = iter(predictions)
    yield from map(judge.judge, islice(remaining, PARALLEL_THRESHOLD) if workers > 1 else remaining)
    for first in remaining:  # at most once: start processes only if a prediction remains
        yield from _judge_in_processes(judge, chain((first,), remaining), workers)


# packed verdicts: distinct (values, flags of the sample); then, for each prediction, its index in these, the meaning of
# its sample, its line, and its (reading, `correct` by rule)
_Group: TypeAlias = tuple[
    list[tuple[Any, ...]], list[int], list[str | None], list[str | None], list[tuple[Reading, ByRule]]
]


class _Judge:
    """Scorer of predictions; its copy in another process starts with empty caches."""

    def __init__(self, scorer: PoolScorer, benchmark_name: str, *, with_lines: bool) -> None:
        self._scorer = scorer
        self._benchmark = benchmark_name
        self._with_lines = with_lines
        self._reader = ObservationReader(benchmark(benchmark_name).metrics)
        self._values: dict[Values, Values] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return _make_judge, (self._scorer, self._benchmark, self._with_lines)

    def clear_cache(self) -> None:
        self._scorer.clear_cache()

    def judge(self, prediction: Prediction) -> TableVerdict:
        context, line = score_prediction(self._scorer, prediction)
        reading = reading_of(prediction, line)
        text = json_line(line) if self._with_lines else None
        if reading.is_excluded:
            return TableVerdict(context, None, _NO_SAMPLE, text, reading, place=prediction.place)
        values, sample = self._reader.read_values(context.setting, line)
        return TableVerdict(context, values, sample, text, reading, by_rule(line), prediction.place)

    def judge_group(self, predictions: Iterable[Prediction]) -> _Group:
        """Return the verdicts on a group, packed for sending: most have equal values, which are sent once."""
        kinds: dict[tuple[Any, ...], int] = {}
        kind_indices: list[int] = []
        meanings: list[str | None] = []
        lines: list[str | None] = []
        readings: list[tuple[Reading, ByRule]] = []
        for _, values, sample, line, reading, rules, _ in map(self.judge, predictions):
            *flags, meaning = sample
            kind_indices.append(kinds.setdefault((values, *flags), len(kinds)))
            meanings.append(meaning)
            lines.append(line)
            readings.append((reading._replace(answer={}, published=None, lenient=None), rules))
        return list(kinds), kind_indices, meanings, lines, readings

    def unpack(self, predictions: Sequence[Prediction], group: _Group) -> Iterator[TableVerdict]:
        """Yield the verdicts of a packed group of these predictions."""
        kinds, kind_indices, meanings, lines, readings = group
        # equal values share one tuple in memory
        values = [values and self._values.setdefault(values, values) for values, *_ in kinds]
        for prediction, kind_index, meaning, line, (reading, rules) in zip(
            predictions, kind_indices, meanings, lines, readings, strict=True
        ):
            sample = Sample._make((*kinds[kind_index][1:], meaning))
            context = self._scorer.context(prediction)
            yield TableVerdict(context, values[kind_index], sample, line, reading, rules, prediction.place)


def reading_of(prediction: Prediction, line: Mapping[str, Any]) -> Reading:
    """Return how a response was read, as its verdict or its prediction states it."""
    if isinstance(line, LazyVerdict | ReadVerdict):
        return line.reading
    assert prediction.reading is not None
    return prediction.reading


def by_rule(line: Mapping[str, Any]) -> ByRule:
    """Return `correct` of a line by each rule; three None, and nothing computed, if all read it alike."""
    if isinstance(line, LazyVerdict) and line.reading.published is SAME and line.reading.lenient is SAME:
        return (None, None, None)
    return line["correct"], line["correctPublished"], line["correctLenient"]


def _make_judge(scorer: PoolScorer, benchmark_name: str, with_lines: bool) -> _Judge:
    return _Judge(scorer, benchmark_name, with_lines=with_lines)


def _judge_in_processes(judge: _Judge, predictions: Iterator[Prediction], workers: int) -> Iterator[TableVerdict]:
    """Yield the verdicts in order; each process scores a shard of the items, so that few evaluators are made twice."""
    judge.clear_cache()  # this process scores no further predictions
    errors: list[CalibrantError] = []
    blocks = _blocks(predictions, GROUP_SIZE * workers, errors)
    shards = ItemShards(workers)
    with ExitStack() as stack:
        processes = [stack.enter_context(_start_process(judge)) for _ in range(workers)]
        running: deque[_Block] = deque()
        try:
            while True:
                for block in islice(blocks, GROUPS_AHEAD - len(running)):
                    running.append(_submit(block, shards, processes))
                if not running:
                    break
                yield from _gather(judge, running.popleft())
        except BrokenProcessPool:
            raise CalibrantError(
                "a process that scored predictions has been killed; --workers 1 scores in this one"
            ) from None
        finally:
            for block_running in running:
                for _, future in block_running.parts:
                    future.cancel()
    if errors:
        raise errors[0]


def _start_process(judge: _Judge) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"), _set_up, (judge,))


class _Block(NamedTuple):
    """Consecutive predictions, submitted to the processes.

    shards: index of the process of each prediction; parts: predictions and result of each process
    """

    shards: list[int]
    parts: list[tuple[list[Prediction], Future[_Group]]]


class ItemShards:
    """Assignment of predictions to processes: those of one item to one process, unless the load gets uneven.

    Without the exception a file sorted by items would keep one process busy and the others idle.

    lead: largest difference between the numbers of predictions of two processes
    """

    def __init__(self, num_processes: int, lead: int = GROUP_SIZE) -> None:
        self._lead = lead
        self._num_assigned = [0] * num_processes
        self._preferred: dict[tuple[str, str], int] = {}  # (pool, item) -> its process while the load is even

    def assign(self, prediction: Prediction) -> int:
        """Return the index of the process that scores a prediction."""
        num_assigned = self._num_assigned
        item = prediction.pool, prediction.instance
        chosen = self._preferred.setdefault(item, len(self._preferred) % len(num_assigned))
        fewest = min(num_assigned)
        if num_assigned[chosen] - fewest >= self._lead:
            chosen = num_assigned.index(fewest)
        num_assigned[chosen] += 1
        return chosen


def _submit(block: list[Prediction], shards: ItemShards, processes: Sequence[ProcessPoolExecutor]) -> _Block:
    process_indices = [*map(shards.assign, block)]
    parts: list[list[Prediction]] = [[] for _ in processes]
    for prediction, index in zip(block, process_indices, strict=True):
        parts[index].append(prediction)
    jobs = [
        process.submit(_judge_packed, [tuple(prediction) for prediction in part])
        for process, part in zip(processes, parts, strict=True)
    ]
    return _Block(process_indices, list(zip(parts, jobs, strict=True)))


def _gather(judge: _Judge, block: _Block) -> Iterator[TableVerdict]:
    """Return the verdicts of a block in the order of its predictions."""
    verdicts = [judge.unpack(part, future.result()) for part, future in block.parts]
    return (next(verdicts[index]) for index in block.shards)


def _blocks(predictions: Iterator[Prediction], size: int, errors: list[CalibrantError]) -> Iterator[list[Prediction]]:
    """Yield the predictions in blocks of `size`; the first error ends them and is appended to `errors`."""
    while not errors:
        block: list[Prediction] = []
        try:
            block.extend(islice(predictions, size))  # keeps those before an error: they are still scored
        except CalibrantError as error:
            errors.append(error)
        if not block:
            return
        yield block


_process_judge: list[_Judge] = []  # the judge of a started process, set by `_set_up`


def _set_up(judge: _Judge) -> None:
    _process_judge[:] = [judge]
    gc.freeze()  # exclude imported objects from later collections
    collect_rarely()


def _judge_packed(group: Sequence[tuple[Any, ...]]) -> _Group:
    return _process_judge[0].judge_group(starmap(Prediction, group))
