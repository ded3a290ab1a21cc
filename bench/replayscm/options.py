"""The options of commands and of public functions that apply to ReplaySCM."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from calibrant.bench.core.options import Against, ItemForm, NetworkNames, ThoughtsOption

MAX_STATES = 2_000_000_000  # solvers.outcome.LEAST_SCM_STATES, which help does not import; a test compares them


class AuditOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant audit`."""

    max_parents: Annotated[
        Annotated[int, Meta(ge=1, le=6)] | None,
        Meta(description="The class that verdicts are about. [default: the smallest with gold, at least 4]"),
    ] = None
    nested_roots: Annotated[
        bool, Meta(description="Hidden-roots: only roots with columns nested over shared units.")
    ] = False
    max_size: Annotated[
        Annotated[int, Meta(ge=1, le=12)] | None,
        Meta(description="Cap on formula size of the certificates' class."),
    ] = None
    runs: Annotated[
        tuple[Path, ...],
        Meta(
            description="Compare HeldoutExact of a run's answers with the ceiling of their items.",
            extra={"metavar": "DIR", "role": "reads", "flags": ["--runs", "--run"]},
        ),
    ] = ()
    details: Annotated[
        bool, Meta(description="Print everything that was found in each instance.", extra={"panel": "View"})
    ] = False
    ceilings: Annotated[
        bool,
        Meta(
            description="Print how right the best possible answers are, and whether that is calibrated.",
            extra={"panel": "View"},
        ),
    ] = False


Setting: TypeAlias = Annotated[
    Literal["ordered", "block", "hidden-order", "hidden-roots"],
    Meta(description="What is disclosed.", extra={"panel": "Items"}),
]
MaxAdded: TypeAlias = Annotated[
    Annotated[int, Meta(ge=0)] | None,
    Meta(
        description="Worlds added against local alternatives. [default: the published number]", extra={"panel": "Items"}
    ),
]


class GenerateOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant generate`."""

    setting: Setting = "hidden-order"
    form: ItemForm = "published"
    names: NetworkNames = None
    max_added: MaxAdded = None
    audits: Annotated[
        Path | None,
        Meta(
            description="The audit of each instance. [default: beside the pool]",
            extra={"metavar": "FILE", "role": "writes"},
        ),
    ] = None


class GenerateKeywords(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.generate`, which makes one item."""

    setting: Setting = "hidden-order"
    max_added: MaxAdded = None
    stratum: Annotated[str, Meta(description="Kind of SCM and worlds.")] = "hs_n6_easy_calibration"


class HardenOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant harden`."""

    mode: Annotated[
        Literal["extra-worlds", "cex"], Meta(description="A few worlds for new patterns, or until one SCM is left.")
    ] = "cex"
    seed: Annotated[int, Meta(description="The same seed gives the same bytes.")] = 0
    goal: Annotated[
        Literal["one-member", "heldout-agreement", "no-discovered"],
        Meta(
            description="When cex is done: one SCM of the class is left, all replay the held-out worlds, or no search"
            " discovers another one, as in the paper."
        ),
    ] = "one-member"
    searches: Annotated[
        str, Meta(description="Methods of `run` that no-discovered asks.", extra={"metavar": "NAMES"})
    ] = "staged-exact-search,bnlearn+dsl"
    seeds: Annotated[
        Annotated[int, Meta(ge=1)], Meta(description="Runs of each of these that has a seed: 0, 1, and so on.")
    ] = 50
    max_parents: Annotated[
        Annotated[int, Meta(ge=1, le=6)] | None,
        Meta(description="Class that is counted. [default: gold's, at least 4]"),
    ] = None
    alternatives: Annotated[
        Path | None,
        Meta(
            description="JSON lines of instance and mechanisms: SCMs that cex has to separate.",
            extra={"metavar": "FILE", "role": "reads"},
        ),
    ] = None


class SeparateOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant separate`."""

    members: Annotated[
        Annotated[int, Meta(ge=2)],
        Meta(description="Compare the N smallest members.", extra={"metavar": "N"}),
    ] = 2
    max_parents: Annotated[Annotated[int, Meta(ge=1, le=4)], Meta(description="Class of the members.")] = 4
    targets: Annotated[
        Annotated[int, Meta(ge=1, le=3)], Meta(description="Also sets of up to so many targets at once.")
    ] = 1


class SolveOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.solve`."""

    max_parents: Annotated[
        Annotated[int, Meta(ge=1, le=6)] | None,
        Meta(description="Variables that a mechanism may mention. [default: 5, 4 for an alternative]"),
    ] = None
    nested_roots: Annotated[
        bool | None,
        Meta(description="Hidden-roots: only roots with nested columns. [default: where units are shared]"),
    ] = None
    states: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Functions that a search may compare; None: all.")
    ] = MAX_STATES
    engine: Annotated[
        Literal["auto", "subset_dp", "sat", "smt", "integer_program"],
        Meta(description="What chooses parent sets (docs/engines.md); the last has a clock."),
    ] = "auto"
    seconds: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="Wall seconds of the integer program.")
    ] = None
    assume: Annotated[str | None, Meta(description="Lines that the SCM has to satisfy (docs/engines.md).")] = None


class VersionSpaceOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.version_space`."""

    max_parents: Annotated[Annotated[int, Meta(ge=1, le=6)], Meta(description="Functional parents of a mechanism.")] = 4
    max_size: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="Cap on formula size of a mechanism.")] = (
        None
    )
    nested_roots: Annotated[bool, Meta(description="Hidden-roots: only roots with nested columns.")] = False
    terms: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Terms of a sum, at most. [default: the limits of the counting method]"),
    ] = None


class TextEpisodeKeywords(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant.text_episode`."""

    thoughts: ThoughtsOption = "strip"


class ScoreOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant score`."""

    structure: Annotated[bool, Meta(description="Also compare functional parents and local functions with gold.")] = (
        False
    )
    regret: Annotated[
        bool, Meta(description="Also compare every world of an episode with the best one; under noise seconds a world.")
    ] = False


class TableOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant table`."""

    means: Annotated[
        Literal["paper", "published"],
        Meta(
            description="HeldoutWorld and TrainWorld: leave invalid submissions out, as the published tables do,"
            " or count them as 0, as the paper's text says."
        ),
    ] = "published"


class ReportOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant report`."""

    means: Annotated[
        Literal["paper", "published"],
        Meta(description="Invalid submissions in HeldoutWorld: left out, or 0. See `calibrant table`."),
    ] = "published"
    against: Against = ()
    audits: Annotated[
        tuple[Path, ...],
        Meta(
            description="Folder of `calibrant audit --out`, for success against ambiguity.",
            extra={"metavar": "DIR", "role": "reads"},
        ),
    ] = ()
    cohort: Annotated[
        tuple[str, ...],
        Meta(
            description="Compare answers to this pool's file with those to the first; may be repeated.",
            extra={"metavar": "NAME=POOL", "panel": "Input"},
        ),
    ] = ()


class ConvertOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant pool convert`."""

    drop_results: Annotated[bool, Meta(description="Leave out the model results that official files embed.")] = False


class CheckOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant pool check`."""

    official: Annotated[bool, Meta(description="Fail for files that are not byte for byte official ones.")] = False
    fields: Annotated[bool, Meta(description="List the fields that were not read.")] = False


OPTIONS: dict[str, type[Struct]] = {
    "audit": AuditOptions,
    "generate": GenerateOptions,
    "harden": HardenOptions,
    "separate": SeparateOptions,
    "score": ScoreOptions,
    "table": TableOptions,
    "report": ReportOptions,
    "pool convert": ConvertOptions,
    "pool check": CheckOptions,
}

KEYWORDS: dict[str, type[Struct]] = {
    "generate": GenerateKeywords,
    "solve": SolveOptions,
    "text_episode": TextEpisodeKeywords,
    "version_space": VersionSpaceOptions,
}


class NetworkItems(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of generated items."""

    networks: Annotated[
        str | None, Meta(description="Folder of network files whose functions are the mechanisms; with --form network.")
    ] = None


ITEM_OPTIONS: dict[str, type[Struct]] = {"generate": NetworkItems}
