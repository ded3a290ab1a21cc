"""The options of commands and of public functions that apply to CausaLab."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class VersionSpaceOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.version_space`."""

    bounded: Annotated[bool, Meta(description="Bases are integers from 0 to 100, as the benchmark draws them.")] = False


class GenerateKeywords(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.generate`, which makes one item."""

    suite: Annotated[str | None, Meta(description="What the item is drawn from. [default: the first suite]")] = None


class ReportOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant report`."""

    against: Annotated[
        tuple[str, ...],
        Meta(description="Compare the others with this one; may be repeated.", extra={"metavar": "SYSTEM"}),
    ] = ()


OPTIONS: dict[str, type[Struct]] = {"report": ReportOptions}

KEYWORDS: dict[str, type[Struct]] = {"generate": GenerateKeywords, "version_space": VersionSpaceOptions}
