"""Pages of questions in studies: Likert scales, choices, numbers and texts; recorded, not scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from calibrant.bench.core.words import WordsError
from calibrant.dsl.errors import CalibrantError, short_repr

MAX_TEXT_CHARS = 4_000
MAX_QUESTIONS = 100


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One question of a page."""

    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="name of its column in exports")]
    text: Annotated[str, Meta(min_length=1, max_length=2_000, description="the question")]
    kind: Annotated[Literal["likert", "choice", "number", "text"], Meta(description="form of its answer")]
    options: Annotated[list[str], Meta(max_length=50, description="of a choice")] = []
    points: Annotated[int, Meta(ge=2, le=11, description="of a Likert scale")] = 5
    low: Annotated[str, Meta(max_length=200, description="label of the lowest point")] = ""
    high: Annotated[str, Meta(max_length=200, description="label of the highest point")] = ""
    optional: Annotated[bool, Meta(description="it may be left empty")] = False


class QuestionPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of questions."""

    question: Annotated[list[Question], Meta(min_length=1, max_length=MAX_QUESTIONS)]
    title: str = "Questions"


def check_page(page: QuestionPage, file: str) -> list[dict[str, Any]]:
    """Return the questions of a page, ready for JSON; `CalibrantError` names the file and the question."""
    names = [question.id for question in page.question]
    for question in page.question:
        if names.count(question.id) > 1:
            raise CalibrantError(f"{file}: two questions have the id {short_repr(question.id)}")
        if question.kind == "choice" and len(set(question.options)) < 2:
            raise CalibrantError(f"{file}: question {question.id}: a choice needs two different options or more")
    return [_with_scale(question) for question in page.question]


def _with_scale(question: Question) -> dict[str, Any]:
    fields = dict(msgspec.to_builtins(question))
    return fields | ({"points": question.points} if question.kind == "likert" else {})


def check_answers(questions: Sequence[Mapping[str, Any]], answers: object) -> dict[str, Any]:
    """Return the answers to a page; `WordsError` names the question that lacks one, or has none of the form."""
    if not isinstance(answers, Mapping):
        raise WordsError("answers are an object by question")
    checked: dict[str, Any] = {}
    for question in questions:
        value = answers.get(question["id"])
        if value in (None, ""):
            if not question.get("optional"):
                raise WordsError(f"please answer: {question['text']}")
            continue
        checked[question["id"]] = _check_value(question, value)
    return checked


def _check_value(question: Mapping[str, Any], value: object) -> Any:
    match question["kind"]:
        case "likert":
            points = question["points"]
            if type(value) is not int or not 1 <= value <= points:
                raise WordsError(f"{question['text']}: a number from 1 to {points}")
        case "choice":
            if value not in question["options"]:
                raise WordsError(f"{question['text']}: one of {', '.join(question['options'])}")
        case "number":
            if type(value) not in (int, float) or value != value or abs(float(str(value))) == float("inf"):
                raise WordsError(f"{question['text']}: a number")
        case _:
            if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS:
                raise WordsError(f"{question['text']}: a text of at most {MAX_TEXT_CHARS:,} characters")
    return value
