"""Command: calibrant fit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from calibrant.bench.commands.options import AsJson, refuse_options
from calibrant.bench.commands.start.table_options import (
    Best,
    Binarize,
    Certificates,
    Do,
    DoFlags,
    Drop,
    GapHandling,
    MaxParents,
    Missing,
    Page,
    Picture,
    PoolOut,
    Roots,
    ScoreName,
    TablePath,
    Target,
    Verbose,
    WordsForOne,
)

if TYPE_CHECKING:
    from calibrant.bench.core.capabilities import FittedTable
    from calibrant.bench.terminal import NextCommand

DEFAULT_PARENTS, MAX_PARENTS = 4, 6
FEW_NETWORKS = 5  # shown where one was


def fit(
    table: TablePath,
    target: Target = None,
    do: Do = None,
    do_flags: DoFlags = None,
    ones: WordsForOne = None,
    binarize: Binarize = None,
    drop: Drop = None,
    missing: Missing = None,
    gaps: GapHandling = "complete",
    roots: Roots = None,
    max_parents: MaxParents = None,
    score: ScoreName = None,
    best: Best = None,
    html: Page = None,
    svg: Picture = None,
    out: PoolOut = None,
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
    reading: dict[str, Any] = {"do": do or (), "do_flags": do_flags, "one": ones or (), "binarize": binarize or ()}
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
