"""Checklist of a release: every question with its answer, and for proofs and measurements the file that shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from calibrant.bench.suites.digests import sha256_of
from calibrant.bench.suites.release.measures import PoolMeasures
from calibrant.bench.suites.release.questions import NOT_STATED, QUESTIONS, Kind, Question
from calibrant.dsl.errors import CalibrantError


class Evidence(msgspec.Struct, frozen=True):
    """A file of the release; digest: its SHA-256, of a file beside private gold under a salt, which is opened later."""

    file: str
    digest: str
    salted: bool = False


class Answer(msgspec.Struct, frozen=True):
    """A question with its answer."""

    source: str
    question: str
    kind: Kind
    answer: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class ReleaseFacts:
    """Facts of a release that answers are made of.

    folder: with `public` and `gold`; measures: by pool; num_certificates: those in the index, all verified
    items: files of the public items
    digest: of a file of the release, as evidence states it
    """

    folder: Path
    measures: Mapping[str, PoolMeasures]
    num_certificates: int
    items: Sequence[str]
    statements: Mapping[str, str]
    is_private: bool
    digest: Callable[[str], Evidence]


MEASURES, CERTIFICATES = "public/measures.json", "gold/certificates.json"
LOCK, COMMITMENTS = "gold/suite.lock", "public/commitments.json"


def answer_questions(facts: ReleaseFacts) -> list[Answer]:
    """Answer all questions; `CalibrantError` for a proof without a file that can be checked."""
    answers = [_answer(question, facts) for question in QUESTIONS]
    for answer in answers:
        require_checkable(answer, facts.folder)
    return answers


def require_checkable(answer: Answer, folder: Path) -> None:
    """Raise `CalibrantError` if a proof or a measurement has no file, or one that is not there or differs."""
    if answer.kind in ("statement", "not applicable"):
        return
    if not answer.evidence:
        raise CalibrantError(f"checklist: {answer.source}: a {answer.kind} answer without a file that shows it")
    for evidence in answer.evidence:
        path = folder / evidence.file
        if not path.is_file():
            raise CalibrantError(f"checklist: {answer.source}: {evidence.file} is not there")
        if not evidence.salted and sha256_of(path) != evidence.digest:
            raise CalibrantError(f"checklist: {answer.source}: {evidence.file} has another digest")


def _answer(question: Question, facts: ReleaseFacts) -> Answer:
    source, text, kind, key = question
    if kind == "statement":
        return Answer(source, text, kind, facts.statements.get(key, NOT_STATED))
    if kind == "not applicable":
        return Answer(source, text, kind, "Answers are structured; no free text is judged.")
    text_of, files_of = _ANSWERS[key]
    words = text_of(facts)
    if words is None:
        return Answer(source, text, "statement", facts.statements.get(key, NOT_STATED))
    return Answer(source, text, kind, words, tuple(map(facts.digest, files_of(facts))))


def _total(facts: ReleaseFacts, name: str) -> int:
    return sum(getattr(measures, name) for measures in facts.measures.values())


def _by_pool(facts: ReleaseFacts, text: Callable[[PoolMeasures], str]) -> str:
    return "; ".join(f"{name}: {text(measures)}" for name, measures in facts.measures.items())


def _rows(measures: PoolMeasures) -> str:
    return ", ".join(f"{row} {values.rate:.3f}" for row, values in measures.rows.items()) or "no row"


def _levels(measures: PoolMeasures) -> str:
    parts = [
        f"{row} {values.rate:.3f} beside {values.chance:.3f} of a draw from what fits its evidence"
        for row, values in measures.rows.items()
        if values.chance is not None
    ]
    return ", ".join(parts) or "not computed"


def _guessing(facts: ReleaseFacts) -> str | None:
    has_levels = any(row.chance is not None for m in facts.measures.values() for row in m.rows.values())
    return _by_pool(facts, _levels) + "." if has_levels else None


def _states(measures: PoolMeasures) -> str:
    return ", ".join(f"{number} {state}" for state, number in measures.states.items())


def _repeatable(facts: ReleaseFacts) -> str | None:
    rows = [row for measures in facts.measures.values() for row in measures.rows.values()]
    equal = sum(row.scored_twice_equal for row in rows)
    return f"{equal} of {len(rows)} rows scored the same again, episodes replayed afresh." if rows else None


def _has_rows(facts: ReleaseFacts, words: str) -> str | None:
    return words if any(measures.rows for measures in facts.measures.values()) else None


def _certificates(facts: ReleaseFacts) -> list[str]:
    return [CERTIFICATES]


def _truth(facts: ReleaseFacts) -> str | None:
    if not facts.num_certificates:
        return None
    return (
        f"{_total(facts, 'num_sound')} of {_total(facts, 'num_items')} items pass `calibrant pool check`; "
        f"{_total(facts, 'num_certificates')} certificates were verified by plain counting. "
        "Answers are executed: all that the benchmark's definition counts as right are accepted."
    )


def _open(facts: ReleaseFacts) -> str | None:
    return f"Items by what the shown evidence leaves: {_by_pool(facts, _states)}." if facts.num_certificates else None


def _measures(facts: ReleaseFacts) -> list[str]:
    return [MEASURES]


def _commitment(facts: ReleaseFacts) -> str:
    if facts.is_private:
        return (
            "Gold is private; a salted commitment to each item and their Merkle root are published. "
            "A canary marks items."
        )
    return "Gold is public; a canary marks items. Commitments bind it to this version, they hide nothing."


_ANSWERS: Mapping[str, tuple[Callable[[ReleaseFacts], str | None], Callable[[ReleaseFacts], list[str]]]] = {
    "parsing": (
        lambda facts: (
            f"Of {_total(facts, 'num_gold')} gold answers {_total(facts, 'num_text_equal')} score the same inside a "
            "fenced block after a sentence."
        ),
        _measures,
    ),
    "listing": (
        lambda facts: (
            "Several answers to an item count by their mean: gold beside an empty answer scores more than one half on "
            f"{_total(facts, 'num_listed_right')} of {_total(facts, 'num_gold')} items."
        ),
        _measures,
    ),
    "guessing": (_guessing, _measures),
    "repeatable": (_repeatable, _measures),
    "truth": (_truth, _certificates),
    "gaming": (
        lambda facts: (
            f"An empty answer is right on {_total(facts, 'num_empty_right')} of {_total(facts, 'num_items')} items."
        ),
        _measures,
    ),
    "lock": (lambda facts: "Specification and lock pin every input and version.", lambda facts: [LOCK]),
    "isolation": (
        lambda facts: "The public folder holds public columns alone: no record, no answer, no seed.",
        lambda facts: list(facts.items),
    ),
    "solvable": (
        lambda facts: (
            "Each item's gold fits what is shown: "
            f"{_total(facts, 'num_sound')} of {_total(facts, 'num_items')} are sound."
        ),
        _measures,
    ),
    "oracle": (
        lambda facts: f"Gold scores right on {_total(facts, 'num_gold_right')} of {_total(facts, 'num_gold')} items.",
        _measures,
    ),
    "forgeries": (
        lambda facts: (
            f"{_total(facts, 'num_forged_refused')} of {_total(facts, 'num_forged')} changed answers of rows"
            " were refused."
            if _total(facts, "num_forged")
            else None
        ),
        _measures,
    ),
    "commitment": (_commitment, lambda facts: [COMMITMENTS]),
    "open": (_open, _certificates),
    "intervals": (lambda facts: _has_rows(facts, "Rates on boards have 95 % intervals over items."), _measures),
    "rows": (lambda facts: _has_rows(facts, _by_pool(facts, _rows) + "."), _measures),
}
