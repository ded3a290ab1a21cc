"""Guide of a report through ReplaySCM answers: classes of held-out replay, levels of chance, an answer in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calibrant.audits.replayscm.attribution import heldout_ceiling
from calibrant.bench.core.attribution import KEY
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.replayscm.verdict import has_heldout, is_right
from calibrant.bench.report.overview.contract import Cost, Explanation, Levels, LevelWords, Score, Words
from calibrant.bench.report.overview.sentences import class_sentence, fit_text
from calibrant.dsl.episode import ActionError
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.item import Problem

MAX_CEILING_COUNTS = 64  # of an item, 20 ms: mean width of the bounds 0.03; 16 counts give 0.11


class ReplayGuide:
    """Answers are SCMs; a draw takes one of the SCMs that fit, all of them alike."""

    words = Words(
        items="items",
        hypotheses="SCMs",
        decided="decided by the evidence shown",
        levels=LevelWords("", "a draw from the SCMs that fit", "the largest share that replay alike"),
        cost=Cost("formula nodes", "candidate_size"),
        is_resampled=True,
    )

    def is_answered(self, score: Score) -> bool:
        return score.get("valid") is True

    def levels(self, item: Problem, steps: Sequence[Any], score: Score) -> Levels:
        """Return the share of SCMs that fit, in the class of attribution, which replay the held-out worlds.

        It is exact. The ceiling is exact where few counts prove it, else two certified bounds.
        """
        from calibrant.bench.replayscm.scoring import ATTRIBUTE

        if item.task.extension is not None:
            return Levels()  # their class is weighed by noise: shares of members are no chances
        decision = ATTRIBUTE.decide_heldout(item)
        if decision is None or decision.agreement is None:
            return Levels()
        low, high = map(float, heldout_ceiling(item, decision.agreement, MAX_CEILING_COUNTS))
        return Levels(None, float(decision.agreement), low, None if low == high else high)

    def explain(
        self,
        item: Problem | None,
        context: AnswerContext,
        answer: Mapping[str, Any] | str,
        steps: Sequence[Any],
        score: Score,
    ) -> Explanation:
        recorded = score.get(KEY) or {}
        members = recorded.get("members")
        stated, differs = _read_answer(item, answer)
        remaining = f" {fit_text(members, 'SCM', 'SCMs')} the training worlds ({recorded['class']})." if members else ""
        return Explanation(
            sentences=(
                _class_sentence(recorded, score, context.setting) + remaining,
                _failure(score),
            ),
            response=_answer_text(stated),
            differs=differs,
            response_note="read from the text of the response" if stated is not answer else "",
            gold="" if item is None or item.sealed.gold is None else _formulas(item.sealed.gold.mechanisms),
            gold_note="the latent SCM",
            chips=tuple(_chips(score)),
            verdict_note=_worlds(score),
        )


def _formulas(mechanisms: Mapping[str, Any]) -> str:
    return "\n".join(f"{name} = {render(formula)}" for name, formula in sorted(mechanisms.items()))


def _read_answer(
    item: Problem | None, answer: Mapping[str, Any] | str
) -> tuple[Mapping[str, Any] | str, tuple[str, ...]]:
    """Return an answer in the form of gold where it can be read, and the mechanisms that are other functions there."""
    if item is None or item.sealed.gold is None or item.task.extension is not None:
        return answer, ()
    from calibrant.bench.replayscm.scoring import SCORING
    from calibrant.dsl.replayscm.score import Evaluator

    try:
        stated = SCORING.extract(item, answer)
    except ActionError:
        return answer, ()
    model, gold = Evaluator(item).score_answer(stated).model, item.sealed.gold
    if model is None:
        return answer, ()
    functions = model.local_functions
    differs = tuple(
        name
        for name in {**gold.mechanisms, **model.mechanisms}
        if functions.get(name) != gold.local_functions.get(name)
    )
    return (stated if isinstance(answer, str) else answer), differs


def _answer_text(answer: Mapping[str, Any] | str) -> str:
    if isinstance(answer, str):
        return answer
    mechanisms = answer.get("mechanisms")
    if isinstance(mechanisms, Mapping) and all(isinstance(text, str) for text in mechanisms.values()):
        others = {key: value for key, value in answer.items() if key != "mechanisms"}
        lines = [f"{name} = {text}" for name, text in sorted(mechanisms.items())]
        return "\n".join([*lines, *([json.dumps(others, ensure_ascii=False)] if others else [])])
    return json.dumps(dict(answer), ensure_ascii=False)


def _failure(score: Score) -> str:
    reason = score.get("failureExplanation") or score.get("parseError")
    return in_one_line(str(reason))[:300] if reason and score.get("valid") is not True else ""


def _class_sentence(recorded: Mapping[str, Any], score: Score, setting: str) -> str:
    if not has_heldout(score, setting):
        return "The answer is neither right nor wrong: nothing is held out."
    return class_sentence(recorded, is_right=is_right(score, setting))


def _chips(score: Score) -> Iterator[tuple[str, str]]:
    if score.get("valid") is not True:
        yield "bad", "not valid"
        return
    yield ("good", "train-exact") if score.get("trainExact") is True else ("bad", "not train-exact")
    if has_heldout(score, ""):
        yield ("good", "held-out exact") if score.get("heldoutExact") is True else ("bad", "not held-out exact")


def _worlds(score: Score) -> str:
    parts = []
    for split, name in (("train", "training"), ("heldout", "held-out")):
        exact, number = score.get(f"{split}WorldExactCount"), score.get(f"{split}Worlds")
        if isinstance(exact, int) and isinstance(number, int):
            parts.append(f"{exact} of {number} {name} worlds replayed exactly")
    return "; ".join(parts)


GUIDE = ReplayGuide()
