"""Audits of extended items: findings as records, with the blind rows that a pool's labels or evidence name."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audits.claims import ClaimStatus
from calibrant.audits.replayscm.extended.findings import audit_extended
from calibrant.bench.pools.claim_records import FindingRecord
from calibrant.bench.replayscm.extended.labels import right_blind_rows
from calibrant.bench.replayscm.extended.scoring import is_episode
from calibrant.bench.replayscm.rows.episodes import task_evidence
from calibrant.dsl.replayscm.episode import task_class
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.replayscm.canonical import canonical_problem

BLIND = "trivial"


def finding_records(problem: Problem) -> Iterator[FindingRecord]:
    """Yield the findings about an extended item; none without gold."""
    if problem.sealed.gold is None:
        return
    for finding in audit_extended(problem):
        data: dict[str, int | float | str] = {} if finding.share is None else {"share": float(finding.share)}
        status = ClaimStatus.PROVED if finding.is_proved else ClaimStatus.OPEN
        yield FindingRecord(problem.id, finding.kind.value, status, finding.reason, data, None)
    rows = _blind_rows(problem)
    if rows:
        claim = f"right without what the item adds: {', '.join(rows)}"
        yield FindingRecord(problem.id, BLIND, ClaimStatus.PROVED, claim, {"rows": " ".join(rows)}, None)


def _blind_rows(problem: Problem) -> list[str]:
    """Return the blind rows that are right: on the worlds of a passive item; of an episode those that labels state."""
    if is_episode(problem):
        stated = problem.sealed.labels.get("blind", "none")
        return [] if stated == "none" else stated.split()
    canonical = canonical_problem(problem)  # as rows see it: which rows are kept depends on their order
    return right_blind_rows(canonical, task_class(canonical.task), task_evidence(canonical.task)) or []
