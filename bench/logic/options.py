"""The options of commands, public functions and items that apply to logic models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from calibrant.bench.core.options import ItemForm, NetworkNames

MAX_MEMBERS = 1_000_000  # that are listed or drawn


class DataOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of a prior network with measurements: how they are read, the class of models and its limits."""

    time: Annotated[
        str | None,
        Meta(description="Times of the measurements, 30 or 10,30. [default: the only one]", extra={"metavar": "T"}),
    ] = None
    sign: Annotated[
        Literal["both"] | None,
        Meta(description="Of a prior without signs: make two edges of each. [default: refuse it]"),
    ] = None
    cell_line: Annotated[
        str | None, Meta(description="Only rows of this cell line; for files of several.", extra={"metavar": "NAME"})
    ] = None
    normalise: Annotated[
        Literal["minmax", "max", "clip", "none"] | None,
        Meta(
            description="Scale the readings of each readout: to least 0 and greatest 1, by the greatest, or cut to 0"
            " and 1. [default: refuse readings outside 0 to 1]"
        ),
    ] = None
    fit: Annotated[
        str,
        Meta(
            description="Misfit of a model at most (1 + F) times the least: 0 for optimal models alone, 0.1 for 10 %"
            " more, any for no limit.",
            extra={"metavar": "F|any"},
        ),
    ] = "0"
    size: Annotated[
        str,
        Meta(
            description="Literals of a model beyond those of the least one: 0 for the simplest, any for no limit.",
            extra={"metavar": "N|any"},
        ),
    ] = "0"
    max_clause: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Literals of a clause at most. [default: no limit]")
    ] = None
    no_compress: Annotated[
        bool,
        Meta(
            description="Do not merge nodes that are neither clamped nor measured.", extra={"flags": ["--no-compress"]}
        ),
    ] = False
    rounding: Annotated[
        Literal["round", "floor", "ceil"], Meta(description="How values times --factor become integers.")
    ] = "round"
    factor: Annotated[Annotated[int, Meta(ge=1, le=1_000_000)], Meta(description="See --rounding.")] = 100


class FamilyOptions(DataOptions, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant family`: what is asked of the models that fit."""

    max_stimuli: Annotated[
        Annotated[int, Meta(ge=0)], Meta(description="Stimuli of a candidate experiment at most.")
    ] = 2
    max_inhibitors: Annotated[
        Annotated[int, Meta(ge=0)], Meta(description="Inhibitors of a candidate experiment at most.")
    ] = 1
    predict: Annotated[
        Path | None,
        Meta(
            description="Candidates in a file: setup.json, or CSV of TR columns.",
            extra={"metavar": "FILE", "role": "reads"},
        ),
    ] = None
    draw: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_MEMBERS)] | None, Meta(description="Draw so many members uniformly.")
    ] = None
    seed: Annotated[Annotated[int, Meta(ge=0)] | None, Meta(description="With --draw. [default: 0]")] = None
    first: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_MEMBERS)] | None,
        Meta(description="List so many members, by ascending misfit and size.", extra={"flags": ["--list"]}),
    ] = None
    listed: Annotated[
        Path | None,
        Meta(
            description="Audit another tool's list, networks.csv, or its model: a network file of any format.",
            extra={"flags": ["--of"], "metavar": "LIST", "role": "reads"},
        ),
    ] = None
    present: Annotated[
        tuple[str, ...],
        Meta(
            description="Only members with this clause, 'a<-b+!c'; may be repeated.",
            extra={"flags": ["--given"], "metavar": "CLAUSE"},
        ),
    ] = ()
    absent: Annotated[
        tuple[str, ...],
        Meta(
            description="Only members without this clause; may be repeated.",
            extra={"flags": ["--without"], "metavar": "CLAUSE"},
        ),
    ] = ()
    extra_errors: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Of series: wrong readings beyond the least. [default: 0]"),
    ] = None
    max_parents: Annotated[
        Annotated[int, Meta(ge=1, le=6)] | None,
        Meta(description="Of series: count functions of so many parents, whatever the prior."),
    ] = None
    updates: Annotated[
        Literal["synchronous", "asynchronous"] | None,
        Meta(description="Of series: whether a step updates all genes or one. [default: synchronous]"),
    ] = None
    fixed: Annotated[
        tuple[str, ...],
        Meta(
            description="Of series: count the members under which a state stays, 0110 in the order of genes; may be"
            " repeated.",
            extra={"metavar": "STATE"},
        ),
    ] = ()


class GenerateOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `calibrant generate`."""

    form: ItemForm = "experiments"
    names: NetworkNames = None


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
    networks: Annotated[
        str | None, Meta(description="Of series: folder of network files that states are drawn from.")
    ] = None
    decoys: Annotated[
        Annotated[int, Meta(ge=0, le=5)] | None,
        Meta(description="Of series: candidates of a gene beyond its inputs. [default: 0]"),
    ] = None
    functions: Annotated[
        Literal["signed", "free"] | None,
        Meta(description="Of series: functions monotone as signs say, or any. [default: signed]"),
    ] = None
    question: Annotated[
        Literal["states", "attractor"] | None, Meta(description="Of series: what is asked. [default: drawn]")
    ] = None
    steps: Annotated[
        Annotated[int, Meta(ge=1, le=20)] | None, Meta(description="Of series: states that are asked for. [default: 3]")
    ] = None


OPTIONS: dict[str, type[Struct]] = {
    "family": FamilyOptions,
    "generate": GenerateOptions,
    "pool convert": DataOptions,
}

KEYWORDS: dict[str, type[Struct]] = {"generate": GenerateKeywords}

ITEM_OPTIONS: dict[str, type[Struct]] = {"generate": GeneratedItems}
