"""Command `calibrant board`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.bench.commands.guard import READS
from calibrant.bench.commands.options import NewFolder, Workers, execution, progress_bar
from calibrant.bench.commands.suites.release import list_next_commands
from calibrant.bench.help import EXECUTION, VIEW
from calibrant.dsl.text import plural

DEFAULT_SECONDS = 300.0


def board(
    suite: Annotated[Path, typer.Argument(metavar="SUITE", help="Folder that `calibrant release` wrote."), READS],
    submissions: Annotated[
        Path, typer.Argument(metavar="SUBMISSIONS", help="Folder with a folder for each submission."), READS
    ],
    out: NewFolder,
    digest: Annotated[
        str | None,
        typer.Option(
            "--digest", metavar="SHA256", help="Digest of the release, as its authors state it.", rich_help_panel=VIEW
        ),
    ] = None,
    workers: Workers = None,
    budget: Annotated[
        float,
        typer.Option(
            min=0.001, help="Wall seconds for a file of a submission; then it is refused.", rich_help_panel=EXECUTION
        ),
    ] = DEFAULT_SECONDS,
) -> int:
    """Score submissions to a suite again and write their board as static pages.

    A submission is a folder with card.toml and a file POOL.jsonl of predictions or transcripts for each pool. The suite
    is checked first: digests, commitments to gold, certificates. Nothing in a submission is believed; a changed byte, a
    forged transcript, swapped gold or an edited certificate is red with its reason and stays out of the ranking.
    Exit 1 if anything is red.
    """
    from calibrant.bench.suites.board import build_board
    from calibrant.bench.suites.manifest import read_manifest
    from calibrant.bench.suites.pages import unranked_text
    from calibrant.bench.terminal import print_next, print_written
    from calibrant.dsl.errors import in_one_line

    with progress_bar() as progress:
        summary = build_board(
            suite,
            submissions,
            out,
            expected=digest or "",
            execution=execution(workers, None, budget),
            progress=progress,
        )
    for pool, reason in summary.damage.items():
        typer.echo(in_one_line(f"red  {pool}: {reason}"))
    for entry in summary.refused:
        typer.echo(in_one_line(f"red  {entry.name}: {entry.reason}"))
    typer.echo(f"{plural(summary.num_ranked, 'systems')} ranked, {len(summary.refused)} refused", err=True)
    if not summary.num_ranked:
        typer.echo(f"no system is ranked. {unranked_text(summary.refused)}", err=True)
    print_written(summary.page)
    if not summary.damage:
        print_next(list_next_commands(suite, read_manifest(suite), submissions))
    return 1 if summary.refused or summary.damage else 0
