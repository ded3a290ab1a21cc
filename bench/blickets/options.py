"""The options of public functions and of items that apply to the extended blickets; commands have only common ones."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from calibrant.bench.core.options import ThoughtsOption


class VersionSpaceOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.version_space`."""

    family: Annotated[
        Literal["condition", "told"],
        Meta(description="Detectors that behave as the item's condition states, or as far as the item reveals it."),
    ] = "condition"


class GenerateKeywords(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.generate`, which makes one item."""

    suite: Annotated[str | None, Meta(description="What the item is drawn from. [default: the first suite]")] = None


class TextEpisodeKeywords(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.text_episode`."""

    prompting: Annotated[
        Literal["base", "cg", "cg+db"],
        Meta(description="The paper's prompt: instructions, a context graph, or that with dynamic behaviours."),
    ] = "base"
    actions: Annotated[
        Literal["named", "numbered"],
        Meta(description="`numbered` lists the moves, and a reply may give the number of one."),
    ] = "named"
    thoughts: ThoughtsOption = "strip"


Positive: TypeAlias = Annotated[int, Meta(ge=1, le=1000)]


class GeneratedItems(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of the items of `calibrant generate`; None leaves what the suite has."""

    objects: Annotated[Annotated[int, Meta(ge=2, le=8)] | None, Meta(description="Number of objects.")] = None
    blickets: Annotated[Annotated[int, Meta(ge=1, le=8)] | None, Meta(description="Blickets of the first rule.")] = None
    order_length: Annotated[
        Annotated[int, Meta(ge=1, le=8)] | None, Meta(description="Ordered blickets, of suites with an order.")
    ] = None
    budget: Annotated[Positive | None, Meta(description="Moves. [default: 50, 100, 75 for 3, 4, 5 objects]")] = None
    count: Annotated[
        Literal["level", "edge"] | None,
        Meta(description="What advances the count of activations: every active reading, or becoming active."),
    ] = None
    order_reading: Annotated[
        Literal["relative", "contiguous"] | None,
        Meta(description="Whether other objects may lie between the ordered ones."),
    ] = None
    start: Annotated[
        Literal["empty", "random"] | None,
        Meta(description="The detector at the start: empty, or each object on it with probability .1."),
    ] = None
    informed: Annotated[bool | None, Meta(description="The item names its condition.")] = None
    graded: Annotated[
        bool | None, Meta(description="An ACTIVE reading tells how many blickets of the rule are on the detector.")
    ] = None
    strict_singleton: Annotated[
        bool | None, Meta(description="An answer of one blicket has to name the form that the rule is written with.")
    ] = None
    switch: Annotated[Positive | None, Meta(description="N of the first switch; later ones keep their distance.")] = (
        None
    )
    switch_by: Annotated[Literal["activations", "steps"] | None, Meta(description="What N counts.")] = None
    p: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None, Meta(description="Probability that a satisfied rule is heard.")
    ] = None
    conjunctive_share: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="Probability that the only rule of an item is conjunctive."),
    ] = None
    forced_after_switch: Annotated[
        bool | None, Meta(description="An answer is refused until the last switch has left evidence.")
    ] = None
    forced_moves: Annotated[
        Annotated[int, Meta(ge=0, le=1000)] | None, Meta(description="An answer is refused before so many moves.")
    ] = None
    series: Annotated[
        Annotated[int, Meta(ge=1, le=13)] | None, Meta(description="Items in a row that share no object name.")
    ] = None


OPTIONS: dict[str, type[Struct]] = {}

KEYWORDS: dict[str, type[Struct]] = {
    "generate": GenerateKeywords,
    "text_episode": TextEpisodeKeywords,
    "version_space": VersionSpaceOptions,
}

ITEM_OPTIONS: dict[str, type[Struct]] = {"generate": GeneratedItems}
