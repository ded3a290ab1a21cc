"""The options of public functions that apply to logic models; commands have only common ones."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class GenerateKeywords(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.generate`, which makes one item."""

    suite: Annotated[str | None, Meta(description="What the item is drawn from. [default: the first suite]")] = None


OPTIONS: dict[str, type[Struct]] = {}

KEYWORDS: dict[str, type[Struct]] = {"generate": GenerateKeywords}
