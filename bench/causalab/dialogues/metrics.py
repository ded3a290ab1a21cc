"""Fields of a verdict about the replies of a system, and their metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from calibrant.bench.core.metrics import Metric, figure_if_recorded


class LedgerFields(Struct, forbid_unknown_fields=True):
    """Entries that the replies copied into `past_data`, beside the readings of the episode."""

    entries: Annotated[int, Meta(description="of `past_data`, over all replies")]
    right_share: Annotated[float | None, Meta(description="entries that are a reading; null without entries")]
    altered_share: Annotated[float | None, Meta(description="entries that agree with one in most of their numbers")]
    invented_share: Annotated[float | None, Meta(description="the other entries")]
    missing: Annotated[int | None, Meta(description="readings that the last notebook lacks; null without a notebook")]
    dropped: Annotated[int, Meta(description="entries that a notebook had and the next one lacks")]
    announced: Annotated[int, Meta(description="replies with an experiment")]
    unannounced: Annotated[int, Meta(description="of them, those whose action is another one")]


class DialogueFields(Struct, forbid_unknown_fields=True):
    """Totals of the replies that were played."""

    replies: Annotated[int, Meta(description="number of replies")]
    unread: Annotated[int, Meta(description="replies without an action")]
    malformed: Annotated[int, Meta(description="replies whose hypothesis broke the paper's schema a third time")]
    unread_share: Annotated[float | None, Meta(description="share of the replies; null without any")]
    malformed_share: Annotated[float | None, Meta(description="share of the replies; null without any")]
    returned: Annotated[int, Meta(description="replies that came back for their schema")]
    verified: Annotated[bool, Meta(description="whether one came back for readings that its equation misses")]
    ledger: Annotated[LedgerFields, Meta(description="entries of `past_data` beside the readings")]


DIALOGUE = (
    Annotated[DialogueFields | UnsetType, Meta(description="totals of the replies; absent where the line has none")],
    UNSET,
)


def _of_replies(*keys: str) -> Callable[[Mapping[str, Any]], float | None]:
    """Return a reader of a number of the dialogue; None for answers that came without replies."""
    return figure_if_recorded("dialogue", *keys)


REPLIES = (
    Metric("unread", "Unread", "share of replies without an action", _of_replies("unread_share")),
    Metric(
        "malformed",
        "Malformed",
        "share of replies whose hypothesis broke the schema a third time",
        _of_replies("malformed_share"),
    ),
    Metric("returned", "Returned", "replies that came back for it", _of_replies("returned"), decimals=2),
    Metric(
        "entries_right", "Right", "entries of past_data that are a reading", _of_replies("ledger", "right_share"), True
    ),
    Metric(
        "entries_altered",
        "Altered",
        "entries that agree with a reading in most numbers, not in all",
        _of_replies("ledger", "altered_share"),
        True,
    ),
    Metric("entries_invented", "Invented", "the other entries", _of_replies("ledger", "invented_share"), True),
    Metric(
        "readings_missing",
        "Missing",
        "readings that the last notebook lacks",
        _of_replies("ledger", "missing"),
        True,
        2,
    ),
    Metric(
        "entries_dropped", "Dropped", "entries that the next notebook lacks", _of_replies("ledger", "dropped"), True, 2
    ),
    Metric(
        "unannounced",
        "Unannounced",
        "actions that are not the announced experiment",
        _of_replies("ledger", "unannounced"),
        decimals=2,
    ),
)
