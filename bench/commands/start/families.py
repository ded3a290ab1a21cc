"""Command: calibrant family."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.bench.commands.guard import READS, WRITES_PAGE, Writes
from calibrant.bench.commands.options import AsJson, with_options
from calibrant.bench.core.options import GivenOptions
from calibrant.bench.help import METHOD, OUTPUT, VIEW

if TYPE_CHECKING:
    from calibrant.bench.terminal import NextCommand


@with_options("family")
def family(
    prior: Annotated[Path, typer.Argument(metavar="PKN", help="Prior: SIF, table of edges, or network."), READS],
    data: Annotated[Path, typer.Argument(metavar="MIDAS", help="Measurements, MIDAS; or a CSV file of series."), READS],
    given: GivenOptions,
    next_: Annotated[
        bool, typer.Option("--next", help="Rank the candidates of the next experiment.", rich_help_panel=VIEW)
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="overclaimed|missing|outside",
            help="With --of: exit code 1 if the list is so; may be repeated.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Write tables, networks and models into this folder.", rich_help_panel=OUTPUT
        ),
        Writes(("*.csv", "*.json", "*.jsonl", "*.bnet", "*.graphml", "*.dot")),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Write a page: network, spectrum, predictions.", rich_help_panel=OUTPUT
        ),
        WRITES_PAGE,
    ] = None,
    certificates: Annotated[
        Path | None,
        typer.Option(
            "--certificates",
            metavar="DIR",
            help="Write certificates, and the item to check them against.",
            rich_help_panel=OUTPUT,
        ),
        Writes(("*.claim.json", "item.jsonl")),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Count the logic models that fit a prior network and perturbation data: the family, exactly, with proof.

    First the class, the proven optimum, how many models are within --fit and --size of it, which edges all of them,
    some or none use, and the next experiment that is expected to leave the fewest. Series in which everything was
    observed (a CSV file with a column `series`) are counted gene by gene. Exit code 1 if the models are too many to
    count, or for --fail-on.
    """
    from calibrant.bench.core.families import FAILURES, FAMILIES
    from calibrant.bench.core.registry import sole_provider
    from calibrant.bench.terminal import print_next

    strange = [kind for kind in fail_on or () if kind not in FAILURES]
    if strange:
        raise typer.BadParameter(f"{strange[0]!r} is none of {', '.join(FAILURES)}", param_hint="--fail-on")
    if fail_on and "listed" not in given.values:
        raise typer.BadParameter("it is about another tool's list: give --of", param_hint="--fail-on")
    counted = sole_provider(FAMILIES).count(prior, data, given)
    notes = list(counted.write(out=out, html=html, certificates=certificates))
    if as_json:
        typer.echo(json.dumps(counted.to_dict(), indent=1))
    else:
        for line in counted.lines(ranks_candidates=next_):
            typer.echo(line)
    for line in (*notes, *(failures := counted.failures(fail_on or ()))):
        typer.echo(line, err=True)
    print_next([] if as_json or not (out or html or certificates) else _next_commands(out, html, certificates))
    return 0 if counted.is_counted and not failures else 1


def _next_commands(out: Path | None, html: Path | None, certificates: Path | None) -> Iterator[NextCommand]:
    """Yield what can be done after a count."""
    from calibrant.bench.terminal import NextCommand, command_without, unused_path

    if certificates is not None:
        yield NextCommand(("verify", certificates, certificates / "item.jsonl"), "check the certificates")
    elif html is not None:
        yield NextCommand((*command_without(out), "--certificates", unused_path("certificates")), "with proof")
    else:
        yield NextCommand((*command_without(out), "--html", unused_path("family.html")), "as a page")
