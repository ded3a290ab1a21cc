"""Guide of a report through answers about programs: classes, levels of chance, an answer in words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from calibrant.bench.causim.verdict import METRICS, is_answered
from calibrant.bench.core.answer_context import AnswerContext
from calibrant.bench.core.attribution import KEY
from calibrant.bench.report.overview.contract import Cost, Explanation, Levels, LevelWords, Score, Words
from calibrant.bench.report.overview.sentences import answer_text, class_sentence
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import plain
from calibrant.dsl.errors import in_one_line
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.solution import work_solution
from calibrant.solvers.outcome import Found

_WHY = {
    "no_object": "There is no JSON object in the response.",
    "wrong_keys": "The object does not have exactly the required keys.",
    "wrong_answer": "No world that fits gives this answer.",
}


class ProgramGuide:
    """Answers are assignments. Every world that fits gives a right one, so a draw from them is always right."""

    words = Words(
        items="questions",
        hypotheses="worlds",
        decided="with one right answer",
        levels=LevelWords(guess="a guess from the domains of the values"),
        cost=Cost("seconds", ""),
    )

    def is_answered(self, score: Score) -> bool:
        return is_answered(score)

    def levels(self, item: CausimItem, steps: Sequence[Any], score: Score) -> Levels:
        """Return the share of right answers among all assignments of domain values to the required keys."""
        model, question = item.task.model, item.task.question
        size = AnswerSet(model, question).size()
        if not isinstance(size, Found):
            return Levels()
        domains = {node.name: local.domain for node, local in zip(model.nodes, model.system, strict=True)}
        domains |= {node.noise: node.support for node in model.nodes}
        return Levels(float(size.value / prod(len(domains[key]) for key in question.required_keys(model))))

    def explain(
        self,
        item: CausimItem | None,
        context: AnswerContext,
        answer: Mapping[str, Any] | str,
        steps: Sequence[Any],
        score: Score,
    ) -> Explanation:
        recorded = score.get(KEY) or {}
        sentences = [class_sentence(recorded, is_right=METRICS.success.is_right(score, ""))]
        if item is not None and item.labels.size > 1:
            sentences.append(f"{item.labels.size} answers are right; any of them counts.")
        nodes = score.get("nodes") or {}
        wrong = {name: reason for name, reason in nodes.items() if reason != "ok"}
        chips = [("bad", f"{name}: {reason}") for name, reason in list(wrong.items())[:4]]
        flags = [name for name in ("trivial", "copyable", "vacuous") if score.get(name) is True]
        return Explanation(
            sentences=tuple(sentences),
            response=_values_text(answer) if isinstance(answer, Mapping) and answer else answer_text(answer),
            gold="" if item is None else _gold(item),
            response_note="" if item is None else f"{item.task.question.type}, {item.task.scenario}",
            gold_note="a right answer",
            chips=(*chips, *(("warn", name) for name in flags)),
            verdict_note=_WHY.get(score.get("why") or "", ""),
        )


def _gold(item: CausimItem) -> str:
    outcome = work_solution(item.task.model, item.task.question)
    return _values_text(plain(outcome.value.answer)) if isinstance(outcome, Found) else ""


def _values_text(answer: Mapping[str, Any]) -> str:
    """Return an answer as people type it, a line for each variable."""
    texts = ((name, v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)) for name, v in answer.items())
    return "\n".join(in_one_line(f"{name} = {text}") for name, text in texts)


GUIDE = ProgramGuide()


def expect(item: CausimItem, steps: Sequence[Any], score: Score) -> dict[str, float | None]:
    """Return the chance of a value drawn for each required key; the answer of any world that fits is right."""
    guess = GUIDE.levels(item, steps, score).guess
    return {"uniform": None, "draw": guess, "best": None if guess is None else 1.0}
