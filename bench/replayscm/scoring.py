"""Answers of ReplaySCM: reading, scoring, attribution, a digest of their semantics, and their evaluator."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from calibrant.bench.core.attribution import attribution_record
from calibrant.bench.core.responses import Answer, ReadAnswer, Reading, ReadingOptions, Response
from calibrant.bench.core.scoring import AnswerContext, EvaluatorCache, Prediction, Scorable, line_head, line_place
from calibrant.bench.core.verdict import (
    GREATEST_PLAIN,
    LEAST_PLAIN,
    LazyVerdict,
    ReadVerdict,
    encode_json,
    encode_rates,
)
from calibrant.bench.replayscm.items import ITEMS
from calibrant.bench.replayscm.options import ScoreOptions
from calibrant.bench.replayscm.verdict import MEANING, bulk_key, funnel, structure
from calibrant.bench.scoring.answers import UNREAD_STAGES
from calibrant.bench.scoring.reading import AnswerRules, read_response, verdict_fields
from calibrant.dsl.episode import ActionError, Step
from calibrant.dsl.formulas.table import MAX_TABLE_VARS, TruthTable, full_mask, projection, shrink
from calibrant.dsl.formulas.text import render
from calibrant.dsl.lenient_json import Shape
from calibrant.dsl.replayscm.evaluator import compute
from calibrant.dsl.replayscm.extensions.extension import Question
from calibrant.dsl.replayscm.extraction import Kind, answer_shape, extract_published, read_plain
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.score import Evaluator, Score, answer_kind
from calibrant.dsl.replayscm.submission import Mechanism, Rejection

if TYPE_CHECKING:
    from calibrant.audits.replayscm.attribution import HeldoutDecision
    from calibrant.bench.replayscm.episodes import ExtendedLineEvaluator, ExtendedVerdicts


# --- Reading, scoring and attribution of answers ----------------------------------------------------------------------
MAX_OBJECTS = 2_000  # items whose digests are cached, as many as a pool keeps decoded (dsl.records)
MAX_VERDICTS = 64  # extended items whose counts of SCMs are cached


Judge: TypeAlias = Callable[[Answer], Score]


class ReplayScmScoring(Scorable[Problem]):
    """Implements Scorable (bench.core.scoring)."""

    report_options = ScoreOptions(structure=True)

    @property
    def verdict_record(self) -> type[msgspec.Struct]:
        from calibrant.bench.replayscm.fields import VerdictLine

        return VerdictLine

    def no_answer(self, item: Problem) -> dict[str, Any]:
        from calibrant.bench.replayscm.rows.exact import no_answer

        return no_answer(item.task.kind)

    def score(self, item: Problem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        from calibrant.bench.replayscm.verdict import score_record

        if item.task.extension is not None:
            verdicts = _extended_verdicts(item)
            return verdicts.record(verdicts.score(answer, steps), steps)
        return score_record(Evaluator(item).score_answer(answer))

    def score_ties(
        self, item: Problem, answers: Sequence[Mapping[str, Any]], steps: Sequence[Step[Any]]
    ) -> list[dict[str, Any]]:
        from calibrant.bench.replayscm.verdict import score_record

        if item.task.extension is not None:
            verdicts = _extended_verdicts(item)
            scores = (verdicts.evaluator.score_answer(answer, steps) for answer in answers)
            return [verdicts.record(score, steps) for score in scores]
        evaluator = Evaluator(item)  # one for all answers, since it packs the worlds
        records = [score_record(evaluator.score_answer(answer)) for answer in answers]
        for record in records:  # drop fields that explain a single answer, so that few records are distinct
            for key in ("firstTrainMismatch", "firstHeldoutMismatch"):
                record[key] = None
            if "candidateStats" in record:
                record["candidateStats"] = {"astSize": record["candidateStats"]["astSize"]}
        return records

    def extract(self, item: Problem, response: str | Mapping[str, Any]) -> dict[str, Any]:
        """Return the best object that the extractor finds in a text; its content is not checked."""
        from calibrant.dsl.replayscm.extraction import EXTRACTORS

        if item.task.extension is not None:
            from calibrant.bench.replayscm.episodes import read_submission

            return read_submission(item, response)
        if not isinstance(response, str):
            return dict(response)
        extraction = EXTRACTORS["paper"](response, Evaluator(item).shape)
        if not extraction.candidates:
            raise ActionError(f"no answer in the response: {extraction.failure}")
        return dict(extraction.candidates[0])

    def shape(self, item: Problem) -> Shape:
        extension = item.task.extension
        variables = extension.variables if extension is not None else item.task.training.variables
        has_forecast = extension is not None and extension.question is Question.FORECAST
        return answer_shape(answer_kind(item), variables, with_forecast=has_forecast)

    def read(self, item: Problem, response: str | Mapping[str, Any]) -> ReadAnswer:
        """Return the answer that the paper's rule reads: its best candidate, if that passes the stage `schema`."""
        if item.task.extension is None:
            return read_by_paper(_evaluator(item).score, response)
        from calibrant.bench.replayscm.episodes import read_extended

        return read_extended(item, response)

    def read_published(self, item: Problem, text: str) -> ReadAnswer:
        """Return the answer that the released scorer reads; for extended items, unknown to it, as `read` does."""
        if item.task.extension is not None:
            return self.read(item, text)
        evaluator = _evaluator(item)
        return read_by_published(evaluator.score, evaluator.shape, text)


def read_by_paper(judge: Judge, response: str | Mapping[str, Any]) -> ReadAnswer:
    """Return a response as the answer if the paper's rule reads one in it, else the reason why it does not."""
    answer = response if isinstance(response, str) else dict(response)
    score = judge(answer)
    is_plain = score.is_plain and isinstance(answer, str) and not _begins_another_value(answer)
    return ReadAnswer(answer, unread_problem(score), is_plain=is_plain)


def unread_problem(score: Score) -> str:
    """Return why a response has no answer; empty if it has one."""
    rejection = score.rejection
    return rejection.reason if rejection is not None and rejection.stage in UNREAD_STAGES else ""


def _begins_another_value(text: str) -> bool:
    """Return whether a text may be a JSON list or string; the released scorer refuses such a text as a whole."""
    return text[:1] != "{" and text.lstrip()[:1] in ("[", '"')


def read_by_published(judge: Judge, kind: Kind, text: str) -> ReadAnswer:
    """Return the answer that the released scorer reads: the object that it selects.

    A plain response, in which both rules select the same object, is returned as a text.
    """
    if not _begins_another_value(text) and read_plain(text, kind) is not None:
        return ReadAnswer(text, unread_problem(judge(text)))
    extraction = extract_published(text, kind)
    if not extraction.candidates:
        return ReadAnswer(None, extraction.failure or "no JSON object found")
    answer = dict(extraction.candidates[0])
    return ReadAnswer(answer, unread_problem(judge(answer)))


SCORING = ReplayScmScoring()
_EXTENDED: EvaluatorCache[ExtendedVerdicts] = EvaluatorCache(MAX_VERDICTS)
_EVALUATORS: EvaluatorCache[Evaluator] = EvaluatorCache()


def _evaluator(item: Problem) -> Evaluator:
    return _EVALUATORS.get_for(item, lambda: Evaluator(item))


def _extended_verdicts(item: Problem) -> ExtendedVerdicts:
    from calibrant.bench.replayscm.episodes import ExtendedVerdicts

    return _EXTENDED.get_for(item, lambda: ExtendedVerdicts(item))


class ReplayScmAttribution:
    """Implements Attribute (bench.core.scoring).

    An item is decided if all consistent SCMs of its class agree on the held-out worlds. The class is the smallest one
    that contains gold; extended items state theirs. Under noise, an item is decided if one held-out behaviour has a
    posterior of at least 0.99.
    """

    def __init__(self) -> None:
        self._digests: EvaluatorCache[bytes] = EvaluatorCache(MAX_OBJECTS)
        self._decisions: EvaluatorCache[HeldoutDecision | None] = EvaluatorCache()

    def __call__(
        self, item: Problem, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        from calibrant.bench.replayscm.verdict import METRICS

        correct = METRICS.success.judge(score, item.setting)
        if item.task.extension is not None:
            return _extended_verdicts(item).decision(score.get("trainExact"), steps, correct=correct)
        decision = None if correct is None else self.decide_heldout(item)
        if decision is None or correct is None:
            return None
        return attribution_record(decision.attribution(fits=score.get("trainExact") is True, correct=correct))

    def decide_heldout(self, item: Problem) -> HeldoutDecision | None:
        """Return the counts of an item, which are the same for every answer; cached.

        The key is a digest of the item's content, because large pools decode their items repeatedly. The digests are
        cached by object, because reports use the same objects for each system.
        """
        from calibrant.audits.replayscm.attribution import heldout_decision

        digest = self._digests.get_for(item, lambda: sha256(msgspec.json.encode(ITEMS.record(item))).digest())
        return self._decisions.get(digest, lambda: heldout_decision(item))


ATTRIBUTE = ReplayScmAttribution()


# --- A digest of an answer's semantics, equal for answers with equal functions ----------------------------------------


def _function(mechanism: Mechanism) -> str:
    """Return the function of a mechanism as text: its truth table, or for too many variables its formula."""
    if mechanism.function is None:
        variables = mechanism.variables
        if mechanism.table is not None:
            mechanism.function = _spell(variables, mechanism.table & full_mask(len(variables)))
        elif len(variables) <= MAX_TABLE_VARS:
            table = compute(mechanism.formula, _projections(variables), full_mask(len(variables)))
            mechanism.function = _spell(variables, table)
        else:
            mechanism.function = render(mechanism.formula)
    return mechanism.function


@lru_cache(maxsize=1 << 12)
def _projections(variables: tuple[str, ...]) -> Mapping[str, int]:
    return {name: projection(index, len(variables)).bits for index, name in enumerate(variables)}


@lru_cache(maxsize=1 << 14)  # many formulas have the same function
def _spell(variables: tuple[str, ...], bits: int) -> str:
    table, essential = shrink(TruthTable(len(variables), bits))
    return repr((tuple(variables[i] for i in essential), table))


def meaning_digest(score: Score) -> str | None:
    """Return a digest of a valid answer: roots, functional parents, truth tables, experiment, witness; else None."""
    submission = score.submission
    if submission is None:
        return None
    functions = tuple(
        [(variable, _function(mechanism)) for variable, mechanism in sorted(submission.mechanisms.items())]
    )
    experiment = "{}"
    if score.problem.task.kind is TaskKind.ALTERNATIVE and score.answer is not None:
        experiment = json.dumps({key: score.answer.get(key) for key in ("experiment", "witness")}, sort_keys=True)
    return _digest(submission.roots, functions, experiment)


@lru_cache(maxsize=1 << 12)
def _digest(roots: tuple[str, ...], functions: tuple[tuple[str, str], ...], experiment: str) -> str:
    text = repr((sorted(roots), list(functions), experiment))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


# --- Evaluator: the published scorer's verdict as a lazy line, encoded only when it is read ---------------------------


class _LastScore:
    """Scorer that keeps its last score, because reading a response scores it, and then its answer is scored again."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._last: tuple[Answer, Score] | None = None

    def __call__(self, answer: Answer) -> Score:
        if self._last is None or self._last[0] is not answer:
            self._last = answer, self._evaluator.score(answer)
        return self._last[1]


class ReplayScmEvaluator:
    """Reads the answer of a response and scores it.

    options: `structure` adds metrics that take as long as all others, and makes lines that are not lazy
    reading: how the answer is found in a response
    """

    def __init__(self, problem: Problem, options: ScoreOptions, reading: ReadingOptions) -> None:
        # not compiled: parsing mechanisms is a tenth of a verdict's time, and compiled code takes 120 MB a process
        self._evaluator = evaluator = Evaluator(problem, compiles=False)
        self._score_answer = score_answer = _LastScore(evaluator)
        self._with_structure = options.structure
        self._reading = reading
        self._rules = AnswerRules(
            partial(read_by_paper, score_answer),
            partial(read_by_published, score_answer, evaluator.shape),
            SCORING.shape(problem),
        )

    def evaluate(self, prediction: Prediction, context: AnswerContext) -> Mapping[str, Any]:
        """Return the line of a prediction: lazy unless it has structure metrics or metrics without a bulk key."""
        reading = read_response(self._rules, prediction.response, self._reading)
        score = self._score(prediction.response, reading)
        cache = score.__dict__  # equal responses share a score
        if "_counted" not in cache:
            cache["_counted"] = meaning_digest(score), bulk_key(score)
        meaning, key = cache["_counted"]
        fields = verdict_fields(reading, score.correct, lambda answer: self._score_answer(answer).correct)
        parts = prediction, context, score, meaning, fields
        make = partial(self._line, *parts)
        if key is None or self._with_structure:
            return ReadVerdict(make(), reading)
        whole_key = (key, reading.reason, fields["correctPublished"], fields["correctLenient"])
        return LazyVerdict(make, partial(self._encode_line, *parts), whole_key, meaning, reading)

    def _score(self, response: Response, reading: Reading) -> Score:
        evaluator = self._evaluator
        if self._reading.extractor == "published" and not isinstance(reading.answer, str) and response.text:
            extraction = extract_published(response.text, evaluator.shape)
            strict = extraction.strict_json
            if reading.answer is not None:
                return evaluator.score_answer(reading.answer, strict)
            rejection = Rejection("extracted", extraction.failure or "no JSON object found")
            return Score(evaluator.problem, None, rejection, strict_json=strict)
        return self._score_answer("" if reading.answer is None else reading.answer)

    def _line(self, prediction: Prediction, context: AnswerContext, score: Score, *parts: Any) -> dict[str, Any]:
        return {**line_head(prediction), **score.to_dict(), **self._tail(prediction, context, score, *parts)}

    def _encode_line(self, prediction: Prediction, context: AnswerContext, score: Score, *parts: Any) -> str:
        """Return the line as JSON; its published keys, nine tenths of it, are encoded once for equal responses."""
        cache, seconds = score.__dict__, prediction.seconds
        if "_encoded" not in cache:
            cache["_encoded"] = _encode_score(score)[1:-1]
        encode = encode_rates if not seconds or LEAST_PLAIN <= seconds <= GREATEST_PLAIN else encode_json
        tail = encode(self._tail(prediction, context, score, *parts))
        return f"{encode_rates(line_head(prediction))[:-1]}, {cache['_encoded']}, {tail[1:]}"

    def _tail(
        self,
        prediction: Prediction,
        context: AnswerContext,
        score: Score,
        meaning: str | None,
        fields: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return the fields of a line that follow the published keys."""
        tail = {
            **fields,
            **line_place(context),
            MEANING: meaning,
            "seconds": prediction.seconds,
            **funnel(score),
        }
        return tail | structure(score) if self._with_structure else tail


MAX_RATED_CELLS = round(1 / LEAST_PLAIN)  # a rate of more cells may be below LEAST_PLAIN


def _encode_score(score: Score) -> str:
    """Return the published keys as JSON."""
    splits = score.train, score.heldout
    is_rated = score.alternative is None and all(split and split.num_cells <= MAX_RATED_CELLS for split in splits)
    return (encode_rates if is_rated else encode_json)(score.to_dict())


def make_evaluator(
    item: Problem, options: ScoreOptions, reading: ReadingOptions
) -> ReplayScmEvaluator | ExtendedLineEvaluator:
    """Return the evaluator of answers to an item."""
    if item.task.extension is None:
        return ReplayScmEvaluator(item, options, reading)
    from calibrant.bench.replayscm.episodes import ExtendedLineEvaluator

    return ExtendedLineEvaluator(item, options, reading)
