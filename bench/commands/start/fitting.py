"""Command: calibrant fit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from calibrant.bench.commands.guard import READS, WRITES, WRITES_PAGE, WRITES_PICTURE, Writes
from calibrant.bench.commands.options import AsJson, refuse_options
from calibrant.bench.help import INPUT, METHOD, OUTPUT

if TYPE_CHECKING:
    from calibrant.bench.core.capabilities import FittedTable
    from calibrant.bench.terminal import NextCommand

DEFAULT_PARENTS, MAX_PARENTS = 4, 6
FEW_NETWORKS = 5  # shown where one was


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


One: TypeAlias = Annotated[
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


def fit(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="CSV or Parquet file of two-valued columns."), READS],
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="COLUMN", help="Explain this column by the others.", rich_help_panel=INPUT),
    ] = None,
    do: Do = None,
    do_flags: DoFlags = None,
    one: One = None,
    binarize: Binarize = None,
    drop: Drop = None,
    missing: Missing = None,
    gaps: GapHandling = "complete",
    roots: Roots = None,
    max_parents: MaxParents = None,
    score: Annotated[
        Literal["bde", "bds", "bdj", "k2", "bic", "aic"] | None,
        typer.Option(
            "--score", help="Noisy columns: learn networks of highest score instead, proven.", rich_help_panel=METHOD
        ),
    ] = None,
    best: Annotated[
        int | None, typer.Option("--best", min=1, help="With --score: so many best networks.", rich_help_panel=METHOD)
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Write the page that shows what is open and why.", rich_help_panel=OUTPUT
        ),
        WRITES_PAGE,
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="FILE", help="Write one picture of it.", rich_help_panel=OUTPUT),
        WRITES_PICTURE,
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="POOL", help="Write the table as a pool of one item.", rich_help_panel=OUTPUT),
        WRITES,
    ] = None,
    certificates: Certificates = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> int:
    """Fit a table of two-valued columns: the least SCM, or formula of --target, with proof; how many fit; what is open.

    Any two values, any names; the first lines state what was read as 1. Exit code 1 if nothing fits; the output states
    what was gone through. Columns with noise are no functions of others: --score learns networks instead, by dynamic
    programming over all of them, with the probability of each arc; rows in which a column was set do not count for
    its own parents.
    """
    from calibrant.bench.commands import options
    from calibrant.bench.core.capabilities import FITTING
    from calibrant.bench.core.registry import sole_provider
    from calibrant.bench.terminal import print_next

    if score is None and best is not None:
        raise typer.BadParameter("it is about networks: give --score", param_hint="--best")
    reading: dict[str, Any] = {"do": do or (), "do_flags": do_flags, "one": one or (), "binarize": binarize or ()}
    reading |= {"drop": drop or (), "missing": missing or ()}
    if score is not None:
        refused = {"--target": target, "--roots": roots, "--html": html, "--svg": svg, "--out": out}
        reason = "not with --score, which prints networks of all columns; it takes --best, --max-parents, --json"
        refuse_options(refused | {"--certificates": certificates}, reason)
        _print_networks(table, score, best or 1, max_parents, gaps, reading, as_json=as_json, verbose=verbose)
        return 0
    fitting, parents = sole_provider(FITTING), max_parents or DEFAULT_PARENTS
    with options.progress_bar("fitting: ", first=options.PROMPT) as listen:
        fitted = fitting.fit(
            table, target=target, roots=roots, max_parents=parents, gaps=gaps, reading=reading, progress=listen
        )
    for note in fitted.write(table.name, html=html, svg=svg, out=out, certificates=certificates):
        typer.echo(note, err=True)
    if as_json:
        typer.echo(json.dumps(fitted.to_dict(), indent=1))
    else:
        for line in fitted.lines(verbose=verbose):
            typer.echo(line)
        print_next(_next_commands(html, out, certificates) if fitted.fits else _wider(fitted, max_parents))
    return 0 if fitted.fits else 1


def _wider(fitted: FittedTable, max_parents: int | None) -> Iterator[NextCommand]:
    """Yield the same fit in a wider class, where nothing fits and no rows contradict each other."""
    from calibrant.bench.terminal import NextCommand, command_without_option

    number = (max_parents or DEFAULT_PARENTS) + 1
    if number <= MAX_PARENTS and fitted.may_fit_wider:
        yield NextCommand((*command_without_option("--max-parents"), "--max-parents", number), "a wider class")


def _next_commands(html: Path | None, out: Path | None, certificates: Path | None) -> Iterator[NextCommand]:
    """Yield what can be done after a fit."""
    from calibrant.bench.terminal import NextCommand, command_without, unused_path

    again = command_without(out, certificates)
    if html is None:
        yield NextCommand((*again, "--html", unused_path("why.html")), "what is open, drawn")
    if out is None:
        yield NextCommand((*again, "--out", unused_path("table.jsonl")), "as an item")
        return
    yield NextCommand(("audit", out), "count what fits")
    if written := sorted(certificates.glob("*.json"))[:1] if certificates is not None else []:
        yield NextCommand(("verify", *written, out), "check the certificate")


def _print_networks(
    table: Path,
    score: str,
    best: int,
    max_parents: int | None,
    gaps: Literal["complete", "drop"],
    reading: Mapping[str, Any],
    *,
    as_json: bool,
    verbose: bool,
) -> None:
    from calibrant.bench.commands import options
    from calibrant.bench.core.capabilities import FITTING
    from calibrant.bench.core.registry import sole_provider
    from calibrant.bench.terminal import NextCommand, invocation, print_next

    fitting = sole_provider(FITTING)
    with options.progress_bar("fitting: ", first=options.PROMPT) as listen:
        networks = fitting.networks(
            table, score=score, best=best, max_parents=max_parents, gaps=gaps, reading=reading, progress=listen
        )
    if as_json:
        typer.echo(json.dumps(networks.to_dict(), indent=1))
    else:
        for line in networks.lines(verbose=verbose):
            typer.echo(line)
        more = [NextCommand((*invocation.get(), "--best", FEW_NETWORKS), "the next best")] if best == 1 else []
        print_next([*more, NextCommand((*invocation.get(), "--json"), "all figures")])
