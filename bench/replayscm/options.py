"""The options of commands that apply to ReplaySCM."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct


class AuditOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of `calibrant audit`."""

    out: Annotated[
        Path | None,
        Meta(
            description="Folder of the records; an earlier audit resumes.",
            extra={"metavar": "DIR", "role": "writes", "inside": ["audits.jsonl", "audits.lock"], "goes_on": True},
        ),
    ] = None
    max_parents: Annotated[
        Annotated[int, Meta(ge=1, le=6)] | None,
        Meta(description="The class that verdicts are about. [default: the smallest with gold, at least 4]"),
    ] = None
    nested_roots: Annotated[
        bool, Meta(description="Hidden-roots: only roots with columns nested over shared units.")
    ] = False
    html: Annotated[
        Path | None,
        Meta(description="Write a report to open offline.", extra={"metavar": "FILE", "role": "writes"}),
    ] = None
    max_size: Annotated[
        Annotated[int, Meta(ge=1, le=12)] | None,
        Meta(description="Cap on formula size of the certificates' class."),
    ] = None
    runs: Annotated[
        tuple[Path, ...],
        Meta(
            description="Show how far answers of a run stay below.",
            extra={"metavar": "DIR", "role": "reads", "flags": ["--runs", "--run"]},
        ),
    ] = ()
    budget: Annotated[
        Annotated[float, Meta(ge=0.001)] | None,
        Meta(description="Wall seconds per instance; then its process is killed."),
    ] = None
    details: Annotated[bool, Meta(description="Print everything that was found in each instance.")] = False


class GenerateOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of `calibrant generate`."""

    setting: Annotated[
        Literal["ordered", "block", "hidden-order", "hidden-roots"], Meta(description="What is disclosed.")
    ] = "hidden-order"
    max_added: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Worlds added against local alternatives. [default: the published number]"),
    ] = None
    audits: Annotated[
        Path | None,
        Meta(
            description="The audit of each instance. [default: beside the pool]",
            extra={"metavar": "FILE", "role": "writes"},
        ),
    ] = None


class HardenOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of `calibrant harden`."""

    mode: Annotated[
        Literal["extra-worlds", "cex"], Meta(description="A few worlds for new patterns, or until one SCM is left.")
    ] = "cex"
    seed: Annotated[int, Meta(description="The same seed gives the same bytes.")] = 0
    goal: Annotated[
        Literal["one-member", "heldout-agreement"],
        Meta(description="When cex is done: one SCM of the class is left, or all replay the held-out worlds."),
    ] = "one-member"
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


class ScoreOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of `calibrant score`."""

    extractor: Annotated[Literal["paper", "published"], Meta(description="How a response text becomes an answer.")] = (
        "paper"
    )
    structure: Annotated[bool, Meta(description="Also compare functional parents and local functions with gold.")] = (
        False
    )


class TableOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of `calibrant table`."""

    means: Annotated[
        Literal["published", "paper"],
        Meta(
            description="HeldoutWorld and TrainWorld: leave invalid submissions out, as the published tables do,"
            " or count them as 0, as the paper's text says."
        ),
    ] = "published"


class ReportOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of `calibrant report`."""

    means: Annotated[
        Literal["published", "paper"],
        Meta(description="Invalid submissions in HeldoutWorld: left out, or 0. See `calibrant table`."),
    ] = "published"
    against: Annotated[
        tuple[str, ...],
        Meta(description="Compare the others with this one; may be repeated.", extra={"metavar": "SYSTEM"}),
    ] = ()
    audits: Annotated[
        tuple[Path, ...],
        Meta(
            description="Folder of `calibrant audit --out`, for success against ambiguity.",
            extra={"metavar": "DIR", "role": "reads"},
        ),
    ] = ()


class ConvertOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of `calibrant pool convert`."""

    drop_results: Annotated[bool, Meta(description="Leave out the model results that official files embed.")] = False


class CheckOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of `calibrant pool check`."""

    official: Annotated[bool, Meta(description="Fail for files that are not byte for byte official ones.")] = False
    fields: Annotated[bool, Meta(description="List the fields that were not read.")] = False


OPTIONS: dict[str, type[Struct]] = {
    "audit": AuditOptions,
    "generate": GenerateOptions,
    "harden": HardenOptions,
    "score": ScoreOptions,
    "table": TableOptions,
    "report": ReportOptions,
    "pool convert": ConvertOptions,
    "pool check": CheckOptions,
}
