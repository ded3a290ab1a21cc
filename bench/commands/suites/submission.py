"""Command `calibrant submission`."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from calibrant.bench.commands.guard import READS
from calibrant.bench.commands.options import NewFolder
from calibrant.bench.help import INPUT


def submission(
    suite: Annotated[
        Path, typer.Argument(metavar="SUITE", help="Folder of the suite; of it, public/suite.json is read."), READS
    ],
    answers: Annotated[
        list[Path],
        typer.Argument(metavar="POOL.jsonl...", help="Predictions or transcripts, called as the pool they are for."),
        READS,
    ],
    system: Annotated[str, typer.Option("--system", metavar="NAME", help="The system.", rich_help_panel=INPUT)],
    version: Annotated[
        str,
        typer.Option("--system-version", metavar="TEXT", help="Its version, a commit perhaps.", rich_help_panel=INPUT),
    ],
    submitter: Annotated[
        str, typer.Option("--submitter", metavar="NAME", help="Who submits it.", rich_help_panel=INPUT)
    ],
    date: Annotated[
        datetime,
        typer.Option("--date", formats=["%Y-%m-%d"], help="Day of the submission.", rich_help_panel=INPUT),
    ],
    out: NewFolder,
    developer: Annotated[
        str, typer.Option("--developer", metavar="NAME", help="Who made the system.", rich_help_panel=INPUT)
    ] = "unknown",
    relationship: Annotated[
        Literal["first_party", "third_party", "collaborative", "other"],
        typer.Option("--relationship", help="Of submitter and developer.", rich_help_panel=INPUT),
    ] = "other",
    cost: Annotated[
        float | None,
        typer.Option("--cost", min=0, help="What the answers cost, with --currency.", rich_help_panel=INPUT),
    ] = None,
    currency: Annotated[
        str | None, typer.Option("--currency", metavar="CODE", help="As EUR or USD.", rich_help_panel=INPUT)
    ] = None,
) -> None:
    """Write a submission to a suite: copies of the files of answers, and a card with their digests.

    A board scores the answers again and believes nothing on the card. Further fields may be added to card.toml by hand.
    """
    from calibrant.bench.suites.manifest import GOLD, read_manifest
    from calibrant.bench.suites.submissions import write_submission
    from calibrant.bench.terminal import NextCommand, print_next, print_written, unused_path

    if (cost is None) is not (currency is None):
        raise typer.BadParameter("--cost and --currency are given together")
    if currency is not None and not re.fullmatch("[A-Z]{3}", currency):
        raise typer.BadParameter(f"--currency {currency!r} is not three capital letters, as USD")
    statements = {
        "system": system,
        "version": version,
        "submitter": submitter,
        "date": date.date(),
        "developer": developer,
        "relationship": relationship,
        "cost": cost,
        "currency": currency,
    }
    manifest = read_manifest(suite)
    write_submission(manifest, answers, statements, out)
    print_written(out, f"submission to {manifest.name} {manifest.release}")
    if (suite / GOLD).is_dir() and out.parent != Path():
        print_next([NextCommand(("board", suite, out.parent, "--out", unused_path("site")), "score it")])
