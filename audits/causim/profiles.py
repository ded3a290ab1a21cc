"""The error profile of a system: which share of nodes ignores `do`, breaks its mechanism, or has the wrong noise."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.question import Answer
from calibrant.dsl.causim.score import Reason
from calibrant.solvers.causim.exact import Judge

REASONS: Final[tuple[Reason, ...]] = ("ok", "do ignored", "impossible", "wrong noise")


@dataclass(frozen=True)
class Profile:
    """One level.

    answers: how many were judged; right: how many got the reward; explained: how many have a reason for every node
    nodes: number of nodes by reason, over the explained answers
    first: number of wrong explained answers by the reason of their first wrong node in topological order
    """

    level: str
    answers: int
    right: int
    explained: int
    nodes: dict[Reason, int]
    first: dict[Reason, int]


def by_version(item: CausimItem) -> str:
    """Return the usual level: type of question and number of nodes."""
    return f"{item.task.question.type}/{item.version:02d}"


def error_profiles(
    answered: Iterable[tuple[CausimItem, Answer | None]], level: Callable[[CausimItem], str] = by_version
) -> list[Profile]:
    """Return a profile for every level, sorted by its name; an answer of None counts as judged and not right."""
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    nodes: dict[str, Counter[Reason]] = defaultdict(Counter)
    first: dict[str, Counter[Reason]] = defaultdict(Counter)
    for item, answer in answered:
        name = level(item)
        totals[name]["answers"] += 1
        if answer is None:
            continue
        verdict = Judge(item.task).judge_answer(answer)
        totals[name]["right"] += verdict.reward
        if verdict.nodes is not None:
            totals[name]["explained"] += 1
            nodes[name].update(verdict.nodes.values())
            wrong = [reason for reason in verdict.nodes.values() if reason != "ok"]
            first[name].update(wrong[:1])
    return [
        Profile(
            name,
            totals[name]["answers"],
            totals[name]["right"],
            totals[name]["explained"],
            {reason: nodes[name][reason] for reason in REASONS},
            {reason: first[name][reason] for reason in REASONS[1:]},
        )
        for name in sorted(totals)
    ]
