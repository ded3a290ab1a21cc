"""The options of public functions and of items that apply to CauSim."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct, field

from calibrant.bench.core.options import Against


class GenerateKeywords(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.generate`, which makes one item."""

    suite: Annotated[str | None, Meta(description="What the item is drawn from. [default: the first suite]")] = None


Versions: TypeAlias = Annotated[
    Annotated[str, Meta(pattern=r"^[0-9]{1,2}(-[0-9]{1,2})?(,[0-9]{1,2}(-[0-9]{1,2})?)*$", examples=["1-10 or 1,3,5"])]
    | None,
    Meta(description="Numbers of nodes. [default: 1-10 with programs, else 2,4,6,8,10 in turns]"),
]
Each: TypeAlias = Annotated[
    Annotated[int, Meta(ge=1, le=200)] | None,
    Meta(description="Different questions of each type about a version, as far as 200 seeds give them. [default: 1]"),
]
Types: TypeAlias = Annotated[
    Annotated[str, Meta(pattern=r"^[a-z,]+$", examples=["counterfactual,intervention"])] | None,
    Meta(description="Types of questions. [default: all four]"),
]
ScenarioOption: TypeAlias = Annotated[
    Literal["deterministic", "stochastic"] | None,
    Meta(description="Questions with one answer, or with several. [default: both]"),
]
View: TypeAlias = Annotated[
    Literal["code", "prose"] | None, Meta(description="The prompt shows the program or prose. [default: code]")
]
Prose: TypeAlias = Annotated[
    Literal["sentences", "rules"] | None,
    Meta(
        description="Style of the prose: a sentence for each equation with cases, or a uniform number and if, else if, "
        "otherwise. [default: sentences]"
    ),
]
Evidence: TypeAlias = Annotated[
    Literal["full", "minimal"] | None,
    Meta(
        description="Of counterfactuals: all variables, or one open noise variable with its node and the children of "
        "that. [default: full]"
    ),
]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]


class QuestionOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of questions about programs; None leaves the default."""

    versions: Versions = None
    per_type: Each = field(name="each", default=None)
    types: Types = None
    scenario: ScenarioOption = None
    view: View = None
    prose: Prose = None
    evidence: Evidence = None
    with_noise: Annotated[
        bool | None, Meta(description="Counterfactuals ask for the unknown noise too. [default: false]")
    ] = None
    missing: Annotated[
        Share | None,
        Meta(description="Share of the noise that deductions and interventions leave open. [default: 0.5]"),
    ] = None
    intervened: Annotated[Share | None, Meta(description="Share of the nodes that `do` sets. [default: 0.3]")] = None
    effect: Annotated[
        Literal["any", "some", "all"] | None,
        Meta(
            description="Interventions and counterfactuals of which `do` changes another variable in some, in all "
            "worlds that fit. [default: any]"
        ),
    ] = None
    domain_samples: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(description="Keep questions that the paper's pipeline answers, its noise values from so many samples."),
    ] = None
    max_combinations: Annotated[
        Annotated[int, Meta(ge=1, le=10_000_000)] | None,
        Meta(description="Keep questions whose worlds that pipeline runs within so many."),
    ] = None
    max_support: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(description="Keep questions whose answers that pipeline stores within so many."),
    ] = None


class GeneratedItems(QuestionOptions, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of the items of `calibrant generate`; None leaves the default."""

    programs: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)] | None,
        Meta(description="Programs of a topology; the pool has all their questions, in place of --per-stratum."),
    ] = None
    heldout: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)] | None,
        Meta(description="Of these so many, drawn by the seed, go to a file of their own, heldout_FILE."),
    ] = None
    fill: Annotated[
        bool | None,
        Meta(
            description="Draw further programs until there are programs x each questions of each version and type."
            " [default: false]"
        ),
    ] = None
    vocabulary: Annotated[
        Literal["nonsense", "medical"] | None, Meta(description="Words of the values. [default: nonsense]")
    ] = None


class GenerateOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant generate`."""

    report: Annotated[
        Path | None,
        Meta(
            description="With -o programs: drafts by suite, version and check, and how different the programs are, as"
            " JSON.",
            extra={"metavar": "FILE", "role": "writes"},
        ),
    ] = None


class ReportOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant report`."""

    against: Against = ()


class ConvertedItems(QuestionOptions, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of the items that `calibrant pool convert` makes of state files; None leaves the default."""

    seed: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Of the questions that are drawn. [default: 0]")
    ] = None


class CheckOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant pool check`, for programs alone."""

    nodes: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(description="Of programs: the number of nodes that each has to have."),
    ] = None
    topology: Annotated[
        str | None, Meta(description="Of programs: the topology of each.", extra={"metavar": "NAME"})
    ] = None
    reference: Annotated[
        str | None,
        Meta(description="Of programs: nihss, or a file with one program.", extra={"metavar": "nihss|FILE"}),
    ] = None
    map: Annotated[
        tuple[str, ...],
        Meta(description="Of programs: a node and what the reference calls it.", extra={"metavar": "A=B"}),
    ] = ()


OPTIONS: dict[str, type[Struct]] = {"generate": GenerateOptions, "pool check": CheckOptions, "report": ReportOptions}

KEYWORDS: dict[str, type[Struct]] = {"generate": GenerateKeywords}

ITEM_OPTIONS: dict[str, type[Struct]] = {"generate": GeneratedItems, "pool convert": ConvertedItems}
