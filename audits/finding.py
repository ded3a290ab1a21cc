"""Findings: results of audits, in one shape for every benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from calibrant.audits.claims import Certificate
from calibrant.dsl.errors import in_one_line


class ClaimStatus(StrEnum):
    """Status of a claim: shown, shown false, or neither within the budget."""

    PROVED = "proved"
    REFUTED = "refuted"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim and what is known of it.

    kind: the sort of flaw, by which a command may fail, such as `misprint`
    where: the item, table or file that it is about
    claim: one line
    data: the figures behind it, flat and ready for JSON
    certificate: what a third party can check the claim by, where there is such a thing
    """

    kind: str
    verdict: ClaimStatus
    where: str
    claim: str
    data: Mapping[str, int | float | str] = field(default_factory=dict)
    certificate: Certificate | None = None

    def __repr__(self) -> str:
        about = f"{in_one_line(self.where)[:60]}: {in_one_line(self.claim)[:80]}"
        return f"<Finding: {self.kind}, {self.verdict}, {about}>"
