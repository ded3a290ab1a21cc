"""Guide of a report through runs in the laboratory: classes of the frequency, levels of chance, a run in words."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import isnan
from typing import Any

from calibrant.audits.causalab.attribution import run_space
from calibrant.bench.causalab.verdict import METRICS
from calibrant.bench.core.answer_context import AnswerContext
from calibrant.bench.core.attribution import KEY
from calibrant.bench.report.overview.contract import Cost, Explanation, Levels, LevelWords, Move, Score, Words
from calibrant.bench.report.overview.sentences import class_sentence, fit_text
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import TOLERANCE, accurate
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import in_one_line
from calibrant.solvers.budget import BudgetSpent

LAST_STEPS = 6
MAX_VALUES = 8  # of a reading
_HEADINGS = ("Step", "Action", "Read")


class LabGuide:
    """Answers are frequencies; a draw takes the prediction of one mechanism that fits, all of them alike."""

    words = Words(
        items="laboratories",
        hypotheses="mechanisms",
        decided="decided by its own settings",
        levels=LevelWords("", "a draw from the mechanisms left", "the best single frequency for them"),
        cost=Cost("settings", "settings_used"),
    )

    def is_answered(self, score: Score) -> bool:
        return score["frequency"] is not None

    def levels(self, item: LabItem, steps: Sequence[Step[Any]], score: Score) -> Levels:
        """Return shares of the mechanisms that fit the readings; none where they are not enumerated."""
        if not steps:
            return Levels()
        try:
            verdicts: Mapping[float, int] = run_space(item, steps).verdicts()
        except BudgetSpent:
            return Levels()
        total = sum(verdicts.values())
        right = sum(number for value, number in verdicts.items() if accurate(value, item.sealed.target))
        return Levels(None, right / total, largest_share(verdicts))

    def explain(
        self,
        item: LabItem | None,
        context: AnswerContext,
        answer: Mapping[str, Any] | str,
        steps: Sequence[Step[Any]],
        score: Score,
    ) -> Explanation:
        recorded = score.get(KEY) or {}
        members = recorded.get("members")
        remaining = (
            f" {fit_text(members, 'mechanism', 'mechanisms')} its {score['settings']} settings." if members else ""
        )
        graph = recorded.get("graph") or {}
        dialled = score["frequency"]
        is_right = METRICS.success.is_right(score, "")
        return Explanation(
            sentences=(class_sentence(recorded, is_right=is_right) + remaining, _graph_sentence(graph)),
            response="nothing was dialled"
            if dialled is None
            else f"frequency {dialled:g}\n{_hypothesis(answer)}".strip(),
            gold="" if item is None else _gold(item),
            response_note=f"after {score['settings']} settings"
            + ("" if item is None else f" of {item.task.allowance}"),
            gold_note="the reactor crystal's frequency, and the edges of the mechanism",
            chips=(
                ("good", "graph right")
                if score["graph_correct"] is True
                else ("bad", f"graph wrong, SHD {score['shd']}"),
                ("", f"edge F1 {score['all_edge_f1']:.3f}"),
            ),
            verdict_note="A frequency counts within 5.",
            headings=_HEADINGS if steps else (),
            moves=tuple(_last_steps(steps)),
        )


def largest_share(verdicts: Mapping[float, int]) -> float:
    """Return the largest share of members that one frequency is right for: a sweep over the sorted predictions.

    An answer is right for predictions less than TOLERANCE away, hence for those in an open window of twice that.
    """
    values = sorted(value for value in verdicts if not isnan(value))
    before = [0, *accumulate(verdicts[value] for value in values)]
    best, total = 0, sum(verdicts.values())
    for first, value in enumerate(values):
        end = bisect_right(values, value + 2 * TOLERANCE)
        while end > first and values[end - 1] - value >= 2 * TOLERANCE:
            end -= 1  # the window is open
        best = max(best, before[end] - before[first])
    return best / total


def _graph_sentence(graph: Mapping[str, Any]) -> str:
    if not graph:
        return ""
    return "The graph was decided too." if graph.get("decided") else "The graph was not decided."


def _hypothesis(answer: Mapping[str, Any] | str) -> str:
    hypothesis = answer.get("hypothesis") if isinstance(answer, Mapping) else None
    edges = hypothesis.get("edges") if isinstance(hypothesis, Mapping) else None
    if not isinstance(edges, list):
        return "" if isinstance(answer, Mapping) else answer
    return "\n".join(in_one_line(_edge(edge))[:80] for edge in edges)


def _edge(edge: Any) -> str:
    if isinstance(edge, Mapping):
        return f"{edge.get('from')} \N{RIGHTWARDS ARROW} {edge.get('to')}"
    return json.dumps(edge, default=str)


def _gold(item: LabItem) -> str:
    edges = "\n".join(f"{parent} \N{RIGHTWARDS ARROW} {child}" for parent, child in sorted(item.sealed.mechanism.edges))
    return in_one_line(f"frequency {item.sealed.target:g}") + (f"\n{edges}" if edges else "")


def _last_steps(steps: Sequence[Step[Any]]) -> Iterator[Move]:
    first = max(0, len(steps) - LAST_STEPS)
    for number, step in enumerate(steps[first:], first + 1):
        action = ", ".join(f"{key} {_short(value)}" for key, value in step.action.items() if key != "hypothesis")
        reading = step.reading if isinstance(step.reading, Mapping) else {}
        text = ", ".join(f"{key} {_short(value)}" for key, value in list(reading.items())[:MAX_VALUES])
        is_active = reading.get("activated") is True
        yield Move((str(number), in_one_line(action)[:160], in_one_line(text or step.refused)[:240]), is_active)


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return (
        str(value)
        if isinstance(value, str | int)
        else "its hypothesis"
        if isinstance(value, Mapping)
        else "\N{HORIZONTAL ELLIPSIS}"
    )


GUIDE = LabGuide()
