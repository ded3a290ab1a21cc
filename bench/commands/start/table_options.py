"""Options of commands that take a table of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from calibrant.bench.commands.guard import READS, WRITES, WRITES_PAGE, WRITES_PICTURE, Writes
from calibrant.bench.help import INPUT, METHOD, OUTPUT

TablePath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="TABLE", help="CSV or Parquet file of two-valued columns."), READS
]


MaxParents: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--max-parents",
        min=1,
        max=17,
        help="Columns that one may depend on, at most: 1 to 6. [default: 4; with --score no limit]",
        rich_help_panel=METHOD,
    ),
]


Certificates: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--certificates",
        metavar="DIR",
        help="Write a certificate of the count; `verify` takes --out.",
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
    typer.Option("--gaps", help="Rows with gaps: `drop` leaves them out.", rich_help_panel=INPUT),
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
    typer.Option("--target", metavar="COLUMN", help="Explain this column by the others.", rich_help_panel=INPUT),
]


ScoreName: TypeAlias = Annotated[
    Literal["bde", "bds", "bdj", "k2", "bic", "aic"] | None,
    typer.Option(
        "--score", help="Noisy columns: learn networks of highest score instead, proven.", rich_help_panel=METHOD
    ),
]


Best: TypeAlias = Annotated[
    int | None, typer.Option("--best", min=1, help="With --score: so many best networks.", rich_help_panel=METHOD)
]


Page: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="FILE", help="Write the page that shows what is open and why.", rich_help_panel=OUTPUT
    ),
    WRITES_PAGE,
]


Picture: TypeAlias = Annotated[
    Path | None,
    typer.Option("--svg", metavar="FILE", help="Write one picture of it.", rich_help_panel=OUTPUT),
    WRITES_PICTURE,
]


PoolOut: TypeAlias = Annotated[
    Path | None,
    typer.Option("--out", metavar="POOL", help="Write the table as a pool of one item.", rich_help_panel=OUTPUT),
    WRITES,
]
