"""The options of public functions that apply to logic models; commands have only common ones."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class GenerateKeywords(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.generate`, which makes one item."""

    suite: Annotated[str | None, Meta(description="What the item is drawn from. [default: the first suite]")] = None


class GeneratedItems(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of the items of `calibrant generate`; None leaves what the suite has."""

    nodes: Annotated[
        Annotated[int, Meta(ge=2, le=60)] | None,
        Meta(description="Nodes beside the stimuli. [default: the suite's]"),
    ] = None
    layers: Annotated[
        Annotated[int, Meta(ge=1, le=60)] | None,
        Meta(description="Layers that they are spread over. [default: the suite's]"),
    ] = None
    in_degree: Annotated[
        Annotated[int, Meta(ge=1, le=5)] | None,
        Meta(description="Most edges from earlier layers into a node. [default: the suite's]"),
    ] = None
    stimuli: Annotated[
        Annotated[int, Meta(ge=1, le=12)] | None,
        Meta(description="Stimuli. [default: the suite's]"),
    ] = None
    readouts: Annotated[
        Annotated[int, Meta(ge=1, le=60)] | None,
        Meta(description="Measured nodes. [default: the suite's]"),
    ] = None
    inhibitors: Annotated[
        Annotated[int, Meta(ge=0, le=60)] | None,
        Meta(description="Nodes that experiments may inhibit. [default: the suite's]"),
    ] = None
    experiments: Annotated[
        Annotated[int, Meta(ge=1, le=500)] | None,
        Meta(description="Measured experiments. [default: the suite's]"),
    ] = None
    questions: Annotated[
        Annotated[int, Meta(ge=0, le=500)] | None,
        Meta(description="Held-out experiments. [default: the suite's]"),
    ] = None
    noise: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="Standard deviation of values. [default: the suite's]"),
    ] = None
    missing: Annotated[
        Annotated[float, Meta(ge=0, le=0.9)] | None,
        Meta(description="Share of values that are not measured. [default: the suite's]"),
    ] = None
    loops: Annotated[
        Annotated[int, Meta(ge=0, le=30)] | None,
        Meta(description="Edges that close a cycle. [default: the suite's]"),
    ] = None


OPTIONS: dict[str, type[Struct]] = {}

KEYWORDS: dict[str, type[Struct]] = {"generate": GenerateKeywords}

ITEM_OPTIONS: dict[str, type[Struct]] = {"generate": GeneratedItems}
