"""Workers of a run: opening an executor, answering an item in a process, and descriptions of crashes."""

from __future__ import annotations

import linecache
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from math import isfinite
from pathlib import Path
from traceback import walk_tb
from typing import Any, NamedTuple, TypeVar

import msgspec

from calibrant.bench.core.benchmark import Benchmark, EpisodeHandout, Handout, load_benchmark
from calibrant.bench.protocols import PRESENT, Presentation, Protocol, ProtocolResult, Ties, make_protocol, protocols_of
from calibrant.bench.runs import executors
from calibrant.bench.runs.records import Key, Record, Timing
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import MissingExtraError, in_one_line, short_repr
from calibrant.dsl.item import Item
from calibrant.dsl.text import plural
from calibrant.solvers.outcome import BudgetSpent

# --- The executor of an `Execution` -----------------------------------------------------------------------------------
J = TypeVar("J")
K = TypeVar("K")
T = TypeVar("T")


def open_executor(
    prepare: Callable[[], None], execution: executors.Execution = executors.HERE
) -> AbstractContextManager[executors.Executor]:
    """Open the executor. One worker without a wall budget is this process, because no process has to be killed.

    prepare: called once in every process before its first job, whose time it does not count in
    """
    if execution.cluster is not None:
        from calibrant.bench.runs.cluster import Cluster

        return Cluster(prepare, execution.cluster, execution.wall_budget)
    if execution.workers == 1 and execution.wall_budget is None:
        prepare()
        return nullcontext(executors.InProcessExecutor())
    return executors.SpawnedExecutor(prepare, execution)


def as_completed(
    do: Callable[[J], T], jobs: Mapping[K, J], execution: executors.Execution = executors.HERE
) -> Iterator[tuple[K, T | executors.Failure]]:
    """Run each job once on a new executor; yield keys and results in any order.

    Without a wall budget, one of several workers is a thread of this process, because no job has to be killed.
    """
    with open_sharing(execution) as executor:
        yield from executor.as_completed(do, jobs)


def open_sharing(execution: executors.Execution) -> AbstractContextManager[executors.Executor]:
    """Open an executor of `as_completed`, whose processes start when it is called: before threads of the caller."""
    if execution.cluster is None and execution.wall_budget is None and execution.workers > 1:
        return executors.SharingExecutor(execution)
    return open_executor(executors.prepare_nothing, execution)


# --- Crashes of methods: where the exception was raised, for records and messages -------------------------------------
MAX_FRAMES = 5  # frames at the end of a traceback that a record keeps
MAX_FRAME_CHARS = 200
MAX_CRASH_KINDS = 3  # distinct crashes that are printed after a run
# beginnings of file names of code that is not the user's
_LIBRARY_CODE = (
    str(Path(__file__).parents[2]),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    "<frozen",
)


class _Frame(NamedTuple):
    file: str
    line: int
    function: str

    @property
    def place(self) -> str:
        """The last folder and name of the file, line number and function; the same on every machine."""
        return in_one_line(f"{'/'.join(Path(self.file).parts[-2:])}:{self.line} in {self.function}")[:MAX_FRAME_CHARS]

    @property
    def text(self) -> str:
        """The place and, if readable, the line of source code."""
        source = in_one_line(linecache.getline(self.file, self.line).strip())
        return f"{self.place}: {source}"[:MAX_FRAME_CHARS] if source else self.place


def crash_provenance(error: BaseException, caller_file: str) -> dict[str, Any]:
    """Return the error, place and last frames of an exception as provenance of a record.

    caller_file: file that called the method; its frames are omitted
    """
    frames = [
        _Frame(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in walk_tb(error.__traceback__)
    ]
    frames = [frame for frame in frames if frame.file != caller_file]
    provenance: dict[str, Any] = {"error": f"{type(error).__name__}: {executors.one_line(error)}"}
    if not frames:
        return provenance
    users = [frame for frame in frames if not frame.file.startswith(_LIBRARY_CODE)]
    return provenance | {
        "at": (users or frames)[-1].place,
        "traceback": [frame.text for frame in frames[-MAX_FRAMES:]],
    }


def crash_text(provenance: Mapping[str, Any]) -> str:
    """Return the error of a crash as one line, with its place if the record has it."""
    error, place = provenance.get("error"), provenance.get("at")
    text = in_one_line(str(error)) if error else "no reason recorded"
    return f"{text}, at {in_one_line(str(place))}" if place else text


def crash_lines(record: Record, num_others: int = 0) -> Iterator[str]:
    """Yield a line on a crash, then its last frames. num_others: number of other items with the same crash."""
    more = f" and {num_others} more" if num_others else ""
    subject = in_one_line(f"{record.protocol} on {record.instance}{more}")
    yield f"{subject} crashed: {crash_text(record.provenance)}"
    frames = record.provenance.get("traceback")
    yield from (f"    {in_one_line(str(frame))}" for frame in (frames if isinstance(frames, list) else ())[:MAX_FRAMES])
    steps = 0 if record.steps is msgspec.UNSET else len(record.steps)
    if steps and not num_others:
        yield f"    after {plural(steps, 'recorded steps')}"


def crash_summary(records: Iterable[Record], keys: Iterable[Key]) -> Iterator[str]:
    """Yield lines on the crashes with these keys, once for equal errors of a method."""
    chosen, by_error = frozenset(keys), dict[tuple[str, str], list[Record]]()
    for record in records:
        if record.outcome == "crashed" and record.key in chosen:
            by_error.setdefault((record.protocol, crash_text(record.provenance)), []).append(record)
    for crashes in list(by_error.values())[:MAX_CRASH_KINDS]:
        yield from crash_lines(crashes[0], len(crashes) - 1)
    if len(by_error) > MAX_CRASH_KINDS:
        yield f"{len(by_error) - MAX_CRASH_KINDS} more kinds of crash: `calibrant list POOL --scores DIR` shows them"


I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


class Answer(NamedTuple):
    """A protocol's result on one item, its timing, and the steps of an episode, None for a question."""

    result: ProtocolResult
    timing: Timing
    steps: Sequence[Step[Any]] | None = None


class Workers:
    """Executor that answers items by one protocol."""

    def __init__(self, protocol: Protocol, executor: executors.Executor, wall_budget: float | None) -> None:
        self._protocol = protocol
        self._executor = executor
        self._wall_budget = wall_budget

    def answers(self, handouts: Mapping[K, Handout]) -> Iterator[tuple[K, Answer]]:
        """Yield each item's answer once, in any order."""
        for key, answer in self._executor.as_completed(partial(timed_answer, self._protocol), handouts):
            yield key, self._without_answer(answer) if isinstance(answer, executors.Failure) else answer

    def _without_answer(self, failure: executors.Failure) -> Answer:
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        if failure.outcome == "crashed":
            return Answer(ProtocolResult("crashed", provenance={"error": failure.error}), Timing(0.0, started))
        assert self._wall_budget is not None
        provenance = {"stopped_by": "wall budget", "seconds": self._wall_budget}
        return Answer(_out_of_budget(provenance), Timing(self._wall_budget, started))


@contextmanager
def open_workers(protocol: Protocol, execution: executors.Execution = executors.HERE) -> Iterator[Workers]:
    """Open workers for a protocol. Each imports and warms up once, before the time of its first item begins."""
    if protocol.code:  # a user's code runs in other processes: if it kills its process, the command must go on
        execution = replace(execution, max_local_jobs=0)
    with open_executor(partial(_warm_up, protocol), execution) as executor:
        yield Workers(protocol, executor, execution.wall_budget)


def timed_answer(protocol: Protocol, handout: Handout) -> Answer:
    """Answer one item. An exception of the protocol becomes the result "crashed", so that other instances are answered.

    `BudgetSpent` becomes "out_of_budget". A missing library is raised as `MissingExtraError`.
    """
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    clock = time.perf_counter()
    task: Any = None
    presentation: Presentation | None = None
    try:
        presentation = _present(handout) if protocol.reads_canonical else None
        task = (handout if presentation is None else handout.with_content(presentation.content)).open()
        with redirect_stdout(sys.stderr):  # standard output is reserved for the command's results
            reason = protocol.refusal(task)
            refused = ProtocolResult("impossible", provenance={"reason": reason})
            result = refused if reason else _check_result(protocol.answer(task))
            if isinstance(handout, EpisodeHandout) and result.answer:
                _submit_answer(handout, task, result.answer)
    except MissingExtraError:
        raise
    except BudgetSpent as spent:
        result = _out_of_budget({"reached": executors.one_line(spent) or "a budget of states"})
    except (Exception, SystemExit) as error:
        result = ProtocolResult("crashed", provenance=crash_provenance(error, __file__))
    timing = Timing(time.perf_counter() - clock, started)
    steps = tuple(task.steps) if isinstance(handout, EpisodeHandout) and task is not None else None
    if presentation is not None:
        answer, provenance = presentation.restore(result.answer), result.provenance
        if result.outcome != "crashed":  # names in a traceback are those of code, not of variables
            provenance = presentation.restore(provenance)
        ties = result.ties and Ties(result.ties.count, presentation.restore(result.ties.answers), result.ties.note)
        result = ProtocolResult(result.outcome, answer, result.size, provenance, ties)
        steps = None if steps is None else tuple(map(presentation.restore_step, steps))
    return Answer(result, timing, steps)


class ExactEpisode(NamedTuple):
    """The episode of `run exact` on an item.

    steps: all steps, with the submission
    class_in_words: class of hypotheses that the method considers; empty if it is that of attributions
    decided_class: class of attributions; decided_at: number of moves after which the readings decided the answer in it,
        None if they never did
    """

    steps: Sequence[Step[Any]]
    class_in_words: str
    decided_class: str
    decided_at: int | None

    @property
    def num_moves(self) -> int:
        return sum(step.cost for step in self.steps)

    def describe(self) -> str:
        """Return the end of a sentence on its number of moves, with both classes if they differ."""
        used = f"used {plural(self.num_moves, 'moves')}"
        if not self.class_in_words:
            return used
        when = "never" if self.decided_at is None else f"after {self.decided_at:,}"
        return (
            f"{used}, for it considers {self.class_in_words};"
            f" in the class \u201c{self.decided_class}\u201d its readings had decided the answer {when}"
        )


def exact_episode(bench: Benchmark[I], item: I) -> ExactEpisode | None:
    """Return the episode of `run exact` on an item; None for a question, or without a solution."""
    if not bench.is_interactive(item):
        return None
    exact = make_protocol(protocols_of(bench), "exact", {})
    result, _, steps = timed_answer(exact, bench.handout(item))
    if result.outcome != "found" or steps is None:
        return None
    answer = result.answer or {}
    attribution = bench.attribution(item, answer, steps, bench.scoring.score(item, answer, steps)) or {}
    return ExactEpisode(
        steps, exact.class_in_words(item.task), str(attribution.get("class", "")), attribution.get("decided_at")
    )


def _present(handout: Handout) -> Presentation | None:
    present = load_benchmark(handout.benchmark).capability(PRESENT) if handout.benchmark else None
    return None if present is None else present(handout.content)


def _check_result(result: object) -> ProtocolResult:
    """Return a protocol's result after encoding and decoding it as for a record; `TypeError` for another type."""
    if not isinstance(result, ProtocolResult):
        raise TypeError(f"answer(task) gave {short_repr(result)}, not a ProtocolResult")
    _check_values(result.answer)
    _check_values(result.provenance)
    return msgspec.json.decode(msgspec.json.encode(result), type=ProtocolResult)


def _submit_answer(handout: EpisodeHandout, episode: Any, answer: Mapping[str, Any]) -> None:
    """Submit the answer to an open episode, unless an action of the method did so."""
    play = load_benchmark(handout.benchmark).play
    if not episode.closed and play.submitted(episode.steps) is None:
        for action in play.submission(answer, tuple(episode.steps)):
            episode.act(action)


def _check_values(value: object) -> None:
    """Raise `TypeError` for what msgspec would write as another value: NaN as null, a set as a list in any order."""
    if (isinstance(value, float) and not isfinite(value)) or isinstance(value, set | frozenset):
        raise TypeError(f"JSON cannot represent {short_repr(value)}")
    if isinstance(value, Mapping):
        for part in value.values():
            _check_values(part)
    elif isinstance(value, list | tuple):
        for part in value:
            _check_values(part)


def _warm_up(protocol: Protocol) -> None:
    with suppress(Exception, SystemExit), redirect_stdout(sys.stderr):  # answering an item will raise the error again
        protocol.warm_up()


def _out_of_budget(provenance: dict[str, object]) -> ProtocolResult:
    return ProtocolResult("out_of_budget", provenance=provenance)
