"""Texts of the overview: sentences and figures of the first screen, and explanations of single responses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from calibrant.audits.why import listed, number_text
from calibrant.bench.answers.rates import Number
from calibrant.bench.core.attribution import (
    CLASSES,
    INVALID,
    KEY,
    NONE,
    RIGHT,
    RIGHT_CLASSES,
    SHARE_BY_CLASS,
    SHARES,
    is_misfit,
    recorded_attribution,
)
from calibrant.bench.core.registry import benchmark, benchmark_of, stated_name
from calibrant.bench.core.responses import NO_TEXT, REASONS
from calibrant.bench.core.scoring import AnswerContext, participant_of
from calibrant.bench.report.capabilities import RemainingLists
from calibrant.bench.report.overview.contract import GUIDE, Explanation, answer_levels
from calibrant.bench.report.overview.results import Outcome, Results, SystemResult
from calibrant.bench.report.sources import context_of, folders_of, items_of_pools
from calibrant.bench.runs.records import FILE_NAME, Record, read_records
from calibrant.bench.scoring.answers import FieldNames
from calibrant.bench.scoring.files import STANDARD_INPUT, FileEntry
from calibrant.bench.scoring.formats import is_eval_log
from calibrant.bench.scoring.lines import scored_lines
from calibrant.bench.scoring.predictions import Predictions
from calibrant.bench.scoring.scorer import PoolScorer, steps_of
from calibrant.dsl.episode import Step

# --- Sentences and figures of the first screen ------------------------------------------------------------------------
TITLES = {
    "earned": "Right, and earned",
    "lucky": "Right, but lucky",
    "short": "Wrong: the evidence was short",
    "missed": "Wrong, though decided",
    "right": "Right",
    "wrong": "Wrong",
    INVALID: "Wrong: an invalid answer",
    NONE: "No answer",
}
MISFIT = "Wrong: it contradicts the evidence"
MAX_NAMED = 3  # systems that share the first place, in a sentence


class Figure(NamedTuple):
    """Number on the first screen. name: key of the quantity, such as "luck"; value, text, detail: as shown."""

    name: str
    value: str
    text: str
    detail: str


class RankSentence(NamedTuple):
    """Sentence in three parts, the middle one emphasised."""

    plain: str
    strong: str = ""
    end: str = ""


def class_sentence(score: Mapping[str, Any], *, is_right: bool) -> str:
    """Return the sentence on whether the evidence decided one answer, or on why there is no answer."""
    recorded, missing = score.get(KEY) or {}, missing_text(score)
    if missing:
        remaining = {True: " The evidence left one answer.", False: " The evidence left several answers."}
        return f"{missing}{remaining[recorded['decided']] if recorded else ''}"
    if not recorded:
        return "Whether the evidence decided this is not counted."
    if recorded["decided"]:
        return (
            "The evidence left one answer, and it was given."
            if is_right
            else "The evidence left one answer; another was given."
        )
    if is_right:
        return "The evidence left several answers, and a right one was given."
    return "The evidence left several answers, and a wrong one was given."


def missing_text(score: Mapping[str, Any]) -> str:
    """Return why a response has no text to read an answer from; empty if it has one."""
    reason = score.get("reason")
    return f"No answer was given ({reason.replace('_', ' ')}): {REASONS[reason]}." if reason in NO_TEXT else ""


def fit_text(members: str, singular: str, plural: str) -> str:
    """Return "N hypotheses fit". members: their number in decimal."""
    number = int(members)
    return f"1 {singular} fits" if number == 1 else f"{number_text(number)} {plural} fit"


def answer_text(answer: Mapping[str, Any] | str) -> str:
    """Return an answer as it was given, or as JSON."""
    return answer if isinstance(answer, str) else json.dumps(dict(answer), ensure_ascii=False)


def count_text(number: Number) -> str:
    """Return a number of items, with at most two decimals if it is not whole (items answered several times)."""
    if isinstance(number, int) or number.denominator == 1:
        return f"{int(number):,}"
    return f"{float(number):.2f}".rstrip("0").rstrip(".")


def of_text(number: Number, total: Number) -> str:
    return f"{count_text(number)} of {count_text(total)}"


def rank_sentence(results: Results) -> RankSentence:
    """Return the sentence on the best system, and on the pair whose ranks by right and by earned differ most."""
    counted = [system for system in results.systems if system.num_counted == system.num_items]
    if not results.is_counted:
        return RankSentence("Which of the right answers were earned is not counted.")
    if len(results.systems) < 2:
        (only,) = results.systems
        if only.num_counted < only.num_items:
            return RankSentence(f"{only.name} scores {only.accuracy:.3f}.")
        lucky = of_text(only.tally["lucky"], only.tallied(*RIGHT_CLASSES))
        return RankSentence(f"{only.name} scores {only.accuracy:.3f}; {lucky} right answers are luck.")
    pair = _discordant_pair(counted)
    if pair is None:
        best = results.systems[0]
        agree = "Ranks by right and by earned agree."
        if len(counted) < len(results.systems):
            agree = "Not every answer is counted as earned or luck, so ranks by earned are not compared."
        elif not any(system.counts["earned"] for system in results.systems):
            agree = "No right answer was decided by the evidence."
        equal = [system.name for system in results.systems if system.accuracy == best.accuracy]
        verb = "scores" if len(equal) == 1 else "score"
        return RankSentence(f"{listed(equal, MAX_NAMED)} {verb} best, {best.accuracy:.3f}. {agree}")
    ahead, behind = pair
    lucky = count_text(ahead.tally["lucky"])
    best = results.systems[0]
    first = "" if ahead is best else f"{best.name} scores best, {best.accuracy:.3f}. "
    return RankSentence(
        f"{first}{ahead.name} scores {ahead.accuracy:.3f}, {behind.name} {behind.accuracy:.3f}.",
        f"{ahead.name} earned {_earned(ahead)}, {behind.name} {_earned(behind)}",
        f": {lucky} right answers of {ahead.name} were not decided by its evidence.",
    )


def luck_sentence(results: Results) -> str:
    """Return the sentence on how often the best system is right, and how much of that is luck, beside the last system.

    If there is a discordant pair (one system is right more often than another, but earned less), it is the subject.
    """
    counted = [system for system in results.systems if system.num_counted == system.num_items]
    best, last = results.systems[0], results.systems[-1]
    of_best, of_last = percents(best), percents(last)
    pair = _discordant_pair(counted)
    if pair is not None:
        ahead, behind = pair
        of_ahead, of_behind = percents(ahead), percents(behind)
        first = f"{best.name} is right on {of_best['right']} ({of_best['earned']} earned). "
        return (
            f"{'' if ahead is best else first}{ahead.name} is right on {of_ahead['right']} and {behind.name} on"
            f" {of_behind['right']}, but {ahead.name} earned only {of_ahead['earned']}, and {behind.name}"
            f" {of_behind['earned']}: the rest was luck."
        )
    both_fit = all(_fits_evidence(outcome) for system in (best, last) for outcome in system.outcomes)
    is_luck = all(system.right and system.counts["lucky"] == system.right for system in (best, last))
    if both_fit and is_luck and last.right < best.right:
        return (
            f"{best.name} and {last.name} both explain all that they were shown, and are right on"
            f" {of_best['right']} and {of_last['right']} of the items: all luck, since other answers explain the same."
        )
    fits = all(_fits_evidence(outcome) for outcome in best.outcomes)
    start = f"{best.name} explains everything that it was shown, and" if fits else best.name
    sentence = f"{start} is right on {of_best['right']} of the items"
    if best.right and best.counts["lucky"] == best.right:
        sentence += ": all of it luck, since other answers explain the same"
    elif best.right and best.counts["earned"] == best.right:
        sentence += ", all of it earned"
    elif best.right:
        names = {"earned": "earned", "lucky": "luck"}
        parts = [f"{of_best[kind]} {name}" for kind, name in names.items() if best.counts[kind]]
        parts += ["the others not counted"] if best.counts[RIGHT] else []
        sentence += f": {listed(parts, len(parts))}"
    if last.right < best.right:
        sentence += f"; {last.name} is right on {of_last['right']}"
    return f"{sentence}."


def percents(system: SystemResult) -> dict[str, str]:
    """Return the shares of a system's items in whole percent, by the keys of SHARES and `right`.

    SHARES add up to 100: the sum of earned and lucky is rounded first, for it is `right` if no right answer is
    uncounted, then divided. Shares above 0 and below 1 are never printed as 0 and 100: `<1 %` and `>99 %`.
    """
    numbers: dict[str, Number] = dict.fromkeys(SHARES, 0)
    for kind, number in system.counts.items():
        numbers[SHARE_BY_CLASS[kind]] += number
    counted = {"earned": numbers["earned"], "lucky": numbers["lucky"]}
    others = {key: number for key, number in numbers.items() if key not in counted}
    counted_percent, *others_percent = _divide_percent([sum(counted.values()), *others.values()], 100)
    shares = dict(zip(counted, _divide_percent([*counted.values()], counted_percent), strict=True))
    shares |= dict(zip(others, others_percent, strict=True))
    shares["right"] = (
        round(100 * Fraction(system.right) / system.num_items) if system.counts[RIGHT] else counted_percent
    )
    numbers["right"] = system.right
    return {key: _percent_text(shares[key], numbers[key], system.num_items) for key in numbers}


def _percent_text(percent: int, number: Number, total: int) -> str:
    if percent == 0 and number:
        return "<1 %"
    return ">99 %" if percent == 100 and number < total else f"{percent} %"


def _divide_percent(numbers: Sequence[Number], total: int) -> list[int]:
    """Divide `total` in proportion to numbers into integers: round down, then add 1 to the largest remainders."""
    exact = [Fraction(number) * total / (sum(numbers) or 1) for number in numbers]
    parts = [int(part) for part in exact]
    by_remainder = sorted(range(len(parts)), key=lambda k: parts[k] - exact[k])
    for k in by_remainder[: total - sum(parts)] if any(numbers) else ():
        parts[k] += 1
    return parts


def _fits_evidence(outcome: Outcome) -> bool:
    """Return whether an answer is recorded as consistent with its evidence."""
    return recorded_attribution(outcome.score).get("fits") is True


def _earned(system: SystemResult) -> str:
    earned = system.tally["earned"]
    return of_text(earned, system.tallied(*CLASSES)) if system.is_group else count_text(earned)


def _discordant_pair(systems: Sequence[SystemResult]) -> tuple[SystemResult, SystemResult] | None:
    """Return the pair (more right, more earned) with the largest difference of earned, then of right; None if none."""
    best, pair = (Fraction(0), Fraction(0)), None
    shares = [(Fraction(s.right) / s.num_items, Fraction(s.counts["earned"]) / s.num_items) for s in systems]
    for index, (right, earned) in enumerate(shares):
        for index_behind in range(index + 1, len(shares)):
            right_behind, earned_behind = shares[index_behind]
            if right > right_behind and earned_behind > earned:  # subtracting fractions takes ten times as long
                differences = earned_behind - earned, right - right_behind
                if differences > best:
                    best, pair = differences, (systems[index], systems[index_behind])
    return pair


def five_figures(results: Results) -> Iterator[Figure]:
    """Yield the known ones of: best accuracy, largest share decided, largest share of luck, missed answers, cost."""
    best = results.systems[0]
    interval = results.intervals.get(best.name)
    reach = f", {interval.low:.3f}\N{EN DASH}{interval.high:.3f}" if interval else ""
    yield Figure(
        "right", of_text(best.tallied(*RIGHT_CLASSES), best.tallied(*CLASSES)), "right at best", f"{best.name}{reach}"
    )
    counted = [system for system in results.systems if system.is_counted]
    if counted:
        yield from _attributed_figures(counted, results)
    cost = results.guide.words.cost
    costly = [system for system in results.systems if system.cost is not None]
    if cost is None or not costly:
        return
    cheapest = min(costly, key=lambda system: (system.cost, -system.accuracy))
    scale, unit = (1_000, "milliseconds") if cost.unit == "seconds" and (best.cost or 0) < 1 else (1, cost.unit)
    least = cost_text((cheapest.cost or 0) * scale)
    if best.cost is None or cheapest is best:
        yield Figure("cost", least, f"{unit} an answer, the fewest", cheapest.name)
    else:
        fewest = f"; {cheapest.name} needs the fewest, {least}"
        yield Figure("cost", cost_text(best.cost * scale), f"{unit} an answer", f"{best.name}, the best{fewest}")


def _attributed_figures(counted: Sequence[SystemResult], results: Results) -> Iterator[Figure]:
    words = results.guide.words
    decided = max(counted, key=lambda s: Fraction(s.decided) / Fraction(s.num_counted))
    ties = [
        s for s in counted if Fraction(s.decided) / s.num_counted == Fraction(decided.decided) / decided.num_counted
    ]
    everyone = systems_text(counted)
    name = everyone if len(ties) == len(counted) else decided.name
    uncounted = decided.num_items - decided.num_counted
    name += f"; {count_text(uncounted)} more not counted" if uncounted else ""
    yield Figure("decided", of_text(*decided.tally_decided()), words.decided, name)
    lucky = max(
        (system for system in counted if system.counted_right),
        key=lambda s: Fraction(s.counts["lucky"]) / Fraction(s.counted_right),
        default=None,
    )
    if lucky is not None and lucky.counts["lucky"]:
        text = f"right answers of {lucky.name} are luck"
        yield Figure(
            "luck", of_text(lucky.tally["lucky"], lucky.tallied("earned", "lucky")), text, "the evidence left others"
        )
    else:
        yield _no_luck_figure(counted)
    missed = sum((system.tally["missed"] for system in counted), start=0)
    worst = max(counted, key=lambda s: s.tally["missed"])
    detail = f"most by {worst.name}: {count_text(worst.tally['missed'])}" if missed and len(counted) > 1 else ""
    yield Figure("missed", count_text(missed), "missed: decided, yet wrong", detail or everyone)


def _no_luck_figure(systems: Sequence[SystemResult]) -> Figure:
    """Return the figure that no counted right answer is luck."""
    counted = sum((system.tallied("earned", "lucky") for system in systems), start=0)
    total = sum((system.tallied(*RIGHT_CLASSES) for system in systems), start=0)
    if counted == total:
        return Figure("luck", "0", "right answers are luck", "the evidence left no other")
    detail = f"{of_text(total - counted, total)} right answers not counted"
    return Figure("luck", of_text(0, counted), "counted right answers are luck", detail)


def systems_text(systems: Sequence[SystemResult]) -> str:
    """Return `all 3 systems`, `both systems`, or the name of the only one."""
    if len(systems) < 3:
        return "both systems" if len(systems) == 2 else systems[0].name
    return f"all {len(systems):,} systems"


def cost_text(cost: float | None) -> str:
    """Return a mean cost with three significant digits, at least one decimal."""
    if cost is None:
        return "\N{EN DASH}"
    return f"{cost:.1f}" if cost >= 1 or cost == 0 else f"{cost:.2g}"


# --- Responses of the overview ----------------------------------------------------------------------------------------
# Tables keep verdicts alone, so runs, verdict files and predictions are read once more, line by line.
DEFAULT_EMBEDDED = 200  # embedded responses of each class
NOT_STORED = (
    "Files of verdicts do not hold responses: give the run, or --predictions with --pool, in place of that file."
)
NO_TEXT_CAME = "The response has no text."
MAX_LINE_CHARS = 3_000  # prediction lines up to it are embedded, longer ones named by file and line number
MAX_TEXT_CHARS = 2_000  # shown of a response or of gold
MAX_DETAIL_BYTES = 9_000_000  # of all embedded responses of a benchmark, by `repr`

AnswerKey: TypeAlias = tuple[str, str, str, str, int]  # pool digest, item, system, options, sample


class Place(NamedTuple):
    """Location of an answer in the inputs.

    file: index in `Responses.files`; line: line number, from 1
    """

    file: int
    line: int


class RawAnswer(NamedTuple):
    """An answer as it was given.

    line: returns a prediction line with the answer, empty if there is none
    text: text of the response, even without an answer in it; None if it is not stored
    """

    context: AnswerContext
    answer: Mapping[str, Any] | str
    steps: Sequence[Step[Any]]
    file: str
    line_number: int
    line: Callable[[], str]
    text: str | None = None


@dataclass
class Responses:
    """Locations of all answers of a benchmark by key; explanations and prediction lines of the embedded ones."""

    files: list[str] = field(default_factory=list)
    places: dict[AnswerKey, Place] = field(default_factory=dict)
    explanations: dict[AnswerKey, Explanation] = field(default_factory=dict)
    lines: dict[AnswerKey, str] = field(default_factory=dict)
    num_bytes: int = 0


@dataclass(frozen=True)
class ResponseSources:
    """Inputs of a report that are read for responses.

    runs: folders and verdict files; predictions: benchmark -> files of answers to `pools`
    fields: names of the fields in predictions; embed: number of responses of each class to embed
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
    """Locate every answer in the inputs, set its levels if its pool was given, and explain the ones to embed."""
    outcomes = {answer_key(o.context): o for system in results.systems for o in system.outcomes}
    chosen = choose_embedded(results, sources.embed)
    items = items_of_pools(results.name, sources.pools)
    responses, file_indices = Responses(), dict[str, int]()
    remaining_lists = RemainingLists(benchmark(results.name))
    for raw in _raw_answers(results.name, sources):
        key = answer_key(raw.context)
        outcome = outcomes.get(key)
        if outcome is None or key in responses.places:
            continue
        if raw.file not in file_indices:
            file_indices[raw.file] = len(responses.files)
            responses.files.append(raw.file)
        responses.places[key] = Place(file_indices[raw.file], raw.line_number)
        item = items.get((raw.context.pool_digest, raw.context.instance))
        if item is not None:
            outcome.levels = answer_levels(results.guide, key[:2], item, raw.steps, outcome.score)
        if key in chosen and responses.num_bytes < MAX_DETAIL_BYTES:
            explanation = results.guide.explain(item, raw.context, raw.answer, raw.steps, outcome.score)
            if outcome.kind == "short" and is_misfit(outcome.score):
                explanation = replace(explanation, title=MISFIT)
            if raw.answer == NOT_STORED:
                explanation = replace(explanation, response="", response_note=NOT_STORED)
            elif missing_text(outcome.score):
                explanation = replace(
                    explanation, response=raw.text or "", response_note="" if raw.text else NO_TEXT_CAME
                )
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
    """Choose up to `embed` answers of each class, taking turns over the systems and conditions."""
    cells: dict[str, dict[tuple[int, str], list[Outcome]]] = {kind: {} for kind in CLASSES}
    for rank, system in enumerate(results.systems):
        for outcome in system.outcomes:
            condition = results.items[outcome.item].condition
            cells[outcome.kind].setdefault((rank, condition), []).append(outcome)
    chosen: set[AnswerKey] = set()
    for by_cell in cells.values():
        num_chosen, round_index = 0, 0
        while num_chosen < embed and any(round_index < len(outcomes) for outcomes in by_cell.values()):
            for outcomes in by_cell.values():
                if round_index < len(outcomes) and num_chosen < embed:
                    chosen.add(answer_key(outcomes[round_index].context))
                    num_chosen += 1
            round_index += 1
    return frozenset(chosen)


def _raw_answers(name: str, sources: ResponseSources) -> Iterator[RawAnswer]:
    folders = folders_of(name, sources.runs)
    for source in sources.runs:
        if source in folders:
            yield from _answers_of_run(name, source)
        elif source.is_file():
            yield from _answers_of_verdicts(name, source)
    pools = [path for path in sources.pools if benchmark_of(path).name == name]
    for path in sources.predictions.get(name, ()) if pools else ():
        if path != STANDARD_INPUT and not path.is_dir() and path not in sources.runs:
            yield from _answers_of_predictions(path, pools, sources.fields)


def _answers_of_run(name: str, folder: Path) -> Iterator[RawAnswer]:
    file = folder / FILE_NAME
    for line_number, record in enumerate(read_records(file), 1):
        if stated_name(record.benchmark) != name:
            continue
        steps = [] if record.steps is msgspec.UNSET else steps_of(record.steps)
        line = partial(_prediction_line, record)
        yield RawAnswer(context_of(record), record.answer, steps, str(file), line_number, line)


def _prediction_line(record: Record) -> str:
    line: dict[str, Any] = {"instanceId": record.instance, "model": record.protocol}
    if record.steps is msgspec.UNSET or not record.steps:
        return _json(line | {"answer": record.answer})
    return _json(line | {"steps": msgspec.to_builtins(record.steps)})


def _answers_of_verdicts(name: str, file: Path) -> Iterator[RawAnswer]:
    if is_eval_log(file):
        return
    for line_number, (context, *_) in enumerate(scored_lines(file), 1):
        if context.benchmark == name:
            yield RawAnswer(context, NOT_STORED, (), str(file), line_number, str)


class _LocatedPredictions(Predictions):
    """Predictions with the number and the fields of the last line read."""

    number: int = 0
    fields_of_line: Mapping[str, Any] = {}

    def _entries(self) -> Iterator[FileEntry]:
        for entry in super()._entries():
            self.number, self.fields_of_line = entry.number, entry.line or {}
            yield entry


def _answers_of_predictions(file: Path, pools: Sequence[Path], fields: FieldNames | None) -> Iterator[RawAnswer]:
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
            prediction.response.text,
        )


def _json(line: Mapping[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=str)


def guide_of(name: str) -> Any:
    """Return the benchmark's reader of answers for reports (AnswerGuide); None if it has none."""
    return benchmark(name).capability(GUIDE)
