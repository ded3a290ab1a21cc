"""Audits as a plain text table, and the classes that verdicts are about."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bench.audit_records import AuditRecord, ClassCount
from bench.table_text import aligned
from dsl.errors import CalibrantError, shown

MAX_CLASS = 6
LONGEST = 9  # digits of a count that is written in full
_CLASS = re.compile(r"(?:k|parents<=)([1-6])")


def gate_class(text: str, *, headline: int) -> int:
    """The bound of functional parents that `ambiguous[:CLASS]` names; CLASS is kN or parents<=N, N from 1 to 6."""
    condition, colon, named = text.partition(":")
    found = _CLASS.fullmatch(named)
    if condition != "ambiguous" or (colon and not found):
        known = f"ambiguous, ambiguous:k4 or 'ambiguous:parents<=4', with 1 to {MAX_CLASS} parents"
        raise CalibrantError(f"--fail-on {shown(text)}: it has to be {known}")
    return int(found[1]) if found else headline


def short_count(members: str) -> str:
    """A count in full, or its first three digits and the power of ten; truncated, not rounded."""
    return members if len(members) <= LONGEST else f"{members[0]}.{members[1:3]}e{len(members) - 1}"


def verdict(record: AuditRecord, max_parents: int) -> str:
    """unique | ambiguous | empty (no member in the class) | why there are no findings."""
    if record.findings is None:
        return record.outcome
    members = record.findings.members(max_parents)
    return "unique" if members == 1 else "ambiguous" if members else "empty"


def heldout_share(counted: ClassCount) -> float | None:
    """Share of the members that replay the held-out worlds; None where there is nothing to share out."""
    if counted.heldout_exact is None or counted.members == "0":
        return None
    return int(counted.heldout_exact) / int(counted.members)


def share_text(share: float | None) -> str:
    return "-" if share is None else "0" if share == 0 else "1" if share == 1 else f"{share:.3g}"


def audits_text(records: Sequence[AuditRecord], headline: int) -> str:
    """One row per instance, then what the verdicts are."""
    bounds = next(([c.max_parents for c in r.findings.classes] for r in records if r.findings), [])
    headings = ["Instance", "Setting", "Vars", "Worlds", *(f"k<={k}" for k in bounds), "HeldoutExact", "Verdict"]
    rows = [_row(record, bounds, headline) for record in records]
    return "\n".join([aligned(headings, rows), "", summary(records, headline)])


def _row(record: AuditRecord, bounds: Sequence[int], headline: int) -> list[str]:
    found = record.findings
    if found is None:
        return [record.instance, record.setting, *["-"] * (len(bounds) + 3), verdict(record, headline)]
    counts = [short_count(found.counted(k).members) for k in bounds]
    share = share_text(heldout_share(found.counted(headline)))
    sizes = [str(found.num_variables), str(found.num_worlds)]
    return [record.instance, record.setting, *sizes, *counts, share, verdict(record, headline)]


def summary(records: Sequence[AuditRecord], max_parents: int) -> str:
    """How many instances have which verdict in a class, in one line."""
    verdicts = [verdict(record, max_parents) for record in records]
    kinds = ("unique", "ambiguous", "empty", "out_of_budget", "crashed")
    parts = [f"{verdicts.count(kind)} {kind}" for kind in kinds if kind in verdicts]
    return f"functional parents <= {max_parents}: {', '.join(parts) or 'no instances'}, of {len(records)} instances"
