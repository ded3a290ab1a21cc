"""What an answer's evidence decided, as tables show it, for any benchmark (audits.attribution)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bench.answers.columns import Column

if TYPE_CHECKING:
    from audits.attribution import Attribution

KEY = "attribution"  # of a record, and of a score that a table reads
KINDS = ("earned", "missed", "lucky", "short")  # of audits.attribution, which what only scores does not import


def attribution_record(found: Attribution) -> dict[str, Any]:
    """As records keep it; the number of members as text, for it has no limit."""
    return {
        "kind": str(found.kind),
        "decided": found.decided,
        "fits": found.fits,
        "members": str(found.members),
        "class": found.in_words,
    }


def _said(score: Any) -> Mapping[str, Any]:
    own = score.score if hasattr(score, "score") else score
    said = own.get(KEY)
    return said if isinstance(said, Mapping) else {}


def _kind(kind: str) -> Callable[[Any], float | None]:
    return lambda score: float(said["kind"] == kind) if (said := _said(score)) else None


def _right_given(decided: bool) -> Callable[[Any], float | None]:
    right = "earned" if decided else "lucky"

    def value(score: Any) -> float | None:
        said = _said(score)
        return float(said["kind"] == right) if said and said["decided"] is decided else None

    return value


def _flag(key: str) -> Callable[[Any], float | None]:
    """The share of answers of which it is true; an episode without an answer fits nothing."""
    return lambda score: float(said[key] is True) if (said := _said(score)) else None


ATTRIBUTION_COLUMNS = (
    *(Column(kind, kind.capitalize(), _kind(kind)) for kind in KINDS),
    Column("decided", "Decided", _flag("decided")),
    Column("right_given_decided", "Right|decided", _right_given(True), True),
    Column("right_given_undecided", "Right|undecided", _right_given(False), True),
    Column("fits", "Fits", _flag("fits")),
)
