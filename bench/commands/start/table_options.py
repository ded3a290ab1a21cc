"""Options of commands that take a user's table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from calibrant.bench.commands.guard import READS, WRITES, WRITES_PAGE, WRITES_PICTURE, Writes
from calibrant.bench.help import FORMULAS, INPUT, METHOD, NETWORKS, OUTPUT

TablePath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="TABLE", help="CSV, Parquet or PLA file of two-valued columns."), READS
]


MaxParents: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--max-parents",
        min=0,
        max=61,
        help="Most columns that one depends on: 6, of --target 12. [default: 4; --score: any, beyond 18 columns 3]",
        rich_help_panel=METHOD,
    ),
]


Certificates: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--certificates",
        metavar="DIR",
        help="Write certificates, which `verify` checks against the table; with --out of the number of SCMs.",
        rich_help_panel=OUTPUT,
    ),
    Writes(("*.json",)),
]


Do: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--do",
        metavar="COLUMN",
        help="Column that names the columns set in each row (repeatable).",
        rich_help_panel=INPUT,
    ),
]


DoFlags: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--do-flags",
        metavar="PATTERN",
        help="Flag columns: with 'I_*', I_X is 1 where X was set.",
        rich_help_panel=INPUT,
    ),
]


WordsForOne: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--one",
        metavar="COL=WORD",
        help="The word of a column that is 1 (repeatable).",
        rich_help_panel=INPUT,
    ),
]


Binarize: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--binarize",
        metavar="COL:RULE",
        help="Make two values: '>50', '<=50', 'red|blue' or 'median' (repeatable).",
        rich_help_panel=INPUT,
    ),
]


Drop: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="A,B,...",
        help="Columns to leave out (repeatable).",
        rich_help_panel=INPUT,
    ),
]


Missing: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="WORD",
        help="A further word for cells without a value (repeatable).",
        rich_help_panel=INPUT,
    ),
]


GapHandling: TypeAlias = Annotated[
    Literal["complete", "drop"],
    typer.Option(
        "--gaps",
        help="Rows with gaps: `complete` counts what fits for some and for all values of gaps, `drop` leaves them out.",
        rich_help_panel=INPUT,
    ),
]


Verbose: TypeAlias = Annotated[
    bool, typer.Option("--verbose", help="Print all notes on how the table was read.", rich_help_panel=OUTPUT)
]


Roots: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--roots",
        metavar="A,B,...",
        help="Columns without a mechanism. [default: as few as possible]",
        rich_help_panel=INPUT,
    ),
]


Target: TypeAlias = Annotated[
    str | None,
    typer.Option("--target", metavar="COLUMN", help="Explain this column by the others.", rich_help_panel=FORMULAS),
]


ScoreName: TypeAlias = Annotated[
    Literal["bde", "bds", "bdj", "k2", "bic", "aic"] | None,
    typer.Option(
        "--score", help="Noisy columns: learn networks of highest score instead, proven.", rich_help_panel=METHOD
    ),
]


Best: TypeAlias = Annotated[
    int | None, typer.Option("--best", min=1, help="With --score: so many best networks.", rich_help_panel=NETWORKS)
]


Page: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Write a page: what is open and why; with --score the networks.",
        rich_help_panel=OUTPUT,
    ),
    WRITES_PAGE,
]


Picture: TypeAlias = Annotated[
    Path | None,
    typer.Option("--svg", metavar="FILE", help="Write a picture of what is open.", rich_help_panel=OUTPUT),
    WRITES_PICTURE,
]


PoolOut: TypeAlias = Annotated[
    Path | None,
    typer.Option("--out", metavar="POOL", help="Write the table as a pool of one item.", rich_help_panel=OUTPUT),
    WRITES,
]


Operators: TypeAlias = Annotated[
    Literal["all", "and-or-not", "sop", "pos"] | None,
    typer.Option(
        "--operators",
        help="Formulas: all operators, not/and/or, sums of products, products of sums. [default: all]",
        rich_help_panel=FORMULAS,
    ),
]


Errors: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--errors",
        metavar="front|N|none",
        help="Least size for every number of errors, or for up to N; none: no front where nothing fits --target.",
        rich_help_panel=FORMULAS,
    ),
]


Ties: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--ties",
        min=1,
        max=10_000,
        help="Most formulas listed for each number of --errors. [default: 20]",
        rich_help_panel=FORMULAS,
    ),
]


Rates: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--rates",
        metavar="1/10,1/20:4/5",
        help="Unknown rate of errors in --target: these, or with priors.",
        rich_help_panel=FORMULAS,
    ),
]


Consistency: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--consistency",
        metavar="4/5",
        help="Truth table of --target: patterns with this share of ones are 1.",
        rich_help_panel=FORMULAS,
    ),
]


Cases: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--cases", min=1, help="With --consistency: rows of a pattern that is no remainder.", rich_help_panel=FORMULAS
    ),
]


# --- Networks, with --score -------------------------------------------------------------------------------------------
SampleSize: TypeAlias = Annotated[
    float | None,
    typer.Option("--iss", metavar="ROWS", help="Imaginary rows of bde and bds. [default: 1]", rich_help_panel=NETWORKS),
]


Required: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--require", metavar="'A -> B'", help="An arc that every network has (repeatable).", rich_help_panel=NETWORKS
    ),
]


Forbidden: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--forbid", metavar="'A -> B'", help="An arc that no network has (repeatable).", rich_help_panel=NETWORKS
    ),
]


Tiers: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--tiers", metavar="'A,B < C'", help="No arc from a later to an earlier tier.", rich_help_panel=NETWORKS
    ),
]


ColumnOrder: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--order", metavar="A,B,...", help="No arc from a later to an earlier column.", rich_help_panel=NETWORKS
    ),
]


ParentLimits: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--max-parents-of", metavar="B=1", help="Most parents of one column (repeatable).", rich_help_panel=NETWORKS
    ),
]


KnowledgeFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--knowledge",
        metavar="FILE",
        help="Lines such as `require A -> B`, `tiers A < B`, `max-parents 2`.",
        rich_help_panel=NETWORKS,
    ),
    READS,
]


AssumptionFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--assume",
        metavar="FILE",
        help="Only SCMs that satisfy its lines, such as `require A -> B`, `increasing A -> B`.",
        rich_help_panel=METHOD,
    ),
    READS,
]


OwnGraph: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--graph",
        metavar="FILE|'A -> B'",
        help="Each column a function of its parents here? With --score: its rank. A file, a model string or arcs.",
        rich_help_panel=NETWORKS,
    ),
]


Effect: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--effect",
        metavar="'Y=yes | do(X=no)'",
        help="Probability of a value if others are set, over all best networks.",
        rich_help_panel=NETWORKS,
    ),
]


GraphPrior: TypeAlias = Annotated[
    Literal["dags", "orders", "uniform", "by_parents"] | None,
    typer.Option(
        "--prior",
        help="Networks all alike (dags), or by orders; with --rates uniform or by_parents. [default: dags, uniform]",
        rich_help_panel=METHOD,
    ),
]


ProofSeconds: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--seconds", help="Seconds for the proof beyond 18 columns. [default: counted steps]", rich_help_panel=NETWORKS
    ),
]


Search: TypeAlias = Annotated[
    bool,
    typer.Option("--search", help="Beyond 18 columns: a search with a bound, no proof.", rich_help_panel=NETWORKS),
]


Export: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--export",
        metavar="FILE",
        help="Write the best network as .dot, .graphml, .bif or .txt.",
        rich_help_panel=OUTPUT,
    ),
    WRITES,
]


FailOn: TypeAlias = Annotated[
    Literal["refuted"] | None,
    typer.Option(
        "--fail-on",
        help="Exit code 1 if rows contradict --graph or, with --score, another beats it.",
        rich_help_panel=OUTPUT,
    ),
]
