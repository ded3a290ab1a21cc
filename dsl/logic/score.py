"""Verdicts on answers: a model, or a table with the probability that each held-out readout is 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.lenient_json import Shape, Shaped, StatedLines, shaped_keys
from calibrant.dsl.logic import item as logic_item
from calibrant.dsl.logic import reference

MAX_CLAUSES = 10_000
Table: TypeAlias = tuple[tuple[float, ...], ...]  # probability of 1 by question, then readout
LogicAnswer: TypeAlias = logic_item.Model | Table


class AnswerError(CalibrantError):
    """An answer is neither a model of the class nor a table of probabilities."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Score of an answer under the published keys.

    heldout_exact: every held-out cell (question and readout) is right; heldout_accuracy: share of right cells
    brier: mean of (probability - truth) squared; a model has the probabilities 0 and 1
    optimal: the model has the least misfit of the class; fits: it is a member of the family
    edge_f1: F1 of the model's edges and those of the true model
    error: why the answer is invalid, empty for a valid one

    A cell is right if its probability is on the side of the truth; 0.5 is on neither side. heldout_exact,
    heldout_accuracy and brier are None without questions; optimal, fits and edge_f1 are None of a table.
    """

    heldout_exact: bool | None
    heldout_accuracy: float | None
    brier: float | None
    optimal: bool | None = None
    fits: bool | None = None
    edge_f1: float | None = None
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the fields of the verdict."""
        return {
            "heldout_exact": self.heldout_exact,
            "heldout_accuracy": self.heldout_accuracy,
            "brier": self.brier,
            "optimal": self.optimal,
            "fits": self.fits,
            "edge_f1": self.edge_f1,
            "error": self.error,
        }


def parse_answer(answer: object, task: logic_item.Task) -> LogicAnswer:
    """Return the answer of a JSON object: `{"model": [clause, ...]}` or `{"probabilities": [[number, ...], ...]}`.

    `AnswerError` states what is invalid and what is allowed.
    """
    if not isinstance(answer, Mapping) or set(answer) not in ({"model"}, {"probabilities"}):
        raise AnswerError("an answer is an object with one key, model or probabilities")
    if "model" in answer:
        return _parse_model(answer["model"], task)
    return _parse_table(answer["probabilities"], task)


def _parse_model(texts: object, task: logic_item.Task) -> logic_item.Model:
    if not isinstance(texts, list) or len(texts) > MAX_CLAUSES or not all(isinstance(text, str) for text in texts):
        raise AnswerError("model: a list of clauses such as v<-a+!b")
    try:
        model = frozenset(map(logic_item.parse_clause, texts))
    except CalibrantError as error:
        raise AnswerError(f"model: {error}") from None
    rule = reference.class_violation(model, task)
    if rule:
        raise AnswerError(f"model: {rule}")
    return model


def _parse_table(rows: object, task: logic_item.Task) -> Table:
    num_rows, width = len(task.questions), len(task.setup.readouts)
    if not isinstance(rows, list) or len(rows) != num_rows:
        raise AnswerError(f"probabilities: a list of {num_rows} rows, one a question")
    table = []
    for row in rows:
        if not isinstance(row, list) or len(row) != width:
            raise AnswerError(f"probabilities: a row has {width} numbers, one a readout")
        for entry in row:
            if isinstance(entry, bool) or not isinstance(entry, int | float) or not 0 <= entry <= 1:
                raise AnswerError(f"probabilities: {short_repr(entry)}; a number from 0 to 1")
        table.append(tuple(float(entry) for entry in row))
    return tuple(table)


def is_stated(answer: Mapping[str, Any]) -> bool:
    """Return whether an object has the key of an answer alone, with a list as its value, valid or not."""
    return len(answer) == 1 and isinstance(answer.get("model", answer.get("probabilities")), list)


def _shaped_answer(stated: Mapping[str, Any]) -> Shaped | None:
    shaped = shaped_keys(stated, {"model": "model", "probabilities": "probabilities"}, drops=True)
    return shaped if shaped is not None and is_stated(shaped.answer) else None


def _answer_of_lines(lines: StatedLines) -> dict[str, Any] | None:
    answer = lines.values({"model": "model", "probabilities": "probabilities"})
    return answer if answer is not None and is_stated(answer) and next(iter(answer.values())) else None


SHAPE = Shape(_shaped_answer, _answer_of_lines)


def answer_json(answer: LogicAnswer) -> dict[str, Any]:
    """Return an answer as the JSON object that `parse_answer` reads."""
    if isinstance(answer, frozenset):
        return {"model": logic_item.model_texts(answer)}
    return {"probabilities": [list(row) for row in answer]}


def grade(item: logic_item.LogicItem, answer: object) -> Verdict:
    """Return the verdict on a decoded JSON answer; `LogicError` for an item without a sealed truth."""
    if item.sealed is None:
        raise logic_item.LogicError(f"item {short_repr(item.id)} has no sealed truth to score an answer by")
    try:
        parsed = parse_answer(answer, item.task)
    except AnswerError as error:
        return invalid_verdict(item, str(error))
    return grade_answer(item.task, item.sealed, parsed)


def invalid_verdict(item: logic_item.LogicItem, error: str) -> Verdict:
    """Return the verdict on an invalid answer: no cell is right."""
    asked_for = bool(item.task.questions)
    return Verdict(False if asked_for else None, 0.0 if asked_for else None, 1.0 if asked_for else None, error=error)


def grade_answer(task: logic_item.Task, sealed: logic_item.Sealed, answer: LogicAnswer) -> Verdict:
    """Return the verdict on a valid answer."""
    if not isinstance(answer, frozenset):
        return Verdict(*_heldout(answer, sealed.answers))
    table = tuple(tuple(map(float, reference.predict(answer, task.setup, x))) for x in task.questions)
    misfit, size = reference.misfit(answer, task), logic_item.model_size(answer)
    misfit_limit = logic_item.fit_limit(sealed.optimum[0], task.tolerance.fit)
    extra = task.tolerance.size
    is_within = (misfit_limit is None or misfit <= misfit_limit) and (
        extra is None or size <= sealed.optimum[1] + extra
    )
    return Verdict(
        *_heldout(table, sealed.answers),
        optimal=misfit == sealed.optimum[0],
        fits=is_within,
        edge_f1=_edge_f1(answer, sealed.gold),
    )


def _heldout(table: Table, answers: Sequence[str]) -> tuple[bool | None, float | None, float | None]:
    cells = [(p, int(a)) for row, text in zip(table, answers, strict=True) for p, a in zip(row, text, strict=True)]
    if not cells:
        return None, None, None
    right = sum((p > 0.5) if a else (p < 0.5) for p, a in cells)
    return right == len(cells), right / len(cells), math.fsum((p - a) ** 2 for p, a in cells) / len(cells)


def _edge_f1(model: logic_item.Model, gold: logic_item.Model) -> float:
    edges, truth = ({edge for clause in m for edge in clause.edges} for m in (model, gold))
    return 2 * len(edges & truth) / (len(edges) + len(truth)) if edges or truth else 1.0
