"""Readers of scored answers, episodes and answers from folders of runs, verdicts, predictions and pools."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from calibrant.bench.answers.rates import differing_names, option_suffix
from calibrant.bench.core.attribution import KEY, NO_ANSWER, attribution_of_tie
from calibrant.bench.core.metrics import Item
from calibrant.bench.core.registry import NAMES, benchmark, benchmark_of, stated_name
from calibrant.bench.core.responses import EXCLUDED
from calibrant.bench.core.scoring import AnswerContext, Prediction
from calibrant.bench.core.verdict import MeanScore
from calibrant.bench.pools.capabilities import STORED_RESULTS
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.table import EXHAUSTED, Excluded
from calibrant.bench.runs.records import Key, Record, Timing, folder_records, stated_benchmarks
from calibrant.bench.runs.workers import crash_text
from calibrant.bench.scoring.answers import FieldNames
from calibrant.bench.scoring.files import STANDARD_INPUT, PredictionFile
from calibrant.bench.scoring.formats import is_eval_log
from calibrant.bench.scoring.lines import ScoredLine, by_rule, reading_of, scored_lines
from calibrant.bench.scoring.predictions import Predictions
from calibrant.bench.scoring.scorer import PoolScorer, steps_of
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.records import file_digest, item_ids, items_by_id, pool_digest

# --- Scores for tables from folders of runs and files of `calibrant score` --------------------------------------------
STEPS = "steps taken"  # key that is added to scores of episodes; no benchmark's score has it
PROVENANCE = "provenance"  # key of records that is added to scores with an attribution

_NO_TIME = Timing(0.0, "")
_AnswerKey = tuple[str, str, str, int]  # pool digest, instance, model, sample
Tell: TypeAlias = Callable[[str], object]  # called with lines to print; `str` prints none


def scored_answers(
    sources: Iterable[Path], *, with_steps: bool = False, with_excluded: bool = False
) -> Iterator[tuple[AnswerContext, Mapping[str, Any]]]:
    """Yield every scored answer of the sources once.

    Records of one answer in two folders that differ at most in timing count once. `CalibrantError` for records, or
    verdicts, of one answer that differ otherwise.

    with_steps: whether scores of episodes in runs hold their steps under STEPS
    with_excluded: whether responses that are excluded from every rate are yielded too
    """
    all_sources = tuple(sources)
    digests: dict[Key | _AnswerKey, bytes] = {}
    is_checked = False
    for source in all_sources:
        for key, digest, context, score in _read_source(source, _text_digest, with_steps, with_excluded):
            if key not in digests:
                digests[key] = digest
                yield context, score
            elif digests[key] != digest and not is_checked:
                _check_contents(all_sources, with_excluded)  # equal lines may have their keys in another order
                is_checked = True


def _check_contents(sources: Iterable[Path], with_excluded: bool) -> None:
    """Raise `CalibrantError` for two records, or verdicts, of one key that differ in more than timing or order."""
    contents: dict[Key | _AnswerKey, bytes] = {}
    for source in sources:
        for key, content, context, _ in _read_source(source, _line_digest, with_excluded=with_excluded):
            if contents.setdefault(key, content) != content:
                raise CalibrantError(
                    f"{source}: {context.system} on {short_repr(context.instance)} is also elsewhere, and differs"
                )


def _read_source(
    source: Path, digest: Callable[[ScoredLine], bytes], with_steps: bool = False, with_excluded: bool = False
) -> Iterator[tuple[Key | _AnswerKey, bytes, AnswerContext, Mapping[str, Any]]]:
    """Yield (key, digest of the record or line, context, score) of each answer.

    digest: line of `calibrant score` -> its digest
    """
    return _read_run(source, with_steps) if source.is_dir() else _read_verdicts(source, digest, with_excluded)


def _read_run(folder: Path, with_steps: bool) -> Iterator[tuple[Key, bytes, AnswerContext, Mapping[str, Any]]]:
    for record in folder_records(folder):
        yield record.key, _untimed_digest(record), context_of(record), score_of(record, with_steps=with_steps)


def score_of(record: Record, *, with_steps: bool = False) -> Mapping[str, Any]:
    """Return the score of a record as tables read it. with_steps: add the steps of an episode under STEPS."""
    score = record.score if record.outcome == "found" else {**record.score, NO_ANSWER: True}
    if record.attribution is not msgspec.UNSET:
        score = {**score, KEY: record.attribution, PROVENANCE: record.provenance}
    if with_steps and record.steps is not msgspec.UNSET:
        score = {**score, STEPS: steps_of(record.steps)}
    if record.ties is not msgspec.UNSET and record.ties.scores:
        ties = record.ties
        parts = [(part.times, _tied_score(record, part.score)) for part in ties.scores]
        # `count` is a text, for it may exceed 64 bits; more tied answers than were scored: these are a sample
        score = MeanScore(score, parts, is_drawn=ties.count is not None and int(ties.count) > ties.scored)
    return score


def _tied_score(record: Record, score: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the score of an answer tied with a record's, with its attribution if the record has one."""
    if record.attribution is msgspec.UNSET:
        return score
    success = benchmark(stated_name(record.benchmark)).metrics.success
    return {**score, KEY: attribution_of_tie(record.attribution, correct=success.is_right(score, record.setting))}


def _read_verdicts(
    file: Path, digest: Callable[[ScoredLine], bytes], with_excluded: bool
) -> Iterator[tuple[_AnswerKey, bytes, AnswerContext, Mapping[str, Any]]]:
    if not file.exists():
        raise CalibrantError(f"{file}: there is no such file or folder")
    if not file.is_file():
        raise CalibrantError(f"{file}: neither a folder of a run nor a file that `calibrant score` wrote")
    if is_eval_log(file):
        raise CalibrantError(f"{file}: a log of Inspect; `calibrant score` and `report --predictions` read it")
    _refuse_pool(file)
    for line_number, scored in enumerate(scored_lines(file, with_excluded=with_excluded), 1):
        context, line, _ = scored
        # excluded lines have no sample: the negative line number keeps their keys apart
        sample = -line_number if line.get("reason") in EXCLUDED else context.sample
        yield (context.pool_digest, context.instance, context.system, sample), digest(scored), context, line


def _text_digest(scored: ScoredLine) -> bytes:
    return hashlib.sha256(scored.text.strip()).digest()


def _line_digest(scored: ScoredLine) -> bytes:
    """Return a digest of a line that is equal for every order of its keys."""
    return hashlib.sha256(json.dumps(scored.line, sort_keys=True).encode()).digest()


def _refuse_pool(file: Path) -> None:
    """Raise `HintedError`, with a command that makes answers, for a pool of items given in place of answers."""
    from calibrant.bench.terminal import HintedError, is_pool, unused_path

    if is_pool(file):
        message = f"{file}: a pool of items, without answers; a run or `calibrant score` gives what is read here"
        raise HintedError(message, command=("run", "exact", file, "--out", unused_path("runs")))


def _untimed_digest(record: Record) -> bytes:
    """Return a digest of a record without its timing."""
    untimed = msgspec.structs.replace(record, timing=_NO_TIME)
    return hashlib.sha256(msgspec.json.encode(untimed, order="sorted")).digest()


def context_of(record: Record) -> AnswerContext:
    """Return the context of the answer in a record."""
    name = stated_name(record.benchmark)
    return AnswerContext(
        record.protocol,
        record.pool,
        record.pool_digest,
        record.pool_size,
        record.instance,
        benchmark(name).metrics.row_group(record.setting, record.pool_digest),
        record.stratum,
        record.config,
        record.outcome,
        None if record.outcome == "crashed" else record.timing.seconds,
        benchmark=name,
        reason=_reason(record),
        is_tied=record.ties is not msgspec.UNSET,
    )


def _reason(record: Record) -> str:
    """Return the reason in a record why its protocol gave no answer; empty if it gave one or recorded no reason."""
    if record.outcome == "crashed":
        return crash_text(record.provenance)
    keys = {"impossible": ("reason",), "out_of_budget": ("reached", "reason", "stopped_by")}
    exhausted, unfit = (record.provenance.get(key) for key in ("exhausted", "unfit"))
    if record.outcome == "impossible" and isinstance(exhausted, str):
        return f"{EXHAUSTED}{exhausted}"
    if record.outcome == "impossible" and isinstance(unfit, list):  # by methods that learn parents first
        return f"no formula over the learned parents fits {', '.join(map(str, unfit))}"
    reason = next((record.provenance[key] for key in keys.get(record.outcome, ()) if key in record.provenance), "")
    return reason if isinstance(reason, str) else ""


# --- Episodes from folders of runs and files of predictions -----------------------------------------------------------


class Transcript(NamedTuple):
    """Steps of one episode. They are not checked; drawing or scoring them replays them first."""

    context: AnswerContext
    steps: Sequence[Step[Any]]


def transcripts(
    sources: Iterable[Path], pools: Sequence[Path], fields: FieldNames | None = None, tell: Tell = str
) -> Iterator[Transcript]:
    """Yield every episode in folders of runs, and in files of predictions about items of these pools.

    pools: pool files, all of one interactive benchmark; fields: names of the fields in predictions
    tell: called with texts on skipped lines
    """
    scorer = PoolScorer(pools, None, (fields or FieldNames()).reading)
    for source in sources:
        if source.is_dir():
            for record in folder_records(source):
                if record.steps is not msgspec.UNSET:
                    yield Transcript(context_of(record), steps_of(record.steps))
        else:
            for prediction in _predictions(source, scorer, fields, tell):
                yield Transcript(scorer.context(prediction), prediction.steps)


def _predictions(source: Path, scorer: PoolScorer, fields: FieldNames | None, tell: Tell = str) -> Iterator[Prediction]:
    """Yield the predictions about known items, then call `tell` with texts on the skipped lines."""
    predictions = Predictions(source, scorer, skip_unknown=True, fields=fields)
    yield from predictions
    for line in predictions.skipped_lines("read"):
        tell(f"{source.name}: {line}")


def named_systems(origins: Iterable[AnswerContext]) -> list[str]:
    """Return the name of each answer's system, so that names differ.

    The options in which systems of one name differ are added, then the sample number if equal options have several.
    """
    origins = list(origins)
    names = []
    for origin in origins:
        same_name = [answer for answer in origins if answer.system == origin.system]
        name = origin.system + option_suffix(origin.config, differing_names([answer.config for answer in same_name]))
        same_options = [answer for answer in same_name if answer.config == origin.config]
        names.append(in_one_line(name + (f" (sample {origin.sample})" if len(same_options) > 1 else "")))
    return names


# --- Answers to one item from folders of runs and files of predictions ------------------------------------------------


def submitted_answers(
    sources: Sequence[Path],
    pool: Path,
    instance: str,
    system: str | None,
    fields: FieldNames | None = None,
    tell: Tell = str,
) -> list[tuple[str, str | Mapping[str, Any], str]]:
    """Return (system, answer, reason) for the answers to an item; `CalibrantError` if there are none.

    answer: an object, or the text of a response that is read when it is scored
    reason: why the response holds no answer, empty if it holds one; tell: called with texts on skipped lines
    """
    digest = pool_digest(pool)
    on_item = [
        (context, answer)
        for context, answer in read_answers(sources, [pool], fields, tell)
        if (context.pool_digest, context.instance) == (digest, instance)
    ]
    names = named_systems(context for context, _ in on_item)  # crashes among them, as in tables
    answered = [(name, *pair) for name, pair in zip(names, on_item, strict=True) if pair[0].outcome != "crashed"]
    matching = [
        (name, answer, context.reason) for name, context, answer in answered if system in (None, context.system, name)
    ]
    if not matching:
        of_system = "" if system is None else f" of {system}"
        systems = ", ".join(dict.fromkeys(name for name, _, _ in answered))
        others = f"; there are answers of {systems}" if systems else ""
        raise CalibrantError(
            f"no answer{of_system} to {instance} of this pool in {', '.join(map(str, sources))}{others}"
        )
    return matching


def crashes_on(sources: Sequence[Path], pool: Path, instance: str, system: str | None) -> tuple[list[Record], bool]:
    """Return (records of crashes on an item, whether the sources may hold other answers to it)."""
    digest = pool_digest(pool)
    records = [
        record
        for source in sources
        if source.is_dir()
        for record in folder_records(source)
        if (record.pool_digest, record.instance) == (digest, instance)
    ]
    names = named_systems(map(context_of, records))
    chosen = [record for name, record in zip(names, records, strict=True) if system in (None, record.protocol, name)]
    crashes = [record for record in chosen if record.outcome == "crashed"]
    return crashes, len(crashes) < len(chosen) or any(not source.is_dir() for source in sources)


def read_answers(
    sources: Sequence[Path],
    pools: Sequence[Path],
    fields: FieldNames | None,
    tell: Tell = str,
) -> Iterator[tuple[AnswerContext, str | Mapping[str, Any]]]:
    """Yield the answers in folders of runs, and in files of predictions to items of these pools.

    The `reason` in the context of a prediction states why its response holds no answer.
    """
    scorer = PoolScorer(pools, None, (fields or FieldNames()).reading)
    for source in sources:
        if source.is_dir():
            yield from ((context_of(record), record.answer or {}) for record in folder_records(source))
        else:
            for prediction in _predictions(source, scorer, fields, tell):
                answer, reason = scorer.answer_and_reason(prediction)
                yield scorer.context(prediction)._replace(reason=reason), answer


# --- Inputs of a report -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sources:
    """Sources of scored answers.

    runs: folders of runs, and files of `calibrant score`
    predictions: files of predictions for instances of `pools`, which are scored here
    official: pool files that embed model results
    pools: pool files; in some only the items, not their ids, state which of them share a latent SCM
    fields: names of the fields in predictions; say: called with lines on what was recognised in them
    excluded: (context, reason) of responses in no rate, filled by each call of `answers`
    """

    runs: Sequence[Path] = ()
    predictions: Sequence[Path] = ()
    official: Sequence[Path] = ()
    pools: Sequence[Path] = ()
    fields: FieldNames | None = None
    say: Callable[[str], None] = lambda line: None
    excluded: list[tuple[AnswerContext, str]] = field(default_factory=list)

    def answers(self) -> dict[str, list[Answer]]:
        """Return benchmark -> its scored answers, in the order of NAMES; `CalibrantError` if there are none.

        Also fills `excluded` and calls `say`.
        """
        self.excluded.clear()
        answers_by_benchmark: dict[str, list[Answer]] = {name: [] for name in NAMES}
        keys: set[tuple[str, str, str, str, int]] = set()
        recognised: list[str] = []
        for context, score in share_equal(self._score_all(recognised)):
            key = (
                context.pool_digest,
                context.instance,
                context.system,
                context.options,
                context.sample,
            )
            if key in keys:
                item = short_repr(context.instance)
                raise CalibrantError(
                    f"{context.system} on {item} of {context.pool} is given twice{self._omission_hint()}"
                )
            keys.add(key)
            answers_by_benchmark[context.benchmark].append((context, score))
        for line in recognised:
            self.say(line)
        if not any(answers_by_benchmark.values()):
            raise CalibrantError("no scored answers in these folders and files")
        return {name: answers for name, answers in answers_by_benchmark.items() if answers}

    def _omission_hint(self) -> str:
        """Return a hint on which inputs to omit if verdict files and predictions were both given; else empty."""
        files = [str(path) for path in self.runs if path.is_file()]
        if not files or not self.predictions:
            return ""
        return f"; leave out {' and '.join(files)}: predictions with their pool are scored again, with their responses"

    def _score_all(self, recognised: list[str]) -> Iterator[tuple[AnswerContext, Mapping[str, Any]]]:
        excluded = Excluded()
        yield from excluded.filter_out(scored_answers(self.runs, with_steps=bool(self.pools), with_excluded=True))
        recognised.extend(excluded.lines())
        self.excluded.extend(excluded.listed)
        thoughts = (self.fields or FieldNames()).reading.thoughts
        for path in self.official:
            yield from benchmark_of(path).require(STORED_RESULTS)(path, thoughts).answers()
        for path in self.predictions:
            yield from self._score_predictions(path, recognised)

    def _score_predictions(
        self, path: Path, recognised: list[str]
    ) -> Iterator[tuple[AnswerContext, Mapping[str, Any]]]:
        if not self.pools:
            raise CalibrantError(f"{path}: predictions are scored against pools; give them with --pool")

        pools = self._pools_of(path)
        scorer = PoolScorer(pools, benchmark_of(pools[0]).scoring.report_options, (self.fields or FieldNames()).reading)
        predictions = Predictions(path, scorer, fields=self.fields, with_excluded=True)
        for prediction in predictions:
            scored = scorer.score(prediction)
            reading = reading_of(prediction, scored.line)
            predictions.counts.add(prediction.place, reading)
            if reading.is_excluded:
                self.excluded.append((scored.context, reading.reason))
                continue
            predictions.counts.compare(prediction.place, *by_rule(scored.line))
            yield scored
        recognised.extend(predictions.skipped_lines())
        recognised.append(f"{path}: {predictions.recognised}")
        recognised.extend(predictions.counts.lines())

    def transcripts(self) -> dict[str, list[Path]]:
        """Return benchmark of the pools -> folders and files that may hold episodes and can be read again."""
        paths_by_benchmark = {
            name: folders_of(name, self.runs) for name in dict.fromkeys(benchmark_of(pool).name for pool in self.pools)
        }
        for path in self.predictions:
            if self.pools and path != STANDARD_INPUT:
                paths_by_benchmark[benchmark_of(self._pools_of(path)[0]).name].append(path)
        return paths_by_benchmark

    def _pools_of(self, path: Path) -> list[Path]:
        """Return the pools of the benchmark with an item that the file's first line names, else of the first pool's."""
        pools_by_benchmark: dict[str, list[Path]] = {}
        for pool in self.pools:
            pools_by_benchmark.setdefault(benchmark_of(pool).name, []).append(pool)
        if len(pools_by_benchmark) > 1:
            texts = {value for value in _first_line(path).values() if isinstance(value, str)}
            for pools in pools_by_benchmark.values():
                if any(
                    name in texts for pool in pools for name in item_ids(benchmark_of(pool).items.read_pool(pool).items)
                ):
                    return pools
        return next(iter(pools_by_benchmark.values()))


def _first_line(path: Path) -> dict[str, Any]:
    return next((content or {} for _, content in PredictionFile(path).objects()), {})


def share_equal(answers: Iterable[Answer]) -> Iterator[Answer]:
    """Yield the answers, with equal scores on an item replaced by one object, which later steps read once.

    Many systems give the same answer to an item. Equal parts of verdicts are shared too, and keys that no table reads
    are dropped, which reduces the memory to a third for ReplaySCM. Lazily computed verdicts stay as they are.
    """
    shared: dict[tuple[str, str, bytes], Mapping[str, Any]] = {}
    parts: dict[tuple[str, bytes], Any] = {}
    for context, score in answers:
        if isinstance(score, dict):
            if not isinstance(score, MeanScore):
                score = _share_parts(score, benchmark(context.benchmark).metrics.unread, parts)
            ties = score.parts if isinstance(score, MeanScore) else ()
            content = msgspec.msgpack.encode((score, ties))  # not JSON, which cannot represent NaN
            key = context.pool_digest, context.instance, blake2b(content, digest_size=16).digest()
            score = shared.setdefault(key, score)
        yield context, score


def _share_parts(score: dict[str, Any], unread: Sequence[str], parts: dict[tuple[str, bytes], Any]) -> dict[str, Any]:
    """Return a score without the keys `unread`, in which lists and objects are replaced by equal ones of `parts`."""
    score = {key: value for key, value in score.items() if key not in unread}
    for key, value in score.items():
        if isinstance(value, dict):
            value = {name: part for name, part in value.items() if f"{key}.{name}" not in unread}
        if isinstance(value, dict | list):
            score[key] = parts.setdefault((key, msgspec.msgpack.encode(value)), value)
    return score


def folders_of(name: str, runs: Sequence[Path]) -> list[Path]:
    """Return the folders of runs that have a record of this benchmark."""
    return [
        path
        for path in runs
        if path.is_dir() and any(stated_name(stated) == name for stated in stated_benchmarks(path))
    ]


def items_of_pools(name: str, pools: Sequence[Path]) -> dict[Item, Any]:
    """Return (digest of the pool, id) -> item for the pools of one benchmark."""
    items: dict[Item, Any] = {}
    for path in pools:
        bench = benchmark_of(path)
        if bench.name == name:
            digest = file_digest(path)
            items |= {
                (digest, instance): item for instance, item in items_by_id(bench.items.read_pool(path).items).items()
            }
    return items
