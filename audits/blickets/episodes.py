"""Findings about the benchmark's measures, from graded episodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from calibrant.audits.claims import ClaimStatus, Finding
from calibrant.dsl.blickets.score import Exposed, Grade, Split


def episode_findings(grades: Collection[Grade], where: str) -> Iterator[Finding]:
    """Yield all findings of this module about a set of episodes of one system."""
    yield from evidence_at_n(grades, where)
    yield from self_selected(grades, where)


def evidence_at_n(grades: Collection[Grade], where: str) -> Iterator[Finding]:
    """Yield whether episodes of exactly N activations hold readings under the new rule.

    Activations are counted, so INACTIVE readings after the switch do not move an episode out of this class.
    """
    at_n = [grade for grade in grades if grade.exposed is Exposed.EXACTLY_N]
    if not at_n:
        return
    num_seen = sum(grade.split is Split.SEEN for grade in at_n)
    claim = f"{num_seen} of {len(at_n)} episodes of class exactly-N hold readings under the new rule"
    status = ClaimStatus.PROVED if num_seen else ClaimStatus.REFUTED
    yield Finding("evidence-at-n", status, where, claim, {"exactly_n": len(at_n), "seen": num_seen})


def self_selected(grades: Collection[Grade], where: str) -> Iterator[Finding]:
    """Yield the accuracy over the episodes that went on after the switch, beside that over all that reached it."""
    switched = [grade for grade in grades if grade.exposed in (Exposed.EXACTLY_N, Exposed.RE)]
    eligible = [grade for grade in switched if grade.exposed is Exposed.RE]
    if not eligible:
        return
    right, right_of_all = (sum(bool(grade.correct) for grade in group) for group in (eligible, switched))
    rate, rate_of_all = right / len(eligible), right_of_all / len(switched)
    yield Finding(
        "self-selected",
        ClaimStatus.PROVED if rate != rate_of_all else ClaimStatus.REFUTED,
        where,
        f"{right} of {len(eligible)} ({rate:.1%}) among reasoning-eligible episodes, chosen by the system's going on; "
        f"{right_of_all} of {len(switched)} ({rate_of_all:.1%}) among all that switched",
        {"re": len(eligible), "re_correct": right, "switched": len(switched), "switched_correct": right_of_all},
    )
