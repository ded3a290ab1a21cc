"""Reading of answers from responses by the paper's rule, the published rule or the lenient reader; else a reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from calibrant.bench.core.attribution import NOT_ANSWERED
from calibrant.bench.core.capabilities import EVALUATOR
from calibrant.bench.core.responses import (
    CUT_OFF,
    EMPTY,
    EXCLUDED,
    ONLY_THOUGHTS,
    SAME,
    STOP_CLASSES,
    TOOL_CALL,
    UNREADABLE,
    WRONG_FORMAT,
    Answer,
    ReadAnswer,
    Reading,
    ReadingOptions,
    Response,
)
from calibrant.bench.scoring.answers import parse_answer
from calibrant.dsl.answer_text import AnswerText, ScoreReading, read_answer_text
from calibrant.dsl.json_objects import MIN_SHARED_CHARS, scans_shared, without_think_pairs
from calibrant.dsl.lenient_json import LenientAnswer, Shape, comparable, read_leniently

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark


_NOTHING = ReadAnswer(None, NOT_ANSWERED)
_NO_TEXT = AnswerText("")


class AnswerRules(NamedTuple):
    """Rules for reading responses to one item.

    read: the paper's rule, for an answer text or an object; read_published: the published rule, for a whole text
    shape: shape of an answer, for the lenient reader
    is_one_rule: whether `read_published` is `read` of the text without closed <think> pairs
    """

    read: Callable[[str | Mapping[str, Any]], ReadAnswer]
    read_published: Callable[[str], ReadAnswer]
    shape: Shape
    is_one_rule: bool = False


def item_rules(bench: Benchmark[Any], item: Any) -> AnswerRules:
    """Return the rules of an item from its benchmark's `Scorable`."""
    scoring = bench.scoring
    return AnswerRules(
        partial(scoring.read, item),
        partial(scoring.read_published, item),
        scoring.shape(item),
        not bench.has(EVALUATOR),
    )


class _SourcedAnswer(NamedTuple):
    """Answer with its source."""

    read: ReadAnswer
    source: str = ""

    @property
    def answer(self) -> Answer | None:
        return None if self.read.problem else self.read.answer


def read_response(rules: AnswerRules, response: Response, options: ReadingOptions) -> Reading:
    """Return the answer of a response, or the reason why it has none; long texts are scanned once for all rules."""
    if len(response.text or "") < MIN_SHARED_CHARS:
        return _read_response(rules, response, options)
    with scans_shared(response.text or ""):
        return _read_response(rules, response, options)


def _read_response(rules: AnswerRules, response: Response, options: ReadingOptions) -> Reading:
    notes = _stop_notes(response) if response.stop else ()
    if reason := response.stated_reason:
        warnings = () if reason in EXCLUDED else notes
        problem = reason.replace("_", " ")
        return Reading(None, reason, stop=response.stop, problem=problem, warnings=warnings, notes=response.notes)
    text = response.text or ""
    by_text, answer_text = _NOTHING, _NO_TEXT
    if response.answer is None and response.text is not None:
        answer_text = read_answer_text(text, options.thoughts)
        if answer_text.text.strip():
            by_text = rules.read(answer_text.text)
        if not by_text.problem and _is_read_alike(rules, text, answer_text, by_text):
            if response.stop_class == CUT_OFF:
                notes += ("cut_off_read",)
            gap = by_text.gap
            return Reading(by_text.answer, "", "text", response.stop, "", gap, (), notes, SAME, SAME, response.notes)
    calls = (*response.calls, *answer_text.calls)
    if calls:
        calls = tuple(filter(None, (_outside_thoughts(call, options) for call in calls)))
    by_paper = _read_by_paper(rules, response, by_text, calls)
    leniently, by_lenient = LenientAnswer(None), by_paper
    if by_paper.answer is None:
        leniently, by_lenient = _read_leniently(rules, response, answer_text, calls)
    by_published = _read_published(rules, response, by_paper, answer_text)
    chosen = {"paper": by_paper, "published": by_published, "lenient": by_lenient}[options.extractor]
    has_answer = chosen.answer is not None
    reason = "" if has_answer else _reason(response, answer_text, calls, by_lenient, options)
    problem = "" if has_answer else chosen.read.problem
    if leniently.problem and not has_answer:
        problem = f"{problem}; {leniently.problem}" if problem else leniently.problem
    if has_answer and response.stop_class == CUT_OFF:
        notes += ("cut_off_read",)
    if has_answer and chosen.source == "tool_call":
        notes += ("tool_call_read",)
    return Reading(
        chosen.read.answer,
        reason,
        (chosen if has_answer else by_lenient).source,
        response.stop,
        problem,
        chosen.read.gap,
        leniently.repairs,
        notes,
        SAME if has_answer and by_published is chosen else by_published.answer,
        SAME if has_answer and by_lenient is chosen else by_lenient.answer,
        response.notes,
    )


def _stop_notes(response: Response) -> tuple[str, ...]:
    is_known = response.stop.lower() in STOP_CLASSES or response.is_limited
    return () if is_known else ("unknown_stop",)


def _read_by_paper(
    rules: AnswerRules, response: Response, by_text: ReadAnswer, calls: tuple[str | Mapping[str, Any], ...]
) -> _SourcedAnswer:
    if response.answer is not None:
        return _SourcedAnswer(rules.read(response.answer), "object")
    if not by_text.problem:
        return _SourcedAnswer(by_text, "text")
    read = _read_calls(rules.read(_call_object(call)) for call in calls)
    return _SourcedAnswer(by_text) if read is None else _SourcedAnswer(read, "tool_call")


def _outside_thoughts(call: str | Mapping[str, Any], options: ReadingOptions) -> str | Mapping[str, Any]:
    """Return the arguments of a call without thoughts in their text; no template opens thoughts in arguments."""
    if not isinstance(call, str) or options.thoughts == "keep":
        return call
    return read_answer_text(call, "strip").text.strip()


def _call_object(call: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    """Return the arguments of a call, parsed if their text is a JSON object."""
    if not isinstance(call, str):
        return call
    try:
        value = json.loads(call)
    except (ValueError, RecursionError):
        return call
    return value if isinstance(value, dict) else call


def _is_read_alike(rules: AnswerRules, text: str, answer_text: AnswerText, by_text: ReadAnswer) -> bool:
    """Return whether all three rules certainly read the same answer, the one that the paper's rule read.

    by_text: the answer that the paper's rule read in `answer_text`
    """
    if by_text.is_plain and answer_text.text == text:
        return True
    return rules.is_one_rule and answer_text.text == without_think_pairs(text)


def _read_calls(answers: Iterable[ReadAnswer]) -> ReadAnswer | None:
    """Return the answer that was read in the calls; None if no call holds one, or if their answers differ."""
    valid = [read for read in answers if not read.problem]
    are_equal = len({comparable(read.answer) for read in valid}) == 1
    return valid[0] if are_equal else None


def _read_leniently(
    rules: AnswerRules, response: Response, answer_text: AnswerText, calls: tuple[str | Mapping[str, Any], ...]
) -> tuple[LenientAnswer, _SourcedAnswer]:
    """Return the result of the lenient reader, and its answer in the benchmark's form."""
    stated: str | Mapping[str, Any] = answer_text.text if response.answer is None else response.answer
    leniently = read_leniently(stated, rules.shape) if stated else LenientAnswer(None)
    if leniently.answer is not None:
        return leniently, _SourcedAnswer(_as_answer(rules, leniently), "text" if response.answer is None else "object")
    answers_in_calls = [read_leniently(call, rules.shape) for call in calls]
    answers = [answer for answer in answers_in_calls if answer.answer is not None]
    if len({comparable(answer.answer) for answer in answers}) == 1:
        return answers[0], _SourcedAnswer(_as_answer(rules, answers[0]), "tool_call")
    return leniently, _SourcedAnswer(ReadAnswer(None, leniently.problem or NOT_ANSWERED))


def _as_answer(rules: AnswerRules, leniently: LenientAnswer) -> ReadAnswer:
    """Return a lenient answer read by the paper's rule for objects; one that this rule refuses is scored as wrong."""
    assert leniently.answer is not None
    read = rules.read(leniently.answer)
    return ReadAnswer(read.answer or leniently.answer, "", read.problem or read.gap)


def _read_published(
    rules: AnswerRules, response: Response, by_paper: _SourcedAnswer, answer_text: AnswerText
) -> _SourcedAnswer:
    """Return the answer by the published rule, which ignores tool calls."""
    text = response.text or ""
    is_same_text = rules.is_one_rule and answer_text.text == without_think_pairs(text)
    if response.answer is not None or (is_same_text and by_paper.source != "tool_call"):
        return by_paper
    read = rules.read_published(text) if text.strip() else _NOTHING
    is_same = by_paper.source == "text" and not read.problem and read.answer == by_paper.answer
    return by_paper if is_same else _SourcedAnswer(read, "" if read.problem else "text")


def _reason(
    response: Response,
    answer_text: AnswerText,
    calls: tuple[str | Mapping[str, Any], ...],
    by_lenient: _SourcedAnswer,
    options: ReadingOptions,
) -> str:
    """Return the first of REASONS that applies to a response without an answer."""
    stop_class = response.stop_class
    if options.extractor == "paper" and by_lenient.answer is not None:
        return WRONG_FORMAT
    if calls or response.calls or stop_class == TOOL_CALL:
        return TOOL_CALL
    if stop_class == CUT_OFF or (answer_text.is_unclosed and stop_class != "itself"):
        return CUT_OFF
    if response.answer is None and not answer_text.text.strip():
        return ONLY_THOUGHTS if response.has_thoughts or answer_text.has_thoughts else EMPTY
    return UNREADABLE


def verdict_fields(
    reading: Reading, correct: bool | None, is_correct: Callable[[Answer], bool | None]
) -> dict[str, Any]:
    """Return the fields of a verdict line on how the response was read.

    correct: of the scored answer; is_correct: answer of another rule -> whether it is correct
    """
    return {
        "correctPublished": correct if reading.published is SAME else _judge(reading.published, is_correct),
        "correctLenient": correct if reading.lenient is SAME else _judge(reading.lenient, is_correct),
        "reason": reading.reason,
        "source": reading.source,
        "stop": reading.stop,
        "warnings": [*reading.warnings, *reading.notes],
        "repairs": list(reading.repairs),
    }


def _judge(answer: Answer | None, is_correct: Callable[[Answer], bool | None]) -> bool | None:
    return False if answer is None else is_correct(answer)


# --- Responses in memory: the verdict of a benchmark, with the result of reading the response -------------------------


def score_response(
    bench: Benchmark[Any], item: Any, answer: object, options: ReadingOptions, judge: Callable[[object], Any]
) -> Any:
    """Return the verdict on a text, an object, a `Response` or another JSON value.

    judge: answer text or object -> the benchmark's verdict
    """
    parsed = answer if isinstance(answer, Response) else _as_response(answer)
    if parsed is None:
        return judge(answer).with_reading(ScoreReading(EMPTY if answer is None else UNREADABLE))
    with scans_shared(parsed.text or ""):
        return _score_parsed(bench, item, parsed, options, judge)


def _score_parsed(
    bench: Benchmark[Any], item: Any, parsed: Response, options: ReadingOptions, judge: Callable[[object], Any]
) -> Any:
    rules = item_rules(bench, item)
    text = parsed.answer if parsed.answer is not None else read_answer_text(parsed.text or "", options.thoughts).text
    verdict = None
    if options.extractor == "paper" and not parsed.stated_reason:
        verdict = judge(text)
        if (
            verdict.valid and text
        ):  # an answer was read, so the other rules are applied only if their verdict is requested
            source = "text" if parsed.answer is None else "object"
            is_same = source == "object" or (rules.is_one_rule and text == without_think_pairs(parsed.text or ""))
            by_published = None if is_same else _later(rules, parsed, judge)
            return verdict.with_reading(ScoreReading("", source, (), by_published))
    reading = read_response(rules, parsed, options)
    if verdict is None or (not reading.reason and reading.source == "tool_call"):
        verdict = judge("" if reading.reason or reading.answer is None else reading.answer)
    others = (_verdict_of(answer, judge) for answer in (reading.published, reading.lenient))
    return verdict.with_reading(ScoreReading(reading.reason, reading.source, reading.repairs, *others))


def _as_response(answer: object) -> Response | None:
    value = parse_answer(answer)
    if value is None:
        return None
    return Response(value) if isinstance(value, str) else Response(answer=value)


def _verdict_of(answer: Answer | None, judge: Callable[[object], Any]) -> Callable[[], bool | None] | None:
    if answer is SAME:
        return None
    return (lambda: False) if answer is None else lambda: judge(answer).correct


def _later(rules: AnswerRules, response: Response, judge: Callable[[object], Any]) -> Callable[[], bool | None]:
    def read() -> bool | None:
        published = rules.read_published(response.text or "")
        return False if published.problem else judge(published.answer).correct

    return read
