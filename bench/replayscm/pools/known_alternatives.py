"""Alternatives that somebody found: SCMs that fit the training worlds and are not gold, to be separated by hardening.

The file has a JSON object a line: {"instance": id, "mechanisms": {variable: formula}}, with "roots" where these are
hidden. Every entry is checked before it is used; one that is no alternative is refused with the reason, not skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from calibrant.bench.replayscm.audit.separations import submitted_scm
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.parse_limits import MAX_JSON_BYTES, TooLargeError, json_fault, load_json
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.submission import Rejection


@dataclass(frozen=True, slots=True)
class SuppliedAnswer:
    """One line of the file: a submission to one instance."""

    line: int
    instance: str
    answer: dict[str, Any]


@dataclass(frozen=True)
class CheckedAlternatives:
    """Alternatives of a file, checked.

    models: by the line they are on; refused: why a line is no alternative
    """

    models: dict[int, Scm]
    refused: dict[int, str]


def read_alternatives(path: Path) -> list[SuppliedAnswer]:
    """Return the alternatives of a file, skipping blank lines; `CalibrantError` names an invalid line."""
    with path.open(encoding="utf-8", errors="strict") as lines:
        # one character more than is read: `load_json` then refuses the line, and memory stays bounded
        bounded = iter(partial(lines.readline, MAX_JSON_BYTES + 1), "")
        try:
            return [_read_answer(path, number, line) for number, line in enumerate(bounded, 1) if line.strip()]
        except UnicodeDecodeError as error:
            raise CalibrantError(f"{path}: not UTF-8 at byte {error.start}") from None


def _read_answer(path: Path, number: int, line: str) -> SuppliedAnswer:
    try:
        record = load_json(line)
    except TooLargeError as error:
        raise CalibrantError(f"{path}: line {number}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise CalibrantError(f"{path}: line {number}: {json_fault(error)}") from None
    if not isinstance(record, dict) or not isinstance(record.get("instance"), str):
        raise CalibrantError(f"{path}: line {number}: not an object with 'instance' and 'mechanisms'")
    if not isinstance(record.get("mechanisms"), dict):
        shown_mechanisms = short_repr(record.get("mechanisms"))
        raise CalibrantError(
            f"{path}: line {number}: 'mechanisms' is {shown_mechanisms}, not an object of variable: formula"
        )
    return SuppliedAnswer(number, record["instance"], {k: record[k] for k in ("roots", "mechanisms") if k in record})


def checked_alternatives(problem: Problem, supplied: Iterable[SuppliedAnswer]) -> CheckedAlternatives:
    """Return the answers that are valid, train-exact, not gold's meaning and not that of an earlier one."""
    checked = CheckedAlternatives({}, {})
    for answer in supplied:
        model = submitted_scm(problem, answer.answer)
        reason = model.reason if isinstance(model, Rejection) else _not_an_alternative(problem, model, checked)
        if isinstance(model, Rejection) or reason:
            checked.refused[answer.line] = reason
        else:
            checked.models[answer.line] = model
    return checked


def _not_an_alternative(problem: Problem, model: Scm, checked: CheckedAlternatives) -> str:
    cell = first_mismatch(model, problem.task.training.worlds)
    if cell is not None:
        return f"does not fit the training worlds: {cell.variable} in world {cell.world}"
    gold = problem.sealed.gold
    if gold is not None and gold.equivalent(model):
        return "means the same as gold"
    for line, earlier in checked.models.items():
        if earlier.equivalent(model):
            return f"means the same as line {line}"
    return ""


def by_instance(supplied: Sequence[SuppliedAnswer]) -> dict[str, list[SuppliedAnswer]]:
    """Return the answers to each instance, in the order of their lines."""
    answers: dict[str, list[SuppliedAnswer]] = {}
    for answer in supplied:
        answers.setdefault(answer.instance, []).append(answer)
    return answers
