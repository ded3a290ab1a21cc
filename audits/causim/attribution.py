"""Error profiles of systems, and the noise of the paper's printed tables.

Rows are pass@1 as printed, by number of nodes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from calibrant.audits.claims import ClaimStatus, Finding
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.question import Answer
from calibrant.dsl.causim.score import Reason
from calibrant.solvers.causim.exact import Judge

# --- The error profile of a system: which share of nodes ignores `do`, breaks its mechanism, or has the wrong noise
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


# --- Noise and rounding of the paper's printed tables -----------------------------------------------------------------
NOISE = "printed_noise"
GRAIN = "grain"


def repeated_rows(
    untrained: Sequence[str], untrained_again: Sequence[str], gains: Sequence[Sequence[str]], where: str
) -> Finding:
    """Return the distance of two prints of one untrained model on one test, beside the largest gain over it.

    untrained, untrained_again: the two rows; gains: rows of trained models in the first table
    """
    first = [float(cell) for cell in untrained]
    apart = max(abs(a - float(b)) for a, b in zip(first, untrained_again, strict=True))
    gain = max(float(cell) - base for row in gains for cell, base in zip(row, first, strict=True))
    return Finding(
        NOISE,
        ClaimStatus.PROVED,
        where,
        f"two prints of one system differ by up to {apart:.3f}; the largest gain over it is {gain:.3f}",
        {"apart": round(apart, 6), "gain": round(gain, 6)},
    )


def hundredths(rows: Mapping[str, Sequence[str]], where: str) -> Finding:
    """Return whether every cell is a multiple of .01, as means over 100 questions are."""
    cells = [cell for row in rows.values() for cell in row]
    all_coarse = all(round(float(cell) * 1000) % 10 == 0 for cell in cells)
    return Finding(
        GRAIN,
        ClaimStatus.PROVED if all_coarse else ClaimStatus.REFUTED,
        where,
        f"{'all' if all_coarse else 'not all'} of {len(cells)} cells are multiples of .01",
        {"cells": len(cells)},
    )
