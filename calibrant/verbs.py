"""The verbs on pools and items. Each asks the item's benchmark; its options are checked before anything is done.

Every verb raises `CalibrantError` for what is no item, for an option that the item's benchmark does not have there, and
for one out of range. What a verb does and takes on each benchmark is in `bench/<benchmark>/solve.py`.
"""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, get_args, overload

import msgspec

from calibrant.bench.core.capabilities import PLAY, Solution
from calibrant.bench.core.options import keyword_struct
from calibrant.bench.core.registry import benchmark, benchmark_of, benchmark_of_item
from calibrant.bench.core.responses import Extractor
from calibrant.bench.protocols import Protocol, protocols_of
from calibrant.bench.report.tidy import RateTable, Records, Verdicts
from calibrant.bench.toml_file import explain_mismatch
from calibrant.dsl.answer_text import Thoughts
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.item import Pool
from calibrant.options import (
    Auditing,
    Counting,
    CountingDetectors,
    CountingLabs,
    Drawing,
    Generating,
    HardeningOptions,
    Scoring,
    Separating,
    Solving,
    Talking,
    TalkingToDetectors,
    TalkingToLabs,
)
from calibrant.solvers.outcome import Outcome

# --- Checks of arguments that several public functions take: one line that says what is allowed -----------------------


def path_argument(value: object, label: str) -> Path:
    """Return the path that a text or a path names; `CalibrantError` for anything else.

    label: name of the argument in the error
    """
    path = value.__fspath__() if isinstance(value, PathLike) else value
    if not isinstance(path, str):
        raise CalibrantError(f"{label} must be a path or its text, got {type(value).__name__}")
    if not path or "\0" in path:
        raise CalibrantError(f"{label} must be a path, got {short_repr(path)}")
    return Path(path)


def seed_argument(value: object) -> int:
    """Return a seed; `CalibrantError` if it is no whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise CalibrantError(f"a seed is a whole number, not {type(value).__name__}")
    return value


def check_execution(workers: object, budget: object, cluster: object, retry_crashed: object) -> None:
    """Raise `CalibrantError` for an invalid argument of `run`, before a process is started that would not report it."""
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise CalibrantError(f"workers must be a whole number from 1, got {short_repr(workers)}")
    if budget is not None:
        is_number = isinstance(budget, int | float) and not isinstance(budget, bool)
        if not is_number or not math.isfinite(budget) or budget <= 0:  # type: ignore[arg-type,operator]  # a number
            raise CalibrantError(f"budget must be seconds above 0 or None, got {short_repr(budget)}")
    if cluster is not None and (not isinstance(cluster, str) or not cluster or "\0" in cluster):
        raise CalibrantError(f"cluster must be an address tcp://HOST:PORT or None, got {short_repr(cluster)}")
    if not isinstance(retry_crashed, bool):
        raise CalibrantError(f"retry_crashed must be True or False, got {type(retry_crashed).__name__}")


if TYPE_CHECKING:  # item_types imports the solvers of all benchmarks, which takes seconds
    from calibrant.audits.claims import Finding
    from calibrant.bench.core.benchmark import Benchmark
    from calibrant.bench.episodes import TextEpisode
    from calibrant.bench.runs.records import StepRecord
    from calibrant.item_types import (
        BlicketEpisode,
        BlicketItem,
        BlicketScore,
        CausimItem,
        CausimScore,
        DetectorSpace,
        Findings,
        Generated,
        Hardening,
        Item,
        LabEpisode,
        LabItem,
        LabScore,
        LabSpace,
        LogicFamily,
        LogicItem,
        LogicModel,
        LogicScore,
        Mechanism,
        Problem,
        Rule,
        Scm,
        ScmEpisode,
        Score,
        SeparatedPair,
        Verdict,
        VersionSpace,
        WorkedSolution,
        WorldSpace,
    )

    Steps: TypeAlias = Sequence[Step[Any]] | Sequence[StepRecord] | Sequence[Mapping[str, Any]]

_Path: TypeAlias = str | PathLike[str]


@overload
def load_pool(path: _Path, of: None = None) -> Pool[Item]: ...
@overload
def load_pool(path: _Path, of: Literal["replayscm"]) -> Pool[Problem]: ...
@overload
def load_pool(path: _Path, of: Literal["blickets"]) -> Pool[BlicketItem]: ...
@overload
def load_pool(path: _Path, of: Literal["causalab"]) -> Pool[LabItem]: ...
@overload
def load_pool(path: _Path, of: Literal["causim"]) -> Pool[CausimItem]: ...
@overload
def load_pool(path: _Path, of: Literal["logic"]) -> Pool[LogicItem]: ...
def load_pool(path: _Path, of: str | None = None) -> Pool[Any]:
    """Return the items of a file, official or native, plain or gzip. `PoolError` names what in it is invalid.

    of: name of the benchmark, for a type checker and as a claim: a pool of another is a `CalibrantError`
    """
    file = path_argument(path, "a pool's file")
    pool_benchmark = benchmark_of(file)
    if of is not None and benchmark(of) is not pool_benchmark:
        raise CalibrantError(f"{file.name}: a pool of '{pool_benchmark.name}'; '{of}' was expected")
    return pool_benchmark.functions.load_pool(file)


@overload
def score(item: Problem, answer: object, *, steps: Steps = (), **options: Unpack[Scoring]) -> Score: ...
@overload
def score(item: BlicketItem, answer: object, *, steps: Steps = (), **options: Unpack[Scoring]) -> BlicketScore: ...
@overload
def score(item: LabItem, answer: object, *, steps: Steps = (), **options: Unpack[Scoring]) -> LabScore: ...
@overload
def score(item: CausimItem, answer: object, **options: Unpack[Scoring]) -> CausimScore: ...
@overload
def score(item: LogicItem, answer: object, **options: Unpack[Scoring]) -> LogicScore: ...
def score(item: Item, answer: object, **options: Any) -> Verdict:
    """Return the verdict on a response text or an answer object; other JSON values are answers that are not valid.

    What a model thought is no answer: `thoughts` says what of a text that is. `reason` of the verdict says why a
    response holds no answer; `correct_published` and `correct_lenient` are what the other readers make of it.

    `CalibrantError` for a value that JSON does not have, and for steps that the item does not answer so.
    """
    verdict: Verdict = response_scoring(benchmark_of_item(item), options)(item, answer)
    return verdict


@overload
def score_many(
    items: Iterable[Problem], answers: Iterable[str | bytes | object], **options: Unpack[Scoring]
) -> Verdicts[Score]: ...
@overload
def score_many(
    items: Iterable[BlicketItem], answers: Iterable[object], **options: Unpack[Scoring]
) -> Verdicts[BlicketScore]: ...
@overload
def score_many(
    items: Iterable[LabItem], answers: Iterable[object], **options: Unpack[Scoring]
) -> Verdicts[LabScore]: ...
@overload
def score_many(
    items: Iterable[CausimItem], answers: Iterable[object], **options: Unpack[Scoring]
) -> Verdicts[CausimScore]: ...
@overload
def score_many(
    items: Iterable[LogicItem], answers: Iterable[object], **options: Unpack[Scoring]
) -> Verdicts[LogicScore]: ...
@overload
def score_many(items: Iterable[Item], answers: Iterable[object], **options: Unpack[Scoring]) -> Verdicts[Verdict]: ...
def score_many(items: Iterable[Any], answers: Iterable[Any], **options: Any) -> Verdicts[Any]:
    """Return the verdicts on the first answer to the first item, the second to the second, and so on, one at a time.

    They are made as they are taken; `to_frame` makes a data frame of them.

    k samples of an item are the item k times. `CalibrantError` at the end if there are more of one than of the other.

    Given a pool, the answers are lines of a file of predictions (docs/predictions.md), text or bytes: each names the
    instance that it is about, and a line of several answers has several verdicts; one whose request was not run or
    failed has none. `CalibrantError` names the line that cannot be read, and says so at the end if no request was run.
    Answers and mechanisms that are met again are not read again.
    """
    return Verdicts(_score_pairs(items, answers, options))


def _score_pairs(items: Iterable[Any], answers: Iterable[Any], options: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    pairs = _of_lines(items, answers) if isinstance(items, Pool) else _in_pairs(items, answers)
    judges: dict[int, Callable[..., Any]] = {}
    for item, answer in pairs:
        bench = benchmark_of_item(item)
        judge = judges.get(id(bench))
        if judge is None:
            judge = judges[id(bench)] = response_scoring(bench, options)
        yield item, judge(item, answer)


def _in_pairs(items: Iterable[Any], answers: Iterable[object]) -> Iterator[tuple[Any, object]]:
    """Yield each item with its answer; `CalibrantError` at the end if there are more of one than of the other."""
    pairs = zip(items, answers, strict=True)
    num_pairs = 0
    while True:
        try:
            pair = next(pairs)
        except StopIteration:
            return
        except ValueError:
            raise CalibrantError(f"after {num_pairs} pairs there is an item or an answer without the other") from None
        num_pairs += 1
        yield pair


def _of_lines(pool: Pool[Any], lines: Iterable[str | bytes]) -> Iterator[tuple[Any, object]]:
    """Yield the item and the response of each answer in lines of a file of predictions."""
    from calibrant.bench.core.benchmark import PublicIds
    from calibrant.bench.scoring.predictions import PoolItems, PredictionLines

    items = {item.id: item for item in pool}
    public = None if pool.file is None else PublicIds.of_pool(pool.file, pool.items)

    def prompt(name: str) -> str:
        return benchmark_of_item(items[name]).items.system_and_prompt(items[name])[1]

    for prediction in PredictionLines(lines, PoolItems("", (pool.name,), items.keys(), public, prompt)):
        yield items[prediction.instance], prediction.response


def response_scoring(bench: Benchmark[Any], options: Mapping[str, Any]) -> Callable[[Any, object], Any]:
    """Return a function of an item and a response that reads the answer by these options, and returns its score."""
    from calibrant.bench.core.responses import ReadingOptions, Response
    from calibrant.bench.scoring.reading import score_response

    names = {"extractor", "thoughts"}
    for name, choices in (("extractor", get_args(Extractor)), ("thoughts", get_args(Thoughts))):
        if name in options and options[name] not in choices:
            raise CalibrantError(f"score: {name} is {short_repr(options[name])}; known: {', '.join(choices)}")
    if options.get("extractor") == "published" and "thoughts" in options:
        raise CalibrantError("score: the extractor published reads a whole text in its own way; leave thoughts out")
    reading = ReadingOptions(options.get("extractor", "paper"), options.get("thoughts", "strip"))
    judge = _verb(bench, "score", {name: value for name, value in options.items() if name not in names})
    is_replay = "steps" in options

    def score_one(item: Any, answer: object) -> Any:
        if is_replay and answer in (None, "", Response()):
            return judge(item, None)
        return score_response(bench, item, answer, reading, lambda stated: judge(item, stated))

    return score_one


@overload
def solve(item: Problem, **options: Unpack[Solving]) -> Outcome[Solution[Scm]]: ...
@overload
def solve(item: BlicketItem) -> Outcome[Solution[Rule]]: ...
@overload
def solve(item: LabItem) -> Outcome[Solution[Mechanism]]: ...
@overload
def solve(item: CausimItem) -> Outcome[Solution[WorkedSolution]]: ...
@overload
def solve(item: LogicItem) -> Outcome[Solution[LogicModel]]: ...
def solve(item: Item, **options: Any) -> Any:
    """Return the exact solver's answer from `item.task` and, of an interactive item, from an episode that it plays."""
    return _call_for_item(item, "solve", options)


@overload
def version_space(item: Problem, *, steps: Steps = (), **options: Unpack[Counting]) -> VersionSpace: ...
@overload
def version_space(item: BlicketItem, *, steps: Steps = (), **options: Unpack[CountingDetectors]) -> DetectorSpace: ...
@overload
def version_space(item: LabItem, *, steps: Steps = (), **options: Unpack[CountingLabs]) -> LabSpace: ...
@overload
def version_space(item: CausimItem) -> WorldSpace: ...
@overload
def version_space(item: LogicItem) -> LogicFamily: ...
def version_space(item: Item, **options: Any) -> Any:
    """Every hypothesis of a class that fits what the item shows and what steps read: counted without enumeration."""
    return _call_for_item(item, "version_space", options)


@overload
def audit(item: Problem, **options: Unpack[Auditing]) -> Findings: ...
@overload
def audit(item: BlicketItem | LabItem | CausimItem | LogicItem) -> tuple[Finding, ...]: ...
def audit(item: Item, **options: Any) -> Any:
    """Return what the evidence of an item leaves open and what else is proved about it. Reads what is sealed."""
    return _call_for_item(item, "audit", options)


def separate(item: Problem, *answers: object, **options: Unpack[Separating]) -> tuple[SeparatedPair, ...]:
    """Find experiments that separate answers: each pair of those given, one and the truth, or the smallest that fit."""
    pairs: tuple[SeparatedPair, ...] = _call_for_item(item, "separate", options, answers)
    return pairs


def harden(item: Problem, seed: int = 0, **options: Unpack[HardeningOptions]) -> Hardening:
    """Training worlds added until the goal is reached or proved out of reach. The same seed gives the same worlds."""
    hardening: Hardening = _call_for_item(item, "harden", options, seed_argument(seed))
    return hardening


@overload
def generate(seed: int, *, of: Literal["replayscm"] = "replayscm", **options: Unpack[Generating]) -> Generated: ...
@overload
def generate(seed: int, *, of: Literal["blickets"], **options: Unpack[Drawing]) -> BlicketItem: ...
@overload
def generate(seed: int, *, of: Literal["causalab"], **options: Unpack[Drawing]) -> LabItem: ...
@overload
def generate(seed: int, *, of: Literal["causim"], **options: Unpack[Drawing]) -> CausimItem: ...
@overload
def generate(seed: int, *, of: Literal["logic"], **options: Unpack[Drawing]) -> LogicItem: ...
def generate(seed: int, *, of: str = "replayscm", **options: Any) -> Any:
    """Generate an item of a benchmark; of ReplaySCM with its audit. The same seed gives the same item.

    of: name of the benchmark
    """
    return _call(benchmark(of), "generate", options, seed_argument(seed))


@overload
def open_episode(item: Problem) -> ScmEpisode: ...
@overload
def open_episode(item: BlicketItem) -> BlicketEpisode: ...
@overload
def open_episode(item: LabItem) -> LabEpisode: ...
def open_episode(item: Problem | BlicketItem | LabItem) -> Any:
    """Open an episode of an interactive item: `act` on it, read `steps`. `CalibrantError` if it is not interactive."""
    bench = benchmark_of_item(item)
    if not bench.has(PLAY):
        raise CalibrantError(f"`open_episode` does not support {bench.title}")
    return bench.play.open(item)


@overload
def text_episode(item: Problem, **options: Unpack[Talking]) -> TextEpisode: ...
@overload
def text_episode(item: BlicketItem, **options: Unpack[TalkingToDetectors]) -> TextEpisode: ...
@overload
def text_episode(item: LabItem, **options: Unpack[TalkingToLabs]) -> TextEpisode: ...
def text_episode(item: Problem | BlicketItem | LabItem, **options: Any) -> TextEpisode:
    """Open an interactive item in messages: `reset()`, then `reply(text)` until it is done, with a reward at the end.

    `CalibrantError` if the item is not interactive.
    """
    episode: TextEpisode = _call_for_item(item, "text_episode", options)
    return episode


def _call_for_item(item: object, name: str, options: Mapping[str, Any], *arguments: object) -> Any:
    return _call(benchmark_of_item(item), name, options, item, *arguments)


def _call(bench: Benchmark[Any], name: str, options: Mapping[str, Any], *arguments: object) -> Any:
    """Call a benchmark's verb of this name."""
    return _verb(bench, name, options)(*arguments)


def _verb(bench: Benchmark[Any], name: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a benchmark's verb of this name with its options, once these are checked.

    `CalibrantError` for a verb or an option that the benchmark does not have, for an invalid value, and, when the
    result is called, for an item that the verb refuses.

    options: by keyword; `steps` may be those of an episode or of a record, or as JSON has them
    """
    verb = getattr(bench.functions, name, None)
    if verb is None:
        raise CalibrantError(f"`{name}` does not support {bench.title}")
    names = _option_names(verb)
    unknown = sorted(options.keys() - set(names))
    if unknown:
        allowed = f"its options: {', '.join(names)}" if names else f"on {bench.title} it has none"
        raise CalibrantError(f"{name} has no option '{unknown[0]}'; {allowed}")
    checked: dict[str, Any] = {}
    if "steps" in options:
        from calibrant.bench.scoring.scorer import steps_of

        checked["steps"] = steps_of(options["steps"])
    kind = keyword_struct(name, bench.name)
    keywords = {key: value for key, value in options.items() if key != "steps"}
    try:
        converted = msgspec.convert(keywords, kind)
    except msgspec.ValidationError as error:
        raise CalibrantError(f"{name}: {explain_mismatch(kind, error)}") from None
    checked |= {key: getattr(converted, key) for key in keywords}

    def call(*arguments: object) -> Any:
        try:
            return verb(*arguments, **checked)
        except ValueError as error:
            raise CalibrantError(f"{name}: {error}") from error

    return call


@cache  # without it, reading the signature takes a tenth of the time of `score`
def _option_names(verb: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(verb).parameters
    return tuple(key for key, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY)


# --- Docstrings of the verbs, to which the options of each benchmark are appended for `help` --------------------------
_OPTIONS: Mapping[Callable[..., Any], tuple[type, ...]] = {
    score: (Scoring,),
    score_many: (Scoring,),
    solve: (Solving,),
    version_space: (Counting, CountingDetectors, CountingLabs),
    audit: (Auditing,),
    separate: (Separating,),
    harden: (HardeningOptions,),
    generate: (Generating, Drawing),
    text_episode: (Talking, TalkingToDetectors, TalkingToLabs),
}
for _function, _kinds in _OPTIONS.items():
    _texts = (inspect.cleandoc(text) for text in (_function.__doc__, *(kind.__doc__ for kind in _kinds)) if text)
    _function.__doc__ = "\n\n".join(_texts)


# --- Protocols, runs of them over pools, and tables of their rates ----------------------------------------------------

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
    """Return the selection of the items to be run, and the file that has them."""
    from calibrant.bench.runs.runner import EVERYTHING, Selection
    from calibrant.dsl.records import item_ids

    if not isinstance(pool, Pool):
        return EVERYTHING, path_argument(pool, "pool")
    if pool.file is None:
        raise CalibrantError("this pool was not read from a file; records name a pool by its file")
    return Selection(frozenset(item_ids(pool.items)), len(pool)), pool.file
