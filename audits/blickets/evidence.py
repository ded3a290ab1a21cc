"""Evidence of a certificate about an item: the native record without id and labels."""

from __future__ import annotations

from typing import Any

import msgspec

from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.blickets.records import record_from_item


def evidence_of(item: BlicketItem) -> dict[str, Any]:
    """Return the item as JSON, with its sealed part: these claims are about the mechanism."""
    record: dict[str, Any] = msgspec.to_builtins(record_from_item(item))
    return {key: value for key, value in record.items() if key not in ("id", "labels")}
