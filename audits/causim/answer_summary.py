"""Summary of an item's answer set, computed once and within a limit of work."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Final

from calibrant.dsl.causim.item import CausimItem
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.causim.exact import MAX_STATES, AnswerSet
from calibrant.solvers.outcome import Found

MAX_WORK: Final = 300_000_000  # entries of products, some thousands more for each: a few seconds
UNCOUNTED: Final = f"its answers could not all be counted within {MAX_STATES} beginnings and {MAX_WORK} table entries"


@dataclass(frozen=True)
class AnswerSummary:
    """Size and properties of an answer set.

    size: number of right answers, None where they could not all be counted; min_size: a lower bound of it
    effect: as `AnswerSet.effect`; copy: as `AnswerSet.copy`; not_checked: which of these could not be worked out
    """

    size: int | None
    min_size: int
    effect: tuple[bool, bool] | None
    copy: bool | None
    not_checked: tuple[str, ...]


_last: list[tuple[CausimItem, AnswerSummary]] = []


def summarize_answers(item: CausimItem) -> AnswerSummary:
    """Summarize an item's answers; cached for the last item, which checks and findings both ask about."""
    if not _last or _last[0][0] is not item:
        _last[:] = [(item, _summarize(item))]
    return _last[0][1]


def _summarize(item: CausimItem) -> AnswerSummary:
    model, question, work = item.task.model, item.task.question, Budget(MAX_WORK)
    members = AnswerSet(model, question, work)
    effect, copy, not_checked = None, None, []
    try:
        effect = members.effect
    except BudgetSpent:
        not_checked.append("effect")
    try:
        copy = members.copy
    except BudgetSpent:
        not_checked.append("copy")
    size = members.size()
    if isinstance(size, Found):
        return AnswerSummary(size.value, size.value, effect, copy, tuple(not_checked))
    min_size = 0
    try:
        for _ in islice(AnswerSet(model, question, Budget(MAX_WORK // 10)).answers(), item.labels.size + 1):
            min_size += 1
    except BudgetSpent:
        pass
    return AnswerSummary(None, min_size, effect, copy, ("size", *not_checked))
