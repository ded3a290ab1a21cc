"""What graded episodes show about the measures themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from calibrant.audits.finding import Finding, Standing
from calibrant.dsl.blickets.grading import Exposed, Grade, Split


def episode_findings(grades: Collection[Grade], where: str) -> Iterator[Finding]:
    """All findings of this module about a set of episodes of one system."""
    yield from evidence_at_n(grades, where)
    yield from self_selected(grades, where)


def evidence_at_n(grades: Collection[Grade], where: str) -> Iterator[Finding]:
    """Return whether exactly N activations mean that nothing was read under the new rule: INACTIVE readings do not
    count.
    """
    at_n = [found for found in grades if found.exposed is Exposed.EXACTLY_N]
    if not at_n:
        return
    seen = sum(found.split is Split.SEEN for found in at_n)
    claim = f"{seen} of {len(at_n)} episodes of class exactly-N hold readings under the new rule"
    standing = Standing.PROVED if seen else Standing.REFUTED
    yield Finding("evidence-at-n", standing, where, claim, {"exactly_n": len(at_n), "seen": seen})


def self_selected(grades: Collection[Grade], where: str) -> Iterator[Finding]:
    """The accuracy over the episodes that went on after the switch, beside that over all that reached it."""
    switched = [found for found in grades if found.exposed in (Exposed.EXACTLY_N, Exposed.RE)]
    eligible = [found for found in switched if found.exposed is Exposed.RE]
    if not eligible:
        return
    right, right_of_all = (sum(bool(found.correct) for found in some) for some in (eligible, switched))
    rate, rate_of_all = right / len(eligible), right_of_all / len(switched)
    yield Finding(
        "self-selected",
        Standing.PROVED if rate != rate_of_all else Standing.REFUTED,
        where,
        f"{right} of {len(eligible)} ({rate:.1%}) among reasoning-eligible episodes, chosen by the system's going on; "
        f"{right_of_all} of {len(switched)} ({rate_of_all:.1%}) among all that switched",
        {"re": len(eligible), "re_correct": right, "switched": len(switched), "switched_correct": right_of_all},
    )
