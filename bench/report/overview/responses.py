"""Second reading of a report's inputs: file and line of every answer, levels of chance, and some responses whole.

Tables keep verdicts alone. This pass goes over runs, verdict files and predictions once more, one line at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from calibrant.bench.core.attribution import is_misfit
from calibrant.bench.core.registry import benchmark, benchmark_of, stated_name
from calibrant.bench.core.scoring import AnswerContext, participant_of
from calibrant.bench.report.overview.contract import GUIDE, Explanation, answer_levels
from calibrant.bench.report.overview.results import CLASSES, Outcome, Results
from calibrant.bench.report.overview.sentences import INVALID, MISFIT
from calibrant.bench.report.remaining import RemainingLists
from calibrant.bench.report.sources import context_of, folders_of, items_of_pools
from calibrant.bench.runs.records import FILE_NAME, Record, read_records
from calibrant.bench.scoring.answers import FieldNames
from calibrant.bench.scoring.files import STANDARD_INPUT, FileEntry
from calibrant.bench.scoring.formats import is_eval_log
from calibrant.bench.scoring.lines import scored_lines
from calibrant.bench.scoring.predictions import Predictions
from calibrant.bench.scoring.scorer import PoolScorer, steps_of
from calibrant.dsl.episode import Step

DEFAULT_EMBEDDED = 200  # responses of a class
NOT_STORED = "Files of verdicts do not hold responses: give the run, or --predictions, to read it here."
MAX_LINE_CHARS = 3_000  # characters of a prediction line that is embedded; longer ones are named by file and line
MAX_TEXT_CHARS = 2_000  # characters of a response or of gold
MAX_DETAIL_BYTES = 9_000_000  # of all embedded responses of a report

AnswerKey: TypeAlias = tuple[str, str, str, str, int]  # pool digest, item, system, options, sample


class Place(NamedTuple):
    """Place of an answer in the inputs.

    file: number among `Responses.files`; line: from 1
    """

    file: int
    line: int


class RawAnswer(NamedTuple):
    """An answer as it was given.

    line: makes a prediction line that gives it again, empty if there is none
    """

    context: AnswerContext
    answer: Mapping[str, Any] | str
    steps: Sequence[Step[Any]]
    file: str
    line_number: int
    line: Callable[[], str]


@dataclass
class Responses:
    """Places of all answers of a benchmark by their key, and explanations of those that are embedded."""

    files: list[str] = field(default_factory=list)
    places: dict[AnswerKey, Place] = field(default_factory=dict)
    explanations: dict[AnswerKey, Explanation] = field(default_factory=dict)
    lines: dict[AnswerKey, str] = field(default_factory=dict)
    num_bytes: int = 0


@dataclass(frozen=True)
class ResponseSources:
    """Inputs of a report that can be read again.

    runs: folders and verdict files; predictions: with pools, those of `pools` of their benchmark
    embed: number of responses of each class to embed; with_levels: whether levels are computed for all answers
    """

    runs: Sequence[Path] = ()
    predictions: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    pools: Sequence[Path] = ()
    fields: FieldNames | None = None
    embed: int = DEFAULT_EMBEDDED


def answer_key(context: AnswerContext) -> AnswerKey:
    return (
        context.pool_digest,
        context.instance,
        context.system,
        context.options,
        context.sample,
    )


def read_responses(results: Results, sources: ResponseSources) -> Responses:
    """Find every answer in the inputs, set its levels where its item is at hand, and explain the chosen ones."""
    outcomes = {answer_key(o.context): o for system in results.systems for o in system.outcomes}
    chosen = choose_embedded(results, sources.embed)
    items = items_of_pools(results.name, sources.pools)
    responses, numbers = Responses(), dict[str, int]()
    remaining_lists = RemainingLists(benchmark(results.name))
    for raw in _raw_answers(results.name, sources):
        key = answer_key(raw.context)
        outcome = outcomes.get(key)
        if outcome is None or key in responses.places:
            continue
        if raw.file not in numbers:
            numbers[raw.file] = len(responses.files)
            responses.files.append(raw.file)
        responses.places[key] = Place(numbers[raw.file], raw.line_number)
        item = items.get((raw.context.pool_digest, raw.context.instance))
        if item is not None:
            outcome.levels = answer_levels(results.guide, key[:2], item, raw.steps, outcome.score)
        if key in chosen and responses.num_bytes < MAX_DETAIL_BYTES:
            explanation = results.guide.explain(item, raw.context, raw.answer, raw.steps, outcome.score)
            if outcome.is_invalid or (outcome.kind == "short" and is_misfit(outcome.score)):
                explanation = replace(explanation, title=INVALID if outcome.is_invalid else MISFIT)
            if explanation.response == NOT_STORED:
                explanation = replace(explanation, response="", response_note=NOT_STORED)
            if item is not None and participant_of(raw.context.system):
                remaining = remaining_lists.get(raw.context.pool_digest, item, raw.steps)
                explanation = replace(explanation, remaining=remaining)
            responses.explanations[key] = explanation
            line = raw.line()
            responses.lines[key] = line if len(line) <= MAX_LINE_CHARS else ""
            responses.num_bytes += len(repr(explanation)) + len(responses.lines[key])
    for key, outcome in outcomes.items():
        item = items.get(key[:2])
        if key not in responses.places and item is not None:
            outcome.levels = answer_levels(results.guide, key[:2], item, (), outcome.score)
    return responses


def choose_embedded(results: Results, embed: int) -> frozenset[AnswerKey]:
    """Choose so many answers of each class: the first of every system under every condition, then the second."""
    cells: dict[str, dict[tuple[int, str], list[Outcome]]] = {kind: {} for kind in CLASSES}
    for rank, system in enumerate(results.systems):
        for outcome in system.outcomes:
            condition = results.items[outcome.item].condition
            cells[outcome.kind].setdefault((rank, condition), []).append(outcome)
    chosen: set[AnswerKey] = set()
    for by_cell in cells.values():
        number, place = 0, 0
        while number < embed and any(place < len(listed) for listed in by_cell.values()):
            for listed in by_cell.values():
                if place < len(listed) and number < embed:
                    chosen.add(answer_key(listed[place].context))
                    number += 1
            place += 1
    return frozenset(chosen)


def _raw_answers(name: str, sources: ResponseSources) -> Iterator[RawAnswer]:
    folders = folders_of(name, sources.runs)
    for source in sources.runs:
        if source in folders:
            yield from _of_run(name, source)
        elif source.is_file():
            yield from _of_verdicts(name, source)
    pools = [path for path in sources.pools if benchmark_of(path).name == name]
    for path in sources.predictions.get(name, ()) if pools else ():
        if path != STANDARD_INPUT and not path.is_dir() and path not in sources.runs:
            yield from _of_predictions(path, pools, sources.fields)


def _of_run(name: str, folder: Path) -> Iterator[RawAnswer]:
    file = folder / FILE_NAME
    for number, record in enumerate(read_records(file), 1):
        if stated_name(record.benchmark) != name:
            continue
        taken = [] if record.steps is msgspec.UNSET else steps_of(record.steps)
        line = partial(_prediction_line, record)
        yield RawAnswer(context_of(record), record.answer, taken, str(file), number, line)


def _prediction_line(record: Record) -> str:
    line: dict[str, Any] = {"instanceId": record.instance, "model": record.protocol}
    if record.steps is msgspec.UNSET or not record.steps:
        return _json(line | {"answer": record.answer})
    return _json(line | {"steps": msgspec.to_builtins(record.steps)})


def _of_verdicts(name: str, file: Path) -> Iterator[RawAnswer]:
    if is_eval_log(file):
        return
    for number, (context, _) in enumerate(scored_lines(file), 1):
        if context.benchmark == name:
            yield RawAnswer(context, NOT_STORED, (), str(file), number, str)


class _LocatedPredictions(Predictions):
    """Predictions that remember the last line read."""

    number: int = 0
    fields_of_line: Mapping[str, Any] = {}

    def _entries(self) -> Iterator[FileEntry]:
        for entry in super()._entries():
            self.number, self.fields_of_line = entry.number, entry.line or {}
            yield entry


def _of_predictions(file: Path, pools: Sequence[Path], fields: FieldNames | None) -> Iterator[RawAnswer]:
    reading = (fields or FieldNames()).reading
    scorer = PoolScorer(pools, benchmark_of(pools[0]).scoring.report_options, reading)
    predictions = _LocatedPredictions(file, scorer, skip_unknown=True, fields=fields)
    for prediction in predictions:
        line = partial(_json, predictions.fields_of_line)
        yield RawAnswer(
            scorer.context(prediction),
            scorer.answer_of(prediction),
            prediction.steps,
            str(file),
            predictions.number,
            line,
        )


def _json(line: Mapping[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=str)


def guide_of(name: str) -> Any:
    """Return how a report reads the answers of a benchmark; None for one without a guide."""
    return benchmark(name).capability(GUIDE)
