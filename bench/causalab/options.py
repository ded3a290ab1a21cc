"""The options of commands, of public functions and of items that apply to CausaLab."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from calibrant.bench.core.options import Against, ThoughtsOption


class VersionSpaceOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.version_space`."""

    bounded: Annotated[bool, Meta(description="Bases are integers from 0 to 100, as the benchmark draws them.")] = False


class GenerateKeywords(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.generate`, which makes one item."""

    suite: Annotated[str | None, Meta(description="What the item is drawn from. [default: the first suite]")] = None


Records: TypeAlias = Annotated[
    Annotated[int, Meta(ge=0, le=64)] | None, Meta(description="Earlier crystals that are shown. [default: 2]")
]
Allowance: TypeAlias = Annotated[
    Annotated[int, Meta(ge=0, le=1000)] | None,
    Meta(description="Settings that may be made. [default: 4(k-1) for k nodes]"),
]
Reading: TypeAlias = Annotated[
    Literal["value", "base"] | None,
    Meta(description="A setting gives the final value of a property, or its base. [default: value]"),
]
Tries: TypeAlias = Annotated[
    Annotated[int, Meta(ge=1, le=1000)] | None, Meta(description="Tries of the reactor. [default: 3]")
]
View: TypeAlias = Annotated[
    Literal["all", "roots", "hide-one"] | None,
    Meta(
        description="Properties of the reactor crystal that are shown: all, the parentless ancestors of the "
        "frequency, or all but one parent of it. [default: all]"
    ),
]
Fixed: TypeAlias = Annotated[
    Annotated[int, Meta(ge=0, le=8)] | None, Meta(description="Properties that cannot be set. [default: 0]")
]


class GeneratedItems(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of the items of `calibrant generate`; None leaves what the suite has."""

    records: Records = None
    allowance: Allowance = None
    reading: Reading = None
    tries: Tries = None
    view: View = None
    fixed: Fixed = None
    weights: Annotated[
        Literal["small", "hundredths"] | None,
        Meta(description="Weights 1, 2, 3, or multiples of 0.01 up to 3. [default: small]"),
    ] = None
    noise: Annotated[
        Annotated[int, Meta(ge=0, le=8)] | None,
        Meta(description="Nodes that the hidden noise of a setting affects. [default: the suite's]"),
    ] = None
    noise_frequency: Annotated[
        bool | None, Meta(description="Whether the frequency is one of them. [default: the suite's]")
    ] = None
    noise_scale: Annotated[
        Annotated[float, Meta(gt=0, le=1000)] | None,
        Meta(description="The noise is -s, 0 or s. [default: the suite's]"),
    ] = None
    noise_draw: Annotated[
        Literal["shared", "independent", "observed"] | None,
        Meta(
            description="One draw for all affected nodes, one for each, or one for each that is not passed on to its "
            "children. [default: shared]"
        ),
    ] = None
    trace: Annotated[
        Literal["turns", "low-imec"] | None,
        Meta(
            description="Settings of a static trace: the properties in turns, or those that leave the fewest graphs "
            "to an ideal experiment. [default: turns]"
        ),
    ] = None


class ConvertedItems(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of the items that `calibrant pool convert` draws on a released suite; None leaves the default."""

    seed: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Of the crystals and the noise. [default: 0]")
    ] = None
    records: Records = None
    released: Annotated[
        bool | None,
        Meta(description="The records of every released episode, which one seed draws for all. [default: false]"),
    ] = None
    allowance: Annotated[
        Annotated[int, Meta(ge=0, le=1000)] | None,
        Meta(description="Settings that may be made. [default: the budget of the file]"),
    ] = None
    reading: Reading = None
    tries: Tries = None
    view: View = None
    fixed: Fixed = None


class TextEpisodeKeywords(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.text_episode`."""

    schema: Annotated[
        Literal["free", "paper"],
        Meta(description="`paper` returns a hypothesis that breaks the paper's schema, at most twice in a row."),
    ] = "free"
    verify: Annotated[
        Literal["never", "once"],
        Meta(description="`once` returns the first answer whose equation misses readings, with these readings."),
    ] = "never"
    aid: Annotated[
        str, Meta(description="Shows what fits after each reading: `none`, `members`, or a file of released configs.")
    ] = "none"
    carry: Annotated[bool, Meta(description="Repeat the last notebook and hypothesis.")] = False
    thoughts: ThoughtsOption = "strip"


class ReportOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant report`."""

    against: Against = ()


class TableOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant table`."""

    trajectory: Annotated[
        bool, Meta(description="Means over runs by step, of the graphs stated and the mechanisms left; needs --pool.")
    ] = False


OPTIONS: dict[str, type[Struct]] = {"report": ReportOptions, "table": TableOptions}

KEYWORDS: dict[str, type[Struct]] = {
    "generate": GenerateKeywords,
    "text_episode": TextEpisodeKeywords,
    "version_space": VersionSpaceOptions,
}

ITEM_OPTIONS: dict[str, type[Struct]] = {"generate": GeneratedItems, "pool convert": ConvertedItems}
