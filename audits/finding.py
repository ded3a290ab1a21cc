"""What an audit says, the same shape for every benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Standing(StrEnum):
    """What is known of a claim: shown, shown false, or neither within the budget."""

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
    """

    kind: str
    verdict: Standing
    where: str
    claim: str
    data: Mapping[str, int | float | str] = field(default_factory=dict)
