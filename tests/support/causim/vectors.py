"""The shared vectors of CauSim, read once: programs as models, questions with what is expected of them."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import msgspec

from calibrant.dsl.causim.bundle import Bundle, load_bundle
from calibrant.dsl.causim.model import Model, compact
from calibrant.dsl.causim.question import Question, QuestionRecord, question_from_record
from tests.support.shared import shared_records

PROGRAMS = 20  # fewer would mean that the file is not what it is taken for
QUESTIONS = 100


@cache
def vectors(kind: str) -> list[dict[str, Any]]:
    """Return the vectors of one kind, in order; skips the test where they are not to be found."""
    return list(shared_records("vectors_dev.jsonl", part="causim", kind=kind))


@cache
def bundles() -> dict[str, Bundle]:
    return {record["id"]: msgspec.convert(record["bundle"], Bundle) for record in vectors("program")}


@cache
def models() -> dict[str, Model]:
    return {name: load_bundle(bundle) for name, bundle in bundles().items()}


@cache
def questions() -> dict[str, tuple[Model, Question]]:
    found = {}
    for record in vectors("question"):
        given = QuestionRecord(*(record[field] for field in QuestionRecord.__struct_fields__))
        model, with_noise = models()[record["program"]], record["options"].get("with_noise", False)
        found[record["id"]] = model, question_from_record(given, record["type"], model, with_noise=with_noise)
    return found


def printed(fraction: Fraction) -> str:
    """Return a fraction as the vectors write it."""
    return f"{fraction.numerator}/{fraction.denominator}"


def answer_texts(record: dict[str, Any]) -> list[str]:
    """Return the expected answers of a question vector, as texts."""
    return [compact(answer) for answer in record["expect"]["answers"]]
