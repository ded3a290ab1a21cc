"""Guide of a report through answers about detectors: classes, levels of chance, an episode in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calibrant.audits.blickets.attribution import trace_narrowing
from calibrant.audits.why import number_text
from calibrant.bench.blickets.verdict import METRICS
from calibrant.bench.core.answer_context import AnswerContext
from calibrant.bench.core.attribution import KEY, POSTERIOR
from calibrant.bench.report.overview.contract import Cost, Explanation, Levels, LevelWords, Move, Score, Words
from calibrant.bench.report.overview.sentences import class_sentence, fit_text
from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.blickets.reference import is_active
from calibrant.dsl.blickets.rule import all_rules, rule_from_json
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import in_one_line, short_repr
from calibrant.dsl.text import plural
from calibrant.solvers.blickets.exact import class_of

MAX_GUESS_OBJECTS = 12  # rules are listed
LAST_MOVES = 6
_HEADINGS = ("Move", "Action", "On the detector", "Light", "News")


class DetectorGuide:
    """Answers are rules; a draw takes the rule in force of one hypothesis that fits, all of them alike."""

    words = Words(
        items="detectors",
        hypotheses="hypotheses",
        decided="decided by its own moves",
        levels=LevelWords("a guess before any move", "a draw from the hypotheses left", "the largest share of them"),
        cost=Cost("moves", "steps"),
    )

    def is_answered(self, score: Score) -> bool:
        return bool(score["closed"] == "answered")

    def levels(self, item: BlicketItem, steps: Sequence[Step[Any]], score: Score) -> Levels:
        """Return shares of the hypotheses that fit all readings; no draw without a transcript."""
        num_objects = item.task.n
        guess = 1 / len(all_rules(num_objects)) if num_objects <= MAX_GUESS_OBJECTS else None
        if not steps:
            return Levels(guess)
        recorded = score.get(KEY) or {}
        if recorded.get("decided") is True and POSTERIOR not in recorded:
            return Levels(guess, 1.0, 1.0)  # one rule is left, and the class has the true one
        space = class_of(item)
        for narrowing in trace_narrowing(item.task, steps, space):
            space = narrowing.after
        verdicts = space.verdicts()
        total = sum(verdicts.values())
        if not total:
            return Levels(guess)
        truth = rule_from_json(score["rule_in_force"], item.task.objects).canonical
        return Levels(guess, verdicts.get(truth, 0) / total, max(verdicts.values()) / total)

    def explain(
        self,
        item: BlicketItem | None,
        context: AnswerContext,
        answer: Mapping[str, Any] | str,
        steps: Sequence[Step[Any]],
        score: Score,
    ) -> Explanation:
        recorded = score.get(KEY) or {}
        members = recorded.get("members")
        remaining = f" {fit_text(members, 'hypothesis', 'hypotheses')} its {score['steps']} moves." if members else ""
        budget = "" if item is None else f" of {item.task.budget}"
        is_right = METRICS.success.is_right(score, "")
        return Explanation(
            sentences=(class_sentence(recorded, is_right=is_right) + remaining, _reason(score)),
            response=rule_text(score["answer"]) if score["answer"] else "nothing was submitted",
            gold=rule_text(score["rule_in_force"]),
            response_note=f"after move {score['steps']}{budget}",
            gold_note="the rule in force at the end",
            chips=tuple(_chips(score)),
            verdict_note=_verdict_note(score),
            headings=_HEADINGS if item is not None and steps else (),
            moves=tuple(_last_moves(item, steps)) if item is not None and steps else (),
        )


def rule_text(rule: Mapping[str, Any]) -> str:
    """Return a rule as people type it: conjunctive A E; one that cannot be read as it is."""
    form, names = rule.get("rule"), rule.get("blickets")
    if isinstance(form, str) and isinstance(names, Sequence) and all(isinstance(name, str) for name in names):
        return in_one_line(f"{form} {' '.join(names)}")
    return json.dumps(dict(rule), ensure_ascii=False)


def _chips(score: Score) -> Iterator[tuple[str, str]]:
    yield from (("bad", in_one_line(str(fault))) for fault in score["errors"])
    if score["class"]:
        yield "", f"class: {score['class']}"


def _verdict_note(score: Score) -> str:
    parts = [plural(score["activations"], "activations")]
    if score["post_evidence"] is not None:
        parts.append(f"{score['post_evidence']} readings under the later rule")
    fits = (score.get(KEY) or {}).get("fits")
    if fits is not None:
        parts.append("the answer fits the readings" if fits else "the answer contradicts the readings")
    return "; ".join(parts)


def _reason(score: Score) -> str:
    """Return why an undecided answer was right or wrong, where the class of the episode explains it."""
    if score["class"] == "pre" and (score.get(KEY) or {}).get("decided") is False:
        return "It stopped before the switch, so the rule may still change."
    return ""


def _last_moves(item: BlicketItem, steps: Sequence[Step[Any]]) -> Iterator[Move]:
    """Yield the last steps; News compares the hypotheses before and after each."""
    first = max(0, len(steps) - LAST_MOVES)
    space, moves, seen_active = class_of(item), 0, False
    lines = []
    for narrowing in trace_narrowing(item.task, steps, space):
        step, moves = narrowing.step, narrowing.moves
        before, after = narrowing.before.count, narrowing.after.count
        lit = step.reading is not None and is_active(step.reading)
        news = (
            ""
            if step.reading is None
            else "nothing new"
            if before == after
            else f"rules out {number_text(before - after)}"
        )
        is_first = lit and not seen_active
        seen_active |= lit
        light = "" if step.reading is None else "ACTIVE" if lit else "inactive"
        placed = " ".join(in_one_line(item.task.objects[k]) for k in narrowing.placed) or "\N{EN DASH}"
        lines.append(
            Move(
                (
                    str(moves) if step.cost else "\N{EN DASH}",
                    _action(step),
                    placed,
                    light or ("refused" if step.refused else ""),
                    f"the first activation; {news}" if is_first else news,
                ),
                is_first,
            )
        )
    yield from lines[first:]


def _action(step: Step[Any]) -> str:
    ((verb, about),) = list(step.action.items())[:1] or [("nothing", "")]
    if verb == "check":
        stated = rule_text(about) if isinstance(about, Mapping) else json.dumps(about, default=str)
        return f"check {in_one_line(stated)[:120]}"
    return in_one_line(f"{verb} {about if isinstance(about, str) else short_repr(about)}")[:80]


GUIDE = DetectorGuide()
